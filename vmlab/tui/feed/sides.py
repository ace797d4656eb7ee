"""What the Compare screen sets side by side: runs or cells, read from their stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from vmlab.analysis.compare import Side
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import CellDocument, RunDocument
from vmlab.model.errors import UsageError
from vmlab.model.event import CellStarted, PhaseEnded, PhaseStarted
from vmlab.model.run import Phase
from vmlab.model.sample import Series
from vmlab.store.reader import RunReader
from vmlab.store.samples import series
from vmlab.tui.feed.picks import Pick

COLOURS = 4
"""More sides than this cannot be told apart in one chart."""


@dataclass(frozen=True, slots=True)
class PickedSide:
    """A side with its store and the cell whose time series stands for it."""

    side: Side
    store: Path
    cell: int


def sides_of(picks: Sequence[Pick]) -> list[PickedSide]:
    """One side for every pick; a single run falls into the values of its table's axis.

    Raises UsageError where there are fewer than two sides, StoreError for a damaged store.
    """
    documents = {pick.store: _document(pick.store) for pick in picks}
    if len(picks) == 1 and picks[0].cell is None:
        found = _by_axis(picks[0].store, documents[picks[0].store])
    else:
        found = [_side(pick, documents[pick.store], len(documents)) for pick in picks]
    if len(found) < 2:
        raise UsageError("a comparison needs two runs or cells; mark them with Space on the Runs screen")
    return found[:COLOURS]


def _document(store: Path) -> RunDocument:
    with RunReader(store) as reader:
        return run_document(reader)


def _side(pick: Pick, document: RunDocument, runs: int) -> PickedSide:
    label = _short(document["run"]["id"]) if runs > 1 or pick.cell is None else ""
    if pick.cell is not None:
        axes = next((cell["axes"] for cell in document["cells"] if cell["cell"] == pick.cell), {})
        words = " ".join(f"{name} {value}" for name, value in axes.items())
        label = f"{label}:{pick.cell} {words}".lstrip(":") if label else f"cell {pick.cell}: {words}"
    side = Side.of(label, document, pick.cell)
    return PickedSide(side, pick.store, side.cells[0]["cell"])


def _short(run: str) -> str:
    """``20261121-060839-tile-b7b6`` to ``tile-b7b6``: what tells runs apart in a heading."""
    return "-".join(run.split("-")[2:]) or run


def _by_axis(store: Path, document: RunDocument) -> list[PickedSide]:
    """The cells of one run by the values of one axis, which is then no longer part of their place."""
    axis = _axis(document)
    if axis is None:
        return []
    found = []
    for value in dict.fromkeys(cell["axes"].get(axis) for cell in document["cells"]):
        cells = [cell for cell in document["cells"] if cell["axes"].get(axis) == value]
        rest = tuple(cast(CellDocument, {**cell, "axes": _without(cell, axis)}) for cell in cells)
        found.append(PickedSide(Side(f"{axis} {value}", document["run"], rest), store, cells[0]["cell"]))
    return found


def _without(cell: CellDocument, axis: str) -> dict[str, object]:
    return {name: value for name, value in cell["axes"].items() if name != axis}


def _axis(document: RunDocument) -> str | None:
    """The axis of the table's columns or rows, or the first one, that has two values among the cells."""
    table = document["run"]["table"]
    names = [table["columns"], table["rows"]] if table else []
    names += [name for cell in document["cells"] for name in cell["axes"]]
    for name in names:
        if len({str(cell["axes"][name]) for cell in document["cells"] if name in cell["axes"]}) > 1:
            return name
    return None


def over_time(picked: PickedSide, name: str) -> tuple[list[float], list[float]]:
    """Seconds since the workloads started, and the value `name`, over the execute phase of the side's cell."""
    with RunReader(picked.store) as reader:
        span = _execution(reader, picked.cell)
        if span is None:
            return [], []
        found: Series = series(reader, name, *span)
    return [mono - span[0] for mono in found.mono], list(found.values)


def _execution(reader: RunReader, cell: int) -> tuple[float, float] | None:
    began: float | None = None
    for _, event in reader.events(kinds=(CellStarted, PhaseStarted, PhaseEnded)):
        if isinstance(event, PhaseStarted) and event.cell == cell and event.phase == Phase.EXECUTE:
            began = event.mono
        elif isinstance(event, PhaseEnded) and event.cell == cell and event.phase == Phase.EXECUTE and began:
            return began, event.mono
    return None
