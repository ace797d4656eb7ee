"""What the Compare screen sets side by side: runs or cells, read from their stores."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vmlab.analysis.comparison.compare import Side, cells_alike, sides_by_axis
from vmlab.analysis.document import run_document
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.analysis.shape import RunDocument
from vmlab.model.axes import axes_words
from vmlab.model.errors import UsageError
from vmlab.model.event import SWITCHED, CellEnded, CellPlaced, CellStarted, PhaseEnded, PhaseStarted
from vmlab.model.sample import Series
from vmlab.store.host_readers import HostReaders
from vmlab.store.reader import RunReader
from vmlab.store.samples import series
from vmlab.store.tags import all_tags
from vmlab.tui.contract import Pick

COLOURS = 4
"""More sides than this cannot be distinguished in one chart, and are not shown."""


@dataclass(frozen=True, slots=True)
class PickedSide:
    """A side with its store and the cell whose time series stands for it: the first of `cells_alike`."""

    side: Side
    store: Path
    cell: int


def sides_of(picks: Sequence[Pick]) -> list[PickedSide]:
    """One side for every pick; a single run falls into the values of the axis that it varies.

    Raises UsageError where there are fewer than two sides, StoreError for a damaged store.
    """
    documents = {pick.store: _document(pick.store) for pick in picks}
    if len(picks) == 1 and picks[0].cell is None:
        store = picks[0].store
        sides = [(store, side) for side in sides_by_axis(documents[store])]
    else:
        sides = [(pick.store, _side(pick, documents[pick.store], len(documents))) for pick in picks]
    if len(sides) < 2:
        raise UsageError("a comparison needs two runs or cells; mark them with Space on the Runs screen")
    alike = cells_alike([side for _, side in sides])
    return [
        PickedSide(side, store, (cells or side.cells)[0]["cell"])
        for (store, side), cells in zip(sides, alike, strict=True)
    ]


def _document(store: Path) -> RunDocument:
    with RunReader(store) as reader:
        return run_document(reader)


def _side(pick: Pick, document: RunDocument, runs: int) -> Side:
    label = _name(document["run"]["id"]) if runs > 1 or pick.cell is None else ""
    if pick.cell is not None:
        axes = next((cell["axes"] for cell in document["cells"] if cell["cell"] == pick.cell), {})
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


def over_time(picked: PickedSide, name: str) -> tuple[list[float], list[float]]:
    """Seconds since the workloads started, and the value `name`, over the execute phase of the side's cell."""
    with RunReader(picked.store) as reader:
        span = _execution(reader, picked.cell)
        if span is None:
            return [], []
        with HostReaders(reader) as readers:
            found: Series = series(readers.of(_host_of(reader, picked.cell)), name, *span)
    return [mono - span[0] for mono in found.mono], list(found.values)


def _host_of(reader: RunReader, cell: int) -> str:
    placed = RunTimeline.of(event for _, event in reader.events(kinds=(CellPlaced,))).placed
    return placed.get(cell, "")


def switches_of(picked: PickedSide) -> list[float]:
    """When the running guests of the side's cell were switched, in seconds since its workloads started."""
    with RunReader(picked.store) as reader:
        kinds = (CellStarted, PhaseStarted, PhaseEnded, CellEnded, *SWITCHED)
        cell = RunTimeline.of(event for _, event in reader.events(kinds=kinds)).cells.get(picked.cell)
    if cell is None or cell.execution is None:
        return []
    began, ended = cell.execution
    return [one.mono - began for one in cell.switches if began <= one.mono <= ended]


def phases_of(picked: PickedSide) -> dict[str, float]:
    """How many seconds each phase of the side's cell took, in order."""
    with RunReader(picked.store) as reader:
        known = RunTimeline.of(event for _, event in reader.events(kinds=(CellStarted, PhaseStarted, PhaseEnded)))
    cell = known.cells.get(picked.cell)
    return {} if cell is None else dict(cell.phases)


def _execution(reader: RunReader, cell: int) -> tuple[float, float] | None:
    kinds = (CellStarted, PhaseStarted, PhaseEnded, CellEnded)
    known = RunTimeline.of(event for _, event in reader.events(kinds=kinds)).cells.get(cell)
    return None if known is None else known.execution
