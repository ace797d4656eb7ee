"""What stands in for systemd in a guest on the host: real units of small programs, in folders of the test's own."""

import json
import sys
from collections.abc import Callable, Iterator
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest

from vmlab.guests.host_shell import BareShell
from vmlab.system.mounts import joining

# The program ends before its servers do; here both are in one process.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

PROGRAM = Path(__file__).parents[2] / "vmlab/guests/payload/systemctl.py"
READY = (
    "import os, socket, time; s = socket.socket(1, 2); "
    "s.sendto(b'READY=1', os.environ['NOTIFY_SOCKET']); time.sleep(600)"
)


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program with units and state of its own."""
    spec = util.spec_from_file_location("stand_in", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("own", "package"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(module, "STATE", tmp_path / "state")
    monkeypatch.setattr(module, "PATIENCE", 20.0)
    monkeypatch.setattr(
        module, "read_unit", lambda name, read=module.read_unit: read(name, (tmp_path / "own", tmp_path / "package"))
    )
    return module


@pytest.fixture
def unit(tmp_path: Path, systemctl: ModuleType) -> Iterator[Callable[[str, str], str]]:
    """Writes a unit; what was started ends with the test."""
    names = []

    def write(name: str, service: str) -> str:
        (tmp_path / "package" / f"{name}.service").write_text(f"[Unit]\nDescription=x\n\n[Service]\n{service}\n")
        names.append(f"{name}.service")
        return names[-1]

    yield write
    for name in names:
        systemctl.main(["systemctl", "stop", name])


def test_drop_ins_replace_what_an_empty_value_forgets(tmp_path: Path, systemctl: ModuleType) -> None:
    (tmp_path / "package/a.service").write_text(
        "[Service]\nExecStart=/one \\\n two\n# a\nExecStartPost=/after\nUser=x\n"
    )
    (tmp_path / "own/a.service.d").mkdir()
    (tmp_path / "own/a.service.d/vmlab.conf").write_text("[Service]\nExecStart=\nExecStart=/other\nExecStartPost=\n")
    assert systemctl.read_unit("a.service") == {"ExecStart": ["/other"], "ExecStartPost": [], "User": ["x"]}


def test_variables_are_put_in_as_words(systemctl: ModuleType) -> None:
    known = {"OPTIONS": "-a -b", "EMPTY": ""}
    assert systemctl.words("-/bin/x $OPTIONS ${OPTIONS} $EMPTY 'q r'", known) == (
        ["/bin/x", "-a", "-b", "-a -b", "q r"],
        True,
    )


def test_a_server_that_notifies_is_active_until_it_is_stopped(
    systemctl: ModuleType, unit: Callable[[str, str], str]
) -> None:
    name = unit("ready", f'Type=notify\nExecStart={sys.executable} -c "{READY}"\nLimitNOFILE=64\nUMask=0077')
    assert systemctl.main(["systemctl", "start", name]) == 0
    pid = json.loads((systemctl.STATE / f"{name}.json").read_text())["pid"]
    assert "Max open files            64 " in Path(f"/proc/{pid}/limits").read_text()
    assert systemctl.main(["systemctl", "is-active", name]) == 0
    assert systemctl.shown(name) == "ActiveState=active\nResult=success"
    systemctl.main(["systemctl", "restart", name])
    assert not systemctl.is_alive(pid)
    systemctl.main(["systemctl", "stop", name])
    assert systemctl.main(["systemctl", "is-active", name]) == 3


def test_a_server_that_goes_to_the_background_is_found_by_its_file(
    tmp_path: Path, systemctl: ModuleType, unit: Callable[[str, str], str]
) -> None:
    file = tmp_path / "pid"
    name = unit("forks", f"Type=forking\nPIDFile={file}\nExecStart=/bin/sh -c 'sleep 600 & echo $! >{file}'")
    systemctl.main(["systemctl", "start", name])
    pid = int(file.read_text())
    assert systemctl.is_alive(pid)
    systemctl.main(["systemctl", "stop", name])
    assert not systemctl.is_alive(pid)


def test_why_a_server_did_not_start_is_the_last_line_of_its_log(
    systemctl: ModuleType, unit: Callable[[str, str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    name = unit("fails", "Type=notify\nExecStart=/bin/sh -c 'echo no such table; exit 3'")
    with pytest.raises(systemctl.Fault, match="exited with 3 before it was ready"):
        systemctl.main(["systemctl", "start", name])
    assert systemctl.main(["journalctl", "--unit", name, "--lines=1"]) == 0
    assert capsys.readouterr().out == "no such table\n"
    assert systemctl.shown(name) == "ActiveState=failed\nResult=exit-code"


def test_an_unknown_unit_is_told(systemctl: ModuleType) -> None:
    with pytest.raises(systemctl.Fault, match=r"Unit none\.service not found"):
        systemctl.main(["systemctl", "start", "none"])


def test_a_limit_above_what_the_host_allows_is_as_high_as_it_allows(systemctl: ModuleType) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_CORE)
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, before[1]))
        systemctl.set_limit(resource.RLIMIT_CORE, before[1])
        assert resource.getrlimit(resource.RLIMIT_CORE)[0] == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)


def test_a_command_joins_the_cgroups_enters_the_place_and_dies_with_who_entered() -> None:
    groups = [Path("/sys/fs/cgroup/x/cgroup.procs")]
    argv = BareShell(42, "198.18.1.10", groups)._inside(["true"])
    assert argv[: len(joining(groups))] == [*joining(groups)]
    assert argv[len(joining(groups)) :][:2] == ["/usr/bin/nsenter", "--target=42"]
    assert argv[-4:] == ["setpriv", "--pdeathsig=KILL", "--", "true"]
