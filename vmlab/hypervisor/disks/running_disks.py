"""The disks of the lab's running guests: proving their cache modes, switching these, and what QEMU counts of them.

QEMU counts a request from the moment at which its disk takes it from the guest's queue until it gives the answer back:
all that host, cache and disk do is in it, and nothing of the guest's own scheduler. The histograms belong to the
guest's disk and not to the files below it, and so they stay when these are opened again in another cache mode.

How many requests QEMU has answered does not say whether a disk still works: one that is idle answers nothing either.
The guest may still not know of what QEMU has answered, as where an interrupt was lost; that is to be asked of the
guest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lxml import etree

from vmlab.hypervisor.disks import cache_switch
from vmlab.hypervisor.disks.cache_proof import Qemu
from vmlab.hypervisor.disks.cache_switch import BlockNodes, Definition, definitions_in
from vmlab.hypervisor.disks.data_disks import IN_USER_FOLDER, DataDisk, DataDisks, VolumeDisk
from vmlab.hypervisor.disks.overlays import require_direct
from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.levers.guest_lever import DISK_DEVICES, Monitor, device_in
from vmlab.hypervisor.libvirt.calls import ASK, call, qmp
from vmlab.hypervisor.libvirt.domain_xml import data_disk_xml
from vmlab.hypervisor.libvirt.libvirt_root import Places
from vmlab.hypervisor.libvirt.running_guest import StartedGuest
from vmlab.hypervisor.protocols import DiskLatency, DiskRequests
from vmlab.model.errors import HypervisorError
from vmlab.model.results import CacheProof, Drained
from vmlab.model.run import CACHE_FLAGS, CacheMode
from vmlab.telemetry.latency_bins import BINS, OPERATIONS

_LOOK = 60.0
"""libvirt may query QEMU again for a description of how it would start, which takes seconds on a slow host."""
LATENCY_SECONDS = 5.0
"""For one question about a guest's disks; it is asked again after some seconds."""
_REPLIES = {"read": "rd_latency_histogram", "write": "wr_latency_histogram", "flush": "flush_latency_histogram"}
_ANSWERED = "_operations"
"""The ending of QEMU's counters of requests that have ended: done, failed or invalid, by kind."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunningDisks:
    """`protocols.GuestDisks`. `lookup` gives libvirt's domain by a guest's name, `guests` what it was started as."""

    _places: Places
    _data_disks: DataDisks
    _lookup: Callable[[str], Any]
    _guests: Mapping[str, StartedGuest]

    async def prove_cache(self, specs: Sequence[DomainSpec]) -> list[CacheProof]:
        """For each guest overlay, a restored one's saved disk, image, and its data disk; see `cache_proof`."""
        proofs = await asyncio.gather(
            *(call(f"{spec.name}: proving its cache mode", ASK, self._prove, spec) for spec in specs)
        )
        return [proof for pair in proofs for proof in pair]

    def _prove(self, spec: DomainSpec) -> list[CacheProof]:
        domain = self._lookup(spec.name)
        try:
            qemu = Qemu(spec.guest, self._process_of(domain), partial(qmp, domain))
            proofs = qemu.prove(spec.resources.cache, self._guests[spec.name].chain)
            data = self._data_disks.of(spec.name)
            return proofs if data is None else [*proofs, *qemu.prove_data(spec.resources.data_mode, data)]
        except (OSError, KeyError) as error:
            raise HypervisorError(f"{spec.name}: cannot look into its QEMU: {error}") from error

    async def drain_disks(self, specs: Sequence[DomainSpec], deadline: float) -> Drained:
        """Write the dirty pages of all disks of the guests; see `cache_switch.drain`."""
        return await cache_switch.drain((file for spec in specs for file in self._files_of(spec.name)), deadline)

    def _files_of(self, name: str) -> Iterator[Path]:
        yield from self._guests[name].chain
        if isinstance(data := self._data_disks.of(name), DataDisk | VolumeDisk):
            yield data.source.path

    async def switch_cache(self, specs: Sequence[DomainSpec], mode: CacheMode) -> dict[str, float]:
        """Switch all disks of the guests, those that were plugged in too; see `cache_switch.switch`."""
        for folder in dict.fromkeys(file.parent for spec in specs for file in self._guests[spec.name].chain):
            require_direct(folder, mode)
        for data in filter(None, (self._data_disks.of(spec.name) for spec in specs)):
            if isinstance(data, DataDisk) and data.device is None:
                require_direct(data.file.parent, mode, IN_USER_FOLDER)
        guests = {
            spec.name: await call(f"{spec.name}: looking at its disks", _LOOK, self._nodes_of, spec) for spec in specs
        }
        return await cache_switch.switch(guests, direct=CACHE_FLAGS[mode].direct)

    def _nodes_of(self, spec: DomainSpec) -> BlockNodes:
        domain = self._lookup(spec.name)
        try:
            return BlockNodes(self._process_of(domain), partial(qmp, domain), partial(self._plugged, domain, spec))
        except (OSError, KeyError, ValueError) as error:
            raise HypervisorError(f"{spec.name}: cannot look into its QEMU: {error}") from error
        except HypervisorError as error:
            raise HypervisorError(f"{spec.name}: {error}") from error

    def _process_of(self, domain: Any) -> Path:
        return self._places.proc / str(self._places.pid_of(domain.name()))

    def _plugged(self, domain: Any, spec: DomainSpec) -> list[Definition]:
        """How libvirt would define the guest's nodes if it began with its data disk."""
        data = self._data_disks.of(spec.name)
        if data is None:
            return []
        described = with_disk(self._guests[spec.name].xml, data_disk_xml(spec, data.source))
        return definitions_in(domain.connect().domainXMLToNative("qemu-argv", described, 0))

    async def begin_latency(self, name: str) -> None:
        """Empty the histograms of a guest's disks."""
        await self._asked(name, "reading the latency of its disks", begin_latency)

    async def disk_latency(self, name: str) -> DiskLatency:
        """What they have counted since."""
        return await self._asked(name, "reading the latency of its disks", read_latency)

    async def disk_requests(self, name: str) -> dict[str, DiskRequests]:
        """What a guest's disks have answered and taken."""
        return await self._asked(name, "counting the requests of its disks", read_requests)

    async def _asked(self, name: str, what: str, ask: Callable[[Monitor], T]) -> T:
        return await call(f"{name}: {what}", LATENCY_SECONDS, lambda: ask(partial(qmp, self._lookup(name))))


