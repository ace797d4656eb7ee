"""Finds the figure of a run that a place names, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.figures.figure import MISSING, workloads_of
from vmlab.analysis.figures.reading import NO_READING, Asked, Reading, of_cells_alone, read
from vmlab.analysis.figures.table_layout import absent_reason, cells_at
from vmlab.analysis.shape import RunDocument
from vmlab.model.axes import absent_words, axes_words
from vmlab.model.run import AxisValue
from vmlab.model.scenarios.table_words import METRICS, PARTS, STATISTICS, WORKLOADS, Statistic

Place = Mapping[str, AxisValue]

NO_CELL = "the run has no cell"
"""What the reason begins with where a place was not run."""


@dataclass(frozen=True, slots=True)
class Found:
    """A reading with the numbers of the cells behind it; `reason` says why there is none."""

    reading: Reading
    cells: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Finds figures in the cells of a run."""

    document: RunDocument

    def find(
        self,
        place: Place,
        metric: str,
        statistic: Statistic = "mean",
        best_of: int | None = None,
        tile: int | None = None,
    ) -> Found:
        """What `place` names: axes, and ``workloads``, ``metrics`` and ``statistics`` where it has them.

        With `tile` it is the figure of that tile alone.
        """
        metric = str(place.get(METRICS, metric))
        axes = {name: value for name, value in place.items() if name not in PARTS}
        cells, reason = self._cells(axes)
        workload, unclear = self._workload(cells, place, metric)
        if reason or unclear:
            return Found(NO_READING, reason=reason or unclear)
        asked = Asked(metric, workload, cast(Statistic, place.get(STATISTICS, statistic)), best_of=best_of, tile=tile)
        reading = read(cells, asked)
        what = "" if reading.figure.state != MISSING else f"{axes_words(axes)}: {metric} was not measured"
        return Found(reading, tuple(cell.cell for cell in cells), what)

    def _cells(self, axes: Place) -> tuple[list[CellDocument], str]:
        """Cells that are repeats of one another, or the reason why there are none."""
        for name, value in axes.items():
            if (reason := absent_reason(self.document, name, value)) is not None:
                return [], absent_words(name, [value], reason)
        known = {name for cell in self.document.cells for name in cell.axes}
        if not self.document.cells:
            return [], "nothing has been measured"
        cells = cells_at(self.document.cells, axes)
        if not cells or not set(axes) <= known:
            return [], f"{NO_CELL} with {axes_words(axes)}"
        rest = {tuple((n, v) for n, v in cell.axes.items() if n not in axes) for cell in cells}
        if len(rest) > 1:
            names = sorted({name for one in rest for name, _ in one})
            return [], f"{axes_words(axes)} names cells that differ in {', '.join(names)}"
        return cells, ""

    def _workload(self, cells: Sequence[CellDocument], place: Place, metric: str) -> tuple[str | None, str]:
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
