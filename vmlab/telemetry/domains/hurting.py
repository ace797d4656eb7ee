"""Which domain takes most of what the host lacks, and which of its resources is at its limit, with the figures."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from vmlab.model.domain import Domain
from vmlab.model.quantities import format_bytes
from vmlab.model.sample import Sample
from vmlab.telemetry.domains.domain_rates import METRICS, OF_DISK
from vmlab.telemetry.sample_summary import CPU_BUSY, DISK_BUSY, cpu_busy

SPAN = 5
"""How many samples are looked at together, so that one tick does not change the order."""
DELAYED = 10.0
"""Percent of a domain's vCPU time for which it waited for a CPU, from which on it is said."""
QUEUED = 1.0
"""Requests under way on average, from which on a domain waits for its disk all the time."""
USABLE = 5.0
"""Percent of a guest's memory that it can still use, from which down it lacks memory."""
SWAPPED = 5.0
"""Percent of a guest's memory that the host has swapped out, from which on it is said."""
MEMORY_STALLED = 10.0
"""Percent of the time in which a task of the host waited for memory, from which on the host lacks memory."""
_LEAST_SHARE = 10.0
"""A domain with a smaller share of what the host lacks is not named for it."""

Get = Callable[[str], float]


class Take(NamedTuple):
    """The `percent` that a domain takes of one resource of the host; `is_short` where the host has no more of it.

    `level` is how far the host's resource is at its limit, and `phrase` says both.
    """

    resource: str
    percent: float
    is_short: bool
    level: float
    phrase: str

    @property
    def words(self) -> str:
        """``CPU 48 %`` or ``vda 83 %``."""
        return f"{self.resource} {self.percent:.0f} %"


class Limit(NamedTuple):
    """What is at its limit with its figure: in a word, and in a phrase."""

    short: str
    words: str


class DomainState(NamedTuple):
    """A domain with its figures, what it takes most, and what is at its limit."""

    domain: Domain
    figures: dict[str, float]
    disks: dict[str, dict[str, float]]
    take: Take | None
    limits: tuple[Limit, ...]


class Recent:
    """The means over the time of the newest samples, of those that have the value."""

    def __init__(self, samples: Iterable[Sample] = ()) -> None:
        self._samples: deque[Sample] = deque(samples, maxlen=SPAN)

    def take(self, sample: Sample) -> None:
        """Add the newest sample."""
        self._samples.append(sample)

    def get(self, name: str) -> float:
        """The mean of one value, by the seconds that it describes; NaN where none has it."""
        found = [(value, sample.seconds_of(name)) for sample in self._samples if (value := sample.get(name)) == value]
        seconds = sum(length for _, length in found)
        if seconds > 0:
            return sum(value * length for value, length in found) / seconds
        return found[-1][0] if found else math.nan


def ranked(get: Get, domains: Sequence[Domain]) -> list[DomainState]:
    """All domains, the one first that takes most of what the host has no more of, then by what each takes."""
    cpus = get("cpu_count")
    moved = {domain.name: _moved(get, domain) for domain in domains}
    states = [_state(get, domain, cpus, moved) for domain in domains]
    return sorted(states, key=lambda state: _weight(state.take), reverse=True)


def host_limits(get: Get, domains: Iterable[Domain] = ()) -> tuple[str, ...]:
    """What of the host is at its limit, with the figure."""
    found = []
    if (busy := cpu_busy(get)) >= CPU_BUSY:
        found.append(f"CPUs {busy:.0f} % busy")
    for disk in sorted({disk.below for domain in domains for disk in domain.disks if disk.below}):
        if (busy := get(f"disk_util_percent[{disk}]")) >= DISK_BUSY:
            found.append(f"disk {disk} {busy:.0f} % busy, await {get(f'disk_await_ms[{disk}]'):.1f} ms")
    if _lacks_memory(get):
        found.append(f"memory: tasks wait for it {get('pressure_memory_some_percent'):.0f} % of the time")
    return tuple(found)


def _weight(take: Take | None) -> tuple[bool, float]:
    return (False, -1.0) if take is None else (take.is_short and take.percent >= _LEAST_SHARE, take.percent)


def _state(get: Get, domain: Domain, cpus: float, moved: dict[str, dict[str, float]]) -> DomainState:
    figures = {metric: get(f"{metric}[{domain.name}]") for metric in METRICS}
    targets = [disk.target for disk in domain.disks]
    disks = {target: {metric: get(f"{metric}[{domain.name}/{target}]") for metric in OF_DISK} for target in targets}
    takes = [*_cpu_take(get, figures, cpus), *_disk_takes(get, domain, moved), *_memory_take(get, figures)]
    most = max(takes, key=_weight, default=None)
    return DomainState(domain, figures, disks, most, tuple(_limits(domain, figures, disks, takes)))


