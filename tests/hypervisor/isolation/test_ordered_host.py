"""The cgroups of a limited host: over a tree of plain files, and in the kernel's own with small processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hypervisor.conftest import Start
from tests.processes import only_child
from vmlab.hypervisor.isolation import cgroups
from vmlab.hypervisor.isolation.host_cgroups import OrderedHost, programs_of
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.hypervisor.libvirt.libvirt_root import root_folder
from vmlab.model.errors import HypervisorError, RefusedError
from vmlab.model.scenarios.host_settings import HostSize
from vmlab.system.mounts import Mount, hierarchies, mount_of, read_cpu_list
from vmlab.telemetry.host.ordered_host import OrderedHost as OrderedFigures
from vmlab.telemetry.setting_files import why_no_ordered_host

MIB = 2**20
SOON = 240.0
SUFFIX = ".partition"
PREFIX = "qemu-embed-0123abcd-"
TOP = f"machine/{PREFIX}host.partition"
HERE = hierarchies()
NEEDS_KERNEL = pytest.mark.skipif(
    os.geteuid() != 0 or any(why_no_ordered_host(name, HERE) for name in cgroups.OF_ORDERED_HOST),
    reason="needs root and the controllers cpuset and memory",
)


def files(folder: Path, **texts: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text)


def unified(root: Path) -> list[Mount]:
    """Version 2, as where systemd has enabled memory alone. The kernel makes the files; those read are there."""
    files(root, cgroup__subtree_control="memory pids\n")
    files(root / "machine", cgroup__subtree_control="", cpuset__cpus__effective="0-3\n")
    files(root / TOP, cgroup__subtree_control="", memory__events="oom 0\noom_kill 0\n")
    return [Mount(root, frozenset({"cpu", "cpuacct", "cpuset", "memory", "pids"}), 2)]


def several(root: Path) -> list[Mount]:
    """Version 1: a hierarchy for each controller."""
    nothing = {"cpuset__cpus": "", "cpuset__mems": ""}
    files(root / "cpuset", cpuset__cpus="0-3\n", cpuset__mems="0\n")
    for folder in ("machine", TOP, f"{TOP}/guests.partition", f"{TOP}/programs"):
        files(root / "cpuset" / folder, **nothing)
    files(root / "memory" / TOP, memory__use_hierarchy="0\n", memory__oom_control="oom_kill 0\n")
    return [Mount(root / name, frozenset({name}), 1) for name in ("cpu", "cpuacct", "cpuset", "memory")]


def text(file: Path) -> str:
    return file.read_text().strip()


def test_in_version_2_controllers_are_delegated_down_to_groups_of_which_the_inner_ones_are_empty(
    tmp_path: Path,
) -> None:
    host = OrderedHost(PREFIX, HostSize(2, 256 * MIB), unified(tmp_path))
    host.make()
    top = tmp_path / TOP
    assert text(tmp_path / "cgroup.subtree_control") == "+cpu +cpuset"
    assert text(top.parent / "cgroup.subtree_control") == "+cpu +cpuset +memory"
    assert text(top / "cgroup.subtree_control") == "+cpu +cpuset +memory"
    assert (text(top / "memory.max"), text(top / "cpuset.cpus")) == (str(256 * MIB), "2,3")
    assert {folder.name for folder in top.iterdir() if folder.is_dir()} == {"guests.partition", "programs"}
    assert host.partition == f"/machine/{PREFIX}host/guests"
    assert host.files().memory == host.files().cpu == top


def test_in_version_1_each_hierarchy_has_the_groups_and_no_cpuset_is_empty(tmp_path: Path) -> None:
    mounts = several(tmp_path)
    host = OrderedHost(PREFIX, HostSize(1, 256 * MIB), mounts)
    host.make()
    host.close()
    for mount in mounts:
        assert {"guests.partition", "programs"} <= {folder.name for folder in (mount.root / TOP).iterdir()}
    cpuset = tmp_path / "cpuset"
    assert text(cpuset / "machine/cpuset.cpus") == "0-3"
    for folder in (TOP, f"{TOP}/guests.partition", f"{TOP}/programs"):
        assert (text(cpuset / folder / "cpuset.cpus"), text(cpuset / folder / "cpuset.mems")) == ("3", "0")
    memory = tmp_path / "memory" / TOP
    assert (text(memory / "memory.limit_in_bytes"), text(memory / "memory.use_hierarchy")) == (str(256 * MIB), "1")
    assert host.files().cpu == tmp_path / "cpuacct" / TOP
    assert host.controllers == ["cpu", "cpuacct", "cpuset", "memory"]


def test_a_missing_controller_and_too_many_cpus_are_refused_in_words(tmp_path: Path) -> None:
    without = [mount for mount in several(tmp_path) if "memory" not in mount.controllers]
    with pytest.raises(RefusedError, match="no limited host: the cgroup controller memory is missing"):
        OrderedHost(PREFIX, HostSize(1, None), without).make()
    assert "controller memory is missing" in why_no_ordered_host("memory", without)
    assert why_no_ordered_host("cpuset", without) == ""
    with pytest.raises(RefusedError, match="5 CPUs needs as many, and 4 are"):
        OrderedHost(PREFIX, HostSize(5, None), several(tmp_path)).make()


def test_a_limit_that_the_kernel_does_not_take_is_told(tmp_path: Path) -> None:
    mounts = unified(tmp_path)
    (tmp_path / TOP / "memory.max").symlink_to("/dev/null")
    with pytest.raises(HypervisorError, match=r"memory\.max is , and not"):
        OrderedHost(PREFIX, HostSize(None, 256 * MIB), mounts).make()


def test_in_version_2_a_kill_is_told_once(tmp_path: Path) -> None:
    host = OrderedHost(PREFIX, HostSize(None, 256 * MIB), unified(tmp_path))
    host.make()
    assert host.why_killed() == ""
    files(tmp_path / TOP, memory__events="oom 1\noom_kill 1\n")
    assert host.why_killed() == "the memory of the limited host, 256 MiB, was full: the kernel killed it"
    assert host.why_killed() == ""


def test_a_process_must_be_inside_by_both_controllers(tmp_path: Path) -> None:
    host, group = OrderedHost(PREFIX, HostSize(1, None), unified(tmp_path)), tmp_path / "proc/7/cgroup"
    files(group.parent, cgroup=f"1:name=systemd:/\n0::/{TOP}/guests.partition/qemu/libvirt/emulator\n")
    host.require_inside(7, tmp_path / "proc")
    group.write_text("0::/machine/qemu-embed-other-host.partition/guests.partition/qemu\n")
    with pytest.raises(HypervisorError, match="process 7 is outside the limited host"):
        host.require_inside(7, tmp_path / "proc")
    host = OrderedHost(PREFIX, HostSize(1, None), several(tmp_path / "first"))
    group.write_text(f"4:memory:/user\n3:cpuset:/{TOP}/guests.partition/qemu\n0::/{TOP}/x\n")
    with pytest.raises(HypervisorError, match="its memory is not limited"):
        host.require_inside(7, tmp_path / "proc")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl")


@pytest.fixture
def held(journal: Journal, tmp_path: Path) -> Iterator[str]:
    """The prefix of a lab that is in the journal, with its partitions; a sweep takes away what is left of it."""
    prefix = f"qemu-embed-{os.getpid():08x}-"
    places = cgroups.partitions(HERE, ordered=True)
    for place in places:
        if not cgroups.is_shared(place):
            journal.add(JournalEntry("partition", str(place)))
    journal.add(JournalEntry("cgroups", prefix))
    for place in places:
        cgroups.hold(place, prefix)
    yield prefix
    sweep(journal.path, tmp_path / "disks", "nobody")


def below(prefix: str, *argv: str) -> subprocess.Popen[bytes]:
    """A process that has joined the host's group for programs before it becomes `argv`."""
    into = programs_of(prefix)
    assert into
    script = "".join(f"echo 0 > {file} && " for file in into) + 'exec "$@"'
    return subprocess.Popen(["/bin/sh", "-c", script, "sh", *argv], stdout=subprocess.PIPE)


