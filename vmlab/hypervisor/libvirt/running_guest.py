"""Guests that run: what each was started as, what it shows of its attributes, and libvirt's bulk statistics of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import libvirt
from lxml import etree

from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.hypervisor.levers.guest_lever import RunningQemu, proofs
from vmlab.hypervisor.libvirt.calls import ASK, call, qmp
from vmlab.hypervisor.libvirt.domain_xml import DomainFiles
from vmlab.hypervisor.libvirt.libvirt_root import Places
from vmlab.model.errors import HypervisorError
from vmlab.model.results import CpuUse, LeverProof
from vmlab.model.scenarios.disk_levers import DATA_TARGETS
from vmlab.system.host_size import last_cpus, read_cores
from vmlab.telemetry.guest_readings import DATA_BLOCK, GuestAnswer, Timed


@dataclass(frozen=True, slots=True)
class StartedGuest:
    """A guest that was started: from what, as what, with which files, and its description for libvirt."""

    image: BootImage
    spec: DomainSpec
    files: DomainFiles
    xml: str

    @property
    def chain(self) -> list[Path]:
        """The files of its disk, the first one on top."""
        files = (self.files.overlay, self.files.frozen, self.image.disk)
        return [file for file in files if file is not None]


@dataclass(frozen=True, slots=True)
class LeverProving:
    """Proves attributes of guests, whose domains `lookup` gives by their names.

    `ordered_cpus` is how many CPUs a limited host has; None where it is the host as it is.
    """

    places: Places
    lookup: Callable[[str], Any]
    ordered_cpus: int | None

    async def prove(
        self, specs: Sequence[DomainSpec], keys: Collection[str], inside: Mapping[str, Mapping[str, str]]
    ) -> list[LeverProof]:
        """For each guest, see `guest_lever.proofs`, and for `inside` `protocols.Hypervisor.prove_levers`."""
        what = "proving its settings"
        asked = ((spec, keys, inside.get(spec.name, {})) for spec in specs)
        found = await asyncio.gather(*(call(f"{one[0].name}: {what}", ASK, self._proofs, *one) for one in asked))
        return [proof for proofs in found for proof in proofs]

    def _proofs(self, spec: DomainSpec, keys: Collection[str], inside: Mapping[str, str]) -> list[LeverProof]:
        domain = self.lookup(spec.name)
        try:
            qemu = RunningQemu(
                spec.guest,
                spec.tile,
                spec.resources,
                self.places.proc / str(self.places.pid_of(domain.name())),
                partial(qmp, domain),
                described=partial(domain.XMLDesc, 0),
                capabilities=partial(_capabilities, domain),
                cpus=frozenset(cpu for core in last_cpus(read_cores(), self.ordered_cpus) for cpu in core),
                inside=inside,
            )
            return proofs(qemu, keys)
        except (OSError, KeyError, ValueError) as error:
            raise HypervisorError(f"{spec.name}: cannot look into its QEMU: {error}") from error


def _capabilities(domain: Any) -> str:
    described = etree.fromstring(domain.XMLDesc(0))
    places = ("devices/emulator", "os/type/@arch", "os/type/@machine", "@type")
    return str(domain.connect().getDomainCapabilities(*(described.xpath(f"string({place})") for place in places)))


_CHANGEABLE = (
    *("vcpu", "vcpus", "currentMemory", "iothreadids", "cputune", "blkiotune", "memtune", "numatune"),
    *(f"devices/disk/{part}" for part in ("source", "driver", "backingStore", "mirror", "iotune")),
    *("devices/interface/bandwidth", "devices/interface/link"),
)
"""What virsh changes of a domain that runs (setvcpus, setmem, snapshot-create-as, domif-setlink and the like)."""
_NUMBER = "index"
"""libvirt's own number of a file below a disk, which tells nothing."""


async def live_settings(lookup: Callable[[str], Any], names: Collection[str]) -> dict[str, dict[str, str]]:
    """See `protocols.Hypervisor.live_settings`; `lookup` gives domains by their names."""

    def described(name: str) -> str:
        return str(lookup(name).XMLDesc(0))

    asked = (call(f"{name}: its description", ASK, described, name) for name in names)
    found = await asyncio.gather(*asked, return_exceptions=True)
    return {
        name: _changeable(one) for name, one in zip(names, found, strict=True) if not isinstance(one, BaseException)
    }


def _changeable(described: str) -> dict[str, str]:
    """The values of a domain's elements and attributes that can be changed, and numbers of devices, by their paths."""
    domain = etree.fromstring(described)
    devices = Counter(str(device.tag) for device in domain.iterfind("devices/*"))
    tree, found = etree.ElementTree(domain), {f"count(devices/{kind})": str(count) for kind, count in devices.items()}
    for one in (part for path in _CHANGEABLE for top in domain.iterfind(path) for part in top.iter(etree.Element)):
        path = tree.getelementpath(one)
        found |= {f"{path}/@{name!s}": str(value) for name, value in one.attrib.items() if name != _NUMBER}
        if text := (one.text or "").strip():
            found[path] = text
    return found


