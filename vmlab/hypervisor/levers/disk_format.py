"""`data_format`, and a qcow2 data disk's clusters, extended L2 entries, preallocation, and memory for its tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from vmlab.hypervisor.levers.guest_lever import GuestLever, RunningQemu
from vmlab.model.quantities import format_bytes
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.disk_levers import DiskPlace
from vmlab.model.scenarios.guest import GuestResources

_BY = "query-block"
_OF_FILE = "blocks and extents of the file"
_NEARLY_ALL = 0.95
"""Of a disk's bytes: an allocated file has all of them, and its tables; without preallocation it has what was written.
"""


class DataFormatLever(GuestLever):
    """The type of a disk's driver, and libvirt's ``metadata_cache`` of it."""

    keys = ("data_format", "data_cluster", "data_preallocation", "data_l2_cache", "data_extended_l2")

    def describe_disk(self, disk: etree._Element, asked: GuestResources, place: DiskPlace) -> None:
        """How QEMU opens the data disk's file, which `data_disks` has made."""
        for driver in disk.iterfind("driver") if place == "data" else ():
            driver.set("type", asked.data_format)
            if asked.data_l2_cache_bytes is not None:
                tables = etree.SubElement(driver, "metadata_cache")
                etree.SubElement(tables, "max_size", unit="bytes").text = str(asked.data_l2_cache_bytes)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By what QEMU has read of the file, but for the tables' memory, which nothing shows."""
        asked = qemu.asked
        if asked.data_bytes is None:
            return
        inserted = qemu.inserted("data")
        found = str(inserted.get("drv", "missing"))
        yield qemu.proof("data_format", asked.data_format, found, _BY)
        if not asked.data_format == found == "qcow2":
            return
        image = inserted["image"]
        if asked.data_cluster_bytes is not None:
            found = format_bytes(image["cluster-size"])
            yield qemu.proof("data_cluster", format_bytes(asked.data_cluster_bytes), found, _BY)
        extended = bool(image["format-specific"]["data"].get("extended-l2", False))
        yield qemu.proof("data_extended_l2", _word(asked.data_extended_l2), _word(extended), _BY)
        found = _preallocation(Path(image["filename"]), asked.data_bytes)
        yield qemu.proof("data_preallocation", asked.data_preallocation, found, _OF_FILE)
        if asked.data_l2_cache_bytes is not None:
            told = format_bytes(asked.data_l2_cache_bytes)
            yield qemu.proof("data_l2_cache", told, told, "as QEMU was told: it does not say what it has")


def _word(on: bool) -> str:
    return "on" if on else "off"


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


LEVER = DataFormatLever()
