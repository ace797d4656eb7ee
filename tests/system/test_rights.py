"""What root may do in a container, and how a user becomes root."""

import sys
from pathlib import Path

import pytest

from vmlab.hypervisor import checks
from vmlab.lab.process import launch
from vmlab.model.errors import RefusedError
from vmlab.system.rights import as_root, missing_capabilities


@pytest.mark.parametrize(
    ("held", "missing"),
    [
        ("000001ffffffffff", []),
        ("00000000800405fb", ["CAP_NET_ADMIN", "CAP_SYS_ADMIN"]),
        ("00000000802405fb", ["CAP_NET_ADMIN"]),
    ],
    ids=["root", "podman's default", "with SYS_ADMIN"],
)
def test_the_capabilities_that_a_lab_needs_are_read_from_the_kernel(
    held: str, missing: list[str], tmp_path: Path
) -> None:
    status = tmp_path / "status"
    status.write_text(f"Name:\tvmlab\nCapInh:\t0000000000000000\nCapEff:\t{held}\n")
    assert missing_capabilities(status) == missing
    locked = [] if held.startswith("000001") else ["CAP_IPC_LOCK"]
    assert missing_capabilities(status, restoring=True) == [*missing, *locked]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("/usr/bin/vmlab", "sudo vmlab run"),
        ("/home/ann/.local/bin/vmlab", "sudo /home/ann/.local/bin/vmlab run"),
        ("/opt/vmlab/vmlab/__main__.py", "sudo vmlab run"),
    ],
)
def test_sudo_is_given_a_path_where_it_would_not_find_the_name(
    program: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [program])
    assert words in as_root()


def test_root_in_a_container_without_capabilities_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (checks, launch):
        monkeypatch.setattr(module, "missing_capabilities", lambda **_: ["CAP_SYS_ADMIN"])
        monkeypatch.setattr(f"{module.__name__}.os.geteuid", lambda: 0)
    root, *_ = checks.checks()
    assert (root.ok, root.detail) == (False, "root without CAP_SYS_ADMIN")
    assert root.remedy == "start the container with --cap-add SYS_ADMIN"
    with pytest.raises(RefusedError, match="CAP_SYS_ADMIN, which root lacks here"):
        launch.check_ready()


def test_a_device_that_a_container_lacks_is_given_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "in_container", lambda: True)
    monkeypatch.setattr(checks, "_DEVICES", (("/dev/net/no-such-device", "tun"),))
    device = next(check for check in checks.checks() if check.name == "/dev/net/no-such-device")
    assert device.remedy == "start the container with --device /dev/net/no-such-device"
    assert device.command == ()
