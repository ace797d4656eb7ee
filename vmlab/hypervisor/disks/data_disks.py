"""Guests' data disks: files without a backing file below them, loop devices on such files, files on file systems made
for them or in folders of the user's, logical volumes, or images in a Ceph pool.

A disk is plugged into a running guest and goes with it, so nothing of it is part of a snapshot. `full` reserves every
block by fallocate, which gives the longest extents that the file system has and takes no time; writing zeros gave more
and shorter ones and took 26 s for 2 GiB. What is reserved counts as unwritten until the guest writes to it.

A loop device stands for a block device, and below a block device the host has no page cache: it reads and writes its
file with direct I/O, whatever the cache mode. What a buffered mode caches is the device's own (buffers), once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libvirt

from vmlab.hypervisor.disks import loop_devices, made_file_systems, user_folder
from vmlab.hypervisor.disks.made_file_systems import MadeFileSystem
from vmlab.hypervisor.disks.overlays import make_qcow2, new_file, require_direct, seconds_to_make
from vmlab.hypervisor.domain_spec import DomainSpec, LogicalVolume, PoolImage
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.hypervisor.libvirt.calls import call
from vmlab.hypervisor.libvirt.domain_xml import DiskSource, data_devices_xml, data_disk_xml
from vmlab.model.concurrency import shielded
from vmlab.model.errors import HypervisorError, RefusedError
from vmlab.model.scenarios.data_backing import DataPlace, FileSystem
from vmlab.model.scenarios.guest import GuestResources
from vmlab.system.descriptors import closed_after
from vmlab.system.removal import remove_file

_MAKE = 120.0
_PLUG = 30.0
IN_USER_FOLDER = "another folder for the data disk, or a cache mode without it"
"""The remedy where the file system of a user's folder has no O_DIRECT."""


@dataclass(frozen=True, slots=True)
class DataDisk:
    """A data disk on the host: its `file`, and the loop device on it with the descriptor that keeps it attached.

    One on a file system of the lab's has the loop device `below`. A file in a folder of the user's has its entry of
    the journal (`outside`).
    """

    file: Path
    device: Path | None = None
    held: int = -1
    below: MadeFileSystem | None = None
    outside: JournalEntry | None = None

    @property
    def source(self) -> DiskSource:
        """What QEMU opens."""
        return DiskSource(self.file) if self.device is None else DiskSource(self.device, block=True)

    @property
    def loop(self) -> tuple[Path, Path] | None:
        """The loop device that takes part in it, and its file; None without one."""
        if self.below is not None:
            return self.below.device, self.below.kept
        return None if self.device is None else (self.device, self.file)


@dataclass(frozen=True, slots=True)
class VolumeDisk:
    """A data disk that is a logical volume."""

    volume: LogicalVolume

    @property
    def source(self) -> DiskSource:
        """What QEMU opens."""
        return DiskSource(self.volume.device, block=True)


@dataclass(frozen=True, slots=True)
class PoolDisk:
    """A data disk that is an image in a pool of a Ceph cluster; QEMU opens no file of the host."""

    source: PoolImage


AnyDataDisk = DataDisk | VolumeDisk | PoolDisk


