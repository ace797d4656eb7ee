"""Which resource was at its limit while a cell's workloads ran. docs/reference/telemetry.md has the limits and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from vmlab.analysis.cell_shape import BoundDocument, CellDocument
from vmlab.analysis.figures.counted_cells import is_final, was_switched
from vmlab.analysis.record.coverage import SMALLEST_COVER, Window, covered, instances_of
from vmlab.model.axes import axes_words
from vmlab.model.names import guest_of
from vmlab.model.quantities import format_bytes
from vmlab.model.run import Outcome
from vmlab.model.sample import Sample, split_name
from vmlab.telemetry.sample_summary import CPU_BUSY, DISK_BUSY, MOST_OF_THE_TIME, cpu_busy, seconds_within

MEMORY_STALLED = 10.0
"""Percent of a tick in which some task waited for memory, from which on memory is at its limit."""
SWAPPED = 2.0**20
"""Bytes a second to and from swap, from which on memory is at its limit."""
MEMORY_TIME = 10.0
"""Percent of the time at its limit, from which on memory bound the cell: it is no work but a loss."""
COMPARED_FIGURES = ("disk_util_percent",)
"""The host's figures that `idle_disk_words` reads of cells."""
IDLE_DISK = 10.0
"""Percent of the time, below which a disk that was busy is not what a cell waited for."""
OTHER_WORK = 5.0
"""Percent of all CPUs used by other work than the lab's, from which on the sentence says so."""
_CPU = "guest_cpu_percent"
_HOST = "host"


def vcpus_of(settings: Mapping[str, Any]) -> dict[str, int]:
    """The number of processors of each guest, by its name in the scenario; {} for records of older versions."""
    guests = settings.get("guests") or {}
    return {name: guest["vcpus"] for name, guest in guests.items() if isinstance(guest.get("vcpus"), int)}


