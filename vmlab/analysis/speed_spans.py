"""How fast the CPUs were over spans of a run, relative to the best of each CPU in the whole run."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.figures.figure import Value
from vmlab.analysis.shape import SpeedDocument
from vmlab.analysis.statistics.descriptive import mean
from vmlab.model.jsonable import key
from vmlab.model.sample import Sample
from vmlab.telemetry.cpu_speed import BEST, SPEED

_TIMES = ("s", "ms")
_RATES = ("1/s", "B/s")
"""Units of what a slow host makes longer, and of what it makes less."""
_STEAL = "cpu_steal_percent"
_LEAST_KNOWN = 0.5
"""The share of a span for which the speed has to be known."""


class _Tick(NamedTuple):
    """The tick that ended at `mono`; `rates` are by CPU the mean of 1 / duration of the probe's work in it, 1/ms."""

    mono: float
    length: float
    rates: dict[str, float]
    steal: float


@dataclass(slots=True)
class SpeedTrace:
    """The CPUs' speed while the workloads of a run's cells ran.

    Samples have each speed relative to the best until then. Here all are relative to the best of the whole run, so all
    samples have to be added before anything is asked.
    """

    _ticks: list[_Tick] = field(default_factory=list)
    _best: dict[str, float] = field(default_factory=dict)

    def add(self, samples: Iterable[Sample]) -> None:
        """Add the samples of one cell; cells come in the order in which they ran."""
        for sample in samples:
            if SPEED not in sample.layout.position or sample.length <= 0:
                continue
            bests = sample.instances(BEST)
            rates = {
                cpu: percent / 100 / bests[cpu]
                for cpu, percent in sample.instances(SPEED).items()
                if percent > 0 and bests.get(cpu, 0.0) > 0
            }
            for cpu in rates:
                self._best[cpu] = min(bests[cpu], self._best.get(cpu, math.inf))
            if not self._ticks or sample.mono > self._ticks[-1].mono:
                self._ticks.append(_Tick(sample.mono, sample.length, rates, sample.get(_STEAL)))

    def mean_percent(self, since: float, until: float, cpus: int | None = None) -> float | None:
        """The mean speed from `since` to `until` of the monotonic clock, over time and over CPUs.

        Of the last `cpus` CPUs, if given. None where the speed is known for less than half of the span.
        """
        every = sorted(self._best, key=int)
        chosen = every if cpus is None else every[-cpus:]
        means = [self._mean_of(cpu, since, until) for cpu in chosen]
        known = [mean for mean in means if mean is not None]
        return sum(known) / len(known) if known and len(known) == len(means) else None

    def document(self, spans: Sequence[tuple[float, float]]) -> SpeedDocument | None:
        """Over all of `spans`; None where it was not traced."""
        parts = [(self.mean_percent(*span), span[1] - span[0]) for span in spans]
        known = [(mean, seconds) for mean, seconds in parts if mean is not None and seconds > 0]
        if not known:
            return None
        ticks = [tick for span in spans for tick, part in self._within(*span) if part >= 0.5 * tick.length]
        speeds = [self._percent(tick, cpu) for tick in ticks or self._ticks for cpu in tick.rates]
        steal = [(tick.steal, part) for span in spans for tick, part in self._within(*span) if tick.steal == tick.steal]
        return SpeedDocument(
            mean_percent=_weighted(known),
            lowest_percent=min(speeds),
            highest_percent=max(speeds),
            steal_percent=_weighted(steal) if steal else None,
        )

    def _mean_of(self, cpu: str, since: float, until: float) -> float | None:
        ticks = [(self._percent(tick, cpu), part) for tick, part in self._within(since, until) if cpu in tick.rates]
        if not ticks or sum(part for _, part in ticks) < _LEAST_KNOWN * (until - since):
            return None
        return _weighted(ticks)

    def _percent(self, tick: _Tick, cpu: str) -> float:
        return 100 * tick.rates[cpu] * self._best[cpu]

    def _within(self, since: float, until: float) -> Iterable[tuple[_Tick, float]]:
        """The ticks that lie in a span at least partly, each with the seconds of it that do."""
        for tick in self._ticks[bisect_right(self._ticks, since, key=lambda tick: tick.mono) :]:
            if tick.mono - tick.length >= until:
                return
            part = min(tick.mono, until) - max(tick.mono - tick.length, since)
            if part > 0:
                yield tick, part


def _weighted(values: Sequence[tuple[float, float]]) -> float:
    """The mean of values with weights."""
    return math.fsum(value * weight for value, weight in values) / math.fsum(weight for _, weight in values)


@dataclass(frozen=True, slots=True)
class SpeedSpan:
    """The CPUs' mean speed in each of several cells, in percent of the best in their run: mean, and both ends."""

    mean: float = field(metadata=key("mean_percent"))
    lowest: float = field(metadata=key("lowest_percent"))
    highest: float = field(metadata=key("highest_percent"))


def speed_span(cells: Sequence[CellDocument]) -> SpeedSpan | None:
    """The speeds of `cells`; None unless each has one."""
    found = [one for cell in cells if (one := cell.speed_percent) is not None]
    return SpeedSpan(mean(found), min(found), max(found)) if found and len(found) == len(cells) else None


def at_best_speed(workload: str, metric: str, unit: str) -> Value | None:
    """A metric of a workload, over the tiles of a cell, as it would have been at the best speed; None for neither time
    nor rate.

    A time of each tile is multiplied by the speed over the workload's own span there, and a rate divided by it. A cell
    that lacks one of these speeds has no such value.
    """
    if unit not in (*_TIMES, *_RATES):
        return None

    def corrected(cell: CellDocument) -> float | None:
        speeds = {one.tile: one.speed_percent for one in cell.workloads if one.workload == workload}
        values: list[float] = []
        for taken in cell.measurements:
            if (taken.workload, taken.metric) == (workload, metric) and (value := taken.value) is not None:
                speed = speeds.get(taken.tile)
                if not speed:
                    return None
                values.append(value * speed / 100 if unit in _TIMES else value * 100 / speed)
        return mean(values) if values else None

    return corrected


def wall_at_best_speed(follow: Collection[str]) -> Value:
    """The total wall clock of a cell, multiplied by the CPUs' speed over it; for cells in which a workload of `follow`
    is the last one to end.
    """

    def corrected(cell: CellDocument) -> float | None:
        wall, speed = cell.wall_seconds, cell.speed_percent
        ends = {one.ended: one.workload for one in cell.workloads if one.ended is not None}
        if wall is None or speed is None or not ends or ends[max(ends)] not in follow:
            return None
        return wall * speed / 100

    return corrected
