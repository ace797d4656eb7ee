"""The disk files that a QEMU has open: the proof of O_DIRECT, and the disk of the host that holds each."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from vmlab.model.domain import DomainDisk
from vmlab.telemetry.place import whole_disk_of
from vmlab.telemetry.source import Roots

_LEAST_BYTES = 1 << 20
"""A file that no argument names and that is smaller is no disk: a log, a lock, a set of variables."""


class OpenFile(NamedTuple):
    """A file or block device that a process holds open; `below` is the host's disk that holds it."""

    path: str
    identity: tuple[int, int]
    o_direct: bool
    is_written: bool
    below: str


def open_files(pid: int, roots: Roots) -> tuple[OpenFile, ...]:
    """Files and block devices that are open; empty where this user may not look."""
    found = []
    folder = roots.proc / str(pid) / "fd"
    try:
        descriptors = os.listdir(folder)  # noqa: PTH208 - half of iterdir's cost
    except OSError:
        return ()
    for descriptor in descriptors:
        with suppress(OSError, ValueError, KeyError):
            if (opened := _opened(folder / descriptor, roots)) is not None:
                found.append(opened)
    return tuple(found)


def _opened(link: Path, roots: Roots) -> OpenFile | None:
    state = link.stat()
    is_device = stat.S_ISBLK(state.st_mode)
    if not is_device and not (stat.S_ISREG(state.st_mode) and state.st_size >= _LEAST_BYTES):
        return None
    path = os.readlink(link)  # noqa: PTH115 - a deleted file has no path
    flags = _flags_in((link.parents[1] / "fdinfo" / link.name).read_text())
    if path.startswith(("/memfd:", "/dev/shm/", "/dev/hugepages")):
        return None
    below = whole_disk_of(state.st_rdev if is_device else state.st_dev, roots) or ""
    is_written = flags & os.O_ACCMODE == os.O_RDWR
    return OpenFile(path, _identity(state), bool(flags & os.O_DIRECT), is_written, below)


def with_open_files(disks: Iterable[DomainDisk], opened: Sequence[OpenFile], folder: Path) -> tuple[DomainDisk, ...]:
    """`disks` with what the files say that the process with this `folder` of /proc has open.

    Where no disk is known from elsewhere, as of a QEMU that got its disks over its monitor, the files that are open for
    writing are the disks.
    """
    disks = tuple(disks)
    if disks:
        return tuple(_proved(disk, opened, folder) for disk in disks)
    return tuple(
        DomainDisk(Path(one.path).name, one.path, o_direct=one.o_direct, below=one.below)
        for one in {one.identity: one for one in opened if one.is_written}.values()
    )


def _proved(disk: DomainDisk, opened: Iterable[OpenFile], folder: Path) -> DomainDisk:
    # The path is that of QEMU's own mount namespace and folder.
    inside = (folder / "root" / disk.file.lstrip("/")) if disk.file.startswith("/") else folder / "cwd" / disk.file
    wanted = None
    with suppress(OSError, ValueError):
        wanted = _identity(inside.stat())
    own = [one for one in opened if one.identity == wanted or one.path == disk.file]
    if not own:
        return disk
    return replace(disk, o_direct=all(one.o_direct for one in own), below=own[0].below)


def _identity(state: os.stat_result) -> tuple[int, int]:
    return (state.st_rdev, -1) if stat.S_ISBLK(state.st_mode) else (state.st_dev, state.st_ino)


def _flags_in(fdinfo: str) -> int:
    """The flags of open(2), which fdinfo has in octal."""
    fields = dict(line.split(":", 1) for line in fdinfo.splitlines() if ":" in line)
    return int(fields["flags"], 8)
