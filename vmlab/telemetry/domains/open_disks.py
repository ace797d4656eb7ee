"""The disk files that a QEMU has open: the proof of O_DIRECT, and the disk of the host that holds each."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from vmlab.model.domain import FILE, HOST_DEVICE, UNKNOWN, BackingFile, DomainDisk
from vmlab.system.mounts import Mounted, mounted
from vmlab.system.processes import fdinfo
from vmlab.telemetry.place import disk_of_number, disk_of_source
from vmlab.telemetry.source import Roots

_OF_MEMORY = ("/memfd:", "/dev/shm/", "/dev/hugepages")
_DELETED = " (deleted)"
_OF_DEVICE = -1
_Disk = TypeVar("_Disk", DomainDisk, BackingFile)
_LEAST_BYTES = 1 << 20
"""A file that no argument names and that is smaller is no disk: a log, a lock, a set of variables."""


class OpenFile(NamedTuple):
    """A file or block device that a process holds open; `below` is the host's disk that holds it.

    `file_system` is the kernel's type of the one that holds a file: that of the mount through which it was opened, in
    the mount namespace of its process; empty where that is not known, and of a block device. `may_be_disk` tells
    whether it can be a disk that no argument names: it is large enough, has a name (else it is the guest's memory, or
    the changes of a snapshot), and is in no folder for memory.
    """

    path: str
    identity: tuple[int, int]
    o_direct: bool
    is_written: bool
    below: str
    file_system: str = ""
    may_be_disk: bool = True

    @property
    def protocol(self) -> str:
        """QEMU's driver for it."""
        return HOST_DEVICE if self.identity[1] == _OF_DEVICE else FILE


def open_files(pid: int, roots: Roots) -> tuple[OpenFile, ...]:
    """Files and block devices that are open; empty where this user may not look."""
    found = []
    folder = roots.proc / str(pid) / "fd"
    try:
        descriptors = os.listdir(folder)  # noqa: PTH208 - half of iterdir's cost
    except OSError:
        return ()
    mounts = cache(lambda: _mounts_of(pid, roots))
    for descriptor in descriptors:
        with suppress(OSError, ValueError, KeyError):
            if (opened := _opened(folder / descriptor, roots, mounts)) is not None:
                found.append(opened)
    return tuple(found)


def _opened(link: Path, roots: Roots, mounts: Callable[[], Mapping[int, Mounted]]) -> OpenFile | None:
    state = link.stat()
    is_device = stat.S_ISBLK(state.st_mode)
    if not is_device and not stat.S_ISREG(state.st_mode):
        return None
    path = os.readlink(link)  # noqa: PTH115 - a deleted file has no path
    may_be_disk = is_device or (
        state.st_size >= _LEAST_BYTES and state.st_nlink > 0 and not path.startswith(_OF_MEMORY)
    )
    # The file that a disk was started with, though its name is gone, or another file's by now.
    path = path if state.st_nlink else path.removesuffix(_DELETED)
    # An old kernel does not say the number of the mount.
    said = fdinfo(link.parents[1], link.name)
    flags, mount = int(said["flags"], 8), int(said.get("mnt_id", "-1"))
    below, kind = disk_of_number(state.st_rdev if is_device else state.st_dev, roots), ""
    if not is_device and (held := mounts().get(mount)) is not None:
        kind, below = held.kind, below or disk_of_source(held.kind, held.source, roots)
    is_written = flags & os.O_ACCMODE == os.O_RDWR
    return OpenFile(path, identity(state), bool(flags & os.O_DIRECT), is_written, below or "", kind, may_be_disk)


def _mounts_of(pid: int, roots: Roots) -> dict[int, Mounted]:
    """By their numbers, which no two mounts of a host have: those of this process, and of the other's namespace."""
    found: dict[int, Mounted] = {}
    for whose in ("self", str(pid)):
        with suppress(OSError, ValueError, IndexError):
            found |= {one.number: one for one in mounted(roots.proc / whose / "mountinfo")}
    return found


def with_open_files(
    disks: Iterable[DomainDisk], opened: Sequence[OpenFile], folder: Path, named: Iterable[str] | None = None
) -> tuple[DomainDisk, ...]:
    """`disks` with what the files say that the process with this `folder` of /proc has open.

    Where no disk is known from elsewhere, as of a QEMU that got its disks over its monitor, the files that are open for
    writing are the disks, but for those that cannot be one, and those that its arguments name: they say what each is.
    Without `named` there are none.
    """
    disks = tuple(disks)
    if disks or named is None:
        return tuple(_proved(disk, opened, folder) for disk in disks)
    others = {_identity_of(folder, name) for name in named if any(one.is_written for one in opened)}
    written = {one.identity: one for one in opened if one.is_written and one.may_be_disk}
    return tuple(
        _placed(DomainDisk(Path(one.path).name, one.path, o_direct=one.o_direct), one)
        for one in written.values()
        if one.identity not in others
    )


def _proved(disk: DomainDisk, opened: Sequence[OpenFile], folder: Path) -> DomainDisk:
    """With what its open files say; what QEMU reaches by another driver has none."""
    backing = tuple(
        _placed(one, own[0]) if (own := _own(one.file, one.protocol, opened, folder)) else one for one in disk.backing
    )
    own = _own(disk.file, disk.protocol, opened, folder)
    if not own:
        return replace(disk, backing=backing)
    return _placed(replace(disk, backing=backing, o_direct=all(one.o_direct for one in own)), own[0])


def _placed(disk: _Disk, opened: OpenFile) -> _Disk:
    """With where its open file is."""
    return replace(disk, below=opened.below, protocol=opened.protocol, file_system=opened.file_system)


def _own(file: str, protocol: str, opened: Iterable[OpenFile], folder: Path) -> list[OpenFile]:
    """Those of the `opened` that are `file`."""
    if not file or protocol not in (FILE, HOST_DEVICE, UNKNOWN):
        return []
    wanted = _identity_of(folder, file)
    return [one for one in opened if one.identity == wanted or one.path == file]


def _identity_of(folder: Path, path: str) -> tuple[int, int] | None:
    try:
        return identity(path_seen_by(folder, path).stat())
    except (OSError, ValueError):
        return None


def path_seen_by(folder: Path, path: str) -> Path:
    """The path of a file in the mount namespace, root and folder of the process with this `folder` of /proc."""
    return folder / "root" / path.lstrip("/") if path.startswith("/") else folder / "cwd" / path


def identity(state: os.stat_result) -> tuple[int, int]:
    """A file by its inode, a block device by its number: libvirt may give QEMU a /dev of its own, with other nodes."""
    return (state.st_rdev, _OF_DEVICE) if stat.S_ISBLK(state.st_mode) else (state.st_dev, state.st_ino)
