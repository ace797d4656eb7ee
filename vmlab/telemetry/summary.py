"""Mean, maximum, 95th percentile and area of every value over a span of time; plain arithmetic over samples."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from vmlab.model.sample import Sample, split_name, unit_of

_WEIGHTS = {
    "disk_await_ms": ("disk_reads_per_second", "disk_writes_per_second"),
    "disk_read_await_ms": ("disk_reads_per_second",),
    "disk_write_await_ms": ("disk_writes_per_second",),
    "guest_disk_read_await_ms": ("guest_disk_reads_per_second",),
    "guest_disk_write_await_ms": ("guest_disk_writes_per_second",),
}
"""A wait is averaged over requests, not over seconds: a tick is weighted by the number of requests in it."""

_OF_ALL_CPUS = ("cpu_",)
_AREA_FACTORS = {"%": 0.01, "ms": 0.001}
"""Of a value times seconds, by the value's unit; 1 for all others."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One value over a span. `p95` is the value that 95 % of the time (of the requests, for a wait) stayed at or below.

    `area` is in CPU-seconds for shares of CPU, bytes moved for bytes a second, joules for watts, seconds for other
    percentages, else in the figure's unit times seconds.
    """

    mean: float
    max: float
    p95: float
    area: float

    def as_json(self) -> dict[str, float]:
        """As in ``show --json``."""
        return {"mean": self.mean, "max": self.max, "p95": self.p95, "area": self.area}


def summarise(
    samples: Iterable[Sample], start_mono: float, end_mono: float, *, instances: bool = False
) -> dict[str, Summary]:
    """Each value from `start_mono` to `end_mono`, by name; those of one CPU, disk or guest only with `instances`.

    A tick that lies partly in the span counts with that part. Maximum and percentile are those of the ticks that lie in
    it by half or more, where there are any. A value that was never read is left out.
    """
    columns: dict[str, list[tuple[float, float, float, float]]] = {}
    for sample in samples:
        seconds = seconds_within(sample, start_mono, end_mono)
        if seconds <= 0:
            continue
        cpus = sample.get("cpu_count")
        for name, value in zip(sample.layout.names, sample.values, strict=True):
            if value == value and (instances or name[-1] != "]"):
                weight = seconds * _requests(name, sample)
                columns.setdefault(name, []).append(
                    (value, weight, seconds / sample.length, weight * _area_scale(name, cpus))
                )
    return {name: _summary(ticks) for name, ticks in columns.items()}


def mean_over(samples: Iterable[Sample], name: str, start_mono: float, end_mono: float) -> float:
    """The mean alone that `summarise` gives for one value; NaN for a value that was never read.

    It reads nothing else of the samples, so that it is cheap for many of them.
    """
    ticks: list[tuple[float, float]] = []
    for sample in samples:
        seconds, value = seconds_within(sample, start_mono, end_mono), sample.get(name)
        if seconds > 0 and value == value:
            ticks.append((value, seconds * _requests(name, sample)))
    return _mean(ticks) if ticks else math.nan


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


def _requests(name: str, sample: Sample) -> float:
    metric, instance = split_name(name)
    rates = _WEIGHTS.get(metric)
    if rates is None:
        return 1.0
    suffix = "" if instance is None else f"[{instance}]"
    asked = sum(sample.get(rate + suffix) for rate in rates)
    return asked if asked == asked else 0.0


def _area_scale(name: str, cpus: float) -> float:
    # Shares of all CPUs together are multiplied by the number of CPUs for CPU-seconds; those of one CPU or guest are
    # not.
    whole = name.startswith(_OF_ALL_CPUS) and name.endswith("_percent")
    return _AREA_FACTORS.get(unit_of(name), 1.0) * (cpus if whole and cpus == cpus else 1.0)


def _summary(ticks: list[tuple[float, float, float, float]]) -> Summary:
    inner = [tick for tick in ticks if tick[2] >= 0.5] or ticks
    area = sum(tick[0] * tick[3] for tick in ticks)
    return Summary(_mean(tick[:2] for tick in ticks), max(tick[0] for tick in inner), _percentile(inner, 0.95), area)


def _percentile(ticks: list[tuple[float, float, float, float]], part: float) -> float:
    """The smallest value that covers `part` of the weight."""
    total = sum(tick[1] for tick in ticks)
    reached = 0.0
    for value, weight, _, _ in sorted(ticks):
        reached += weight
        if reached >= part * total * (1 - 1e-12):
            return value
    return max(tick[0] for tick in ticks)
