"""Guests' data disks: files without a backing file below them, loop devices on such files, or images in a Ceph pool.

A disk is plugged into a running guest and goes with it, so nothing of it is part of a snapshot. `full` reserves every
block by fallocate, which gives the longest extents that the file system has and takes no time; writing zeros gave more
and shorter ones and took 26 s for 2 GiB. What is reserved counts as unwritten until the guest writes to it.

A loop device stands for a block device, and below a block device the host has no page cache: it reads and writes its
file with direct I/O, whatever the cache mode. What a buffered mode caches is the device's own (buffers), once.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libvirt

from vmlab.hypervisor.contract import DomainSpec, PoolImage
from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.disks.overlays import make_qcow2, require_direct, seconds_to_make
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.libvirt.calls import call
from vmlab.hypervisor.libvirt.domain_xml import DiskSource, data_devices_xml, data_disk_xml
from vmlab.model.concurrency import shielded
from vmlab.model.errors import HypervisorError, RefusedError
from vmlab.model.scenarios.guest import GuestResources
from vmlab.system.removal import remove_file

_MAKE = 120.0
_PLUG = 30.0


@dataclass(frozen=True, slots=True)
class DataDisk:
    """A data disk on the host: its `file`, and the loop device on it with the descriptor that keeps it attached."""

    file: Path
    device: Path | None = None
    held: int = -1

    @property
    def source(self) -> DiskSource:
        """What QEMU opens."""
        return DiskSource(self.file) if self.device is None else DiskSource(self.device, block=True)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files of the host that QEMU opens."""
        return (self.source.path,)


@dataclass(frozen=True, slots=True)
class PoolDisk:
    """A data disk that is an image in a pool of a Ceph cluster; QEMU opens no file of the host."""

    source: PoolImage
    paths: tuple[Path, ...] = ()


class DataDisks:
    """The data disks of one lab's guests, by the guest's name; their files lie in `folder`."""

    def __init__(self, folder: Path, lab: str, journal: Journal) -> None:
        self._folder = folder
        self._lab = lab
        self._mark = loop_devices.mark_of(lab)
        self._journal = journal
        self._disks: dict[str, DataDisk | PoolDisk] = {}

    def of(self, name: str) -> DataDisk | PoolDisk | None:
        """The data disk of guest `name`; None where it has none at present."""
        return self._disks.get(name)

    async def plug(self, spec: DomainSpec, lookup: Callable[[str], Any]) -> None:
        """Make the data disk of a running guest and plug it in; `lookup` gives libvirt's domain by the guest's name.

        Raises as `make` does, and DeadlineExceeded.
        """
        # Work in the kernel or in libvirt cannot be cancelled: the disk would appear after the clean-up.
        making = _MAKE + seconds_to_make(spec.resources)
        disk = await shielded(call(f"{spec.name}: making its data disk", making, self.make, spec))
        live, plugging = libvirt.VIR_DOMAIN_AFFECT_LIVE, f"{spec.name}: plugging in its data disk"
        for text in (*data_devices_xml(spec), data_disk_xml(spec, disk.source)):
            await shielded(call(plugging, _PLUG, lookup(spec.name).attachDeviceFlags, text, live))

    def make(self, spec: DomainSpec) -> DataDisk | PoolDisk:
        """Make the data disk of `spec`, after entering it in the journal; blocks.

        Raises RefusedError where the disk is full or O_DIRECT is missing, HypervisorError where it cannot be made.
        """
        size = spec.resources.data_bytes
        if size is None or spec.name in self._disks:
            raise HypervisorError(f"{spec.name}: has {'no data disk' if size is None else 'its data disk already'}")
        if spec.resources.pool is not None:
            return self._made_in_pool(spec.name, spec.resources.pool, size)
        require_direct(self._folder, spec.resources.data_mode)
        file = self._folder / f"{spec.name}.data.{spec.resources.data_format}"
        self._journal.add(JournalEntry("file", str(file)))
        self._disks[spec.name] = DataDisk(file)
        try:
            _allocate(file, size, spec.resources)
            if spec.resources.backing == "block":
                self._disks[spec.name] = self._attached(file)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise RefusedError(f"no room for the data disk of {spec.name} in {self._folder}") from error
            raise HypervisorError(f"cannot make the data disk of {spec.name}: {error}") from error
        return self._disks[spec.name]

    def _made_in_pool(self, name: str, pool: str, size: int) -> PoolDisk:
        from vmlab.hypervisor.ceph import rbd

        image = rbd.image_of(pool, self._lab, name)
        entry = JournalEntry("rbd", str(image))
        self._journal.add(entry)
        try:
            rbd.create(image, size)
        except FileExistsError as error:
            self._journal.strike(entry)
            raise HypervisorError(f"cannot make the data disk of {name}: {image}: {error.strerror}") from error
        disk = self._disks[name] = PoolDisk(image)
        return disk

    def _attached(self, file: Path) -> DataDisk:
        self._journal.add(JournalEntry("loop", self._mark))
        held = loop_devices.attach(file, self._mark, writable=True, direct=True)
        return DataDisk(file, Path(f"/proc/self/fd/{held}").readlink(), held)

    def release(self, name: str) -> None:
        """Remove the data disk of a guest that has ended; does nothing without one. Raises OSError, HypervisorError."""
        disk = self._disks.pop(name, None)
        if disk is None:
            return
        if isinstance(disk, PoolDisk):
            from vmlab.hypervisor.ceph import rbd

            rbd.remove(disk.source)
            self._journal.strike(JournalEntry("rbd", str(disk.source)))
            return
        if disk.device is not None:
            loop_devices.detach(disk.held)
            self._journal.strike(JournalEntry("loop", self._mark))
        remove_file(disk.file)
        self._journal.strike(JournalEntry("file", str(disk.file)))

    def seconds_to_release(self, names: Iterable[str]) -> float:
        """How much longer the release of these may take than that of files."""
        if not any(isinstance(self._disks.get(name), PoolDisk) for name in names):
            return 0.0
        from vmlab.hypervisor.ceph.rbd import REMOVE_SECONDS

        return REMOVE_SECONDS


def _allocate(file: Path, size: int, resources: GuestResources) -> None:
    if resources.data_format == "qcow2":
        make_qcow2(file, size, resources)
        return
    # Trying to reserve more than is free would fill the host's disk for a moment.
    if resources.allocation == "full" and size > shutil.disk_usage(file.parent).free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        if resources.allocation == "full":
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.ftruncate(descriptor, size)
    finally:
        os.close(descriptor)
