"""Which figures are asked about together, so that their differences are corrected together: a family.

A family is everything that one question asks. Those that are asked for are one, further ones of which an end is better
another, and those of which neither is, such as amounts of work, a third. The tile index sums up the first ones and is a
family by itself. Where run times are asked for, the throughput of a workload of fixed duration takes the place of its
run time, which is fixed: that has no difference that means anything, and no family. Figures that a user chooses are the
whole question, and one family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vmlab.analysis.comparison.comparison import Noise, Row
from vmlab.analysis.comparison.difference import Sides, differences
from vmlab.analysis.figures.figure import WALL_SECONDS
from vmlab.analysis.shape import RunPart
from vmlab.analysis.tiles.throughput import TILE_INDEX
from vmlab.model.run import RUN_TIME


def asked_metrics(run: RunPart) -> frozenset[str]:
    """The metrics that a run's scenario asks for, all other figures being further ones; run times unless it says so.

    The total wall clock belongs to the run times.
    """
    return asked_of(run.table.metrics if run.table else ())


def asked_of(metrics: Sequence[str]) -> frozenset[str]:
    """The metrics that a table of `metrics`, or of none by name, asks for."""
    asked = {*metrics} or {RUN_TIME}
    return frozenset({*asked, WALL_SECONDS} if RUN_TIME in asked else asked)


def family_of(metric: str, has_better_end: bool, asked: frozenset[str], rate: str | None) -> object:
    """What a figure is corrected together with; `rate` is the throughput of a workload of fixed duration, else None."""
    if metric == TILE_INDEX:
        return metric
    return "asked" if metric in asked or (metric == rate and RUN_TIME in asked) else has_better_end


def with_differences(
    rows: Sequence[Row], asked: frozenset[str], timed: Mapping[str, str], noise: Noise | None, *, chosen: bool = False
) -> list[Row]:
    """The rows of one place with their differences; `timed` has the throughput of workloads of fixed duration.

    All are one family where they were `chosen`.
    """
    families: dict[object, list[int]] = {}
    for number, row in enumerate(rows):
        family = family_of(row.metric, row.more_is_better is not None, asked, timed.get(row.workload))
        families.setdefault("fixed" if row.fixed else chosen or family, []).append(number)
    found = list(rows)
    for family in families.values():
        raw = [rows[number] for number in family]
        # What has no figures at the best speed is in the family as it was measured, so that the family keeps its size.
        best = [row.at_best_speed or row for row in raw]
        steady = _told(best, noise) if any(row.at_best_speed for row in raw) else best
        for number, row, other in zip(family, _told(raw, noise), steady, strict=True):
            found[number] = replace(row, at_best_speed=other if row.at_best_speed else None)
    return found


def _told(family: Sequence[Row], noise: Noise | None) -> list[Row]:
    """The rows of one family with the differences of every candidate."""
    candidates = range(1, len(family[0].figures))
    found = [differences([_sides(row, place, noise) for row in family]) for place in candidates]
    return [replace(row, differences=tuple(own[at] for own in found)) for at, row in enumerate(family)]


def _sides(row: Row, place: int, noise: Noise | None) -> Sides:
    more, of_figure = row.more_is_better, noise.percents.get(row.key) if noise else None
    return Sides(row.figures[0], row.figures[place], more, of_figure, amount=more is None and not row.label)