class _Watch:
    """Adds up ticks: for each value its sum over seconds, and the seconds in which it is known or at its limit."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._seconds: dict[str, float] = {}
        self._at_limit: dict[str, float] = {}

    def take(self, sample: Sample, seconds: float) -> None:
        """Add `seconds` of a tick."""
        cpu = cpu_busy(sample.get)
        disk = sample.get("disk_util_percent")
        stalled = sample.get("pressure_memory_some_percent")
        swapped = sample.get("swap_in_bytes_per_second") + sample.get("swap_out_bytes_per_second")
        self._add("cpu_busy_percent", cpu, seconds)
        self._add("cpu_other_work_percent", sample.get("cpu_outside_lab_percent"), seconds)
        self._add("disk_busy_percent", disk, seconds)
        self._add("memory_stalled_percent", stalled, seconds)
        self._add("swapped_bytes_per_second", swapped, seconds)
        # An unknown value is NaN, and at no limit.
        limits = {"cpu": cpu >= CPU_BUSY, "disk": disk >= DISK_BUSY}
        for resource, reached in {**limits, "memory": stalled >= MEMORY_STALLED or swapped >= SWAPPED}.items():
            self._at_limit[resource] = self._at_limit.get(resource, 0.0) + seconds * reached

    def _add(self, name: str, value: float, seconds: float) -> None:
        if value == value:
            self._sums[name] = self._sums.get(name, 0.0) + value * seconds
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def evidence(self, seconds: float) -> dict[str, float] | None:
        """Means and parts of the time; None where CPU or disk are known for less than half of `seconds`."""
        least = SMALLEST_COVER * seconds
        known = {name: of for name, of in self._seconds.items() if of >= least}
        if not {"cpu_busy_percent", "disk_busy_percent"} <= known.keys():
            return None
        means = {name: self._sums[name] / of for name, of in known.items()}
        whole = known["cpu_busy_percent"]
        return means | {f"{name}_at_limit_percent": 100 * part / whole for name, part in self._at_limit.items()}


def bound_by(samples: Sequence[Sample], window: Window, vcpus: Mapping[str, int]) -> BoundDocument | None:
    """The resource that bound what ran in a window, with one sentence.

    `vcpus` are the guests' processors by name. None where CPU and disk were watched for less than half of the time.
    """
    watch, (since, until) = _Watch(), window.host
    for sample in samples:
        if (seconds := seconds_within(sample, since, until)) > 0:
            watch.take(sample, seconds)
    evidence = watch.evidence(until - since)
    if evidence is None:
        return None
    guest, busy = _busiest_guest(samples, window, vcpus)
    if guest:
        evidence["guest_cpu_busy_percent"] = busy
    resource = _resource(evidence)
    if resource == "none" and busy >= CPU_BUSY:
        return _of_guest(guest, evidence)
    return _document(resource, _HOST if resource != "none" else "", evidence, _SENTENCES[resource](evidence))


def bound_cells(cells: Sequence[CellDocument]) -> list[CellDocument]:
    """Those of `cells` by which is said what bound them: the ones that passed, or where none did, all last attempts."""
    known = [one for one in cells if one.bound_by is not None and is_final(one) and not was_switched(one)]
    return [one for one in known if one.outcome == Outcome.PASSED] or known


def bound_over(cells: Sequence[BoundDocument]) -> BoundDocument:
    """What bound several cells, such as the repeats of one point: the commonest resource and the means of the evidence.

    Of resources that bound as many, one that was at its limit comes before none. `cells` is not empty.
    """
    names = dict.fromkeys(name for one in cells for name in one.evidence)
    evidence = {name: fmean(one.evidence.get(name, 0.0) for one in cells) for name in names}
    counted = Counter(one.resource for one in cells)
    resource = max(counted, key=lambda name: (counted[name], name != "none"))
    ((where, _),) = Counter(one.where for one in cells if one.resource == resource).most_common(1)
    if where not in ("", _HOST):
        # In other cells another guest was the busiest one.
        evidence["guest_cpu_busy_percent"] = fmean(
            one.evidence["guest_cpu_busy_percent"] for one in cells if one.where == where
        )
        return _of_guest(where, evidence)
    return _document(resource, where, evidence, _SENTENCES[resource](evidence))


def _of_guest(guest: str, evidence: dict[str, float]) -> BoundDocument:
    busy = _share(evidence["guest_cpu_busy_percent"])
    return _document("cpu", guest, evidence, f"the processors of {guest} were at their limit: {busy} busy")


def _resource(evidence: Mapping[str, float]) -> str:
    """Memory first, because a lack of it keeps disk and CPUs busy; then the one that was at its limit longer."""
    if evidence["memory_at_limit_percent"] >= MEMORY_TIME:
        return "memory"
    longest = max(("cpu", "disk"), key=lambda name: evidence[f"{name}_at_limit_percent"])
    return longest if evidence[f"{longest}_at_limit_percent"] >= MOST_OF_THE_TIME else "none"


def _busiest_guest(samples: Sequence[Sample], window: Window, vcpus: Mapping[str, int]) -> tuple[str, float]:
    """The guest whose processors were busiest, and how busy in percent; ("", 0.0) where none is known."""
    busy = {"": 0.0}
    for name, one in covered(samples, instances_of(samples, _CPU), window).items():
        _, instance = split_name(name)
        guest, mean = str(instance), one.over(window.guests[1] - window.guests[0])
        count = vcpus.get(guest_of(guest), 0)
        if mean is not None and count:
            busy[guest] = min(100.0, mean / count)
    guest = max(busy, key=lambda name: busy[name])
    return guest, busy[guest]


def _document(resource: str, where: str, evidence: dict[str, float], sentence: str) -> BoundDocument:
    if resource != "disk":
        sentence += f"; the disk was busy for {_share(evidence['disk_busy_percent'])} of the time"
    return BoundDocument(resource=resource, where=where, sentence=sentence, evidence=evidence)


def _cpu_words(evidence: Mapping[str, float]) -> str:
    other = evidence.get("cpu_other_work_percent", 0.0)
    aside = f", {_share(other)} with other work than the lab's" if other >= OTHER_WORK else ""
    return (
        f"the host's CPUs were at their limit for {_share(evidence['cpu_at_limit_percent'])} of the time "
        f"(on average {_share(evidence['cpu_busy_percent'])} busy{aside})"
    )


def _disk_words(evidence: Mapping[str, float]) -> str:
    return (
        f"the host's disk was at its limit for {_share(evidence['disk_at_limit_percent'])} of the time "
        f"(on average {_share(evidence['disk_busy_percent'])} busy); "
        f"the CPUs were {_share(evidence['cpu_busy_percent'])} busy"
    )


def _memory_words(evidence: Mapping[str, float]) -> str:
    signs = [text for text in (_stalled_words(evidence), _swapped_words(evidence)) if text]
    return (
        f"the host's memory was at its limit for {_share(evidence['memory_at_limit_percent'])} of the time "
        f"({', '.join(signs)})"
    )


def _none_words(evidence: Mapping[str, float]) -> str:
    stalled = _stalled_words(evidence)
    return (
        "none of the host's resources was at its limit: "
        f"the CPUs were {_share(evidence['cpu_busy_percent'])} busy{f', {stalled}' if stalled else ''}"
    )


def _stalled_words(evidence: Mapping[str, float]) -> str:
    """What the kernel's pressure figures say; empty on a host without them."""
    if "memory_stalled_percent" not in evidence:
        return ""
    return f"tasks waited for memory {_share(evidence['memory_stalled_percent'])} of the time"


def _swapped_words(evidence: Mapping[str, float]) -> str:
    rate = evidence.get("swapped_bytes_per_second", 0.0)
    return f"{format_bytes(rate)}/s to and from swap" if rate > 0 else ""


_SENTENCES = {"cpu": _cpu_words, "disk": _disk_words, "memory": _memory_words, "none": _none_words}


def _share(percent: float) -> str:
    """``97 %``, ``1.5 %``."""
    return f"{percent:.0f} %" if percent >= 9.95 or percent < 0.05 else f"{percent:.1f} %"


def idle_disk_words(cells: Sequence[CellDocument]) -> str | None:
    """What to say of `cells` that differ in their cache modes while the disk was hardly busy in any; None otherwise.

    The time in which the disk was busy is the most that could be spent waiting for it.
    """
    (figure,) = COMPARED_FIGURES
    watched = [cell for cell in cells if is_final(cell) and figure in cell.host]
    busy = [cell.host[figure].mean for cell in watched]
    if len({_cache_of(cell) for cell in watched}) < 2 or max(busy) >= IDLE_DISK:
        return None
    return (
        f"the disk was busy for at most {_share(max(busy))} of the time in these cells, so they did not wait for it, "
        "in any cache mode"
    )


def _cache_of(cell: CellDocument) -> str:
    """The cache mode of a cell, or the modes of its guests."""
    mode = cell.axes.get("cache") or cell.settings.get("cache")
    guests = cell.settings.get("guests") or {}
    return str(mode) if mode else axes_words({name: str(guest.get("cache")) for name, guest in guests.items()})
