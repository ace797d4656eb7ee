"""Lays a run's cells out: which axis goes to the side, which to the top, and which makes blocks of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vmlab.analysis.intent import WORKLOADS
from vmlab.analysis.shape import CellDocument, RunDocument
from vmlab.model.run import AxisValue
from vmlab.report.words import axis_word


@dataclass(frozen=True, slots=True)
class Block:
    """Cells that share a table; `axes` are the values of all axes that are on neither of its sides."""

    axes: dict[str, AxisValue]
    cells: tuple[CellDocument, ...]

    def at(self, **axes: AxisValue) -> list[CellDocument]:
        """The cells in one place of the block, which are repeats of one another."""
        return [cell for cell in self.cells if all(cell["axes"].get(name) == value for name, value in axes.items())]


@dataclass(frozen=True, slots=True)
class Layout:
    """The sides of the tables and their values, in the scenario's order. A side without an axis has no values."""

    columns: str | None
    rows: str
    column_values: tuple[AxisValue, ...]
    row_values: tuple[AxisValue, ...]
    baseline: AxisValue | None
    blocks: tuple[Block, ...]


def layout_of(document: RunDocument) -> Layout:
    """The layout that the run's table asks for; sides that name no axis of the run fall back to workloads."""
    asked = document["run"]["table"]
    known = _axis_names(document)
    columns = asked["columns"] if asked and asked["columns"] in (*known, WORKLOADS) else None
    rows = asked["rows"] if asked and asked["rows"] in known and asked["rows"] != columns else WORKLOADS
    sides = {columns, rows}
    return Layout(
        columns=columns,
        rows=rows,
        column_values=axis_values(document, columns) if columns in known else (),
        row_values=axis_values(document, rows) if rows in known else (),
        baseline=asked["baseline"] if asked else None,
        blocks=tuple(_blocks(document, [name for name in known if name not in sides])),
    )


def _axis_names(document: RunDocument) -> list[str]:
    names = dict.fromkeys(document["run"]["axes"])
    for cell in document["cells"]:
        names.update(dict.fromkeys(cell["axes"]))
    return list(names)


def axis_values(document: RunDocument, name: str | None) -> tuple[AxisValue, ...]:
    """The values of an axis: those of the scenario, and others that cells really had."""
    axis = document["run"]["axes"].get(name) if name is not None else None
    values = dict.fromkeys(axis["values"] if axis else ())
    values.update((cell["axes"][name], None) for cell in document["cells"] if name in cell["axes"])
    return tuple(values)


def baseline_of(layout: Layout, names: Sequence[str]) -> str:
    """The column among `names` that the others are compared with: the one asked for, or the first."""
    wanted = axis_word(layout.baseline) if layout.baseline is not None else ""
    return wanted if wanted in names else names[0] if names else ""


def axis_title(document: RunDocument, name: str | None) -> str:
    """The word that stands for an axis in headings: the scenario's own, or the axis' name; empty for no axis."""
    if name in (None, WORKLOADS):
        return ""
    axis = document["run"]["axes"].get(str(name))
    return axis["label"] if axis and axis["label"] else str(name)


def _blocks(document: RunDocument, rest: Sequence[str]) -> Iterator[Block]:
    places: dict[tuple[tuple[str, AxisValue], ...], list[CellDocument]] = {}
    for cell in document["cells"]:
        place = tuple((name, cell["axes"][name]) for name in rest if name in cell["axes"])
        places.setdefault(place, []).append(cell)
    for place, cells in places.items():
        yield Block(dict(place), tuple(cells))