@NEEDS_KERNEL
def test_processes_are_held_within_cpus_and_memory_and_all_of_it_is_swept(
    held: str, journal: Journal, tmp_path: Path
) -> None:
    host = OrderedHost(held, HostSize(1, 64 * MIB), HERE)
    host.make()
    figures = OrderedFigures(host.files(), os.cpu_count() or 1, 2**40)
    work = (
        "import os, sys\n"
        f"with open({str(tmp_path / 'file')!r}, 'wb') as file:\n"
        "    for _ in range(128): file.write(bytes(2 ** 20)); file.flush(); os.fdatasync(file.fileno())\n"
        "print(open('/proc/self/status').read(), flush=True); sys.stdin.read()\n"
    )
    with below(held, sys.executable, "-c", work) as writer:
        assert writer.stdout is not None
        said = {}
        while "Cpus_allowed_list" not in said:
            name, _, value = writer.stdout.readline().decode().partition(":")
            said[name] = value.strip()
        found = dict(zip(figures.names, figures.read(0.0, 1.0), strict=True))
        writer.kill()
    assert len(read_cpu_list(said["Cpus_allowed_list"])) == 1
    assert found["ordered_memory_limit_bytes"] == 64 * MIB
    parts = [found[f"ordered_memory_{part}_bytes"] for part in ("used", "cached", "free")]
    assert sum(parts) == 64 * MIB
    # It wrote twice as much as fits: what is left of it is cache, and no more than the limit.
    assert 0 < parts[1] < 64 * MIB
    assert host.why_killed() == ""
    host.close()
    sweep(journal.path, tmp_path / "disks", "nobody")
    assert [path for place in cgroups.partitions(HERE, ordered=True) for path in place.glob(f"{held}*")] == []
    assert journal.open_entries() == []


