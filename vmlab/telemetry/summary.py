"""Mean, maximum, 95th percentile and area of every value over a span of time; plain arithmetic over samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vmlab.model.sample import Sample, split_name, unit_of

_WEIGHTS = {
    "disk_await_ms": ("disk_reads_per_second", "disk_writes_per_second"),
    "disk_read_await_ms": ("disk_reads_per_second",),
    "disk_write_await_ms": ("disk_writes_per_second",),
    "guest_disk_read_await_ms": ("guest_disk_reads_per_second",),
    "guest_disk_write_await_ms": ("guest_disk_writes_per_second",),
}
"""A wait is averaged over requests and not over seconds: a tick counts as often as the disk was asked in it."""

_OF_ALL_CPUS = ("cpu_",)
_AREAS = {
    "%": ("s", 0.01),
    "B/s": ("B", 1.0),
    "1/s": ("1", 1.0),
    "W": ("J", 1.0),
    "B": ("B s", 1.0),
    "ms": ("s", 0.001),
    "s": ("s s", 1.0),
    "1": ("s", 1.0),
}


@dataclass(frozen=True, slots=True)
class Summary:
    """One value over a span. `p95` is the value that 95 % of the time (of the requests, for a wait) stayed at or below.

    `area` is in `area_unit(name)`: CPU-seconds for shares of CPU, bytes moved for bytes a second, joules for watts,
    seconds for other percentages.
    """

    mean: float
    max: float
    p95: float
    area: float

    def as_json(self) -> dict[str, float]:
        """As it stands in ``show --json``."""
        return {"mean": self.mean, "max": self.max, "p95": self.p95, "area": self.area}


def area_unit(name: str) -> str:
    """The unit of `name`'s area: ``CPU s``, ``B``, ``J``, ``s``, …"""
    metric, _ = split_name(name)
    if unit_of(metric) == "%" and "cpu" in metric and not metric.startswith("pressure_"):
        return "CPU s"
    return _AREAS[unit_of(metric)][0]


def summarise(
    samples: Iterable[Sample], start_mono: float, end_mono: float, *, instances: bool = False
) -> dict[str, Summary]:
    """Each value from `start_mono` to `end_mono`, by name; those of one CPU, disk or guest only with `instances`.

    A tick that lies partly within the span counts with that part. Maximum and percentile come from the ticks that
    lie within by half or more, where there are any. A value that was never had is left out.
    """
    columns: dict[str, list[tuple[float, float, float, float]]] = {}
    for sample in samples:
        begin = sample.mono - sample.length
        seconds = min(sample.mono, end_mono) - max(begin, start_mono)
        if seconds <= 0 or sample.length <= 0:
            continue
        cpus = sample.get("cpu_count")
        for name, value in zip(sample.layout.names, sample.values, strict=True):
            if value == value and (instances or name[-1] != "]"):
                weight = seconds * _requests(name, sample)
                columns.setdefault(name, []).append(
                    (value, weight, seconds / sample.length, weight * _area_scale(name, cpus))
                )
    return {name: _summary(ticks) for name, ticks in columns.items()}


def _requests(name: str, sample: Sample) -> float:
    metric, instance = split_name(name)
    rates = _WEIGHTS.get(metric)
    if rates is None:
        return 1.0
    suffix = "" if instance is None else f"[{instance}]"
    asked = sum(sample.get(rate + suffix) for rate in rates)
    return asked if asked == asked else 0.0


def _area_scale(name: str, cpus: float) -> float:
    # Shares of all CPUs together become CPU-seconds with their number; those of one CPU or of a guest have it in.
    whole = name.startswith(_OF_ALL_CPUS) and name.endswith("_percent")
    return _AREAS[unit_of(name)][1] * (cpus if whole and cpus == cpus else 1.0)


def _summary(ticks: list[tuple[float, float, float, float]]) -> Summary:
    inner = [tick for tick in ticks if tick[2] >= 0.5] or ticks
    weight = sum(tick[1] for tick in ticks)
    mean = sum(tick[0] * tick[1] for tick in ticks) / weight if weight else 0.0
    area = sum(tick[0] * tick[3] for tick in ticks)
    return Summary(mean, max(tick[0] for tick in inner), _percentile(inner, 0.95), area)


def _percentile(ticks: list[tuple[float, float, float, float]], part: float) -> float:
    """The smallest value that covers `part` of the weight."""
    total = sum(tick[1] for tick in ticks)
    reached = 0.0
    for value, weight, _, _ in sorted(ticks):
        reached += weight
        if reached >= part * total * (1 - 1e-12):
            return value
    return max(tick[0] for tick in ticks)


def means(summaries: Mapping[str, Summary]) -> dict[str, float]:
    """The means alone, by name."""
    return {name: summary.mean for name, summary in summaries.items()}
