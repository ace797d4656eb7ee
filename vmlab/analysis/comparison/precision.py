"""How well the figures of a run are known after the repeats that it has: what `until` of a scenario asks about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.figures.counted_cells import counts
from vmlab.analysis.figures.figure import WALL_CLOCK, WALL_SECONDS, Figure, workloads_of
from vmlab.analysis.figures.reading import Asked, of_cells_alone, read
from vmlab.analysis.tiles.target_results import first_metric, timed_of
from vmlab.model.run import RUN_TIME, Outcome


def widest_percent(
    cells: Sequence[CellDocument], metrics: Sequence[str], throughput: Mapping[str, str] | None = None
) -> float | None:
    """Half the width of the 95 % interval of a figure's mean (Student's) in percent of the mean: the largest of all.

    A figure is one of `metrics` of one workload at one place, averaged over the tiles, over the repeats that passed;
    and at each place the total wall clock where `metrics` has the run time. Places of which no repeat passed are left
    out. None where there is no figure; infinite where one has a single reading, or varies around 0.

    With `throughput`, the metric that is the throughput of each workload, those of fixed duration are known by it and
    not by their run time, as in tables; the wall clock is left out where all are.
    """
    timed = {} if throughput is None else timed_of(cells, throughput)
    widths = [
        _width_percent(figure)
        for place in _places(cells)
        for figure in _figures(place, metrics, timed)
        if figure.comparable is not None
    ]
    return max(widths, default=None)


def _places(cells: Sequence[CellDocument]) -> list[list[CellDocument]]:
    """The cells that count, those of one place together."""
    groups: dict[str, list[CellDocument]] = {}
    for cell in cells:
        if counts(cell):
            groups.setdefault(repr(sorted(cell.axes.items())), []).append(cell)
    return list(groups.values())


def _figures(place: Sequence[CellDocument], metrics: Sequence[str], timed: Mapping[str, str]) -> Iterator[Figure]:
    # Figures of the host need the samples of its recorder, and are no measurements of a workload.
    asked = [metric for metric in metrics if not of_cells_alone(metric)]
    passed = [cell for cell in place if cell.outcome == Outcome.PASSED]
    for workload in workloads_of(passed):
        yield from (read(place, Asked(first_metric(metric, workload, timed), workload)).figure for metric in asked)
    if (RUN_TIME in metrics and WALL_CLOCK not in timed) or WALL_SECONDS in metrics:
        yield read(place, Asked(WALL_SECONDS)).figure


def _width_percent(figure: Figure) -> float:
    spread = figure.comparable
    assert spread is not None
    if spread.half_width is None:
        return math.inf
    if spread.mean == 0:
        return 0.0 if spread.half_width == 0 else math.inf
    return 100 * spread.half_width / abs(spread.mean)
