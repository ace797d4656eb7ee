"""Lays a run's cells out: what goes to the side, what to the top, and which axes make blocks of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.figures.figure import workloads_of
from vmlab.analysis.shape import RunDocument, TableDocument
from vmlab.model.axes import axis_word
from vmlab.model.run import RUN_TIME, AxisValue
from vmlab.model.scenarios.table_words import METRICS, PARTS, STATISTICS, WORKLOADS, Relative, Statistic

Place = Mapping[str, AxisValue]
"""Values by part of a table: axes, ``workloads``, ``metrics``, ``statistics``."""


@dataclass(frozen=True, slots=True)
class Block:
    """Cells that share tables; `axes` are the values of all axes that are on no side."""

    axes: dict[str, AxisValue]
    cells: tuple[CellDocument, ...]

    def at(self, axes: Place) -> list[CellDocument]:
        """The cells that have these values of axes. A cell without one of the axes is in all of its places."""
        return cells_at(self.cells, axes)


def cells_at(cells: Sequence[CellDocument], axes: Place) -> list[CellDocument]:
    """The cells that have these values of axes, or do not vary them at all."""
    return [cell for cell in cells if all(cell.axes.get(name, value) == value for name, value in axes.items())]


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The parts on both sides of the tables, the outermost first, and what stands in their cells.

    `axes` are all axes of the run, those of columns and rows first. `relative` is None where nothing is compared.
    `baseline` are the values by part that others are compared with. `simple` is a table of one word on each side, which
    has a row for the wall clock and is compared unasked.
    """

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    metrics: tuple[str, ...]
    statistics: tuple[Statistic, ...]
    over: str
    relative: Relative | None
    baseline: dict[str, AxisValue]
    best_of: int | None
    simple: bool
    axes: tuple[str, ...]
    values: dict[str, tuple[AxisValue, ...]]
    blocks: tuple[Block, ...]

    @property
    def main_axis(self) -> str | None:
        """The first axis of the columns, or else of the rows; None where no axis is on a side."""
        return next((part for part in (*self.columns, *self.rows) if part not in PARTS), None)

    def groups(self, block: Block) -> dict[str, list[CellDocument]]:
        """A block's cells by the values of the main axis; all of them together where there is none."""
        axis = self.main_axis
        if axis is None:
            return {"all cells": list(block.cells)}
        return {axis_word(value): block.at({axis: value}) for value in self.values[axis]}


def layout_of(document: RunDocument) -> TableLayout:
    """The layout that the run's table asks for; a table without one, or of axes that the run has not, has no axis."""
    asked = document.run.table
    known = _axis_names(document)
    if asked is not None and not {*asked.column_parts, *asked.row_parts} <= {*known, *PARTS}:
        asked = None
    columns, rows = _sides(asked)
    sides = [part for part in (*columns, *rows) if part not in PARTS]
    rest = [name for name in known if name not in sides]
    simple = asked is None or _is_simple(asked)
    return TableLayout(
        columns=columns,
        rows=rows,
        metrics=tuple(asked.metrics if asked else ()) or (RUN_TIME,),
        statistics=cast(tuple[Statistic, ...], tuple(asked.statistics if asked else ())),
        over=asked.over if asked else "tiles",
        relative=_relative(asked) if asked else None,
        baseline=_baseline(document, asked, columns, rows) if asked else {},
        best_of=asked.best_of if asked else None,
        simple=simple,
        axes=(*sides, *rest),
        values={name: axis_values(document, name) for name in known},
        blocks=tuple(_blocks(document, rest)),
    )