_WITHOUT_QEMU = (
    libvirt.VIR_DOMAIN_STATS_STATE
    | libvirt.VIR_DOMAIN_STATS_CPU_TOTAL
    | libvirt.VIR_DOMAIN_STATS_VCPU
    | libvirt.VIR_DOMAIN_STATS_INTERFACE
)
_CPUS = libvirt.VIR_DOMAIN_STATS_CPU_TOTAL | libvirt.VIR_DOMAIN_STATS_VCPU
_NOWAIT = libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
_FROM_QEMU = libvirt.VIR_DOMAIN_STATS_BLOCK | libvirt.VIR_DOMAIN_STATS_BALLOON

_WAIT_FOR_QEMU = 0.1
"""Seconds that an answer waits for what QEMU is asked for; a tick of the recorder waits for it in turn."""
Figures = dict[str, dict[str, int]]


class DomainStatistics:
    """Asks `all_stats`, which takes what is wanted and libvirt's flags and gives the figures of each of the lab's
    domains; `short` turns a domain's name into its guest's.
    """

    def __init__(
        self, all_stats: Callable[[int, int], list[tuple[Any, dict[str, Any]]]], short: Callable[[str], str]
    ) -> None:
        self._all_stats = all_stats
        self._short = short
        self._asking: asyncio.Future[Timed[Figures]] | None = None

    async def cpu_seconds(self, names: Collection[str]) -> dict[str, float]:
        """CPU time by guest, in seconds. Raises HypervisorError where one does not run."""
        stats = await call("CPU times", ASK, self._bulk, libvirt.VIR_DOMAIN_STATS_CPU_TOTAL)
        try:
            return {name: stats[name]["cpu.time"] / 1e9 for name in names}
        except KeyError as error:
            raise HypervisorError(f"no CPU time of {', '.join(set(names) - stats.keys()) or error}") from error

    async def cpu_use(self, names: Collection[str]) -> dict[str, CpuUse]:
        """CPU time by guest, and how long its vCPUs waited for a CPU; without those that do not run."""
        stats = await call("CPU times", ASK, self._bulk, _CPUS)
        return {
            name: CpuUse(
                own["cpu.time"] / 1e9,
                sum(value for key, value in own.items() if key.startswith("vcpu.") and key.endswith(".delay")) / 1e9,
            )
            for name, own in stats.items()
            if name in names and "cpu.time" in own
        }

    async def domain_stats(self, *, whole: bool = False) -> GuestAnswer[Figures]:
        """libvirt's numbers alone, by the guest's name, and when they were read.

        Figures of disks and balloon come from QEMU itself, which takes seconds where many guests are busy: then they
        are read in the background and are in the answer after they have come, with the time at which they were read.
        With `whole` they are asked for now and waited for, and so are guests that are busy with another call.
        """
        if whole:
            disks = await call("disk statistics", ASK, self._timed, _FROM_QEMU, 0)
            return GuestAnswer(await call("domain statistics", ASK, self._timed, _WITHOUT_QEMU, 0), disks)
        quick = await call("domain statistics", ASK, self._timed, _WITHOUT_QEMU)
        # A tick that comes while the last one still waits is answered by the same question.
        asking = self._asking = self._asking or asyncio.ensure_future(
            call("disk statistics", ASK, self._timed, _FROM_QEMU)
        )
        done, _ = await asyncio.wait([asking], timeout=_WAIT_FOR_QEMU)
        if not done:
            return GuestAnswer(quick, None)
        if self._asking is asking:
            self._asking = None
        # A query that failed is repeated; the other figures are returned without it.
        failed = asking.cancelled() or asking.exception() is not None
        return GuestAnswer(quick, None if failed else asking.result())

    async def running(self) -> list[str]:
        """The names of the guests that libvirt knows."""
        return list(await call("list of domains", ASK, self._bulk, libvirt.VIR_DOMAIN_STATS_STATE))

    def stop(self) -> None:
        """Stop the background queries."""
        if self._asking is not None:
            self._asking.cancel()

    def _timed(self, which: int, flags: int = _NOWAIT) -> Timed[Figures]:
        asked = time.monotonic()
        found = self._bulk(which, flags)
        return Timed(asked, time.monotonic(), found)

    def _bulk(self, which: int, flags: int = _NOWAIT) -> Figures:
        return {self._short(domain.name()): _numbers(stats) for domain, stats in self._all_stats(which, flags)}


def _numbers(stats: dict[str, Any]) -> dict[str, int]:
    """What of libvirt's parameters are numbers, and which block is the data disk's, which is never the first one."""
    found = {key: value for key, value in stats.items() if isinstance(value, int)}
    for number in range(1, found.get("block.count", 0)):
        if stats.get(f"block.{number}.name") in DATA_TARGETS.values():
            found[DATA_BLOCK] = number
    return found
