"""What a guest is given: one list of attributes, which scenario, plan, domain and snapshot share.

A new attribute is a field of `GuestAttributes`, or of its base, and needs no other list: scenarios may set it, its name
is an axis, plan and domain have it, and a snapshot fits only a guest with the same value. An attribute that a saved
guest does not depend on is marked with `NOT_SEEN` or `SeenAs`, one of which the effect can be seen with `Lever`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from vmlab.model.axes import axis_word
from vmlab.model.quantities import format_bytes, format_seconds
from vmlab.model.run import CacheMode, has_write_cache
from vmlab.model.scenarios.cpu_levers import UNPINNED, queues_conflict
from vmlab.model.scenarios.data_backing import Backing, DataPlace
from vmlab.model.scenarios.disk_levers import (
    BurstLength,
    DataBus,
    DataFormat,
    DetectZeroes,
    Discard,
    DiskIo,
    DiskPlace,
    DiskRate,
    Iops,
    IoThread,
    Preallocation,
    burst_conflict,
    cluster_conflict,
    data_io_conflict,
    discard_conflict,
    format_conflict,
    io_conflict,
    length_conflict,
    only_with,
    table_cache_conflict,
    zeroes_conflict,
)
from vmlab.model.scenarios.image_name import ImageName, Packages
from vmlab.model.scenarios.lever import NOT_SEEN, OF_DATA_DISK, Lever, NotWith, SeenAs
from vmlab.model.scenarios.libvirt_paths import LibvirtSettings, as_mapping, settings_conflict
from vmlab.model.scenarios.machine_attributes import MachineAttributes
from vmlab.model.units import BitRate, Bytes

LAB_IMAGE = "debian"
"""The name of vmlab's own image."""
Boot = Literal["lab", "normal", "rescue"]
Allocation = Literal["thin", "full"]
_OF_VMS = (
    *("cpu_shares", "emulator_shares", "cpu_quota", "cpu", "pin", "emulator_pin"),
    *("huge_pages", "ksm", "numa", "memory_lock", "machine", "firmware"),
    *("boot", "image", "packages", "network", "nic_queues", "vhost", "mtu", "bandwidth", "libvirt_settings"),
)
"""Attributes that mean nothing on bare metal, by their names in the program."""
Network = Literal["plain", "vxlan", "nat"]
On = Literal["vm", "host"]
Cache = Annotated[CacheMode, SeenAs("write_cache", has_write_cache), Lever("cache mode")]
BANDWIDTH = Lever("bandwidth", within=5.0, unit="bit/s", limit=True)
"""Host and clients do not see the start at the same moment, so that a limit seems to carry up to so much more."""


def _mtu_conflict(guest: GuestAttributes) -> str | None:
    """Why the guest cannot have its MTU."""
    if guest.mtu is None or guest.network == "plain":
        return None
    return f"mtu is of the lab's bridge, and the guest is behind {guest.network}; leave one of them out"


def _of_data(words: str, conflict: Callable[[GuestAttributes], str | None] | None = None, unit: str = "") -> list[Any]:
    """The marks of a key of the data disk whose effect can be seen, and which may have a `conflict`."""
    marks = [NOT_SEEN, OF_DATA_DISK, Lever(words, unit=unit)]
    return marks if conflict is None else [*marks, NotWith(conflict)]


