"""An emulated disk below dummies: what lies on it, and that nothing of it is left, however the lab ends."""

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.hypervisor.conftest import Start
from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.emulated_disk.disk_model import ProofFigure
from vmlab.hypervisor.emulated_disk.emulated_disk import EmulatedDisk
from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.leftovers import sweep
from vmlab.model.errors import HypervisorUnavailable
from vmlab.model.scenarios.disk_profiles import HDD_7200, DiskProfile
from vmlab.telemetry import setting_files
from vmlab.telemetry.setting_files import why_no_emulated_disk

needs_disk = pytest.mark.skipif(bool(why_no_emulated_disk()), reason=why_no_emulated_disk() or "there")


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    for name in ("disks", "runtime"):
        (tmp_path / name).mkdir()
    (tmp_path / "base.raw").write_bytes(b"base" * 1000)
    return tmp_path


def told(lab: Path, isolated: Start, end: str) -> list[dict[str, Any]]:
    program = isolated("emulated_disk", str(lab), end)
    said, complaints = program.communicate(timeout=240)
    assert program.returncode == 0, complaints
    return [json.loads(line) for line in said.splitlines()]


def name_of(lab: Path) -> str:
    """As the program names its lab: no other test has the folder's inode."""
    return f"test-{lab.stat().st_ino}"


def loops(lab: Path) -> list[str]:
    return loop_devices.marked(loop_devices.mark_of(name_of(lab)))


def processes(lab: Path) -> list[str]:
    """The command lines that name the lab's folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(os.fsencode(lab)) for word in words):
            found.append(b" ".join(words).decode())
    return found


@needs_disk
def test_the_guests_files_lie_on_it_and_nothing_is_left(isolated: Start, lab: Path) -> None:
    on_it = {"loop": True, "direct": True, "base_on_it": True, "base": True, "pid": True}
    assert told(lab, isolated, "end") == [on_it, {"base_on_it": False}, {"left": [], "mounts": []}]
    assert Journal(lab / "journal.jsonl").open_entries() == []
    assert loops(lab) == []
    assert sorted(path.name for path in (lab / "runtime").iterdir()) == []


@needs_disk
def test_a_disk_whose_process_dies_says_so(isolated: Start, lab: Path) -> None:
    _, error, left = told(lab, isolated, "kill the disk")
    assert error == {"error": "the process of the emulated disk died (killed by signal 9)"}
    assert left == {"left": [], "mounts": []}
    assert Journal(lab / "journal.jsonl").open_entries() == []


@needs_disk
def test_a_disk_that_completes_nothing_is_given_up_and_named(isolated: Start, lab: Path) -> None:
    _, error, left = told(lab, isolated, "stop the disk")
    found = re.fullmatch(
        r"the emulated disk has completed no request for \d+ s while \d+ waits?: its process is stopped", error["error"]
    )
    assert found, error
    assert left == {"left": [], "mounts": []}
    assert Journal(lab / "journal.jsonl").open_entries() == []


@needs_disk
def test_a_disk_that_is_stopped_while_it_is_closed_leaves_nothing(isolated: Start, lab: Path) -> None:
    *_, left = told(lab, isolated, "stop while it is closed")
    assert left == {"left": [], "mounts": []}
    assert Journal(lab / "journal.jsonl").open_entries() == []


@needs_disk
def test_a_disk_that_is_not_as_slow_as_it_says_is_refused_with_the_figures(isolated: Start, lab: Path) -> None:
    error, left = told(lab, isolated, "refute")
    assert "hdd-7200 is not as its profile says: 4 KiB at random, 1 at a time: 160 reads/s" in error["error"]
    assert "where the profile gives 80" in error["error"]
    assert left == {"left": [], "mounts": []}


@needs_disk
@pytest.mark.parametrize("who", ["launcher", "runner", "disk"])
def test_nothing_is_left_after_a_kill_under_load_and_a_sweep(isolated: Start, lab: Path, who: str) -> None:
    program = isolated("emulated_disk", str(lab), "hang")
    assert program.stdout is not None
    program.stdout.readline()
    program.stdout.readline()
    assert len(loops(lab)) == 1
    words = {"launcher": "isolated", "runner": "programs.emulated_disk", "disk": "disk_server"}[who]
    meant = program.pid if who == "launcher" else _pid_of(lab, words)
    os.kill(meant, signal.SIGKILL)
    if who == "disk":
        # The program does not look after it here; the lab ends by another kill.
        os.kill(_pid_of(lab, "programs.emulated_disk"), signal.SIGKILL)
    program.communicate(timeout=240)
    while processes(lab) or loops(lab):
        time.sleep(0.05)
    assert [entry.kind for entry in Journal(lab / "journal.jsonl").open_entries()] == ["loop", "file"]
    sweep(lab / "journal.jsonl", lab / "disks", name_of(lab))
    assert Journal(lab / "journal.jsonl").open_entries() == []
    assert list((lab / "disks").iterdir()) == []
    assert (lab / "base.raw").read_bytes() == b"base" * 1000


def _pid_of(lab: Path, words: str) -> int:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if words in line and str(lab) in line:
            return int(file.parent.name)
    raise AssertionError(f"no process {words} of {lab}")


@pytest.mark.parametrize(("holds_at", "asked"), [(1, 1), (2, 2), (4, 3)])
async def test_a_proof_that_was_disturbed_is_tried_again_and_not_for_ever(lab: Path, holds_at: int, asked: int) -> None:
    rates: list[float] = []

    def proof(_device: Path, _profile: DiskProfile, _size: int, _seed: int) -> list[ProofFigure]:
        rates.append(100.0 if len(rates) + 1 == holds_at else 50.0)
        return [ProofFigure("a read", "reads/s", rates[-1], 100.0)]

    journal = Journal(lab / "journal.jsonl")
    disk = EmulatedDisk(
        HDD_7200, 2**30, 1, lab / "disks", lab / "runtime", "test", journal, proof, pauses=(0.0, 0.0, 0.0)
    )
    (figure,) = await disk._proved(Path("/dev/null"))
    assert (len(rates), figure.measured) == (asked, rates[-1])


async def test_it_is_refused_on_the_hosts_own_mounts(lab: Path) -> None:
    disk = EmulatedDisk(HDD_7200, 2**30, 1, lab / "disks", lab / "runtime", "test", Journal(lab / "journal.jsonl"))
    with pytest.raises(HypervisorUnavailable, match="namespaces of its own"):
        await disk.open()
    assert not (lab / "journal.jsonl").exists()


@pytest.mark.parametrize(
    ("name", "word"), [("_FUSE", "modprobe fuse"), ("_LOOP", "modprobe loop")], ids=["no FUSE", "no loop"]
)
def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, name: str, word: str) -> None:
    monkeypatch.setattr(setting_files, name, Path("/dev/there-is-no-such-device"))
    assert word in why_no_emulated_disk()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.setattr(setting_files, "_FUSE", Path("/dev/null"))
    monkeypatch.setattr(setting_files, "_LOOP", Path("/dev/null"))
    assert "pyfuse3" in why_no_emulated_disk()
