"""What the Compare screen sets side by side: runs or cells, read from their stores."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from vmlab.analysis.comparison.meetings import Side, cells_alike, sides_by_axis
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.analysis.shape import RunDocument
from vmlab.model.axes import axes_words
from vmlab.model.cell_event import (
    SWITCHED,
    CellEnded,
    CellStarted,
    PhaseEnded,
    PhaseStarted,
)
from vmlab.model.errors import UsageError
from vmlab.model.event import CellPlaced
from vmlab.store.reader import RunReader
from vmlab.store.runs import all_tags
from vmlab.store.samples import HostReaders, series
from vmlab.tui.console_requests import Pick
from vmlab.tui.feed.run_tables import document_of

_MOST_CURVES = 16
"""Cells of a side that are drawn: more lines would hide each other."""
COLOURS = 4
"""More sides than this cannot be distinguished in one chart, and are not shown."""


class PickedSide(NamedTuple):
    """A side with its store and the cells whose time series are drawn: those of `cells_alike`."""

    side: Side
    store: Path
    cells: tuple[int, ...]


def sides_of(picks: Sequence[Pick]) -> list[PickedSide]:
    """One side for every pick; a single run falls into the values of the axis that it varies.

    Raises UsageError where there are fewer than two sides, StoreError for a damaged store.
    """
    documents = {pick.store: document_of(pick.store) for pick in picks}
    if len(picks) == 1 and picks[0].cell is None:
        store = picks[0].store
        sides = [(store, side) for side in sides_by_axis(documents[store])]
    else:
        sides = [(pick.store, _side(pick, documents[pick.store], len(documents))) for pick in picks]
    if len(sides) < 2:
        raise UsageError("a comparison needs two runs or cells; mark them with Space on the Runs screen")
    alike = cells_alike([side for _, side in sides])
    return [
        PickedSide(side, store, tuple(cell.cell for cell in (cells or side.cells)[:_MOST_CURVES]))
        for (store, side), cells in zip(sides, alike, strict=True)
    ]


def _side(pick: Pick, document: RunDocument, runs: int) -> Side:
    label = _name(document.run.id) if runs > 1 or pick.cell is None else ""
    if pick.cell is not None:
        axes = next((cell.axes for cell in document.cells if cell.cell == pick.cell), {})
        words = axes_words(axes)
        label = f"{label}:{pick.cell} {words}".lstrip(":") if label else f"cell {pick.cell}: {words}"
    return Side.of(label, document, pick.cell)


def _name(run: str) -> str:
    """The name that this run alone has; else ``tile-b7b6`` of ``20261121-060839-tile-b7b6``, enough for a heading."""
    with contextlib.suppress(OSError):
        for name, runs in all_tags().items():
            if runs == (run,):
                return name
    return "-".join(run.split("-")[2:]) or run


class Course(NamedTuple):
    """How the execute phases of a side's cells went: a curve of each, of seconds since the start and values.

    `switches` are when its running guests were switched, in such seconds; `phases` how long each phase of its first
    cell took, in order.
    """

    curves: Sequence[tuple[Sequence[float], Sequence[float]]] = ()
    switches: Sequence[float] = ()
    phases: Mapping[str, float] = MappingProxyType({})


def course_of(picked: PickedSide, name: str) -> Course:
    """The course of the side's cells, with curves of the value `name`."""
    kinds = (CellPlaced, CellStarted, PhaseStarted, PhaseEnded, CellEnded, *SWITCHED)
    curves: list[tuple[Sequence[float], Sequence[float]]] = []
    switches: list[float] = []
    with RunReader(picked.store) as reader, HostReaders(reader) as readers:
        run = RunTimeline.read(reader, kinds)
        cells = [(number, run.cells[number]) for number in picked.cells if number in run.cells]
        for number, cell in cells:
            if cell.execution is None:
                continue
            began, ended = cell.execution
            found = series(readers.of(run.placed.get(number, "")), name, began, ended)
            curves.append(([mono - began for mono in found.mono], found.values))
            switches += [one.mono - began for one in cell.switches if began <= one.mono <= ended]
        return Course(curves, switches, dict(cells[0][1].told.phases) if cells else {})
