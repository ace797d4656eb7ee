"""Mean, maximum, 95th percentile and area of every value over a span, and when CPUs or the disk are at their limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from vmlab.model.sample import Sample, SampleNames, read_length_of, split_name, unit_of

if TYPE_CHECKING:
    from vmlab.model.results import Summary

CPU_BUSY = 95.0
"""Percent of all CPUs, or of a guest's processors, that count as all of them."""
DISK_BUSY = 90.0
"""Percent of a tick with a request under way, from which on the disk is at its limit."""
MOST_OF_THE_TIME = 50.0
"""Percent of the time at its limit, from which on CPU or disk bound what ran."""


def cpu_busy(get: Callable[[str], float]) -> float:
    """The share of all CPUs that worked, in percent: neither idle nor idle while a request was at the disk."""
    return 100.0 - get("cpu_idle_percent") - get("cpu_iowait_percent")


_WEIGHTS = {
    "disk_await_ms": ("disk_reads_per_second", "disk_writes_per_second"),
    "disk_read_await_ms": ("disk_reads_per_second",),
    "disk_write_await_ms": ("disk_writes_per_second",),
    "guest_disk_read_await_ms": ("guest_disk_reads_per_second",),
    "guest_disk_write_await_ms": ("guest_disk_writes_per_second",),
    "guest_data_disk_read_await_ms": ("guest_data_disk_reads_per_second",),
    "guest_data_disk_write_await_ms": ("guest_data_disk_writes_per_second",),
    "domain_disk_await_ms": ("domain_disk_reads_per_second", "domain_disk_writes_per_second"),
}
"""A wait is averaged over requests, not over seconds: a tick is weighted by the number of requests in it."""

_OF_ALL_CPUS = ("cpu_",)
_AREA_FACTORS = {"%": 0.01, "ms": 0.001}
"""Of a value times seconds, by the value's unit; 1 for all others."""


def summarise(
    samples: Iterable[Sample],
    start_mono: float,
    end_mono: float,
    *,
    instances: bool = False,
    names: Container[str] | None = None,
) -> dict[str, Summary]:
    """Each value from `start_mono` to `end_mono`, by name; those of one CPU, disk or guest only with `instances`.

    Of the values called `names` only, if given. A value that was never read is left out. A tick that lies partly in the
    span counts with that part; maximum and percentile are those of the ticks that lie in it by half or more, where
    there are any, and are half as long as the longest: in the few milliseconds of a reading out of turn a CPU has the
    one state or the other.
    """
    columns: dict[str, list[_Tick]] = {}
    # What follows from names alone is found once for all samples of a layout: there are hundreds of each.
    layout: SampleNames | None = None
    asked: list[_Asked] = []
    for sample in samples:
        seconds = seconds_within(sample, start_mono, end_mono)
        if seconds <= 0:
            continue
        if sample.layout is not layout:
            layout = sample.layout
            asked = [
                _asked(name, place)
                for place, name in enumerate(layout.names)
                if (instances or name[-1] != "]") and (names is None or name in names)
            ]
        cpus = sample.get("cpu_count")
        part = seconds / sample.length
        for one in asked:
            value = sample.values[one.place]
            if value == value:
                described = part * sample.seconds_of(one.name) if one.is_timed else seconds
                weight = described * _requests(one.rates, sample) if one.rates else described
                area = weight * (one.area * (cpus if one.of_all_cpus and cpus == cpus else 1.0))
                columns.setdefault(one.name, []).append(_Tick(value, weight, part, sample.length, area))
    return {name: _summary(ticks) for name, ticks in columns.items()}


class _Tick(NamedTuple):
    """A value in one tick: its weight, the part and the length of the tick, and the factor of its area."""

    value: float
    weight: float
    part: float
    length: float
    area: float


