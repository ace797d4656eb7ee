"""One figure over several workloads: how many times as good a candidate is, the geometric mean of their ratios.

Each ratio says how many times as good: of times, and all else of which less is better, the baseline's over the
candidate's, of rates the candidate's over the baseline's. Their geometric mean gives every workload the same weight,
and depends neither on units nor on which side the ratios are of: Fleming and Wallace (Communications of the ACM 29,
1986). In each repeat there is one such mean, so that it is tested as any other figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vmlab.analysis.comparison.difference import Difference, Sides, differences
from vmlab.analysis.figures.figure import MISSING, Figure
from vmlab.analysis.statistics.descriptive import mean, spread
from vmlab.model.grouping import grouped
from vmlab.model.run import AxisValue

OVERALL = "overall"
"""What stands in place of a workload, and of a metric, in rows of it."""
_LARGEST_LOGARITHM = 700.0
"""e to the power of more may be beyond all floats."""


@dataclass(frozen=True, slots=True)
class Part:
    """The figure of one workload that counts, on every side, the baseline first."""

    workload: str
    metric: str
    unit: str
    more_is_better: bool
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Overall:
    """The overall figure of each side at one place, in units of the baseline's, and each candidate's difference.

    `metrics` has the metric of each workload in it; all of them are times or rates if it is a `speed`. `because` says
    why a side has none.
    """

    axes: dict[str, AxisValue]
    metrics: Mapping[str, str]
    speed: bool
    figures: tuple[Figure, ...]
    differences: tuple[Difference, ...] = ()
    because: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What its noise is known by: that of other workloads or metrics is another."""
        return OVERALL, OVERALL, ", ".join(f"{name}.{metric}" for name, metric in self.metrics.items())

    def json_fields(self) -> dict[str, Any]:
        """As it stands in ``vmlab.compare/2`` and, of two sides, in the tables of ``vmlab.run/1``."""
        baseline, *others = self.figures
        return {
            "axes": self.axes,
            "metrics": [{"workload": name, "metric": metric} for name, metric in self.metrics.items()],
            "because": self.because,
            "baseline": baseline,
            "candidates": [
                {**figure.json_fields(), "difference": found}
                for figure, found in zip(others, self.differences, strict=True)
            ],
        }


def overall_of(
    axes: dict[str, AxisValue], parts: Sequence[Part], noise: Mapping[tuple[str, str, str], float] | None = None
) -> Overall | None:
    """The overall figure of `parts`, which are of one workload each; None for less than two of them, or one side.

    It is alone in its family, as it sums up the others.
    """
    if len(parts) < 2 or len(parts[0].figures) < 2:
        return None
    logarithms, because = _logarithms(parts)
    zero = mean(list(logarithms[0].values())) if logarithms and logarithms[0] else 0.0
    figures = [_figure(parts, place, own, zero) for place, own in enumerate(logarithms)] or [
        Figure(MISSING) for _ in parts[0].figures
    ]
    if not because and any(one.measured is None for one in figures):
        because = "a side has no repeat in which all workloads passed"
    found = Overall(
        axes=axes,
        metrics={part.workload: part.metric for part in parts},
        speed=all(part.unit in ("s", "ms", "us") or part.unit.endswith("/s") for part in parts),
        figures=tuple(figures),
        because=because,
    )
    own_noise = noise.get(found.key) if noise else None
    told = [differences([Sides(figures[0], one, more_is_better=True, noise=own_noise)])[0] for one in figures[1:]]
    return replace(found, differences=tuple(told))


_Blocks = dict[tuple[str, int], float]
"""By run and repeat, the mean over the workloads of the logarithm of how good each is."""


def _logarithms(parts: Sequence[Part]) -> tuple[list[_Blocks], str]:
    """The blocks of each side in which all workloads have a reading that counts, or why there are none."""
    for part in parts:
        readings = [one.value for figure in part.figures if figure.measured for one in figure.readings]
        if min(readings, default=1.0) <= 0:
            return [], f"a value of {part.workload} {part.metric} is 0 or below, and has no ratio"
    sides = [[_of_part(part, place) for part in parts] for place in range(len(parts[0].figures))]
    found = [
        {block: mean([one[block] for one in own]) for block in own[0] if all(block in one for one in own)}
        for own in sides
    ]
    every = [value for blocks in found for value in blocks.values()]
    if every and max(every) - min(every) > _LARGEST_LOGARITHM:
        return [], "the values are too far apart for a ratio"
    return found, ""


def _of_part(part: Part, place: int) -> _Blocks:
    figure = part.figures[place]
    values = grouped(((one.run, one.repeat), one.value) for one in figure.readings if figure.measured)
    sign = 1 if part.more_is_better else -1
    return {block: sign * math.log(mean(own)) for block, own in values.items()}


def _figure(parts: Sequence[Part], place: int, blocks: _Blocks, zero: float) -> Figure:
    own = [part.figures[place] for part in parts]
    broken = next((one for one in own if one.measured is None), None)
    if broken is not None or not blocks:
        return Figure(broken.state if broken else MISSING)
    # What is known of a cell, such as what its guests began from, is the same of all of its readings.
    known = {(one.run, one.repeat): one for one in own[0].readings}
    readings = tuple(replace(known[block], value=math.exp(value - zero)) for block, value in blocks.items())
    by_run = grouped((reading.run, reading.value) for reading in readings)
    means = list(map(mean, by_run.values())) if len(by_run) > 1 else [one.value for one in readings]
    left_out = max(one.left_out + len(one.readings) for one in own) - len(readings)
    levers = tuple(lever for one in own for lever in one.undelivered)
    return Figure(own[0].state, spread(means), left_out, readings, levers)
