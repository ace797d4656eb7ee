"""`data_preallocation`: what qemu-img has allocated of a qcow2 data disk before the guest writes to it.

A file system that compresses, or does not tell what is allocated, makes all of them look alike.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from vmlab.hypervisor.levers.guest_lever import MISSING, GuestLever, RunningQemu
from vmlab.model.results import LeverProof

_NEARLY_ALL = 0.95
"""Of a disk's bytes: an allocated file has all of them, and its tables."""


class PreallocationLever(GuestLever):
    """An option of the file that `overlays.make_qcow2` makes."""

    keys = ("data_preallocation",)
    early = True

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the blocks, the length and the extents of the file."""
        asked = qemu.asked
        if asked.data_bytes is not None and asked.data_format == "qcow2":
            file = qemu.file_of("data")
            found = MISSING if file is None else _preallocation(file, asked.data_bytes)
            yield qemu.proof("data_preallocation", asked.data_preallocation, found, "blocks and extents of the file")


def _preallocation(file: Path, size: int) -> str:
    """What of a disk of `size` bytes was allocated beforehand, by its file; blocks. Raises OSError.

    Metadata are tables that map all of the disk into a file that is as long and has holes.
    """
    found = file.stat()
    if found.st_blocks * 512 >= _NEARLY_ALL * size:
        return "full" if _written_bytes(file) >= _NEARLY_ALL * size else "falloc"
    return "metadata" if found.st_size >= size else "off"


def _written_bytes(file: Path) -> int:
    """The bytes of a file in extents that were written; what fallocate has reserved alone counts as a hole."""
    written = place = 0
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        end = os.fstat(descriptor).st_size
        while place < end:
            try:
                begin = os.lseek(descriptor, place, os.SEEK_DATA)
            except OSError:
                # ENXIO: there is a hole up to the end.
                break
            place = os.lseek(descriptor, begin, os.SEEK_HOLE)
            written += place - begin
    finally:
        os.close(descriptor)
    return written


LEVER = PreallocationLever()
