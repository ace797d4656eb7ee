"""`backing`: where a guest's data disk lies, read from what its QEMU has open.

A file says by its descriptor where it is, and by that descriptor's mount what file system that is. ``mnt_id`` in
``fdinfo`` names the mount: btrfs gives a file another device number than its mount has. A block device says by its
number which loop device or logical volume it is.
"""

from __future__ import annotations

import array
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vmlab.hypervisor.domain_spec import LogicalVolume
from vmlab.hypervisor.levers.guest_lever import MISSING, GuestLever, RunningQemu
from vmlab.hypervisor.open_files import descriptors_on, file_below, opened_by
from vmlab.model.results import LeverProof
from vmlab.model.scenarios.data_backing import FILE_SYSTEMS, DataPlace
from vmlab.system.descriptors import closed_after
from vmlab.system.mounts import Mounted, mounted
from vmlab.system.processes import fdinfo

_GET_FLAGS = 0x80086601
_NO_COPY_ON_WRITE = 0x00800000
"""FS_IOC_GETFLAGS, and FS_NOCOW_FL (linux/fs.h)."""


class DiskPlaceLever(GuestLever):
    """What `data_disks` makes."""

    keys = ("backing",)

    def prove(self, qemu: RunningQemu) -> Iterator[LeverProof]:
        """By what QEMU has open; the first disk tells where the run's own disks are."""
        if qemu.asked.data_bytes is None:
            return
        root, data = (opened_by(str(qemu.inserted(disk).get("file", ""))) for disk in ("root", "data"))
        found = FoundPlace(MISSING, "query-block")
        if data.get("driver") == "rbd":
            found = FoundPlace(f"rbd:{data.get('pool')}", f"query-block: image {data.get('image')}")
        elif "filename" in root and "filename" in data:
            disks = Path(root["filename"]).parent
            found = find_place(qemu.process, Path(data["filename"]), disks, qemu.asked.backing)
        yield qemu.proof("backing", qemu.asked.backing, found.backing, found.by)


class FoundPlace(NamedTuple):
    """Where a data disk was found, in the words of the key ``backing``, and what shows it."""

    backing: str
    by: str


def find_place(process: Path, file: Path, disks: Path, asked: str) -> FoundPlace:
    """Where `file`, which a process should have open, lies; blocks.

    `process` is its folder below a /proc, `disks` the folder of the run's own disks, and `asked` where the file should
    be. Raises OSError when the process is gone, and HypervisorError.
    """
    found = {_place(process, descriptor, disks, asked, file) for descriptor in descriptors_on(process, file)}
    if len(found) == 1:
        return found.pop()
    return FoundPlace("several places" if found else "nothing", "; ".join(sorted(one.by for one in found)) or str(file))


def _place(process: Path, descriptor: Path, disks: Path, asked: str, file: Path) -> FoundPlace:
    opened = descriptor.stat()
    if stat.S_ISBLK(opened.st_mode):
        return _on_device(opened.st_rdev, disks, file)
    path, mount = descriptor.readlink(), _mount_of(process, descriptor.name)
    by = f"{path} on {mount.kind}, {mount.source}{_copying(mount, descriptor)}"
    if _same(path.parent, disks):
        return FoundPlace("file", by)
    below = file_below(_device_of(mount))
    if mount.kind in FILE_SYSTEMS and below is not None and _same(below.parent, disks):
        return FoundPlace(mount.kind, f"{by}, over {below}")
    place = DataPlace.of(asked)
    if place.kind == "folder" and _same(path.parent, Path(place.name)):
        return FoundPlace(asked, by)
    return FoundPlace(f"folder:{path.parent}", by)


def _mount_of(process: Path, descriptor: str) -> Mounted:
    number = int(fdinfo(process, descriptor)["mnt_id"])
    return next(one for one in mounted(process / "mountinfo") if one.number == number)


def _on_device(number: int, disks: Path, file: Path) -> FoundPlace:
    name = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve().name
    below = file_below(name)
    if below is not None:
        return FoundPlace("block" if _same(below.parent, disks) else name, f"/dev/{name}, a loop device on {below}")
    # Others than volumes of LVM are nothing that a lab makes.
    if len(file.parts) == 4 and file.parts[:2] == ("/", "dev") and name.startswith("dm-"):
        return _on_volume(number, name, LogicalVolume(*file.parts[2:]))
    return FoundPlace(name, f"/dev/{name}")


def _on_volume(number: int, name: str, volume: LogicalVolume) -> FoundPlace:
    from vmlab.hypervisor.lvm.logical_volumes import look_at

    seen = look_at(volume)
    found = f"{seen.get('vg_name')}/{seen.get('lv_name')}"
    by = f"/dev/{name}; lvs: {found}, {seen.get('segtype')}, tags {seen.get('lv_tags') or 'none'}"
    marked = any(volume.name.startswith(f"{tag}.") for tag in seen.get("lv_tags", "").split(",") if tag)
    numbers = (seen.get("lv_kernel_major"), seen.get("lv_kernel_minor"))
    if not marked or numbers != (str(os.major(number)), str(os.minor(number))):
        return FoundPlace(name, by)
    return FoundPlace(f"lvm:{seen['vg_name']}", by)


def _device_of(mount: Mounted) -> str:
    """The kernel's name of the device below a mount, by its number where that is a device's."""
    link = Path("/sys/dev/block", mount.device)
    return link.resolve().name if link.exists() else Path(mount.source).name


def _same(folder: Path, other: Path) -> bool:
    try:
        return folder.samefile(other)
    except OSError:
        return False


def _copying(mount: Mounted, descriptor: Path) -> str:
    """Whether btrfs writes what is overwritten to another place, which a mount and a file can have switched off."""
    if mount.kind != "btrfs":
        return ""
    flags = array.array("L", [0])
    with closed_after(os.open(descriptor, os.O_RDONLY | os.O_CLOEXEC)) as file:
        fcntl.ioctl(file, _GET_FLAGS, flags)
    return ", without copy-on-write" if flags[0] & _NO_COPY_ON_WRITE else ", with copy-on-write"
