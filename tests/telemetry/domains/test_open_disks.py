"""The proof from open files, on this process's own files."""

from __future__ import annotations

import os
from pathlib import Path

from vmlab.model.domain import DomainDisk
from vmlab.telemetry.domains.open_disks import open_files, with_open_files
from vmlab.telemetry.source import THE_HOST

OWN = Path("/proc/self")


def opened(file: Path, flags: int) -> int:
    with file.open("wb") as new:
        new.truncate(2 << 20)
    return os.open(file, flags)


def test_o_direct_is_read_from_the_open_file(tmp_path: Path) -> None:
    direct, cached = tmp_path / "direct.img", tmp_path / "cached.img"
    held = [opened(direct, os.O_RDWR | os.O_DIRECT), opened(cached, os.O_RDWR)]
    try:
        files = open_files(os.getpid(), THE_HOST)
        said = [DomainDisk("a", str(direct), cache="writeback"), DomainDisk("b", str(cached), cache="writeback")]
        wrong, right = with_open_files(said, files, OWN)
        found = {disk.file: disk for disk in with_open_files([], files, OWN, [])}
        named = with_open_files([], files, OWN, [str(direct), str(cached), "a", ""])
        of_libvirt = with_open_files([], files, OWN)
    finally:
        for descriptor in held:
            os.close(descriptor)
    assert (wrong.o_direct, wrong.direct, wrong.cache_words) == (True, True, "direct, not writeback")
    assert (right.o_direct, right.direct, right.cache_words) == (False, False, "writeback")
    assert found[str(direct)].cache_words == "direct"
    assert found[str(cached)].cache_words == "page cache"
    assert {found[str(direct)].protocol, right.protocol} == {"file"}
    assert not {str(direct), str(cached)} & {disk.file for disk in (*named, *of_libvirt)}


def test_a_file_that_is_not_open_is_left_as_it_is_said(tmp_path: Path) -> None:
    disk = DomainDisk("a", str(tmp_path / "gone.img"), cache="none")
    assert with_open_files([disk], (), OWN) == (disk,)
    assert disk.direct is True


def test_a_disk_that_is_reached_over_a_network_is_no_file_of_the_host(tmp_path: Path) -> None:
    """A name in another system may be that of a file here, which then proves nothing of the disk."""
    held = opened(tmp_path / "x.img", os.O_RDWR)
    try:
        files = open_files(os.getpid(), THE_HOST)
        said = [DomainDisk("a", str(tmp_path / "x.img"), protocol=one) for one in ("rbd", "host_device")]
        found = [(disk.protocol, disk.o_direct) for disk in with_open_files(said, files, OWN)]
    finally:
        os.close(held)
    assert found == [("rbd", None), ("file", False)]


def test_a_process_that_has_ended_has_no_files() -> None:
    assert open_files(2**22 + 1, THE_HOST) == ()


def test_a_disk_whose_file_was_removed_or_replaced_is_the_one_that_is_open(tmp_path: Path) -> None:
    gone, replaced = tmp_path / "gone.img", tmp_path / "replaced.img"
    held = [opened(gone, os.O_RDWR | os.O_DIRECT), opened(replaced, os.O_RDWR | os.O_DIRECT)]
    gone.unlink()
    replaced.rename(tmp_path / "kept.img")
    (tmp_path / "kept.img").unlink()
    replaced.write_bytes(b"another")
    try:
        files = open_files(os.getpid(), THE_HOST)
        one, other = with_open_files([DomainDisk("a", str(gone)), DomainDisk("b", str(replaced))], files, OWN)
    finally:
        for descriptor in held:
            os.close(descriptor)
    assert one.o_direct is True
    # It was open under another name when it went.
    assert other.o_direct is None


def test_a_small_file_is_a_disk_where_it_is_named(tmp_path: Path) -> None:
    small = tmp_path / "overlay.qcow2"
    small.write_bytes(b"x")
    descriptor = os.open(small, os.O_RDWR)
    try:
        files = open_files(os.getpid(), THE_HOST)
        (named,) = with_open_files([DomainDisk("a", str(small), cache="none")], files, OWN)
        guessed = with_open_files([], files, OWN)
    finally:
        os.close(descriptor)
    assert (named.o_direct, named.protocol) == (False, "file")
    assert str(small) not in [disk.file for disk in guessed]