def _cpu_take(get: Get, figures: dict[str, float], cpus: float) -> Iterable[Take]:
    share, busy = figures["domain_cpu_percent"] / cpus, cpu_busy(get)
    if share == share:
        yield Take("CPU", share, busy >= CPU_BUSY, busy, f"host's CPUs {busy:.0f} % busy, {share:.0f} % by it")


def _disk_takes(get: Get, domain: Domain, moved: dict[str, dict[str, float]]) -> Iterable[Take]:
    """The domain's part of the time in which each disk of the host was busy, by the bytes that it moved there."""
    for below, own in moved[domain.name].items():
        busy = get(f"disk_util_percent[{below}]")
        disk = _bytes(get, "disk", below)
        of_domains = (other.get(below, math.nan) for other in moved.values())
        whole = max(disk, sum(one for one in of_domains if one == one))
        if busy == busy and own == own and whole > 0:
            share = busy * own / whole
            yield Take(below, share, busy >= DISK_BUSY, busy, f"disk {below} {busy:.0f} % busy, {share:.0f} % by it")


def _memory_take(get: Get, figures: dict[str, float]) -> Iterable[Take]:
    share = figures["domain_memory_resident_bytes"] / get("memory_total_bytes") * 100
    if share == share and _lacks_memory(get):
        stalled = get("pressure_memory_some_percent")
        yield Take("memory", share, True, stalled, f"host lacks memory, {share:.0f} % is its")


def _lacks_memory(get: Get) -> bool:
    return get("pressure_memory_some_percent") >= MEMORY_STALLED


def _moved(get: Get, domain: Domain) -> dict[str, float]:
    """Bytes a second by the host's disk. The process's own are those that reach the disk; libvirt's are the guest's."""
    of_disks: dict[str, float] = {}
    for disk in domain.disks:
        own = _bytes(get, "domain_disk", f"{domain.name}/{disk.target}")
        if disk.below:
            known = [one for one in (of_disks.get(disk.below, math.nan), own) if one == one]
            of_disks[disk.below] = sum(known) if known else math.nan
    of_process = _bytes(get, "domain_host", domain.name)
    if of_process == of_process and len(of_disks) == 1:
        return dict.fromkeys(of_disks, of_process)
    return of_disks


def _bytes(get: Get, metric: str, instance: str) -> float:
    return get(f"{metric}_read_bytes_per_second[{instance}]") + get(f"{metric}_write_bytes_per_second[{instance}]")


def _limits(
    domain: Domain, figures: dict[str, float], disks: dict[str, dict[str, float]], takes: Sequence[Take]
) -> Iterable[Limit]:
    for take in takes:
        if take.is_short and take.percent >= _LEAST_SHARE:
            yield Limit(f"{take.resource} {take.level:.0f} %", take.phrase)
    vcpus = domain.vcpus or math.nan
    if (busy := figures["domain_cpu_percent"] / vcpus) >= CPU_BUSY:
        yield Limit(
            f"vCPUs {min(busy, 100.0):.0f} %",
            f"its {domain.vcpus} vCPU{'s' * (domain.vcpus != 1)} {min(busy, 100.0):.0f} % busy",
        )
    if (delay := figures["domain_vcpu_delay_percent"] / vcpus) >= DELAYED:
        yield Limit(f"steal {delay:.0f} %", f"waits {delay:.0f} % of the time for a CPU")
    for target, own in disks.items():
        if (queue := own["domain_disk_queue_depth"]) >= QUEUED:
            waiting = f"{target} has {queue:.1f} requests waiting, await {own['domain_disk_await_ms']:.1f} ms"
            yield Limit(f"{target} queue {queue:.1f}", waiting)
    if (usable := figures["domain_memory_usable_bytes"] / (domain.memory_bytes or math.nan) * 100) < USABLE:
        yield Limit(f"memory {usable:.0f} % left", f"{usable:.0f} % of its memory usable")
    swapped = figures["domain_memory_swapped_bytes"]
    if swapped / (domain.memory_bytes or math.nan) * 100 >= SWAPPED:
        yield Limit(f"swapped {format_bytes(swapped)}", f"{format_bytes(swapped)} of it swapped out")
