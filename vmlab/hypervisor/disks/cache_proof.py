"""What a running QEMU really does with its disk files, read from its open descriptors and over QMP.

The XML only states what was asked. The flag O_DIRECT of an open file and QMP's cache flags show what is in force;
`model.run` has their values for each mode.

The write cache is a property of the device that the guest sees. A backing file has no device, is never written,
and QMP reports its write cache as on in every mode, so that flag is compared for the overlay alone. O_DIRECT and
`no-flush` are compared for both: a base image read through the host's cache is not ``cache=none``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmlab.hypervisor.disks import loop_devices
from vmlab.hypervisor.disks.data_disks import AnyDataDisk, DataDisk, PoolDisk
from vmlab.hypervisor.domain_spec import PoolImage
from vmlab.hypervisor.open_files import descriptors_on, opened_by
from vmlab.model.results import CacheProof
from vmlab.model.run import CACHE_FLAGS, CacheFlags, CacheMode
from vmlab.system.processes import fdinfo

OPENING = ("file", "host_device")
"""QEMU's drivers for a file and for a block device."""

Query = Callable[[str], Any]
"""One QMP command without arguments; its ``return`` value."""


@dataclass(frozen=True, slots=True)
class Qemu:
    """The QEMU of a guest: `process` is its folder below a /proc, `query` asks its monitor."""

    guest: str
    process: Path
    query: Query

    def prove(self, mode: CacheMode, chain: Sequence[Path]) -> list[CacheProof]:
        """The proof for every file of one disk: the first one, then what lies below, in the order of `chain`.

        A file that QEMU does not have open gives a failed proof. Raises OSError when the process is gone.
        """
        nodes = _file_nodes(self.query("query-named-block-nodes"))
        first, *below = chain
        write_cache = _device_write_cache(self.query("query-block"), first), CACHE_FLAGS[mode].writeback
        return [
            self._of_file(mode, first, nodes.get(first), write_cache),
            *(self._of_file(mode, file, nodes.get(file), None) for file in below),
        ]

    def prove_data(self, mode: CacheMode, disk: AnyDataDisk) -> list[CacheProof]:
        """The proof for a data disk; with a loop device two, as the loop device's own flag counts as well."""
        if isinstance(disk, PoolDisk):
            return [self._in_pool(mode, disk.source)]
        loop = disk.loop if isinstance(disk, DataDisk) else None
        return [*self.prove(mode, [disk.source.path]), *(() if loop is None else (self._below(*loop),))]

    def _below(self, device: Path, file: Path) -> CacheProof:
        """The host must not cache the file below QEMU's O_DIRECT on the device, nor in addition to its buffers."""
        direct = loop_devices.is_direct(device)
        found = CacheFlags(writeback=False, direct=direct, no_flush=False)
        agrees = direct and loop_devices.file_of(device) == str(file.resolve())
        return self._proof(file, found, f"block, below {device.name}: o_direct=yes", direct, agrees)

    def _in_pool(self, mode: CacheMode, image: PoolImage) -> CacheProof:
        """By QMP's flags alone: there is no file of the host, and so no descriptor to read O_DIRECT from.

        QEMU's driver switches Ceph's own cache in QEMU's memory off for `direct` and on otherwise.
        """
        nodes = (node for node in self.query("query-named-block-nodes") if node["drv"] == "rbd")
        opened = [node["cache"] for node in nodes if _is_in_pool(node["file"], image)]
        devices = (device.get("inserted") for device in self.query("query-block"))
        written = [one["cache"]["writeback"] for one in devices if one and _is_in_pool(one["file"], image)]
        found = CacheFlags(
            writeback=bool(written) and all(written),
            direct=bool(opened) and all(cache["direct"] for cache in opened),
            no_flush=bool(opened) and all(cache["no-flush"] for cache in opened),
        )
        agrees = len(opened) == len(written) == 1 and found == CACHE_FLAGS[mode]
        return self._proof(image, found, f"rbd, {_words(mode, backing=False)}", found.direct, agrees)

    def _of_file(
        self, mode: CacheMode, file: Path, node: CacheFlags | None, write_cache: tuple[bool | None, bool] | None
    ) -> CacheProof:
        """`write_cache` is the device's (found, expected); None for a backing file, which has no device."""
        opened = direct_flags(self.process, file)
        expected = CACHE_FLAGS[mode]
        found = node or CacheFlags(writeback=False, direct=False, no_flush=False)
        agrees = (
            node is not None
            and set(opened) == {expected.direct}
            and (found.direct, found.no_flush) == (expected.direct, expected.no_flush)
            and (write_cache is None or write_cache[0] is write_cache[1])
        )
        if write_cache is not None:
            found = found._replace(writeback=bool(write_cache[0]))
        words = _words(mode, backing=write_cache is None)
        return self._proof(file, found, words, bool(opened) and all(opened), agrees)

    def _proof(
        self, place: Path | PoolImage, found: CacheFlags, expected: str, o_direct: bool, agrees: bool
    ) -> CacheProof:
        flags = found.writeback, found.direct, found.no_flush
        return CacheProof(self.guest, str(place), o_direct, *flags, expected, agrees)


def _words(mode: CacheMode, backing: bool) -> str:
    """Such as ``none: o_direct=yes writeback=yes no_flush=no``; a backing file promises no write cache."""
    flags = CACHE_FLAGS[mode]
    said = {"o_direct": flags.direct, "writeback": flags.writeback, "no_flush": flags.no_flush}
    if backing:
        del said["writeback"]
    return f"{mode}: " + " ".join(f"{name}={'yes' if on else 'no'}" for name, on in said.items())


def direct_flags(process: Path, file: Path) -> list[bool]:
    """O_DIRECT of every descriptor by which a process holds `file` open; empty where it holds none."""
    return [bool(flags & os.O_DIRECT) for flags in open_flags(process, file)]


def open_flags(process: Path, file: Path) -> list[int]:
    """The flags of open(2) of every descriptor by which a process holds `file` open; empty where it holds none.

    `process` is its folder below a /proc.
    """
    return [int(fdinfo(process, held.name)["flags"], 8) for held in descriptors_on(process, file)]


def _file_nodes(nodes: Iterable[Mapping[str, Any]]) -> dict[Path, CacheFlags]:
    """Cache flags by file, of the nodes that open files or block devices themselves."""
    return {
        Path(node["file"]): CacheFlags(node["cache"]["writeback"], node["cache"]["direct"], node["cache"]["no-flush"])
        for node in nodes
        if node["drv"] in OPENING
    }


def _is_in_pool(place: str, image: PoolImage) -> bool:
    """Whether a node's ``file`` is `image`."""
    opened = opened_by(place)
    return (opened.get("pool"), opened.get("image")) == (image.pool, image.image)


def _device_write_cache(devices: Iterable[Mapping[str, Any]], overlay: Path) -> bool | None:
    """Whether the guest's device on `overlay` has its write cache on; None where there is no such device."""
    for device in devices:
        inserted = device.get("inserted")
        if inserted and opened_by(inserted["file"]).get("filename") == str(overlay):
            return bool(inserted["cache"]["writeback"])
    return None
