"""`allocation`, `data_preallocation`: what of a data disk is allocated on the host before the guest writes to it.

A file system that compresses, or does not tell what is allocated, makes all of them look alike.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from vmlab.hypervisor.levers.guest_lever import MISSING, GuestLever, RunningQemu
from vmlab.hypervisor.open_files import file_below
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import TRIMMED_BYTES
from vmlab.system.descriptors import closed_after

_NEARLY_ALL = 0.95
"""Of a disk's bytes: an allocated file has all of them, and its tables."""


class PreallocationLever(GuestLever):
    """What `data_disks` reserves of a raw file, and `overlays.make_qcow2` of a qcow2 one."""

    keys = ("allocation", "data_preallocation")
    early = True

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the blocks, the length and the extents of the file; of a volume and of a pool's image nothing is known."""
        asked, place = qemu.asked, qemu.asked.data_place
        if asked.data_bytes is None or place is None or place.kind in ("lvm", "rbd"):
            return
        file, size = qemu.file_of("data"), asked.data_bytes
        file = None if file is None else file_below(file.name) or file
        # Some of it may have been given back where the guest has tried to discard.
        least = _NEARLY_ALL * size - (0 if asked.data_discard is None else TRIMMED_BYTES)
        if asked.data_format == "qcow2":
            found = MISSING if file is None else _preallocation(file, size, least)
            yield qemu.proof("data_preallocation", asked.data_preallocation, found, "blocks and extents of the file")
        else:
            found = MISSING if file is None else "full" if _allocated(file) >= least else "thin"
            yield qemu.proof("allocation", asked.allocation, found, "blocks of the file")


def _preallocation(file: Path, size: int, least: float) -> str:
    """What of a disk of `size` bytes was allocated beforehand, by its file, all being `least` bytes; blocks.

    Metadata are tables that map all of the disk into a file that is as long and has holes. Raises OSError.
    """
    if _allocated(file) >= least:
        return "full" if _written_bytes(file) >= least else "falloc"
    return "metadata" if file.stat().st_size >= size else "off"


def _allocated(file: Path) -> int:
    """The bytes of a file's blocks. Raises OSError."""
    return file.stat().st_blocks * 512


def _written_bytes(file: Path) -> int:
    """The bytes of a file in extents that were written; what fallocate has reserved alone counts as a hole."""
    written = place = 0
    with closed_after(os.open(file, os.O_RDONLY | os.O_CLOEXEC)) as descriptor:
        end = os.fstat(descriptor).st_size
        while place < end:
            try:
                begin = os.lseek(descriptor, place, os.SEEK_DATA)
            except OSError:
                # ENXIO: there is a hole up to the end.
                break
            place = os.lseek(descriptor, begin, os.SEEK_HOLE)
            written += place - begin
    return written


LEVER = PreallocationLever()
