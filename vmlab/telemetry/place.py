"""Which whole disk and which file system a folder lies on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from vmlab.system.file_system import filesystem_of, mounts_of, nearest_folder
from vmlab.telemetry.source import Roots

_NO_UPPER = ("overlay", "nfs", "nfs4")
"""What the kernel refuses below an overlay's upper folder (filesystems/overlayfs in its documentation)."""

_BY_SOURCE = ("btrfs", "bcachefs")

ON_A_DISK = "set XDG_STATE_HOME to a folder on a disk"
"""The remedy where the file system of runs lacks something."""


def disks_under(folders: Sequence[Path], roots: Roots, notify: Callable[[str], None]) -> list[str]:
    """The kernel's names (``sda``, ``dm-0``) of the whole disks that hold `folders`, or that a block device among these
    is of; one notice where none is found.

    For a partition this is the disk with that partition. A file system without a device number of its own (btrfs) is
    found by its mount source. Where two of them lie on one disk (a logical volume, and a partition beside it), the
    kernel counts what the upper one moves on both; then they are the disks at the bottom, and each byte counts once.
    """
    disks: list[str] = []
    for folder in folders:
        disk = _disk_of(folder, roots)
        if disk is None:
            notify(f"no disk is known under {folder}: its wait and utilisation have no headline")
        elif disk not in disks:
            disks.append(disk)
    lowest = [one for disk in disks for one in _lowest(disk, roots)]
    return disks if len(set(lowest)) == len(lowest) else list(dict.fromkeys(lowest))


def lowest_disks_under(folder: Path, roots: Roots) -> list[str]:
    """The disks at the bottom of those that hold `folder`, below volumes, arrays and loop devices; [] where none is
    known.
    """
    disks = disks_under([folder], roots, lambda _line: None)
    return list(dict.fromkeys(one for disk in disks for one in _lowest(disk, roots)))


def _lowest(disk: str, roots: Roots) -> list[str]:
    """The disks that a volume, an array or a loop device lies on in the end; of any other disk itself."""
    folder = roots.sys / "block" / disk.replace("/", "!")
    found = [_whole_disk(slave) for slave in sorted((folder / "slaves").glob("*"))]
    with suppress(OSError):
        file = (folder / "loop/backing_file").read_text().strip()
        found.append(whole_disk_of(Path(file).stat().st_dev, roots))
    below = dict.fromkeys(one for name in found if name and name != disk for one in _lowest(name, roots))
    return list(below) or [disk]


def refuses_overlay(folder: Path, roots: Roots) -> str | None:
    """The type of the file system that holds `folder`, where that cannot take what an overlay changes; else None."""
    kind = filesystem_of(folder, roots.proc)
    return kind if kind in _NO_UPPER else None


def _disk_of(folder: Path, roots: Roots) -> str | None:
    if folder.is_block_device():
        return disk_of_number(folder.stat().st_rdev, roots)
    return whole_disk_of(nearest_folder(folder).stat().st_dev, roots)


def whole_disk_of(device: int, roots: Roots) -> str | None:
    """The kernel's name of the whole disk behind a device number, or below a file system that has no device's number;
    None where it is not known.
    """
    return disk_of_number(device, roots) or _mounted_from(device, roots)


def disk_of_number(device: int, roots: Roots) -> str | None:
    """The whole disk behind the number of a block device; None for a file system's own number."""
    return _whole_disk(roots.sys / "dev/block" / f"{os.major(device)}:{os.minor(device)}")


def _whole_disk(link: Path) -> str | None:
    """The name of the disk that a link in sysfs points to, or of the disk with the partition that it points to."""
    if not link.exists():
        return None
    place = link.resolve()
    return place.parent.name if (place / "partition").exists() else place.name


def _mounted_from(device: int, roots: Roots) -> str | None:
    return next((disk_of_source(kind, source, roots) for kind, source in mounts_of(device, roots.proc)), None)


def disk_of_source(kind: str, source: str, roots: Roots) -> str | None:
    """The whole disk of a mounted file system that has a number of its own in place of its disk's; None where it is not
    known, or one of several.

    Of these, only `_BY_SOURCE` are on the device that they name as source: another's may be any text.
    """
    if kind not in _BY_SOURCE or not source.startswith("/dev/") or ":/dev/" in source:
        return None
    # /dev/mapper/NAME and the like are links to the kernel's own name.
    name = Path(source).resolve().name
    together = ([one.name for one in folder.iterdir()] for folder in (roots.sys / "fs/btrfs").glob("*/devices"))
    if any(name in devices and len(devices) > 1 for devices in together):
        return None
    return _whole_disk(roots.sys / "class/block" / name)