class DataDisks:
    """The data disks of one lab's guests, by the guest's name; their files lie in `folder`."""

    def __init__(self, folder: Path, lab: str, journal: Journal) -> None:
        self._folder = folder
        self._lab = lab
        self._mark = loop_devices.mark_of(lab)
        self._journal = journal
        self._disks: dict[str, AnyDataDisk] = {}
        self.longest_release = 0.0
        """How much longer than that of files the release of a disk may have taken since the lab began, in seconds."""

    def of(self, name: str) -> AnyDataDisk | None:
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

    def make(self, spec: DomainSpec) -> AnyDataDisk:
        """Make the data disk of `spec`, after entering it in the journal; blocks.

        Raises RefusedError where the disk is full or O_DIRECT is missing, HypervisorError where it cannot be made.
        """
        size, place = spec.resources.data_bytes, spec.resources.data_place
        if size is None or place is None or spec.name in self._disks:
            raise HypervisorError(f"{spec.name}: has {'no data disk' if size is None else 'its data disk already'}")
        try:
            match place.kind:
                case "rbd":
                    self._make_in_pool(spec.name, place.name, size)
                case "lvm":
                    self._make_volume(spec.name, place.name, size)
                case "folder":
                    self._make_in_user_folder(spec, Path(place.name), size)
                case "ext4" | "xfs" | "btrfs":
                    self._make_on_file_system(spec, place.kind, size)
                case _:
                    self._make_file(spec, size, attached=place.kind == "block")
        except OSError as error:
            if error.errno == errno.ENOSPC:
                where = self._folder if not place.on_other_disk else place.name
                raise RefusedError(f"no room for the data disk of {spec.name} in {where}") from error
            raise HypervisorError(f"cannot make the data disk of {spec.name}: {error}") from error
        self.longest_release = max(self.longest_release, self.seconds_to_release([spec.name]))
        return self._disks[spec.name]

    @contextlib.contextmanager
    def _entered(self, entry: JournalEntry) -> Iterator[None]:
        """What is made in the block is in the journal before; somebody else's of that name is not."""
        self._journal.add(entry)
        try:
            yield
        except FileExistsError:
            self._journal.strike(entry)
            raise

    def _make_file(self, spec: DomainSpec, size: int, *, attached: bool) -> None:
        require_direct(self._folder, spec.resources.data_mode)
        file = self._folder / f"{spec.name}.data.{spec.resources.data_format}"
        self._journal.add(JournalEntry("file", str(file)))
        self._disks[spec.name] = DataDisk(file)
        _allocate(file, size, spec.resources)
        if attached:
            self._journal.add(JournalEntry("loop", self._mark))
            held = loop_devices.attach(file, self._mark, writable=True, direct=True)
            self._disks[spec.name] = DataDisk(file, Path(f"/proc/self/fd/{held}").readlink(), held)

    def _make_in_user_folder(self, spec: DomainSpec, folder: Path, size: int) -> None:
        require_direct(folder, spec.resources.data_mode, IN_USER_FOLDER)
        file = user_folder.file_for(folder, self._lab, spec.name, spec.resources.data_format)
        entry = user_folder.entry_for(file)
        with self._entered(entry):
            self._disks[spec.name] = DataDisk(file, outside=entry)
            try:
                _allocate(file, size, spec.resources, user_folder.create)
            except FileExistsError:
                del self._disks[spec.name]
                raise

    def _make_on_file_system(self, spec: DomainSpec, kind: FileSystem, size: int) -> None:
        kept, point = self._folder / f"{spec.name}.data.fs", self._folder / f"{spec.name}.data"
        self._journal.add(JournalEntry("file", str(kept)))
        self._disks[spec.name] = DataDisk(kept)
        _give_size(new_file(kept), kept, DataPlace(kind).file_bytes(size), full=spec.resources.allocates_all)
        self._journal.add(JournalEntry("folder", str(point)))
        self._journal.add(JournalEntry("loop", self._mark))
        made = made_file_systems.attach(kind, kept, point, self._mark)
        file = point / f"{spec.name}.data.{spec.resources.data_format}"
        self._disks[spec.name] = DataDisk(file, below=made)
        made_file_systems.make(made)
        require_direct(point, spec.resources.data_mode)
        _allocate(file, size, spec.resources)

    def _make_volume(self, name: str, group: str, size: int) -> None:
        from vmlab.hypervisor.lvm import logical_volumes

        volume = logical_volumes.volume_of(group, self._lab, name)
        with self._entered(JournalEntry("volume", str(volume))):
            logical_volumes.create(volume, size, self._lab)
        self._disks[name] = VolumeDisk(volume)

    def _make_in_pool(self, name: str, pool: str, size: int) -> None:
        from vmlab.hypervisor.ceph import rbd

        image = rbd.image_of(pool, self._lab, name)
        with self._entered(JournalEntry("rbd", str(image))):
            rbd.create(image, size)
        self._disks[name] = PoolDisk(image)

    def release(self, name: str) -> None:
        """Remove the data disk of a guest that has ended; does nothing without one. Raises OSError, HypervisorError."""
        match disk := self._disks.pop(name, None):
            case PoolDisk():
                from vmlab.hypervisor.ceph import rbd

                rbd.remove(disk.source)
                self._journal.strike(JournalEntry("rbd", str(disk.source)))
            case VolumeDisk():
                from vmlab.hypervisor.lvm import logical_volumes

                logical_volumes.remove(disk.volume, self._lab)
                self._journal.strike(JournalEntry("volume", str(disk.volume)))
            case DataDisk():
                self._release_file(disk)

    def _release_file(self, disk: DataDisk) -> None:
        if disk.outside is not None:
            user_folder.remove(disk.outside, self._lab)
            self._journal.strike(disk.outside)
            return
        file = disk.file
        if disk.below is not None:
            # What it still has in memory is not written when it is unmounted.
            remove_file(disk.file)
            disk.below.take_away()
            self._journal.strike(JournalEntry("loop", self._mark))
            self._journal.strike(JournalEntry("folder", str(disk.below.point)))
            file = disk.below.kept
        elif disk.device is not None:
            loop_devices.detach(disk.held)
            self._journal.strike(JournalEntry("loop", self._mark))
        remove_file(file)
        self._journal.strike(JournalEntry("file", str(file)))

    def seconds_to_release(self, names: Iterable[str]) -> float:
        """How much longer the release of these may take than that of files."""
        having, seconds = [self._disks.get(name) for name in names], [0.0]
        if any(isinstance(one, PoolDisk) for one in having):
            from vmlab.hypervisor.ceph.rbd import REMOVE_SECONDS

            seconds.append(REMOVE_SECONDS)
        if any(isinstance(one, VolumeDisk) for one in having):
            from vmlab.hypervisor.lvm.logical_volumes import ANSWER_SECONDS

            # It looks at the volume before, and for snapshots of it.
            seconds.append(3 * ANSWER_SECONDS)
        return max(seconds)


def _allocate(file: Path, size: int, resources: GuestResources, create: Callable[[Path], int] = new_file) -> None:
    if resources.data_format == "qcow2":
        make_qcow2(file, size, resources, create)
    else:
        _give_size(create(file), file, size, full=resources.data_reserved)


def _give_size(descriptor: int, file: Path, size: int, *, full: bool) -> None:
    """Give the new `file`, which `descriptor` is of and which is closed, its size, and its blocks too where `full`."""
    with closed_after(descriptor):
        if not full:
            os.ftruncate(descriptor, size)
        # Trying to reserve more than is free would fill the host's disk for a moment.
        elif size > shutil.disk_usage(file.parent).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))
        else:
            os.posix_fallocate(descriptor, 0, size)
