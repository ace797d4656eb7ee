"""The disks of the lab's running guests: proving their cache modes, and switching these."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lxml import etree

from vmlab.hypervisor.contract import DiskLatency, DiskRequests, DomainSpec
from vmlab.hypervisor.disks import cache_proof, cache_switch, disk_requests, latency_histograms
from vmlab.hypervisor.disks.block_nodes import BlockNodes, Definition, Monitor, definitions_in
from vmlab.hypervisor.disks.cache_switch import GuestDisks
from vmlab.hypervisor.disks.data_disks import DataDisks
from vmlab.hypervisor.libvirt.calls import call
from vmlab.hypervisor.libvirt.domain_places import Places
from vmlab.hypervisor.libvirt.domain_xml import data_disk_xml
from vmlab.hypervisor.libvirt.qmp import qmp
from vmlab.model.cache import CACHE_FLAGS
from vmlab.model.errors import HypervisorError
from vmlab.model.results import CacheProof, Drained
from vmlab.model.run import CacheMode

_ASK = 10.0
_LOOK = 60.0
"""libvirt may query QEMU again for a description of how it would start, which takes seconds on a slow host."""
LATENCY_SECONDS = 5.0
"""For one question about a guest's disks; it is asked again after some seconds."""
T = TypeVar("T")


class RunningDisks:
    """`lookup` gives libvirt's domain by a guest's name, `chain_of` the files of its disk, the first one on top."""

    def __init__(
        self,
        places: Places,
        data_disks: DataDisks,
        lookup: Callable[[str], Any],
        chain_of: Callable[[str], Sequence[Path]],
    ) -> None:
        self._places = places
        self._data_disks = data_disks
        self._lookup = lookup
        self._chain_of = chain_of

    async def prove(self, specs: Sequence[DomainSpec]) -> list[CacheProof]:
        """For each guest the proofs of all files of its disks; see `cache_proof`."""
        proofs = await asyncio.gather(
            *(call(f"{spec.name}: proving its cache mode", _ASK, self._prove, spec) for spec in specs)
        )
        return [proof for pair in proofs for proof in pair]

    def _prove(self, spec: DomainSpec) -> list[CacheProof]:
        domain = self._lookup(spec.name)
        try:
            process = self._process_of(domain)
            qemu = cache_proof.Qemu(spec.guest, process, lambda name: qmp(domain, name))
            proofs = qemu.prove(spec.resources.cache, self._chain_of(spec.name))
            data = self._data_disks.of(spec.name)
            return proofs if data is None else [*proofs, *qemu.prove_data(spec.resources.data_mode, data)]
        except (OSError, KeyError) as error:
            raise HypervisorError(f"{spec.name}: cannot look into its QEMU: {error}") from error

    async def drain(self, specs: Sequence[DomainSpec], deadline: float) -> Drained:
        """Write the dirty pages of all disks of the guests; see `cache_switch.drain`."""
        return await cache_switch.drain((file for spec in specs for file in self._files_of(spec.name)), deadline)

    def _files_of(self, name: str) -> Iterator[Path]:
        yield from self._chain_of(name)
        if (data := self._data_disks.of(name)) is not None:
            yield from data.paths

    async def switch(
        self, specs: Sequence[DomainSpec], mode: CacheMode, describe: Callable[[DomainSpec], str]
    ) -> dict[str, float]:
        """Switch all disks of the guests to `mode`; see `cache_switch.switch`. `describe` gives a domain's XML."""
        guests = [
            await call(f"{spec.name}: looking at its disks", _LOOK, self._guest_disks, spec, describe) for spec in specs
        ]
        return await cache_switch.switch(guests, direct=CACHE_FLAGS[mode].direct)

    async def begin_latency(self, name: str) -> None:
        """Empty the histograms of a guest's disks; see `latency_histograms`."""
        await self._asked(name, "reading the latency of its disks", latency_histograms.begin)

    async def latency(self, name: str) -> DiskLatency:
        """What they have counted since."""
        return await self._asked(name, "reading the latency of its disks", latency_histograms.read)

    async def requests(self, name: str) -> dict[str, DiskRequests]:
        """What a guest's disks have answered and taken; see `disk_requests`."""
        return await self._asked(name, "counting the requests of its disks", disk_requests.read)

    async def _asked(self, name: str, what: str, ask: Callable[[Monitor], T]) -> T:
        return await call(f"{name}: {what}", LATENCY_SECONDS, lambda: ask(partial(qmp, self._lookup(name))))

    def _guest_disks(self, spec: DomainSpec, describe: Callable[[DomainSpec], str]) -> GuestDisks:
        domain = self._lookup(spec.name)
        try:
            process = self._process_of(domain)
            plugged = partial(self._plugged, domain, spec, describe)
            return GuestDisks(spec.name, BlockNodes(process, partial(qmp, domain), plugged))
        except (OSError, KeyError, ValueError) as error:
            raise HypervisorError(f"{spec.name}: cannot look into its QEMU: {error}") from error
        except HypervisorError as error:
            raise HypervisorError(f"{spec.name}: {error}") from error

    def _process_of(self, domain: Any) -> Path:
        return self._places.proc / str(self._places.pid_of(domain.name()))

    def _plugged(self, domain: Any, spec: DomainSpec, describe: Callable[[DomainSpec], str]) -> list[Definition]:
        """How libvirt would define the guest's nodes if it began with its data disk."""
        data = self._data_disks.of(spec.name)
        if data is None:
            return []
        described = with_disk(describe(spec), data_disk_xml(spec, data.source))
        return definitions_in(domain.connect().domainXMLToNative("qemu-argv", described, 0))


def with_disk(domain: str, disk: str) -> str:
    """The XML of a domain with one disk more."""
    root = etree.fromstring(domain)
    devices = root.find("devices")
    assert devices is not None, "every domain of the lab has devices"
    devices.append(etree.fromstring(disk))
    return etree.tostring(root, encoding="unicode")
