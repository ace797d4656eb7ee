"""The folders of workloads on the host: beside the guests' disks, in the journal, and gone afterwards."""

import os
from pathlib import Path

import pytest

from vmlab.hypervisor.disks.host_files import host_data
from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.leftovers import sweep
from vmlab.system.removal import owner_of


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    folder = tmp_path / "disks"
    folder.mkdir()
    return folder


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl")


def test_each_tile_has_a_folder_that_any_user_may_enter(disks: Path, journal: Journal) -> None:
    before = os.umask(0o077)
    try:
        with host_data(disks, "run", journal, [1, 3]) as data:
            assert data == {tile: disks / f"host.data/t{tile}" for tile in (1, 3)}
            assert [oct(folder.stat().st_mode & 0o777) for folder in data.values()] == ["0o755", "0o755"]
            assert [list(folder.iterdir()) for folder in data.values()] == [[], []]
            assert owner_of(disks / "host.data") == "run"
            assert [entry.what for entry in journal.open_entries()] == [str(disks / "host.data")]
            (data[3] / "made").mkdir()
            (data[3] / "made/file").write_bytes(b"blocks")
    finally:
        os.umask(before)
    assert list(disks.iterdir()) == []
    assert journal.open_entries() == []


def test_a_link_that_a_workload_left_is_removed_and_not_followed(disks: Path, journal: Journal) -> None:
    other = disks.parent / "other"
    other.mkdir()
    (other / "kept").touch()
    with host_data(disks, "run", journal, [1]) as data:
        (data[1] / "link").symlink_to(other)
    assert list(disks.iterdir()) == []
    assert (other / "kept").exists()


def test_what_cannot_be_removed_stays_in_the_journal(
    disks: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> bool:
        raise OSError(5, "Input/output error", str(folder))

    monkeypatch.setattr("vmlab.hypervisor.disks.host_files.remove_tree", refuse)
    with pytest.raises(OSError, match="Input/output"), host_data(disks, "run", journal, [1]):
        pass
    assert [entry.kind for entry in journal.open_entries()] == ["folder"]
    assert sweep(journal.path, disks, "run") == [str(disks / "host.data")]
    assert list(disks.iterdir()) == []


def test_a_sweep_takes_an_unmarked_folder_only_where_it_is_empty(disks: Path, journal: Journal) -> None:
    with pytest.raises(KeyError), host_data(disks, "run", journal, [1]) as data:
        raise KeyError(*data)
    assert [entry.kind for entry in journal.open_entries()] == ["folder"]
    (disks / "host.data").mkdir()
    (disks / "host.data/foreign").touch()
    assert sweep(journal.path, disks, "run") == []
    assert (disks / "host.data/foreign").exists()


def test_a_sweep_takes_an_empty_one_whose_maker_died_before_its_mark(disks: Path, journal: Journal) -> None:
    with pytest.raises(KeyError), host_data(disks, "run", journal, [1]):
        raise KeyError
    (disks / "host.data").mkdir()
    assert sweep(journal.path, disks, "run") == [str(disks / "host.data")]
