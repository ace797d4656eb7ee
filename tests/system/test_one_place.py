"""Removals, signals and mounts stand in one guarded place each; see docs/decisions/0008."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

VMLAB = Path(__file__).parents[2] / "vmlab"
DECISION = VMLAB.parent / "docs/decisions/0008-what-may-remove-kill-and-mount.md"

REMOVALS = {"rmtree", "unlink", "rmdir", "removedirs"}
SIGNALS = {"killpg", "pidfd_send_signal"}
CHILDREN = {"kill", "terminate", "send_signal"}
TIMED = {"run", "call", "check_call", "check_output"}
"""With a `timeout` these functions of `subprocess` kill what they have started."""
MOUNTS = {"mount", "unmount", "umount", "umount2", "unshare", "setns"}

ALLOWED = {
    # The second removes files in a guest, over SFTP.
    "removal": {"system/removal.py", "guests/windows_shell.py"},
    "signal": {"system/processes.py"},
    # By the object that holds a program which they have started and not waited for yet, so that its number is its own.
    "child": {
        "cli/serving/server.py",
        "guests/host_shell.py",
        "guests/image/adding.py",
        "guests/image/layers.py",
        "guests/image/steps.py",
        "hypervisor/bare_place.py",
        "hypervisor/lab_network.py",
        "hypervisor/emulated_disk/disk_process.py",
        "hypervisor/kvm_probe.py",
        "hypervisor/ceph/rbd.py",
        "hypervisor/levers/disk_allocation.py",
        "hypervisor/levers/qemu_offers.py",
        "hypervisor/lvm/logical_volumes.py",
        "lab/provision/host_support.py",
        "system/run_to_end.py",
        "telemetry/speed_trace.py",
        "workloads/reports/found_figures.py",
        "workloads/suites/unixbench.py",
    },
    # The first offers the calls, the second makes the lab's own namespaces; the others are to refuse outside of them.
    "mount": {
        "system/kernel.py",
        "hypervisor/isolation/namespace.py",
        "hypervisor/libvirt/libvirt_root.py",
        "hypervisor/emulated_disk/disk_server.py",
        "hypervisor/emulated_disk/emulated_disk.py",
        "hypervisor/lab_network.py",
        "hypervisor/ceph/rbd.py",
        "hypervisor/disks/host_files.py",
        "hypervisor/disks/made_file_systems.py",
        "hypervisor/bare_init.py",
    },
}
INSIDE_GUESTS = ("workloads/payload/", "guests/payload/")
"""Programs that the lab copies into a guest, or a guest on the host; they run nowhere else."""


def kind_of(call: ast.Call) -> str | None:
    """What a call does to the host: removal, signal (to a child), or mount; None for all others."""
    function = call.func
    if not isinstance(function, ast.Attribute):
        return None
    of = function.value.id if isinstance(function.value, ast.Name) else ""
    if function.attr in REMOVALS or (of == "os" and function.attr == "remove"):
        return "removal"
    if function.attr in SIGNALS or (of == "os" and function.attr == "kill"):
        return "signal"
    timed = of == "subprocess" and function.attr in TIMED and any(word.arg == "timeout" for word in call.keywords)
    if function.attr in CHILDREN or timed:
        return "child"
    return "mount" if function.attr in MOUNTS else None


def calls(source: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and (kind := kind_of(node)) is not None:
            yield kind, node.lineno


def found() -> Iterator[tuple[str, str, int]]:
    """File, kind and line of every such call of the program on the host."""
    for file in sorted(VMLAB.rglob("*.py")):
        name = file.relative_to(VMLAB).as_posix()
        if not name.startswith(INSIDE_GUESTS):
            yield from ((name, kind, line) for kind, line in calls(file.read_text()))


def test_nothing_else_removes_signals_or_mounts() -> None:
    assert [f"vmlab/{name}:{line} {kind}" for name, kind, line in found() if name not in ALLOWED[kind]] == []


def test_who_may_also_does() -> None:
    assert {(kind, name) for name, kind, _ in found()} == {
        (kind, name) for kind, allowed in ALLOWED.items() for name in allowed
    }


OFFERED = ("remove_", "signal_", "make_marked", "write_setting")
"""How the functions are called that `vmlab.system` offers for it; `make_marked…` takes a folder back."""


def users() -> Iterator[str]:
    """The files that make use of them."""
    for file in sorted(VMLAB.rglob("*.py")):
        imported = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
        names = [name.name for node in imported if str(node.module).startswith("vmlab.system") for name in node.names]
        if any(name.startswith(OFFERED) for name in names):
            yield file.relative_to(VMLAB).as_posix()


def test_the_decision_lists_all_of_them() -> None:
    table = DECISION.read_text()
    named = {name for name, *_ in found() if not name.startswith("system/")} | set(users())
    assert [name for name in sorted(named) if f"`{name}`" not in table] == []


class Module:
    """Which mounts of a module are reached without a look whether this process has left the host's mounts."""

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        self._functions = {
            node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        inside = {id(part) for function in self._functions.values() for part in ast.walk(function)}
        self.loose = [node.lineno for node in ast.walk(tree) if id(node) not in inside and is_mount(node)]
        self._guards: set[str] = set()
        while more := {name for name in self._functions if name not in self._guards and self._guard_lines(name)}:
            self._guards |= more

    def unguarded(self) -> list[int]:
        """The lines of mounts that nothing guards, as far as names and the order of lines tell."""
        return self.loose + [
            node.lineno
            for name, function in self._functions.items()
            for node in ast.walk(function)
            if is_mount(node) and not self._is_guarded(name, node.lineno, frozenset())
        ]

    def _guard_lines(self, name: str) -> list[int]:
        return [
            node.lineno
            for node in ast.walk(self._functions[name])
            if isinstance(node, ast.Call) and (is_guard(node) or name_of(node) in self._guards - {name})
        ]

    def _is_guarded(self, name: str, line: int, above: frozenset[str]) -> bool:
        """Whether a guard stands before `line` of function `name`, or before every mention of a private function."""
        if any(guard < line for guard in self._guard_lines(name)):
            return True
        if not name.startswith("_") or name in above:
            return False
        mentions = [
            (other, node.lineno)
            for other, function in self._functions.items()
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and node.id == name
        ]
        return bool(mentions) and all(self._is_guarded(other, at, above | {name}) for other, at in mentions)


def name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def is_mount(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and kind_of(node) == "mount" and not is_guard(node) and not new_pids(node)


def is_guard(call: ast.Call) -> bool:
    """It refuses outside of a lab, or leaves the host's mounts itself."""
    return name_of(call) == "require_isolation" or (
        ast.unparse(call.func) == "kernel.unshare" and "CLONE_NEWNS" in ast.unparse(call)
    )


def new_pids(call: ast.Call) -> bool:
    return ast.unparse(call) == "kernel.unshare(kernel.CLONE_NEWPID)"


@pytest.mark.parametrize("name", sorted(ALLOWED["mount"] - {"system/kernel.py"}))
def test_each_mount_is_reached_behind_a_look_at_the_namespaces(name: str) -> None:
    assert Module((VMLAB / name).read_text()).unguarded() == []


GUARDED = """
def public():
    require_isolation()
    _inner()
def _inner():
    kernel.mount()
"""


def test_the_look_may_stand_in_the_only_caller() -> None:
    assert Module(GUARDED).unguarded() == []


@pytest.mark.parametrize(
    "source",
    [
        GUARDED + "def other():\n    _inner()\n",
        GUARDED + "def other():\n    kernel.unmount()\n",
        GUARDED + "def other():\n    kernel.unshare(kernel.CLONE_NEWNET)\n    kernel.mount()\n",
        GUARDED + "def other():\n    later(_inner)\n",
        GUARDED + "kernel.mount()\n",
        GUARDED.replace("_inner", "inner"),
        "def public():\n    kernel.mount()\n    require_isolation()\n",
        "def _nobody_calls():\n    kernel.mount()\n",
    ],
)
def test_a_mount_that_is_reached_without_is_seen(source: str) -> None:
    assert Module(source).unguarded() != []


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("shutil.rmtree(folder)", "removal"),
        ("path.unlink(missing_ok=True)", "removal"),
        ("os.remove(name)", "removal"),
        ("os.kill(pid, 9)", "signal"),
        ("process.kill()", "child"),
        ("psutil.Process(pid).terminate()", "child"),
        ("self.process.send_signal(15)", "child"),
        ("subprocess.run(argv, timeout=3)", "child"),
        ("kernel.mount('a', 'b')", "mount"),
    ],
)
def test_the_rule_sees_what_it_forbids(line: str, kind: str) -> None:
    assert list(calls(line)) == [(kind, 1)]


def test_a_list_and_a_program_that_is_waited_for_are_no_matter() -> None:
    assert list(calls("names.remove('a'); found.discard(1); subprocess.run(argv)")) == []