class _Asked(NamedTuple):
    """A value of a layout: its place, the rates of the requests that it is a mean over, the factor of its area, and
    whether it may describe other seconds than its tick.
    """

    name: str
    place: int
    rates: tuple[str, ...]
    area: float
    of_all_cpus: bool
    is_timed: bool


def _asked(name: str, place: int) -> _Asked:
    # Shares of all CPUs together are multiplied by the number of CPUs for CPU-seconds; those of one CPU or guest are
    # not.
    whole = name.startswith(_OF_ALL_CPUS) and name.endswith("_percent")
    area, is_timed = _AREA_FACTORS.get(unit_of(name), 1.0), read_length_of(name) is not None
    return _Asked(name, place, _rates(name), area, whole, is_timed)


def mean_over(samples: Iterable[Sample], name: str, start_mono: float, end_mono: float) -> float:
    """The mean alone that `summarise` gives for one value; NaN for a value that was never read.

    It reads nothing else of the samples, so that it is cheap for many of them.
    """
    ticks: list[tuple[float, float]] = []
    rates, is_timed = _rates(name), read_length_of(name) is not None
    for sample in samples:
        seconds, value = seconds_within(sample, start_mono, end_mono), sample.get(name)
        if seconds > 0 and value == value:
            seconds *= sample.seconds_of(name) / sample.length if is_timed else 1.0
            ticks.append((value, seconds * _requests(rates, sample) if rates else seconds))
    return _mean(ticks) if ticks else math.nan


def extremes_over(samples: Iterable[Sample], metric: str, start_mono: float, end_mono: float) -> tuple[float, float]:
    """The lowest and the highest value of any instance of `metric`, in the ticks that `summarise` takes it from.

    NaN for both where there is none.
    """
    inner = [one for one in samples if one.length > 0 and seconds_within(one, start_mono, end_mono) >= 0.5 * one.length]
    half = 0.5 * max((one.length for one in inner), default=0.0)
    values = [value for one in inner if one.length >= half for value in one.instances(metric).values()]
    found = [value for value in values if value == value]
    return (min(found), max(found)) if found else (math.nan, math.nan)


def seconds_within(sample: Sample, start_mono: float, end_mono: float) -> float:
    """How much of a sample's tick lies in a span; 0 for none of it."""
    if sample.length <= 0:
        return 0.0
    return max(0.0, min(sample.mono, end_mono) - max(sample.mono - sample.length, start_mono))


def _mean(ticks: Iterable[tuple[float, float]]) -> float:
    """The mean of values with weights; 0 where all weights are 0."""
    pairs = list(ticks)
    weight = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / weight if weight else 0.0


def _rates(name: str) -> tuple[str, ...]:
    """The names of the rates of the requests that a wait is a mean over; () for what is no wait."""
    metric, instance = split_name(name)
    suffix = "" if instance is None else f"[{instance}]"
    return tuple(rate + suffix for rate in _WEIGHTS.get(metric, ()))


def _requests(rates: Sequence[str], sample: Sample) -> float:
    asked = sum(map(sample.get, rates))
    return asked if asked == asked else 0.0


def _summary(ticks: list[_Tick]) -> Summary:
    # Imported late: the console's first picture needs other figures of this module, and no dataclass.
    from vmlab.model.results import Summary

    half = 0.5 * max(tick.length for tick in ticks)
    inner = [tick for tick in ticks if tick.part >= 0.5 and tick.length >= half] or ticks
    area = sum(tick.value * tick.area for tick in ticks)
    return Summary(_mean(tick[:2] for tick in ticks), max(tick.value for tick in inner), _percentile(inner, 0.95), area)


def _percentile(ticks: list[_Tick], part: float) -> float:
    """The smallest value that covers `part` of the weight."""
    total = sum(tick.weight for tick in ticks)
    reached = 0.0
    for tick in sorted(ticks):
        reached += tick.weight
        if reached >= part * total * (1 - 1e-12):
            return tick.value
    return max(tick.value for tick in ticks)
