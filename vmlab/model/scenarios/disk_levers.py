"""Values of a guest's attributes on how QEMU drives its disks, and which of them do not go together."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from vmlab.model.quantities import format_bytes
from vmlab.model.run import CACHE_FLAGS, CacheMode
from vmlab.model.units import ByteRate, WholeSeconds

if TYPE_CHECKING:
    from vmlab.model.scenarios.guest import GuestAttributes

DiskIo = Literal["threads", "native", "io_uring"]
Discard = Literal["ignore", "unmap"]
DetectZeroes = Literal["off", "on", "unmap"]
DataBus = Literal["virtio", "scsi"]
DATA_TARGETS: dict[DataBus, str] = {"virtio": "vdb", "scsi": "sda"}
"""What libvirt and a guest call the data disk, by its bus."""
DataFormat = Literal["raw", "qcow2"]
Preallocation = Literal["off", "metadata", "falloc", "full"]
DiskPlace = Literal["root", "data"]
"""The disks of a guest: its first one, and its data disk."""
Iops = Annotated[int, Field(ge=1, le=10**9)]
DiskRate = Annotated[ByteRate, Field(ge=512, le=10**12)]
BurstLength = Annotated[WholeSeconds, Field(ge=1, le=600)]
"""Rate and length of a burst together are below QEMU's bound (THROTTLE_VALUE_MAX, 10^15)."""

TRIMMED_BYTES = 4 * 2**20
"""What a guest discards of its empty data disk, from its beginning, where `data_discard` is given."""
_MOST_TABLES = 2**22
"""L2 tables of a qcow2 image: its L1 table has at most 32 MiB (QCOW_MAX_L1_SIZE), of 8 bytes each."""
_LEAST_EXTENDED = 16 * 2**10
"""Of a cluster in bytes: one with extended L2 entries has 32 subclusters of at least 512 (docs/interop/qcow2.txt)."""
_USUAL_CLUSTER = 64 * 2**10
"""qemu-img's default."""
_OF_REFCOUNTS = 4
"""Clusters (MIN_REFCOUNT_CACHE_SIZE of QEMU)."""
_NO_NAMES = ("on", "off", "yes", "no", "none", "root", "data")
"""What would be taken for a switch, and what a disk's own iothread is called."""
_IOTHREAD_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}", re.ASCII)


def _iothread(value: object) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and _IOTHREAD_NAME.fullmatch(value) and value not in _NO_NAMES:
        return value
    raise ValueError(
        "needs true, false, or a name for one that disks share: small letters, digits and dashes, "
        f"none of {', '.join(_NO_NAMES)}"
    )


IoThread = Annotated[
    bool | str,
    BeforeValidator(_iothread),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": f"^{_IOTHREAD_NAME.pattern}$"}]}),
]


def io_conflict(guest: GuestAttributes) -> str | None:
    """Why the disks that have their I/O from the key ``io`` cannot have it."""
    modes = [guest.cache]
    if guest.data_bytes is not None and guest.data_io is None and guest.pool is None:
        modes.append(guest.data_mode)
    return next(filter(None, (_with_cache("io", guest.io, mode) for mode in modes)), None)


def data_io_conflict(guest: GuestAttributes) -> str | None:
    """The same of the key ``data_io``."""
    if guest.data_io is None:
        return None
    if guest.pool is not None:
        return f"data_io is of files and devices of the host, and the data disk is in pool {guest.pool}"
    return _with_cache("data_io", guest.data_io, guest.data_mode)


def format_conflict(guest: GuestAttributes) -> str | None:
    """Why the data disk cannot have its format."""
    if guest.data_format == "raw":
        return None
    if guest.data_place is not None and guest.data_place.kind in ("block", "lvm", "rbd"):
        return f"data_format: qcow2 is a file, and the backing is {guest.backing}; use backing: file"
    if guest.allocation == "full":
        return "data_format: qcow2 is not allocated as a raw disk is; use data_preallocation, and leave allocation out"
    return None


def discard_conflict(guest: GuestAttributes) -> str | None:
    """Why nobody could see what the data disk gives back."""
    place = guest.data_place
    if guest.data_discard is None or place is None or place.kind not in ("lvm", "rbd"):
        return None
    where = "pool" if place.kind == "rbd" else "volume group"
    return f"data_discard is seen in a file of the host, and the data disk is in {where} {place.name}"


