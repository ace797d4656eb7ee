"""What of a data disk is allocated on the host: before the guest writes to it, and after it has discarded.

Both are proved while the disk is empty.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import MISSING, GuestLever, RunningQemu, child_of
from vmlab.hypervisor.open_files import file_below
from vmlab.model.errors import HypervisorError
from vmlab.model.quantities import format_bytes
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import TRIMMED_BYTES, DiskPlace
from vmlab.model.scenarios.guest import GuestResources
from vmlab.system.descriptors import closed_after

_ENOUGH = 30.0
_NEARLY_ALL = 0.95
"""Of a disk's bytes: an allocated file has all of them, and its tables."""


def _file_of_data(qemu: RunningQemu) -> Path | None:
    """The file that the data disk is in, also below a loop device; None where QEMU has none open."""
    file = qemu.file_of("data")
    return None if file is None else file_below(file.name) or file


class DiscardLever(GuestLever):
    """`data_discard`: whether what a guest discards is given back to the host. The attribute ``discard`` of the driver.

    QMP does not say it. So the guest writes some megabytes to the empty disk and discards them (`data_disk.sh`), and
    the host looks whether its image has them still, before there is a file system.
    """

    keys = ("data_discard",)
    early = True

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """In place of what follows from the allocation."""
        if place == "data" and asked.data_discard is not None:
            child_of(disk, "driver").set("discard", asked.data_discard)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the bytes that are left of what was discarded."""
        asked = qemu.asked
        if asked.data_bytes is not None and asked.data_discard is not None:
            file = _file_of_data(qemu)
            found = MISSING if file is None else "ignore" if _has_data(file, asked.data_format) else "unmap"
            by = f"qemu-img map, after the guest has discarded {format_bytes(TRIMMED_BYTES)}"
            yield qemu.proof("data_discard", asked.data_discard, found, by)


def _has_data(file: Path, kind: str) -> bool:
    """Whether anything of the bytes that were discarded is allocated. Raises HypervisorError, OSError."""
    argv = ["qemu-img", "map", "-U", "-f", kind, "--output=json", f"--max-length={TRIMMED_BYTES}", str(file)]
    try:
        mapped = subprocess.run(argv, capture_output=True, text=True, timeout=_ENOUGH, check=True)
        return any(one["data"] for one in json.loads(mapped.stdout))
    except (subprocess.SubprocessError, ValueError, LookupError) as error:
        raise HypervisorError(f"cannot see what of {file.name} is allocated: {error}") from error


class PreallocationLever(GuestLever):
    """`allocation`, `data_preallocation`: what is reserved of a file by `data_disks`, and by `overlays.make_qcow2`.

    A file system that compresses, or does not tell what is allocated, makes all of them look alike.
    """

    keys = ("allocation", "data_preallocation")
    early = True

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By the blocks, the length and the extents of the file; of a volume and of a pool's image nothing is known."""
        asked, place = qemu.asked, qemu.asked.data_place
        if asked.data_bytes is None or place is None or place.kind in ("lvm", "rbd"):
            return
        file, size = _file_of_data(qemu), asked.data_bytes
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
