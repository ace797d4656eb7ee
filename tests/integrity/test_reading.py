"""Files are read from the disk itself; what differs, is missing, short, lost to a hole or unreadable is told."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import psutil
import pytest

from tests.integrity.damage import flip
from vmlab.integrity.digests import CHUNK, describe
from vmlab.integrity.disk_reading import verify
from vmlab.integrity.long_work import until


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Three and a half chunks, the second of them a hole."""
    path = tmp_path / "disk.qcow2"
    with path.open("wb") as opened:
        opened.write(os.urandom(CHUNK))
        opened.seek(CHUNK, os.SEEK_CUR)
        opened.write(os.urandom(CHUNK + CHUNK // 2 + 7))
    return path


def test_a_whole_file_has_no_fault(file: Path) -> None:
    found = verify({file: describe(file)})
    assert found.faults == {}
    assert file in found.buffered or found.buffered == ()


@pytest.mark.parametrize("offset", [0, CHUNK - 1, CHUNK, 2 * CHUNK, 3 * CHUNK + CHUNK // 2 + 6])
def test_one_flipped_bit_is_found_wherever_it_is(file: Path, offset: int) -> None:
    expected = describe(file)
    flip(file, offset)
    start = offset // CHUNK * CHUNK
    fault = verify({file: expected}).faults[file]
    assert fault.startswith("disk.qcow2 is not what it was") and fault.endswith(f"from byte {start} on")


def test_what_was_lost_to_a_hole_is_found(file: Path) -> None:
    expected = describe(file)
    with file.open("r+b") as opened:
        os.truncate(opened.fileno(), 2 * CHUNK)
        os.truncate(opened.fileno(), expected.size)
    assert "from byte 2097152 on" in verify({file: expected}).faults[file]


def test_a_hole_where_zeros_belong_is_not_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = describe(file)
    asked: list[int] = []
    original = os.preadv

    def preadv(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        asked.append(offset)
        return original(descriptor, buffers, offset)

    monkeypatch.setattr(os, "preadv", preadv)
    assert verify({file: expected}).faults == {}
    assert sorted(set(asked)) == [0, 2 * CHUNK, 3 * CHUNK]


@pytest.mark.parametrize("size", [0, 100, 5 * CHUNK])
def test_another_size_is_told(file: Path, size: int) -> None:
    expected = describe(file)
    os.truncate(file, size)
    assert verify({file: expected}).faults[file] == f"disk.qcow2 is {size} bytes long and not {expected.size}"


def test_a_missing_file_is_told_and_the_others_are_still_checked(file: Path, tmp_path: Path) -> None:
    expected = describe(file)
    gone = tmp_path / "gone"
    assert verify({gone: expected, file: expected}).faults == {gone: "gone cannot be read: No such file or directory"}


def test_a_disk_that_does_not_give_its_bytes_back_is_damage(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = describe(file)
    read = os.preadv

    def fail(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        if offset >= CHUNK:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(descriptor, buffers, offset)

    monkeypatch.setattr(os, "preadv", fail)
    assert verify({file: expected}).faults == {file: "disk.qcow2 cannot be read: Input/output error"}


@pytest.mark.parametrize("refuses", ["open", "preadv"])
def test_without_o_direct_it_reads_through_the_cache_and_says_so(
    file: Path, monkeypatch: pytest.MonkeyPatch, refuses: str
) -> None:
    expected = describe(file)
    original = getattr(os, refuses)
    direct: list[int] = []

    def open_(path: Path, flags: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return int(original(path, flags))

    def preadv(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        if not direct:
            direct.append(descriptor)
            raise OSError(errno.EINVAL, "Invalid argument")
        return int(original(descriptor, buffers, offset))

    monkeypatch.setattr(os, refuses, {"open": open_, "preadv": preadv}[refuses])
    found = verify({file: expected})
    assert found.faults == {} and found.buffered == (file,)
    flip(file, 5)
    direct.clear()
    assert verify({file: expected}).faults.keys() == {file}


def test_a_check_that_is_stopped_proves_nothing(file: Path) -> None:
    with pytest.raises(InterruptedError):
        verify({file: describe(file)}, until(lambda: True))


def test_no_descriptor_stays_open(file: Path, tmp_path: Path) -> None:
    expected = describe(file)
    before = psutil.Process().num_fds()
    verify({file: expected, tmp_path / "gone": expected})
    assert psutil.Process().num_fds() == before


def test_chunks_of_another_length_are_honoured(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.integrity.digests.CHUNK", 8192)
    expected = describe(file)
    assert expected.chunk_bytes == 8192
    monkeypatch.undo()
    assert verify({file: expected}).faults == {}
    flip(file, 3 * CHUNK)
    assert "in the 8192 bytes from byte 3145728 on" in verify({file: expected}).faults[file]