def zeroes_conflict(key: str) -> Callable[[GuestAttributes], str | None]:
    """Why zeroes cannot be discarded on the data disk, which has that from `key`."""

    def why(guest: GuestAttributes) -> str | None:
        if guest.data_bytes is None or guest.key_of("detect_zeroes", "data") != key:
            return None
        # libvirt would tell QEMU `on` (virDomainDiskGetDetectZeroesMode).
        if guest.of_disk("detect_zeroes", "data") != "unmap" or guest.data_discards == "unmap":
            return None
        return f"{key}: unmap needs a data disk that discards; set data_discard: unmap, or another {key}"

    return why


def only_with(key: str, other: str, value: str) -> Callable[[GuestAttributes], str | None]:
    """Why a disk cannot have `key`, which means something where the key `other` has a `value`."""

    def why(guest: GuestAttributes) -> str | None:
        found = getattr(guest, other)
        return None if found == value or key not in guest.given() else f"{key} is for {other}: {value}, not {found}"

    return why


def cluster_conflict(guest: GuestAttributes) -> str | None:
    """Why a qcow2 disk cannot have clusters of its size."""
    if (size := guest.data_cluster_bytes) is None:
        return None
    if size & (size - 1):
        return f"data_cluster needs a power of two from 512 B to 2 MiB, not {format_bytes(size)}"
    if guest.data_extended_l2 and size < _LEAST_EXTENDED:
        return f"data_extended_l2 needs clusters of 16 KiB or more, and data_cluster is {format_bytes(size)}"
    if guest.data_bytes is not None and guest.data_bytes > (most := size * size // 8 * _MOST_TABLES):
        return f"data_cluster: {format_bytes(size)} maps {format_bytes(most)} at most, less than data has"
    return only_with("data_cluster", "data_format", "qcow2")(guest)


def table_cache_conflict(guest: GuestAttributes) -> str | None:
    """Why memory for a qcow2 disk's tables changes nothing: QEMU gives refcounts what they need first (read_cache_sizes
    of its block/qcow2.c).
    """
    size, cluster = guest.data_table_cache_bytes, guest.data_cluster_bytes or _USUAL_CLUSTER
    if size is not None and guest.data_format == "qcow2" and size <= (least := _OF_REFCOUNTS * cluster):
        first = f"refcounts take the first {format_bytes(least)}, which are {_OF_REFCOUNTS} clusters"
        return f"data_table_cache: {format_bytes(size)} leaves nothing to L2 tables: {first}"
    return only_with("data_table_cache", "data_format", "qcow2")(guest)


def burst_conflict(key: str) -> Callable[[GuestAttributes], str | None]:
    """Why no disk that has its burst from `key` can have it."""
    base = key.removeprefix("data_")
    limit = base.removesuffix("_burst")

    def why(guest: GuestAttributes) -> str | None:
        for disk in guest.disk_places:
            burst, bound = guest.of_disk(base, disk), guest.of_disk(limit, disk)
            if burst is None or guest.key_of(base, disk) != key:
                continue
            if bound is None:
                return f"{key} needs a limit that a burst may exceed; set {key.removesuffix('_burst')}"
            if burst < bound:
                return f"{key} is less than {guest.key_of(limit, disk)}, and a burst exceeds the limit"
        return None

    return why


def length_conflict(key: str) -> Callable[[GuestAttributes], str | None]:
    """Why no disk that has the length of its bursts from `key` can have it."""
    base = key.removeprefix("data_")

    def why(guest: GuestAttributes) -> str | None:
        for disk in guest.disk_places:
            given = guest.of_disk(base, disk) is not None and guest.key_of(base, disk) == key
            if given and all(guest.of_disk(f"limit_{one}_burst", disk) is None for one in ("iops", "bandwidth")):
                return f"{key} needs limit_iops_burst or limit_bandwidth_burst"
        return None

    return why


def _with_cache(key: str, io: DiskIo, mode: CacheMode) -> str | None:
    # QEMU opens no file so: "aio=native was specified, but it requires cache.direct=on" (block/file-posix.c).
    if io != "native" or CACHE_FLAGS[mode].direct:
        return None
    direct = " or ".join(name for name, flags in CACHE_FLAGS.items() if flags.direct)
    return f"{key}: native needs O_DIRECT, which cache mode {mode} does not have; use {direct}, or another {key}"