class GuestAttributes(MachineAttributes):
    """The attributes of a guest as a scenario gives them. Aliases are the keys in the scenario."""

    cache: Cache = "writeback"
    """Cache mode of the disk: none, writeback, writethrough, directsync or unsafe."""
    io: Annotated[DiskIo, NOT_SEEN, Lever("disk I/O"), NotWith(io_conflict)] = "threads"
    """How QEMU does I/O for its disks: threads, native (Linux AIO) or io_uring."""
    iothread: Annotated[IoThread, NOT_SEEN, Lever("iothread")] = False
    """Whether each disk has its own iothread (true), none has one (false), or disks that name the same one share it."""
    detect_zeroes: Annotated[
        DetectZeroes, NOT_SEEN, Lever("detection of zeroes"), NotWith(zeroes_conflict("detect_zeroes"))
    ] = "off"
    """What QEMU does when a guest writes zeroes: it writes them (off), writes a hole (on), or discards (unmap)."""
    limit_iops: Annotated[Iops | None, NOT_SEEN, Lever("limit of IOPS")] = None
    """The most requests a second that QEMU serves on each disk; no limit if left out."""
    limit_bandwidth: Annotated[DiskRate | None, NOT_SEEN, Lever("limit of bandwidth")] = None
    """The most bytes a second that QEMU reads and writes on each disk, such as 100 MB/s."""
    limit_iops_burst: Annotated[
        Iops | None, NOT_SEEN, Lever("burst of IOPS"), NotWith(burst_conflict("limit_iops_burst"))
    ] = None
    """The most requests a second during a burst, which limit_iops allows after a time with fewer."""
    limit_bandwidth_burst: Annotated[
        DiskRate | None, NOT_SEEN, Lever("burst of bandwidth"), NotWith(burst_conflict("limit_bandwidth_burst"))
    ] = None
    """The most bytes a second during a burst, which limit_bandwidth allows after a time with fewer."""
    limit_burst_length: Annotated[
        BurstLength | None, NOT_SEEN, Lever("length of bursts"), NotWith(length_conflict("limit_burst_length"))
    ] = None
    """For how many seconds a burst may last, such as 5 s; QEMU's default, 1 s, if left out."""
    boot: Boot = "lab"
    """What it boots into: only what the lab needs (lab), what Debian usually starts (normal), or rescue mode."""
    image: ImageName = LAB_IMAGE
    """The image that it starts from: vmlab's own (debian), or one that `vmlab image add` added, by its name."""
    packages: Annotated[Packages, SeenAs("packages", lambda names: [*names] or None)] = ()
    """Additional Debian packages, such as redis-server: a layer on vmlab's own image."""
    data_bytes: Annotated[Bytes | None, Field(alias="data", ge=2**26, le=2**46, multiple_of=4096), NOT_SEEN] = None
    """Size of a second disk, empty and mounted at ``/data`` when the workloads start, such as 100 GiB."""
    data_queues: Annotated[
        int, Field(ge=1, le=64), *_of_data("queues of the data disk", queues_conflict("data_queues"))
    ] = 1
    """Queues of the data disk; the guest uses at most one for each of its CPUs."""
    allocation: Annotated[Allocation, *_of_data("allocation")] = "thin"
    """Whether room on the host is allocated as the disk is written (thin), or all beforehand (full)."""
    backing: Annotated[Backing, *_of_data("place of the data disk")] = "file"
    """Where the data disk lies: beside the run (file, block), on a new file system, or where you say."""
    read_ahead_bytes: Annotated[
        Bytes | None, Field(alias="read_ahead", ge=0, le=2**30, multiple_of=4096), *_of_data("read-ahead", unit="B")
    ] = None
    """How far the guest reads ahead on its data disk, such as 4 MiB; the kernel's default if left out."""
    data_cache: Annotated[CacheMode | None, *_of_data("cache mode of the data disk")] = None
    """Cache mode of the data disk; the first disk's if left out."""
    data_io: Annotated[DiskIo | None, *_of_data("I/O of the data disk", data_io_conflict)] = None
    """How QEMU does I/O for the data disk; as for the first disk if left out."""
    data_iothread: Annotated[IoThread | None, *_of_data("iothread of the data disk")] = None
    """Whether the data disk has an iothread, or the name of one; as for the first disk if left out."""
    data_bus: Annotated[DataBus, *_of_data("bus of the data disk")] = "virtio"
    """How the guest sees its data disk: as a virtio disk, or behind a virtio-scsi controller (scsi)."""
    data_packed: Annotated[
        bool, *_of_data("packed queues of the data disk", only_with("data_packed", "data_bus", "virtio"))
    ] = False
    """Whether the queues of a virtio data disk are packed: one ring instead of three."""
    data_format: Annotated[DataFormat, *_of_data("format of the data disk", format_conflict)] = "raw"
    """The format of the data disk's file: raw or qcow2."""
    data_cluster_bytes: Annotated[
        Bytes | None, Field(alias="data_cluster", ge=512, le=2 * 2**20), *_of_data("cluster size", cluster_conflict)
    ] = None
    """Size of a qcow2 data disk's clusters, a power of two from 512 B to 2 MiB; qemu-img's default if left out."""
    data_preallocation: Annotated[
        Preallocation, *_of_data("preallocation", only_with("data_preallocation", "data_format", "qcow2"))
    ] = "off"
    """What is allocated beforehand of a qcow2 data disk: nothing, its tables (metadata), or all (falloc, full)."""
    data_table_cache_bytes: Annotated[
        Bytes | None,
        Field(alias="data_table_cache", ge=2**12, le=2**40),
        NOT_SEEN,
        OF_DATA_DISK,
        NotWith(table_cache_conflict),
    ] = None
    """The most memory for a qcow2 data disk's tables, L2 and refcounts together; QEMU's default if left out."""
    data_extended_l2: Annotated[
        bool, *_of_data("extended L2 entries", only_with("data_extended_l2", "data_format", "qcow2"))
    ] = False
    """Whether clusters of a qcow2 data disk have 32 subclusters each, which are allocated one by one."""
    data_discard: Annotated[Discard | None, *_of_data("discard of the data disk", discard_conflict)] = None
    """Whether discarded blocks go back to the host (unmap); if left out, only from thin disks."""
    data_detect_zeroes: Annotated[
        DetectZeroes | None, *_of_data("detection of zeroes of the data disk", zeroes_conflict("data_detect_zeroes"))
    ] = None
    """What QEMU does when zeroes are written to the data disk; as for the first disk if left out."""
    data_limit_iops: Annotated[Iops | None, *_of_data("limit of the data disk's IOPS")] = None
    """The most requests a second that QEMU serves on the data disk; as for the first disk if left out."""
    data_limit_bandwidth: Annotated[DiskRate | None, *_of_data("limit of the data disk's bandwidth")] = None
    """The most bytes a second on the data disk, such as 100 MB/s; as for the first disk if left out."""
    data_limit_iops_burst: Annotated[
        Iops | None, *_of_data("burst of the data disk's IOPS", burst_conflict("data_limit_iops_burst"))
    ] = None
    """The most requests a second during a burst of the data disk; as for the first disk if left out."""
    data_limit_bandwidth_burst: Annotated[
        DiskRate | None, *_of_data("burst of the data disk's bandwidth", burst_conflict("data_limit_bandwidth_burst"))
    ] = None
    """The most bytes a second during a burst of the data disk; as for the first disk if left out."""
    data_limit_burst_length: Annotated[
        BurstLength | None, *_of_data("length of the data disk's bursts", length_conflict("data_limit_burst_length"))
    ] = None
    """For how many seconds a burst of the data disk may last; as for the first disk if left out."""
    network: Annotated[Network, NOT_SEEN] = "plain"
    """How others reach it: over the lab's bridge (plain), through a tunnel (vxlan), or by an elastic address (nat)."""
    nic_queues: Annotated[
        int,
        Field(ge=1, le=64),
        NOT_SEEN,
        Lever("queues of the network card"),
        NotWith(queues_conflict("nic_queues")),
    ] = 1
    """Queue pairs of its network card; the guest uses at most one for each of its CPUs."""
    vhost: Annotated[bool | None, NOT_SEEN, Lever("vhost")] = None
    """Whether the host's kernel (vhost_net) or QEMU moves its packets; by default the kernel, if it can."""
    mtu: Annotated[int | None, Field(ge=1280, le=9000), NOT_SEEN, Lever("MTU"), NotWith(_mtu_conflict)] = None
    """The largest packet in bytes, without Ethernet's header; 1500 if left out."""
    bandwidth: Annotated[BitRate | None, Field(ge=10**6, le=10**10), NOT_SEEN, BANDWIDTH] = None
    """The most that it receives from the network, and also the most that it sends, with headers, such as 30 Mbit/s."""
    libvirt_settings: Annotated[
        LibvirtSettings,
        Field(alias="libvirt"),
        SeenAs("libvirt_settings", as_mapping),
        Lever("libvirt's settings"),
        NotWith(settings_conflict),
    ] = ()
    """Other settings of libvirt's domain XML, by paths such as features/pmu/@state."""
    on: Annotated[On, NOT_SEEN] = "vm"
    """A virtual machine (vm), or bare metal (host): the same programs on the host, with equal CPU count and memory."""
    smt: Annotated[bool | None, NOT_SEEN] = None
    """With ``on: host``: it has both hardware threads of each core (true), or one (false); any CPUs if left out."""

    @property
    def on_host(self) -> bool:
        """Whether it is no virtual machine."""
        return self.on == "host"

    def not_on_host(self) -> tuple[str, ...]:
        """The scenario's keys that are given and mean nothing on bare metal; none for a virtual machine.

        Keys of the virtual disks are none of them: they stay as they are where a point of an axis moves a guest.
        """
        if not self.on_host:
            return ()
        fields = type(self).model_fields
        return tuple(fields[name].alias or name for name in _OF_VMS if getattr(self, name) != fields[name].default)

    @property
    def is_labs(self) -> bool:
        """Whether it starts from vmlab's own image; only such a guest can be frozen."""
        return self.image == LAB_IMAGE

    @property
    def data_mode(self) -> CacheMode:
        """The cache mode of the data disk."""
        return self.data_cache or self.cache

    def of_disk(self, key: str, disk: DiskPlace) -> Any:
        """What a disk has of a key that is for all disks, where no ``data_`` key says otherwise of the data disk."""
        return getattr(self, self.key_of(key, disk))

    def key_of(self, key: str, disk: DiskPlace) -> str:
        """The key that a disk has its value of `key` from: the one for all disks, or that with ``data_``."""
        return f"data_{key}" if disk == "data" and getattr(self, f"data_{key}") is not None else key

    @property
    def allocates_all(self) -> bool:
        """Whether its data disk takes its whole size on the host before anything is written to it."""
        return self.data_reserved or self.data_preallocation in ("falloc", "full")

    @property
    def data_discards(self) -> Discard:
        """What becomes of what is discarded on the data disk: one that was allocated before keeps its blocks."""
        return self.data_discard or ("ignore" if self.data_reserved else "unmap")

    @property
    def disk_places(self) -> tuple[DiskPlace, ...]:
        """The disks that it has."""
        return ("root",) if self.data_bytes is None else ("root", "data")

    @property
    def iothreads(self) -> tuple[str, ...]:
        """The names of its iothreads, each once; a disk's own one is called as the disk."""
        return tuple(dict.fromkeys(filter(None, map(self.iothread_of, self.disk_places))))

    def iothread_of(self, disk: DiskPlace) -> str | None:
        """The name of a disk's iothread; None where QEMU's main loop drives it."""
        own = self.of_disk("iothread", disk)
        return disk if own is True else own or None

    @property
    def cache_modes(self) -> tuple[CacheMode, ...]:
        """The cache modes of all its disks."""
        return (self.cache,) if self.data_bytes is None else (self.cache, self.data_mode)

    @property
    def pool(self) -> str | None:
        """The pool of a Ceph cluster that its data disk lies in."""
        place = self.data_place
        return place.name if place is not None and place.kind == "rbd" else None

    @property
    def data_place(self) -> DataPlace | None:
        """Where its data disk lies; None where it has none."""
        return None if self.data_bytes is None else DataPlace.of(self.backing)

    @property
    def data_reserved(self) -> bool:
        """Whether all room of its data disk is allocated before it is used, as that of a logical volume always is."""
        place = self.data_place
        return place is not None and (self.allocation == "full" or place.kind == "lvm")

    @property
    def beyond_bridge(self) -> tuple[str, ...]:
        """The scenario's keys that ask for more of the network than the lab's bridge: ``network``, ``bandwidth``."""
        asked = {"network": self.network != "plain", "bandwidth": self.bandwidth is not None}
        return tuple(key for key, wanted in asked.items() if wanted)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        """The scenario's keys that do not go with others, each with the reason."""
        for name, field in type(self).model_fields.items():
            for mark in field.metadata:
                if isinstance(mark, NotWith) and (why := mark.why(self)) is not None:
                    yield field.alias or name, why

    def given(self) -> dict[str, str]:
        """The scenario's keys whose values are other ones than they are where nothing is given; with the values."""
        usual = {name: one for name, one in type(self).model_fields.items() if not one.is_required()}
        found = {name: value for name, one in usual.items() if (value := getattr(self, name)) != one.default}
        return {usual[name].alias or name: _words(name, value) for name, value in found.items()}

    def without_data_disk(self) -> tuple[str, ...]:
        """The scenario's keys that are given for a data disk, when the guest has no data disk."""
        if self.data_bytes is not None:
            return ()
        fields = type(self).model_fields
        said = [name for name in fields if name in self.model_fields_set and OF_DATA_DISK in fields[name].metadata]
        return tuple(fields[name].alias or name for name in said)

    def resources(self, host_cpus: int) -> GuestResources:
        """The same on a host with so many processors."""
        values = {name: getattr(self, name) for name in GuestResources.model_fields}
        return GuestResources(**{**values, "vcpus": host_cpus if self.vcpus == "host" else self.vcpus})


