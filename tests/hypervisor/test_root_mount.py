"""The image's root on the host: read-only, on a loop device that goes by itself."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.hypervisor.conftest import Start
from vmlab.hypervisor.journal import Entry, Journal
from vmlab.hypervisor.root_mount import mounted_root
from vmlab.hypervisor.sweep import sweep
from vmlab.model.errors import HypervisorUnavailable


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A small ext4 image with the folders of a root file system."""
    tree = tmp_path / "tree"
    for name in ("etc", "tmp", "run", "proc", "sys", "dev"):
        (tree / name).mkdir(parents=True)
    image = tmp_path / "root.raw"
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-d", str(tree), str(image), "16M"], check=True)
    return image


def loops(disk: Path) -> str:
    return subprocess.run(["losetup", "-j", str(disk)], capture_output=True, text=True, check=True).stdout


def test_it_is_read_only_but_for_its_temporary_folders(isolated: Start, disk: Path, tmp_path: Path) -> None:
    before = disk.read_bytes()
    program = isolated("loopback", str(disk), str(tmp_path), "end")
    said, complaints = program.communicate(timeout=30)
    assert program.returncode == 0, complaints
    assert json.loads(said) == {"writable": False, "proc": True, "loops": 1}
    assert loops(disk) == ""
    assert disk.read_bytes() == before
    assert Journal(tmp_path / "journal.jsonl").open_entries() == []


def test_a_killed_runner_leaves_no_loop_device(isolated: Start, disk: Path, tmp_path: Path) -> None:
    program = isolated("loopback", str(disk), str(tmp_path), "hang")
    assert program.stdout is not None
    program.stdout.readline()
    assert loops(disk) != ""
    os.kill(program.pid, signal.SIGKILL)
    program.communicate(timeout=10)
    sweep(tmp_path / "journal.jsonl")
    assert loops(disk) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root")
def test_a_sweep_detaches_the_labs_loop_device_and_no_other(disk: Path, tmp_path: Path) -> None:
    (tmp_path / "other.raw").write_bytes(bytes(2**20))
    attached = [
        subprocess.run(
            ["losetup", "-f", "--show", str(file)], capture_output=True, text=True, check=True
        ).stdout.strip()
        for file in (disk, tmp_path / "other.raw")
    ]
    journal = Journal(tmp_path / "journal.jsonl")
    # losetup marks a device by its file, as the lab does by its run.
    journal.add(Entry("loop", str(disk)[:63]))
    try:
        assert sweep(journal.path) == attached[:1]
        assert loops(disk) == ""
        assert loops(tmp_path / "other.raw") != ""
    finally:
        subprocess.run(["losetup", "-d", attached[1]], check=True)


def test_it_is_refused_outside_of_a_lab(disk: Path, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    with pytest.raises(HypervisorUnavailable), mounted_root(disk, tmp_path, "test", journal):
        pass
    assert not journal.path.exists()
