"""One figure of a run, with its unit and which end is better; for tables and for comparison with published figures.

`read` takes it from cells, and `find` from the place that names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from vmlab.analysis.cell_shape import CellDocument, OverTilesDocument
from vmlab.analysis.figures.counted_cells import as_of
from vmlab.analysis.figures.figure import (
    HOST,
    MISSING,
    WALL_SECONDS,
    Figure,
    Reduced,
    Value,
    figure_of,
    host_mean,
    of_tile,
    over_tiles,
    wall_seconds,
    workloads_of,
)
from vmlab.analysis.figures.over_tiles import statistic_of
from vmlab.analysis.figures.table_layout import Place, absent_reason, cells_at
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.descriptive import smallest_known
from vmlab.model.axes import absent_words, axes_words
from vmlab.model.jsonable import picked
from vmlab.model.scenarios.table_words import METRICS, PARTS, STATISTICS, WORKLOADS, Statistic
from vmlab.telemetry.host.host_figures import host_figures

TOGETHER = 0.95
"""Tiles that ran at the same time for at least this share of their whole span count as having run together."""
NOT_TOGETHER = "the tiles did not run at the same time, so their rates do not add up"
_OF_CELLS_ALONE = (WALL_SECONDS,)
_FOR_ONE_SPAN: tuple[Statistic, ...] = ("sum", "jain")
"""Statistics that are valid only for rates over the same span."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What to read from cells: a metric, its workload (None for one of the cell itself), and the statistic.

    `over` is ``tiles`` or ``repeats``; with `best_of` only the best repeat counts. With `tile` it is the figure of that
    tile alone, which has no statistic over tiles.
    """

    metric: str
    workload: str | None = None
    statistic: Statistic = "mean"
    over: str = "tiles"
    best_of: int | None = None
    tile: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure in `unit`. `more_is_better` is None where neither is.

    `apart` is true if rates were added up, or their fairness calculated, over different spans; `overlap` is then the
    share of the whole span in which all tiles ran, None where that is not known. `least` is the sum as if nobody had
    worked while not all tiles ran: the rate of all tiles over the whole span lies between it and `figure`.

    One that was looked up has its `place`, with the numbers of the `cells` behind it, or the `reason` why there is
    none.
    """

    figure: Figure
    unit: str = ""
    more_is_better: bool | None = None
    apart: bool = False
    overlap: float | None = None
    least: Figure | None = None
    place: Place = field(default_factory=dict)
    cells: tuple[int, ...] = ()
    reason: str = ""

    @property
    def lowest(self) -> Figure:
        """The least that the figure may be."""
        return self.least or self.figure

    def json_fields(self) -> dict[str, Any]:
        """What was looked up, as it stands in ``vmlab.reference/1``."""
        return {"place": self.place, **self.figure.json_fields(), **picked(self, "unit", "cells", "reason")}


NO_CELL = "the run has no cell"
"""What the reason begins with where a place was not run."""


def ran_apart(overlap: float | None) -> bool:
    """Whether tiles did not run together, or that is not known; `overlap` is the share of the span in which all ran."""
    return overlap is None or overlap < TOGETHER


def of_cells_alone(metric: str) -> bool:
    """Whether a metric is one of the cell as a whole, of no workload."""
    return metric in _OF_CELLS_ALONE or metric.startswith(HOST)


def read(cells: Sequence[CellDocument], asked: Asked) -> Reading:
    """The reading of `cells`, which are repeats of one another."""
    if of_cells_alone(asked.metric):
        value, unit, more = _of_the_cell(asked.metric)
        return Reading(figure_of(cells, value, _reduced(asked, more)), *_after(asked.statistic, unit, more))
    if asked.workload is None:
        return Reading(Figure(MISSING))
    found = [over for cell in cells for over in cell.over_tiles if _is_of(over, asked)]
    more = found[0].more_is_better if found else None
    part = asked.statistic if asked.over == "tiles" else "mean"
    own = as_of(asked.workload, cells)
    value = over_tiles(asked.workload, asked.metric, part)
    if asked.tile is not None:
        value = of_tile(asked.workload, asked.metric, asked.tile)
    figure = figure_of(own, value, _reduced(asked, more))
    if figure.spread is None and figure.state not in (MISSING, "failed", "aborted", "running"):
        figure = replace(figure, state=MISSING)
    unit = found[0].unit if found else ""
    overlap = _overlap(found) if asked.over == "tiles" and asked.statistic in _FOR_ONE_SPAN else 1.0
    apart = unit.endswith("/s") and ran_apart(overlap)
    least = None
    if apart and overlap is not None and asked.statistic == "sum":
        least = figure_of(own, _least_sum(asked), _reduced(asked, more))
    return Reading(figure, *_after(asked.statistic, unit, more), apart, overlap, least)