def _words(name: str, value: Any) -> str:
    """A value as people write it in a scenario."""
    if name == "libvirt_settings":
        return ", ".join(f"{path} {axis_word(one)}" for path, one in value)
    if "limit_bandwidth" in name:
        return f"{format_bytes(value)}/s"
    if name.endswith("_length"):
        return format_seconds(value)
    if name == "packages":
        return ", ".join(value)
    return format_bytes(value) if name.endswith("_bytes") else axis_word(value)


class GuestResources(GuestAttributes):
    """The attributes of one guest on one host: used by plan, domain and snapshot. Sizes are ints of bytes."""

    model_config = ConfigDict(populate_by_name=True)

    vcpus: Annotated[int, Field(ge=1)]
    """Virtual CPUs."""

    def with_cpu_shares(self, shares: int | None) -> GuestResources:
        """The same with another weight."""
        return self.model_copy(update={"cpu_shares": shares})

    def with_no_limits(self) -> GuestResources:
        """The same with no weight, limit or pinning and any memory, as a guest has them that is about to be frozen."""
        limits = [name for name in type(self).model_fields if name.startswith("limit_")]
        keys = ("cpu_shares", "emulator_shares", "cpu_quota", "huge_pages", "ksm", "numa", "memory_lock", *limits)
        return self.model_copy(update={**dict.fromkeys(keys), "pin": UNPINNED, "emulator_pin": UNPINNED})

    def with_cache(self, mode: CacheMode) -> GuestResources:
        """The same with another cache mode of all disks."""
        return self.model_copy(update={"cache": mode, "data_cache": None})

    def seen(self) -> dict[str, Any]:
        """What the guest sees of them, by name, as JSON values. A saved guest loads only where all are equal."""
        found: dict[str, Any] = {}
        for name, field in type(self).model_fields.items():
            if NOT_SEEN in field.metadata:
                continue
            shown, value = name, getattr(self, name)
            for mark in field.metadata:
                if isinstance(mark, SeenAs):
                    shown, value = mark.name, mark.made_by(value)
            # What is not set is not written down, so that older snapshots fit.
            if value is not None:
                found[shown] = value
        return found


GUEST_ATTRIBUTES = tuple(field.alias or name for name, field in GuestAttributes.model_fields.items())
"""The scenario's keys for the attributes. Each is also the name of an axis over all guests."""
