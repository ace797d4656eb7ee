"""Where the file of a disk lies on the host's block device, by FIEMAP (Documentation/filesystems/fiemap.rst)."""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from pathlib import Path

from vmlab.model.domain import FILE, HOST_DEVICE, DomainDisk
from vmlab.system.descriptors import closed_after
from vmlab.telemetry.domains.block_events import SECTOR, Extent, Placed
from vmlab.telemetry.source import Roots

_FIEMAP = 0xC020660B
_HEAD, _EXTENT = struct.Struct("=QQLLLL"), struct.Struct("=QQQQQLLLL")
_AT_ONCE, _MOST = 512, 65_536
_LAST = 0x1
_NOT_THERE = 0x2 | 0x4 | 0x8 | 0x200 | 0x400
"""Unknown, not yet allocated, encoded, within the metadata: no place on the device."""
_KNOWN = ("ext2", "ext3", "ext4", "xfs")
"""File systems on one block device, whose extents are places on it."""


def why_not_traced(disk: DomainDisk) -> str:
    """Why the block device of a disk would not tell its guest's requests; empty where it does."""
    if disk.protocol not in (FILE, HOST_DEVICE):
        return f"QEMU reaches it by {disk.protocol}, past this host's block devices"
    if disk.protocol == FILE and disk.file_system not in _KNOWN:
        return f"it is on {disk.file_system or 'an unknown file system'}, whose extents are no offsets on one device"
    if disk.direct is not True:
        return "QEMU reads and writes it through the page cache, which keeps, merges and reorders requests"
    if disk.format != "raw":
        return f"its format is {disk.format}, which puts blocks in another order than the guest's"
    if disk.backing:
        return "it has a backing file"
    return ""


def placed(name: str, path: Path, roots: Roots) -> Placed:
    """The disk `path`, a file or a block device. Raises OSError, and ValueError for one in too many extents."""
    with closed_after(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)) as descriptor:
        state = os.fstat(descriptor)
        is_device = stat.S_ISBLK(state.st_mode)
        number = state.st_rdev if is_device else state.st_dev
        device = (os.major(number), os.minor(number))
        devices, start = _on_disk(device, roots)
        # Behind a partition lie others of its disk.
        found = [Extent(0, 0, os.lseek(descriptor, 0, os.SEEK_END))] if is_device else _extents(descriptor)
    return Placed(name, devices, tuple(one._replace(physical=one.physical + start) for one in found))


def _on_disk(device: tuple[int, int], roots: Roots) -> tuple[tuple[tuple[int, int], ...], int]:
    """The device's number with that of its whole disk, and where it begins there, in bytes. Raises OSError."""
    folder = (roots.sys / "dev/block" / f"{device[0]}:{device[1]}").resolve(strict=True)
    if not (folder / "partition").exists():
        return (device,), 0
    major, minor = map(int, (folder.parent / "dev").read_text().split(":"))
    return (device, (major, minor)), SECTOR * int((folder / "start").read_text())


def _extents(descriptor: int) -> list[Extent]:
    found: list[Extent] = []
    start, is_last = 0, False
    while not is_last:
        asked = bytearray(_HEAD.size + _AT_ONCE * _EXTENT.size)
        _HEAD.pack_into(asked, 0, start, (1 << 64) - 1 - start, 0, 0, _AT_ONCE, 0)
        fcntl.ioctl(descriptor, _FIEMAP, asked)
        mapped = _HEAD.unpack_from(asked)[3]
        is_last = not mapped
        for place in range(mapped):
            logical, physical, length, _, _, flags, *_ = _EXTENT.unpack_from(asked, _HEAD.size + place * _EXTENT.size)
            start, is_last = logical + length, bool(flags & _LAST)
            if not flags & _NOT_THERE:
                found.append(Extent(physical, logical, length))
        if len(found) > _MOST:
            raise ValueError(f"it lies in more than {_MOST} pieces")
    return found
