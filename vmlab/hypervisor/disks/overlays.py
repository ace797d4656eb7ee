"""Guests' disks: qcow2 overlays on an image, made by qemu-img."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from vmlab.model.errors import HypervisorError, HypervisorUnavailable, RefusedError
from vmlab.model.quantities import exact_bytes
from vmlab.model.run import CACHE_FLAGS, CacheMode
from vmlab.model.scenarios.guest import GuestResources
from vmlab.system.file_system import supports_direct
from vmlab.system.packages import installing
from vmlab.system.removal import remove_file
from vmlab.system.run_to_end import run_to_end
from vmlab.telemetry.place import ON_A_DISK

BackingFormat = Literal["raw", "qcow2"]
"""An image is raw, a saved guest's disk qcow2."""

_DEADLINE = 60.0
_SLOWEST = 30 * 2**20
"""Bytes a second that a slow disk takes; zeroes are written to all of a disk with preallocation ``full``."""
_LEAST_FREE = 64 * 2**20
"""An empty overlay takes 200 KiB; with less than this the first guest to write would stop."""


def require_direct(folder: Path, cache: CacheMode, remedy: str = ON_A_DISK) -> None:
    """Raise RefusedError where `cache` needs O_DIRECT and the file system of `folder` has none."""
    if CACHE_FLAGS[cache].direct:
        demand_direct(folder, f"cache={cache}", remedy)


def demand_direct(folder: Path, what: str, remedy: str = ON_A_DISK) -> None:
    """Raise RefusedError where the file system of `folder` has no O_DIRECT, which `what` needs."""
    if not supports_direct(folder):
        raise RefusedError(f"{what} needs O_DIRECT, which the file system of {folder} does not have", remedy=remedy)


def make_overlay(base: Path, overlay: Path, size: int, kind: BackingFormat = "raw") -> None:
    """Make a qcow2 `overlay` of `size` bytes on `base`, which is of the format `kind`.

    Raises RefusedError when the disk is full or an image does not fit into `size`, HypervisorError when qemu-img fails.
    """
    # An image that the run itself built was not there when its plan was checked.
    if kind == "raw" and base.exists() and (least := base.stat().st_size) > size:
        raise RefusedError(f"a guest's disk of {exact_bytes(size)} is too small for its image of {exact_bytes(least)}")
    free = shutil.disk_usage(overlay.parent).free
    if free < _LEAST_FREE:
        raise RefusedError(f"no room for guests' disks: {free / 2**20:.0f} MiB free in {overlay.parent}")
    # qcow2 marks a path with a colon as a protocol, so the backing file is named by its absolute path.
    _create(overlay, size, ["-b", str(base.resolve()), "-F", kind])


def new_file(file: Path) -> int:
    """A descriptor to write a file that must not be there. Raises OSError."""
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def make_qcow2(file: Path, size: int, asked: GuestResources, create: Callable[[Path], int] = new_file) -> None:
    """Make a qcow2 `file` of `size` bytes for a data disk, with the clusters and the allocation that are `asked`.

    `create` makes the file, which must not be there, and gives a descriptor to write it.

    Raises OSError where it exists or there is no room, HypervisorError when qemu-img fails.
    """
    if asked.allocates_all and size > shutil.disk_usage(file.parent).free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))
    # qemu-img would overwrite a file that is there.
    os.close(create(file))
    options = {"preallocation": asked.data_preallocation, "extended_l2": "on" if asked.data_extended_l2 else "off"}
    if asked.data_cluster_bytes is not None:
        options["cluster_size"] = str(asked.data_cluster_bytes)
    deadline = _DEADLINE + seconds_to_make(asked)
    _create(file, size, ["-o", ",".join(f"{name}={value}" for name, value in options.items())], deadline)


def seconds_to_make(asked: GuestResources) -> float:
    """How long it may take to write all of a data disk; 0 where that is not asked for."""
    return (asked.data_bytes or 0) / _SLOWEST if asked.data_preallocation == "full" else 0.0


def _create(file: Path, size: int, options: list[str], deadline: float = _DEADLINE) -> None:
    argv = ["qemu-img", "create", "-q", "-f", "qcow2", *options, str(file), str(size)]
    missing = HypervisorUnavailable("qemu-img is missing", remedy=installing("qemu-utils"))
    late = HypervisorError(f"qemu-img took longer than {deadline:.0f} s for {file.name}")
    made = run_to_end(argv, deadline, missing=missing, late=late)
    if made.returncode != 0:
        remove_file(file)
        raise HypervisorError(f"qemu-img could not make {file.name}: {made.stderr.strip()}")
