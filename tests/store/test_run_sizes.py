"""What runs take on the disk: kept between lists, and never another figure than a look at the folders gives."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.model.places import runs_folder
from vmlab.store import run_list as run_sizes
from vmlab.store.archive import pack, unpack
from vmlab.store.reader import RunReader
from vmlab.store.run_list import bytes_of, bytes_on_disk, sizes_file
from vmlab.store.runs import run_names
from vmlab.store.writer import RunWriter

RUN, OTHER = "20261121-143000-tile-aaaa", "20261121-150000-tile-bbbb"
BLOCK = 4096


@pytest.fixture(autouse=True)
def looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two runs that ended; the runs at which was looked, in order."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(run_sizes, "SETTLED_NANOSECONDS", -(10**12))
    for name in (RUN, OTHER):
        story = Story(folder(name) / "run.sqlite", run=name).begin({"cache": ["none"]})
        story.cell({"cache": "none"}, {"web": 1.0}, wall=2.0)
        story.end()
        (folder(name) / "disks").mkdir()
        (folder(name) / "launcher.log").write_bytes(bytes(BLOCK))
        (folder(name) / "disks" / "vm.qcow2").write_bytes(bytes(BLOCK))
    found: list[str] = []
    really = run_sizes._looked_at

    def noted(place: Path, settled: int) -> list[object]:
        found.append(place.name)
        return really(place, settled)

    monkeypatch.setattr(run_sizes, "_looked_at", noted)
    return found


def folder(name: str) -> Path:
    return runs_folder() / name


def sizes() -> dict[str, int]:
    """What is listed, which must be what the folders have."""
    for _ in range(100):
        before = {name: bytes_of(name) for name in run_names()}
        found = bytes_on_disk(dict.fromkeys(run_names()))
        # The file system gives blocks back that it had reserved, whenever it writes what was written to it.
        if before == {name: bytes_of(name) for name in run_names()}:
            assert found == before
            return found
    raise AssertionError("sizes change all the time")


def test_a_run_is_looked_at_once(looked: list[str]) -> None:
    first = sizes()
    assert looked == [OTHER, RUN] and min(first.values()) > 2 * BLOCK
    assert sizes() == first and looked == [OTHER, RUN]
    assert sizes_file().stat().st_mode & 0o777 == 0o600


def log_grows() -> None:
    with (folder(RUN) / "launcher.log").open("ab") as log:
        log.write(bytes(9 * BLOCK))


def store_grows() -> None:
    writer = RunWriter(folder(RUN) / "run.sqlite")
    writer.document("more", "x" * 20 * BLOCK)
    writer.close()


def store_is_written() -> None:
    writer = RunWriter(folder(RUN) / "run.sqlite")
    writer.document("more", "x" * 20 * BLOCK)
    writer.fold_in()
    writer.document("more still", "x" * 40 * BLOCK)


def disk_is_removed() -> None:
    (folder(RUN) / "disks" / "vm.qcow2").unlink()


def file_comes_deep_within() -> None:
    (folder(RUN) / "disks" / "more").mkdir()
    sizes()
    (folder(RUN) / "disks" / "more" / "vm.raw").write_bytes(bytes(3 * BLOCK))


CHANGES = [log_grows, store_grows, store_is_written, disk_is_removed, file_comes_deep_within]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_shows(change: Callable[[], None]) -> None:
    before = sizes()
    change()
    after = sizes()
    assert after[RUN] != before[RUN] and after[OTHER] == before[OTHER]


def test_a_run_that_is_removed_renamed_or_imported_shows(tmp_path: Path) -> None:
    before = sizes()
    archive = tmp_path / "run.vmlab"
    with RunReader(folder(RUN) / "run.sqlite") as reader, archive.open("wb") as file:
        pack(reader, RUN, file)
    shutil.rmtree(folder(RUN))
    assert list(sizes()) == [OTHER]
    assert RUN.encode() not in sizes_file().read_bytes()
    unpack(archive)
    assert 0 < sizes()[RUN] < before[RUN]
    folder(OTHER).rename(folder("20261121-160000-tile-cccc"))
    assert sizes()["20261121-160000-tile-cccc"] == before[OTHER]
    # Another run in the place of one of the same name.
    shutil.rmtree(folder(RUN))
    shutil.copytree(folder("20261121-160000-tile-cccc"), folder(RUN))
    assert sizes()[RUN] == before[OTHER]


def test_a_run_that_lives_is_looked_at_every_time(looked: list[str]) -> None:
    lock = os.open(folder(RUN) / "lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sizes()
        with (folder(RUN) / "disks" / "vm.qcow2").open("ab") as disk:
            disk.write(bytes(5 * BLOCK))
        sizes()
    finally:
        os.close(lock)
    assert looked == [OTHER, RUN, RUN]


def test_what_changed_just_now_is_not_kept(looked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_sizes, "SETTLED_NANOSECONDS", 3600 * 10**9)
    assert sizes() == sizes()
    assert looked == [OTHER, RUN] * 2 and not sizes_file().exists()


@pytest.mark.parametrize("damage", [b"", b"not at all", b"vmlab.run-sizes/1 00000000\n{}"])
def test_a_damaged_file_is_passed_over_and_written_again(damage: bytes) -> None:
    first = sizes()
    whole = sizes_file().read_bytes()
    sizes_file().write_bytes(damage)
    assert sizes() == first
    assert sizes_file().read_bytes() == whole
