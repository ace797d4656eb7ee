"""Data disks on the host: how much of them is there, what they are made of, and that nothing of them stays."""

import os
from pathlib import Path

import pytest

from tests.hypervisor.conftest import spec
from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.disks.data_disks import DataDisk, DataDisks
from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.model.errors import HypervisorError, RefusedError

SIZE = 64 * 2**20
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root")


@pytest.fixture
def disks(tmp_path: Path) -> DataDisks:
    (tmp_path / "disks").mkdir()
    return DataDisks(tmp_path / "disks", "test", Journal(tmp_path / "journal.jsonl"))


def open_entries(folder: Path) -> list[JournalEntry]:
    return Journal(folder / "journal.jsonl").open_entries()


def made(disks: DataDisks, of: DomainSpec) -> DataDisk:
    disk = disks.make(of)
    assert isinstance(disk, DataDisk)
    return disk


def test_a_thin_disk_takes_no_room_and_a_full_one_all_of_it(disks: DataDisks, tmp_path: Path) -> None:
    thin = made(disks, spec("a", data_bytes=SIZE)).file.stat()
    full = made(disks, spec("b", data_bytes=SIZE, allocation="full")).file.stat()
    assert thin.st_size == full.st_size == SIZE
    assert thin.st_blocks * 512 < 2**20
    assert full.st_blocks * 512 >= SIZE
    for name in ("a", "b"):
        disks.release(name)
    assert list((tmp_path / "disks").iterdir()) == [] and open_entries(tmp_path) == []


@needs_root
def test_a_block_device_has_direct_io_below_it_whatever_the_mode(disks: DataDisks, tmp_path: Path) -> None:
    disk = made(disks, spec("a", "writeback", data_bytes=SIZE, backing="block"))
    assert disk.device is not None and disk.source.block
    assert disk.source.path == disk.device
    assert loop_devices.is_direct(disk.device) and loop_devices.file_of(disk.device) == str(disk.file)
    written = os.urandom(4096)
    node = os.open(disk.device, os.O_RDWR)
    os.pwrite(node, written, 8192)
    os.fsync(node)
    os.close(node)
    assert disk.file.read_bytes()[8192 : 8192 + 4096] == written
    disks.release("a")
    assert loop_devices.file_of(disk.device) == "" and open_entries(tmp_path) == []


@needs_root
def test_what_a_killed_runner_leaves_is_swept(disks: DataDisks, tmp_path: Path) -> None:
    disk = made(disks, spec("a", data_bytes=SIZE, backing="block", allocation="full"))
    assert disk.device is not None
    os.close(disk.held)
    sweep(tmp_path / "journal.jsonl", tmp_path / "disks", "test")
    # Another test may have the device by now.
    assert str(tmp_path) not in loop_devices.file_of(disk.device)
    assert list((tmp_path / "disks").iterdir()) == [] and open_entries(tmp_path) == []


def test_what_cannot_be_made_is_told_and_leaves_nothing(disks: DataDisks, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="no room for the data disk of a"):
        disks.make(spec("a", data_bytes=2**43, allocation="full"))
    disks.release("a")
    with pytest.raises(HypervisorError, match="b: has no data disk"):
        disks.make(spec("b"))
    assert list((tmp_path / "disks").iterdir()) == [] and open_entries(tmp_path) == []


def test_a_guest_without_one_is_released_as_well(disks: DataDisks) -> None:
    disks.release("nobody")
    assert disks.of("nobody") is None
