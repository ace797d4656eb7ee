"""The image's root on the host: read-only, on a loop device that goes by itself."""

import json
import os
import signal
import subprocess
import tempfile
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


def attach(disk: Path) -> str:
    done = subprocess.run(["losetup", "-f", "--show", str(disk)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


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
def test_a_sweep_detaches_the_labs_loop_device_and_no_other(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    # losetup marks a device by its file, as the lab does by its run. The kernel keeps 63 bytes of a mark, and
    # pytest's folders are longer than that.
    with tempfile.TemporaryDirectory(prefix="vl-") as short:
        ours, other = Path(short, "ours.raw"), Path(short, "other.raw")
        for file in (ours, other):
            file.write_bytes(bytes(2**20))
        first, second = attach(ours), attach(other)
        try:
            journal.add(Entry("loop", str(ours)))
            assert sweep(journal.path) == [first]
            assert loops(ours) == ""
            assert loops(other) != ""
        finally:
            for device in (first, second):
                subprocess.run(["losetup", "-d", device], capture_output=True, check=False)


def test_it_is_refused_outside_of_a_lab(disk: Path, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    with pytest.raises(HypervisorUnavailable), mounted_root(disk, tmp_path, "test", journal):
        pass
    assert not journal.path.exists()