def _sides(asked: TableDocument | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns and rows. Several metrics that are on no side go to the top, statistics to the side."""
    if asked is None:
        return (), (WORKLOADS,)
    columns, rows = tuple(asked.column_parts), tuple(asked.row_parts)
    if columns == rows == (WORKLOADS,):
        return (), rows
    if len(asked.metrics) > 1 and METRICS not in (*columns, *rows):
        columns = (*columns, METRICS)
    if asked.statistics and STATISTICS not in (*columns, *rows):
        rows = (*rows, STATISTICS)
    return columns, rows


def _is_simple(asked: TableDocument) -> bool:
    one_word = len(asked.column_parts) == len(asked.row_parts) == 1
    return one_word and not (asked.metrics or asked.statistics or asked.relative)


def _relative(asked: TableDocument) -> Relative | None:
    if asked.relative is not None:
        return cast(Relative, asked.relative)
    if _is_simple(asked):
        return "difference"
    if asked.baseline_place or asked.baseline is not None:
        return "ratio"
    # A table that names no baseline has differences from its first value: one of figures with their spread.
    return None if asked.statistics or asked.best_of is not None else "difference"


def _baseline(
    document: RunDocument, asked: TableDocument, columns: Sequence[str], rows: Sequence[str]
) -> dict[str, AxisValue]:
    """The baseline by its parts; of a table that names none, or one that is not there, its first column.

    Where metrics stand in the table that is the first value of an axis.
    """
    if asked.baseline_place:
        return dict(asked.baseline_place)
    heads = {part: _heads_of(document, asked, part) for part in (*columns, *rows)}
    for part, values in heads.items():
        if asked.baseline in values and asked.baseline is not None:
            return {part: asked.baseline}
    first = next(iter(heads), None)
    measured = [value for value in heads[first] if absent_reason(document, first, value) is None] if first else []
    if _is_simple(asked):
        return {first: measured[0]} if first and measured else {}
    return _first_of_axis(document, heads) if _relative(asked) == "difference" else {}


def _first_of_axis(document: RunDocument, heads: Mapping[str, Sequence[AxisValue]]) -> dict[str, AxisValue]:
    """The first value that was measured of the first axis on a side which has two such values; {} for none."""
    for part, values in heads.items():
        measured = [value for value in values if absent_reason(document, part, value) is None]
        if part not in PARTS and len(measured) > 1:
            return {part: measured[0]}
    return {}


def _heads_of(document: RunDocument, asked: TableDocument, part: str) -> tuple[AxisValue, ...]:
    if part == WORKLOADS:
        # A simple table has workloads at the top or at the side, and compares with the first one at the top.
        return tuple(workloads_of(document.cells))
    if part in (METRICS, STATISTICS):
        return tuple(asked.metrics if part == METRICS else asked.statistics)
    return axis_values(document, part)


def _axis_names(document: RunDocument) -> list[str]:
    names = dict.fromkeys(document.run.axes)
    for cell in document.cells:
        names.update(dict.fromkeys(cell.axes))
    return list(names)


def axis_values(document: RunDocument, name: str) -> tuple[AxisValue, ...]:
    """The values of an axis: those of the scenario, and others that cells really had; none for what is no axis."""
    axis = document.run.axes.get(name)
    values = dict.fromkeys(axis.values if axis else ())
    values.update((cell.axes[name], None) for cell in document.cells if name in cell.axes)
    return tuple(values)


def in_written_order(document: RunDocument) -> list[CellDocument]:
    """The cells by the axes as they are written, whatever the order in which they ran; repeats as they ran."""
    names = _axis_names(document)
    places = {name: {value: at for at, value in enumerate(axis_values(document, name))} for name in names}
    return sorted(
        document.cells,
        key=lambda cell: [places[name][cell.axes[name]] if name in cell.axes else -1 for name in names],
    )


def absent_reason(document: RunDocument, name: str | None, value: AxisValue) -> str | None:
    """Why a value of an axis has no cells; None where it has some, or should have."""
    reasons = (absent.reason for absent in document.run.absent if absent.axes == {name: value})
    return next(reasons, None)


def axis_title(document: RunDocument, name: str | None) -> str:
    """The name of an axis in headings: the scenario's own, or the axis' name; empty for no axis."""
    if name is None:
        return ""
    axis = document.run.axes.get(name)
    return axis.label if axis and axis.label else name


def varied_axis(document: RunDocument) -> str | None:
    """The first axis of the layout that has two values among the cells: by it they are set side by side."""
    for name in layout_of(document).axes:
        if len({str(cell.axes[name]) for cell in document.cells if name in cell.axes}) > 1:
            return name
    return None


def _blocks(document: RunDocument, rest: Sequence[str]) -> Iterator[Block]:
    """A block for each place of the axes on no side.

    A cell that lacks an axis, as its point leaves it out, belongs to the blocks of all values of that axis.
    """
    cells = in_written_order(document)
    places = {cell.cell: {(n, cell.axes[n]) for n in rest if n in cell.axes} for cell in cells}
    order = list(dict.fromkeys(tuple((n, c.axes[n]) for n in rest if n in c.axes) for c in cells))
    for place in order:
        if not any(set(place) < set(other) for other in order):
            yield Block(dict(place), tuple(c for c in cells if places[c.cell] <= set(place)))