@NEEDS_KERNEL
def test_a_process_that_wants_more_memory_is_killed_and_the_reason_is_known(held: str) -> None:
    host = OrderedHost(held, HostSize(None, 64 * MIB), HERE)
    host.make()
    memory = mount_of("memory", HERE)
    assert memory is not None
    no_swap = host.files().memory / ("memory.swappiness" if memory.version == 1 else "memory.swap.max")
    if no_swap.exists():
        no_swap.write_text("0")
    with below(held, "sleep", "3600") as inside:
        assert inside.stdout is not None
        while b"sleep" not in Path(f"/proc/{inside.pid}/cmdline").read_bytes().split(b"\0")[:1]:
            time.sleep(0.01)
        host.require_inside(inside.pid)
        with pytest.raises(HypervisorError, match="outside the limited host: its cpuset is not limited"):
            host.require_inside(os.getpid())
        inside.kill()
    with below(held, sys.executable, "-c", "bytearray(256 * 2 ** 20)") as eater:
        assert eater.wait() == -signal.SIGKILL
    assert "the memory of the limited host, 64 MiB, was full" in host.why_killed()
    assert host.why_killed() == ""
    host.close()


def groups_of(runtime: Path) -> list[Path]:
    prefix = cgroups.prefix_of(root_folder(runtime))
    return [path for place in cgroups.partitions(HERE, ordered=True) for path in place.glob(f"{prefix}*")]


@NEEDS_KERNEL
@pytest.mark.parametrize("end", ["close", "kill"])
def test_a_lab_on_one_opens_libvirt_and_leaves_nothing_after_any_end(
    isolated: Start, runtime: Path, tmp_path: Path, end: str
) -> None:
    (tmp_path / "disks").mkdir()
    with isolated("ordered_host", str(runtime), str(tmp_path), end) as lab:
        assert lab.stdout is not None
        line = lab.stdout.readline()
        assert line, lab.communicate()[1]
        said = json.loads(line)
        memory = mount_of("memory", HERE)
        assert memory is not None
        partition = memory.root / (
            said["partition"].lstrip("/").replace("-host/guests", f"-host{SUFFIX}/guests{SUFFIX}")
        )
        assert end == "close" or partition.is_dir()
        assert said["programs"]
        if end == "kill":
            init = only_child(lab.pid, bool)
            runner = only_child(init.pid, lambda words: words and "isolated" not in words[0])
            runner.send_signal(signal.SIGKILL)
        complaints = lab.communicate(timeout=SOON)[1]
        assert lab.returncode == (0 if end == "close" else 128 + signal.SIGKILL), complaints
    if end == "kill":
        assert groups_of(runtime) != []
        sweep(tmp_path / "journal.jsonl", tmp_path / "disks", "test")
    assert groups_of(runtime) == []
    assert Journal(tmp_path / "journal.jsonl").open_entries() == []
