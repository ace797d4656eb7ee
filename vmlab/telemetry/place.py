"""Which whole disk a folder lies on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from vmlab.telemetry.source import Roots


def disks_under(folders: Sequence[Path], roots: Roots, notify: Callable[[str], None]) -> list[str]:
    """The kernel's names (``sda``, ``dm-0``) of the whole disks that hold `folders`; one notice where there is none.

    A folder on a partition lies on the partition's disk; a file system without a device of its own (btrfs) is looked
    up by what it was mounted from.
    """
    disks: list[str] = []
    for folder in folders:
        disk = _disk_of(folder, roots)
        if disk is None:
            notify(f"no disk is known under {folder}: its wait and utilisation have no headline")
        elif disk not in disks:
            disks.append(disk)
    return disks


def _disk_of(folder: Path, roots: Roots) -> str | None:
    nearest = next((place for place in (folder, *folder.absolute().parents) if place.exists()), None)
    if nearest is None:
        return None
    device = nearest.stat().st_dev
    return _whole_disk(device, roots) or _mounted_from(device, roots)


def _whole_disk(device: int, roots: Roots) -> str | None:
    link = roots.sys / "dev/block" / f"{os.major(device)}:{os.minor(device)}"
    if not link.exists():
        return None
    place = link.resolve()
    return place.parent.name if (place / "partition").exists() else place.name


def _mounted_from(device: int, roots: Roots) -> str | None:
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in (roots.proc / "self/mountinfo").read_text().splitlines():
        fields = line.split()
        source = fields[fields.index("-") + 2]
        if fields[2] == wanted and source.startswith("/dev/") and Path(source).exists():
            return _whole_disk(Path(source).stat().st_rdev, roots)
    return None
