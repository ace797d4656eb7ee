"""The image's root on the host: read-only, on a loop device that goes by itself.

Loop devices belong to the whole machine: each test has a name of its own for its lab, as others run beside it.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.hypervisor.conftest import Start
from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.disks.host_files import mounted_root
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.model.errors import HypervisorUnavailable


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A small ext4 image with the folders of a root file system."""
    tree = tmp_path / "tree"
    for name in ("etc", "tmp", "run", "proc", "sys", "dev", "data"):
        (tree / name).mkdir(parents=True)
    image = tmp_path / "root.raw"
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-d", str(tree), str(image), "16M"], check=True)
    return image


def loops(disk: Path) -> str:
    return subprocess.run(["losetup", "-j", str(disk)], capture_output=True, text=True, check=True).stdout


def gone(disk: Path) -> bool:
    """Whether it has no loop device any more: the kernel lets go of one some moments after its last user."""
    until = time.monotonic() + 60
    while loops(disk) and time.monotonic() < until:
        time.sleep(0.05)
    return loops(disk) == ""


def attach(disk: Path) -> str:
    done = subprocess.run(["losetup", "-f", "--show", str(disk)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_it_is_read_only_but_for_its_temporary_folders(isolated: Start, disk: Path, tmp_path: Path) -> None:
    before = disk.read_bytes()
    program = isolated("loopback", str(disk), str(tmp_path), "end")
    said, complaints = program.communicate(timeout=240)
    assert program.returncode == 0, complaints
    assert json.loads(said) == {
        "writable": False,
        "proc": True,
        "loops": 1,
        "dev": ["full", "null", "random", "shm", "urandom", "zero"],
        "null": True,
        "host": [],
    }
    assert gone(disk)
    assert disk.read_bytes() == before
    assert Journal(tmp_path / "journal.jsonl").open_entries() == []


def test_each_view_of_it_has_its_own_data_on_the_disk_and_nothing_else_to_write_to(
    isolated: Start, disk: Path, tmp_path: Path
) -> None:
    program = isolated("data_views", str(disk), str(tmp_path), "end")
    said, complaints = program.communicate(timeout=240)
    assert program.returncode == 0, complaints
    assert json.loads(said) == {
        "seen": {"1": ["of 1"], "2": ["of 2"]},
        "written": {"1": ["made 1", "of 1"], "2": ["made 2", "of 2"]},
        "same disk": True,
        "root": [],
        "root writable": False,
        "flags": ["nodev", "nosuid"],
        "reports": {"1": ["report"], "2": []},
        "run": "shared",
        "left": [],
        "mounts": [],
    }
    assert Journal(tmp_path / "journal.jsonl").open_entries() == []


def test_the_files_of_a_killed_runner_go_with_a_sweep(isolated: Start, disk: Path, tmp_path: Path) -> None:
    program = isolated("data_views", str(disk), str(tmp_path), "hang")
    assert program.stdout is not None
    program.stdout.readline()
    assert (tmp_path / "disks/host.data/t2/made 2").exists()
    os.kill(program.pid, signal.SIGKILL)
    program.communicate(timeout=240)
    sweep(tmp_path / "journal.jsonl", tmp_path / "disks", tmp_path.name)
    assert list((tmp_path / "disks").iterdir()) == []
    assert gone(disk)


def test_a_killed_runner_leaves_no_loop_device(isolated: Start, disk: Path, tmp_path: Path) -> None:
    program = isolated("loopback", str(disk), str(tmp_path), "hang")
    assert program.stdout is not None
    program.stdout.readline()
    assert loops(disk) != ""
    os.kill(program.pid, signal.SIGKILL)
    program.communicate(timeout=240)
    sweep(tmp_path / "journal.jsonl", tmp_path / "disks", tmp_path.name)
    assert gone(disk)


@pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root")
def test_a_sweep_detaches_the_labs_loop_device_and_no_other(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    ours, other = tmp_path / "ours.raw", tmp_path / "other.raw"
    for file in (ours, other):
        file.write_bytes(bytes(2**20))
    held = loop_devices.attach(ours, loop_devices.mark_of(tmp_path.name))
    device = str(Path(f"/proc/self/fd/{held}").readlink())
    second = attach(other)
    try:
        for mark in (loop_devices.mark_of(tmp_path.name), loop_devices.mark_of("another"), str(other)):
            journal.add(JournalEntry("loop", mark))
        assert sweep(journal.path, tmp_path / "disks", tmp_path.name) == [device]
        os.close(held)
        assert gone(ours)
        assert loops(other) != ""
    finally:
        subprocess.run(["losetup", "-d", second], capture_output=True, check=False)


def test_it_is_refused_outside_of_a_lab(disk: Path, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    with pytest.raises(HypervisorUnavailable), mounted_root(disk, tmp_path, tmp_path.name, journal):
        pass
    assert not journal.path.exists()