def with_disk(domain: str, disk: str) -> str:
    """The XML of a domain with one disk more."""
    root = etree.fromstring(domain)
    devices = root.find("devices")
    assert devices is not None, "every domain of the lab has devices"
    devices.append(etree.fromstring(disk))
    return etree.tostring(root, encoding="unicode")


def begin_latency(monitor: Monitor) -> None:
    """Give each disk of the guest empty histograms; blocks. Raises HypervisorError when QEMU refuses."""
    for _, path, _ in _disks(monitor):
        monitor("block-latency-histogram-set", {"id": path, "boundaries": BINS.boundaries})


def read_latency(monitor: Monitor) -> DiskLatency:
    """What each disk has counted since `begin_latency`; blocks. Raises HypervisorError where it counts nothing."""
    return {name: _counts(name, stats) for name, _, stats in _disks(monitor)}


def read_requests(monitor: Monitor) -> dict[str, DiskRequests]:
    """Those of each disk, by its name in a scenario; blocks. Raises HypervisorError when QEMU refuses."""
    taken = _taken(monitor)
    return {name: _requests(stats, taken.get(path)) for name, path, stats in _disks(monitor)}


def _requests(stats: Mapping[str, Any], taken: int | None) -> DiskRequests:
    ways = ("rd", "wr")
    return DiskRequests(
        sum(count for key, count in stats.items() if key.endswith(_ANSWERED)),
        taken,
        sum(stats.get(f"{way}_operations", 0) - stats.get(f"{way}_merged", 0) for way in ways),
        sum(stats.get(f"{way}_bytes", 0) for way in ways),
    )


def _disks(monitor: Monitor) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The name of each disk of the guest in a scenario, its path in QEMU, and what QEMU has counted of it."""
    for one in monitor("query-blockstats"):
        path = one.get("qdev", "")
        if (disk := DISK_DEVICES.get(device_in(path))) is not None:
            yield disk, path, one["stats"]


def _counts(name: str, stats: dict[str, Any]) -> dict[str, list[int]]:
    found = {}
    for operation in OPERATIONS:
        histogram = stats.get(_REPLIES[operation])
        if histogram is None or histogram["boundaries"] != BINS.boundaries:
            raise HypervisorError(f"QEMU does not count how long a {operation} of the disk {name} takes")
        found[operation] = histogram["bins"]
    return found


def _taken(monitor: Monitor) -> dict[str, int]:
    """By the disk's path, what is in use of all its queues; {} from a QEMU before 7.2, which does not say."""
    try:
        devices = [one["path"] for one in monitor("x-query-virtio") if one["name"] == "virtio-blk"]
    except HypervisorError:
        return {}
    return {path: _in_use(monitor, path) for path in devices}


def _in_use(monitor: Monitor, path: str) -> int:
    queues = range(monitor("x-query-virtio-status", {"path": path})["num-vqs"])
    asked = (monitor("x-query-virtio-queue-status", {"path": path, "queue": queue}) for queue in queues)
    return sum(status["inuse"] for status in asked)