def _is_of(over: OverTilesDocument, asked: Asked) -> bool:
    return over.workload == asked.workload and over.metric == asked.metric


def _of_the_cell(metric: str) -> tuple[Value, str, bool | None]:
    if metric == WALL_SECONDS:
        return wall_seconds, "s", False
    name = metric.removeprefix(HOST)
    unit = next((figure.unit for figure in host_figures() if figure.name == name), "")
    return host_mean(name), unit, None


def _after(statistic: Statistic, unit: str, more: bool | None) -> tuple[str, bool | None]:
    """Unit and direction of a statistic of figures in `unit`."""
    if statistic == "jain":
        return "1", True
    if statistic == "cv":
        return "%", None
    return unit, None if statistic == "sd" else more


def _reduced(asked: Asked, more: bool | None) -> Reduced | None:
    """The function that reduces several repeats to one figure, where it is not their mean."""
    if asked.over == "repeats" and asked.statistic != "mean":
        return lambda values: statistic_of(values, asked.statistic, more)
    if asked.best_of is not None:
        return lambda values: statistic_of(values, "best", more)
    return None


def _least_sum(asked: Asked) -> Value:
    """What all tiles do together while they all run, over the whole span in which any does."""

    def value(cell: CellDocument) -> float | None:
        found = next((over for over in cell.over_tiles if _is_of(over, asked)), None)
        if found is None or found.overlap is None or found.sum is None:
            return None
        return found.sum * found.overlap

    return value


def _overlap(found: Sequence[OverTilesDocument]) -> float | None:
    """The smallest overlap of the cells that have several tiles; 1 where none has."""
    several = [over.overlap for over in found if over.tiles > 1]
    return smallest_known(several) if several else 1.0


def find(
    document: RunDocument,
    place: Place,
    metric: str,
    statistic: Statistic = "mean",
    best_of: int | None = None,
    tile: int | None = None,
) -> Reading:
    """What `place` names in a run: axes, and ``workloads``, ``metrics`` and ``statistics`` where it has them.

    With `tile` it is the figure of that tile alone.
    """
    metric = str(place.get(METRICS, metric))
    axes = {name: value for name, value in place.items() if name not in PARTS}
    cells, reason = _cells(document, axes)
    workload, unclear = _workload(cells, place, metric)
    if reason or unclear:
        return Reading(Figure(MISSING), reason=reason or unclear)
    asked = Asked(metric, workload, cast(Statistic, place.get(STATISTICS, statistic)), best_of=best_of, tile=tile)
    reading = read(cells, asked)
    why = "" if reading.figure.state != MISSING else f"{axes_words(axes)}: {metric} was not measured"
    return replace(reading, cells=tuple(cell.cell for cell in cells), reason=why)


def _cells(document: RunDocument, axes: Place) -> tuple[list[CellDocument], str]:
    """Cells that are repeats of one another, or the reason why there are none."""
    for name, value in axes.items():
        if (reason := absent_reason(document, name, value)) is not None:
            return [], absent_words(name, [value], reason)
    known = {name for cell in document.cells for name in cell.axes}
    if not document.cells:
        return [], "nothing has been measured"
    cells = cells_at(document.cells, axes)
    if not cells or not set(axes) <= known:
        return [], f"{NO_CELL} with {axes_words(axes)}"
    rest = {tuple((n, v) for n, v in cell.axes.items() if n not in axes) for cell in cells}
    if len(rest) > 1:
        names = sorted({name for one in rest for name, _ in one})
        return [], f"{axes_words(axes)} names cells that differ in {', '.join(names)}"
    return cells, ""


def _workload(cells: Sequence[CellDocument], place: Place, metric: str) -> tuple[str | None, str]:
    """The workload that is meant: the one that is named, or the only one that measures the metric."""
    if of_cells_alone(metric) or not cells:
        return None, ""
    if WORKLOADS in place:
        return str(place[WORKLOADS]), ""
    having = {over.workload for cell in cells for over in cell.over_tiles if over.metric == metric}
    if len(having) == 1:
        return having.pop(), ""
    names = workloads_of(cells)
    if not having:
        return names[0] if len(names) == 1 else None, "" if len(names) == 1 else f"no workload measured {metric}"
    return None, f"several workloads measure {metric}: {', '.join(sorted(having))}"
