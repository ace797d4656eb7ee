"""A data disk in a folder of the user's: one file comes and goes, and whatever else is there stays as it is."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.hypervisor.conftest import spec
from vmlab.hypervisor.disks import user_folder
from vmlab.hypervisor.disks.data_disks import DataDisk, DataDisks
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.leftovers import sweep
from vmlab.model.errors import CleanupIncomplete, HypervisorError, RefusedError

SIZE = 64 * 2**20
NEARLY = ("vmlab.test.a.0123456789abcdef.raw.bak", "vmlab.tests.a.0123456789abcdef.raw", "a.data.raw", "notes")
"""Names of others' files."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The user's, with files of theirs."""
    (place := tmp_path / "nvme").mkdir()
    for name in NEARLY:
        (place / name).write_text("theirs")
    return place


@pytest.fixture
def disks(tmp_path: Path) -> DataDisks:
    (tmp_path / "disks").mkdir()
    return DataDisks(tmp_path / "disks", "test", Journal(tmp_path / "journal.jsonl"))


def make(disks: DataDisks, folder: Path, **asked: Any) -> Path:
    disk = disks.make(spec("a", data_bytes=SIZE, backing=f"folder:{folder}", **asked))
    assert isinstance(disk, DataDisk) and disk.outside and disk.loop is None
    return disk.file


def open_entries(folder: Path) -> list[JournalEntry]:
    return Journal(folder / "journal.jsonl").open_entries()


def swept(folder: Path) -> list[str]:
    return sweep(folder / "journal.jsonl", folder / "disks", "test")


def require_as_it_was(folder: Path) -> None:
    assert {file.name: file.read_text() for file in folder.iterdir()} == dict.fromkeys(NEARLY, "theirs")


@pytest.mark.parametrize("allocation", ["thin", "full"])
def test_the_disk_is_one_file_that_goes_with_its_guest(
    allocation: str, disks: DataDisks, folder: Path, tmp_path: Path
) -> None:
    file = make(disks, folder, allocation=allocation)
    assert file.parent == folder and user_folder.is_of("test", file)
    found = file.stat()
    assert found.st_size == SIZE and found.st_mode & 0o777 == 0o600
    assert (found.st_blocks * 512 >= SIZE) is (allocation == "full")
    assert open_entries(tmp_path) == [user_folder.entry_for(file)] and not list((tmp_path / "disks").iterdir())
    disks.release("a")
    require_as_it_was(folder)
    assert open_entries(tmp_path) == []


def test_a_qcow2_file_may_lie_there_too(disks: DataDisks, folder: Path, tmp_path: Path) -> None:
    disk = disks.make(spec("a", data_bytes=SIZE, backing=f"folder:{folder}", data_format="qcow2"))
    assert isinstance(disk, DataDisk)
    file = disk.source.path
    assert file.parent == folder and file.suffix == ".qcow2" and file.read_bytes()[:4] == b"QFI\xfb"
    assert swept(tmp_path) == [str(file)]
    require_as_it_was(folder)


@pytest.mark.parametrize("kind", ["raw", "qcow2"])
def test_it_is_in_the_journal_before_it_exists(
    kind: str, disks: DataDisks, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(file: Path) -> int:
        assert open_entries(tmp_path) == [user_folder.entry_for(file)] and not file.exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(user_folder, "create", killed)
    with pytest.raises(KeyboardInterrupt):
        make(disks, folder, data_format=kind)
    assert swept(tmp_path) == [] and open_entries(tmp_path) == []
    require_as_it_was(folder)


def test_a_file_of_that_name_is_somebody_elses(
    disks: DataDisks, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmlab.hypervisor.disks.user_folder.secrets.token_hex", lambda count: "ab" * count)
    taken = folder / f"vmlab.test.a.{'ab' * 8}.raw"
    taken.write_text("theirs, too")
    with pytest.raises(HypervisorError, match=r"cannot make the data disk of a: .*File exists"):
        make(disks, folder)
    disks.release("a")
    assert swept(tmp_path) == [] and open_entries(tmp_path) == []
    assert taken.read_text() == "theirs, too"


def test_what_a_killed_runner_leaves_is_swept(disks: DataDisks, folder: Path, tmp_path: Path) -> None:
    file = make(disks, folder)
    assert swept(tmp_path) == [str(file)] and open_entries(tmp_path) == []
    require_as_it_was(folder)


@pytest.mark.parametrize(
    "name",
    [*NEARLY, "vmlab.other.a.0123456789abcdef.raw", "vmlab.test.a.0123.raw", "vmlab.test.A b.0123456789abcdef.raw"],
)
def test_a_journal_leads_to_no_file_of_another_name(name: str, folder: Path, tmp_path: Path) -> None:
    (folder / name).write_text("theirs")
    Journal(tmp_path / "journal.jsonl").add(JournalEntry("outside", str(folder / name)))
    assert swept(tmp_path) == [] and open_entries(tmp_path) == []
    assert (folder / name).read_text() == "theirs"


def test_a_relative_path_in_a_journal_is_none(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    name = "vmlab.test.a.0123456789abcdef.raw"
    (folder / name).touch()
    Journal(tmp_path / "journal.jsonl").add(JournalEntry("outside", name))
    assert swept(tmp_path) == [] and (folder / name).exists()


def test_a_link_in_place_of_the_file_is_not_the_labs_and_not_followed(
    disks: DataDisks, folder: Path, tmp_path: Path
) -> None:
    file = make(disks, folder)
    file.unlink()
    file.symlink_to(folder / "notes")
    assert swept(tmp_path) == [] and file.is_symlink() and (folder / "notes").read_text() == "theirs"


@pytest.mark.parametrize("above", [False, True])
def test_a_link_in_place_of_the_folder_stops_the_removal(above: bool, disks: DataDisks, tmp_path: Path) -> None:
    (place := tmp_path / "upper/lower").mkdir(parents=True)
    file = make(disks, place)
    moved = place.parent if above else place
    moved.rename(tmp_path / "moved")
    moved.symlink_to(tmp_path / "moved")
    with pytest.raises(CleanupIncomplete, match="a link has replaced the folder"):
        swept(tmp_path)
    assert file.exists() and len(open_entries(tmp_path)) == 1
    moved.unlink()
    (tmp_path / "moved").rename(moved)
    assert swept(tmp_path) == [str(file)]


def test_a_folder_that_is_gone_hides_nothing_else(disks: DataDisks, folder: Path, tmp_path: Path) -> None:
    file = make(disks, folder)
    folder.rename(tmp_path / "elsewhere")
    assert swept(tmp_path) == [] and open_entries(tmp_path) == []
    assert (tmp_path / "elsewhere" / file.name).exists()


def test_a_file_on_a_disk_that_is_not_mounted_stays_in_the_journal(
    disks: DataDisks, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mount point is an empty folder, as after a restart of the host."""
    mounts = tmp_path / "mountinfo"
    root = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
    mounts.write_text(f"{root}2 1 8:2 / {folder} rw - xfs /dev/sdb1 rw\n")
    monkeypatch.setattr(user_folder, "_MOUNTS", mounts)
    file = make(disks, folder)
    (entry,) = open_entries(tmp_path)
    assert entry.was == str(folder)
    folder.rename(tmp_path / "unmounted")
    folder.mkdir()
    mounts.write_text(root)
    said = f"{file} is on {folder}, which is not mounted: mount it, or, if it is gone for good"
    with pytest.raises(CleanupIncomplete, match=said):
        swept(tmp_path)
    assert open_entries(tmp_path) == [entry]
    folder.rmdir()
    (tmp_path / "unmounted").rename(folder)
    assert swept(tmp_path) == [str(file)]


def test_a_folder_named_by_a_link_is_resolved_when_the_file_is_made(
    disks: DataDisks, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(folder)
    file = make(disks, tmp_path / "link")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(tmp_path / "disks")
    assert file.parent == folder
    disks.release("a")
    require_as_it_was(folder)


def test_no_room_is_told_and_leaves_nothing(
    disks: DataDisks, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("vmlab.hypervisor.disks.data_disks.os.ftruncate", full)
    with pytest.raises(RefusedError, match=f"no room for the data disk of a in {folder}"):
        make(disks, folder)
    disks.release("a")
    require_as_it_was(folder)
    assert open_entries(tmp_path) == []
