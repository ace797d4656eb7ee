"""One table of a run, for each way in which a scenario may lay it out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from vmlab.analysis.figure import (
    Figure,
    Value,
    difference_percent,
    figure_of,
    over_tiles,
    ratio,
    wall_seconds,
    workloads_of,
)
from vmlab.analysis.intent import WORKLOADS
from vmlab.analysis.shape import CellDocument, RunDocument
from vmlab.model.run import AxisValue
from vmlab.report.grid import Column, grid
from vmlab.report.heading import place_text
from vmlab.report.layout import Block, Layout, axis_title, axis_values, baseline_of
from vmlab.report.shares import share_columns
from vmlab.report.words import axis_word, difference_text, figure_text, ratio_text

_CORNER = "run time (s)"
WALL_CLOCK = "total wall clock"


@dataclass(frozen=True, slots=True)
class _Line:
    label: str
    value: Value


def block_lines(document: RunDocument, layout: Layout, block: Block, width: int) -> list[str]:
    """The lines of a block's tables, under the values of its axes where these are varied."""
    varied = {name: value for name, value in block.axes.items() if len(axis_values(document, name)) > 1}
    lines = [place_text(varied)] if varied else []
    if layout.columns == WORKLOADS and layout.rows != WORKLOADS:
        return lines + _by_workload(axis_title(document, layout.rows), layout, block, width)
    if layout.rows != WORKLOADS:
        return lines + _by_axis(axis_title(document, layout.rows), layout, block, width)
    return lines + _by_line(layout, block, width)


def _by_line(layout: Layout, block: Block, width: int) -> list[str]:
    """Rows of workloads and the wall clock; columns of an axis, with differences against the baseline."""
    rows = list(_workload_lines(block.cells))
    values = layout.column_values
    groups = {axis_word(v): _column_cells(layout, block, v) for v in values} or {"all cells": list(block.cells)}
    figures = {name: [figure_of(cells, row.value) for row in rows] for name, cells in groups.items()}
    columns = _against(figures, baseline_of(layout, list(figures)), "difference", _difference)
    return grid(_CORNER, [row.label for row in rows], columns, width)


def _workload_lines(cells: Sequence[CellDocument]) -> Iterator[_Line]:
    tiles = max((over["tiles"] for cell in cells for over in cell["over_tiles"]), default=1)
    for workload in workloads_of(cells):
        if tiles == 1:
            yield _Line(workload, over_tiles(workload))
        else:
            yield _Line(f"{workload}, mean of {tiles}", over_tiles(workload))
            yield _Line(f"{workload}, worst of {tiles}", over_tiles(workload, part="worst"))
    yield _Line(WALL_CLOCK, wall_seconds)


def _by_axis(corner: str, layout: Layout, block: Block, width: int) -> list[str]:
    """Rows of one axis, columns of another, ratios against the baseline; a table for each workload."""
    lines: list[str] = []
    for workload in workloads_of(block.cells):
        value = over_tiles(workload)
        figures = {
            axis_word(column): [
                figure_of([c for c in _column_cells(layout, block, column) if _in_row(layout, c, row)], value)
                for row in layout.row_values
            ]
            for column in layout.column_values
        }
        if not layout.column_values:
            figures = {workload: [figure_of(_row_cells(layout, block, row), value) for row in layout.row_values]}
        columns = _against(figures, baseline_of(layout, list(figures)), "ratio", _ratio)
        lines += [""] if lines else []
        lines += [f"{workload}, {_CORNER}"]
        lines += grid(corner, [axis_word(row) for row in layout.row_values], columns, width)
    return lines


def _by_workload(corner: str, layout: Layout, block: Block, width: int) -> list[str]:
    """Rows of an axis, a column for each workload, ratios against the first one, and CPU shares where measured."""
    groups = [_row_cells(layout, block, row) for row in layout.row_values]
    workloads = workloads_of(block.cells)
    figures = {name: [figure_of(cells, over_tiles(name)) for cells in groups] for name in workloads}
    columns = _against(figures, baseline_of(layout, workloads), "ratio", _ratio)
    columns += share_columns(workloads, groups)
    return [_CORNER, *grid(corner, [axis_word(row) for row in layout.row_values], columns, width)]


def _against(
    figures: dict[str, list[Figure]], baseline: str, word: str, compared: Callable[[Figure, Figure], str]
) -> list[Column]:
    """A column for each name, and beside each but the baseline what it is against the baseline."""
    columns: list[Column] = []
    for name in sorted(figures, key=lambda name: name != baseline):
        columns.append(Column(name, [figure_text(figure) for figure in figures[name]]))
        if name != baseline:
            texts = [compared(b, c) for b, c in zip(figures[baseline], figures[name], strict=True)]
            columns.append(Column(word, texts, beside=True))
    return columns


def _difference(baseline: Figure, candidate: Figure) -> str:
    return difference_text(difference_percent(baseline, candidate))


def _ratio(baseline: Figure, candidate: Figure) -> str:
    return ratio_text(ratio(baseline, candidate))


def _column_cells(layout: Layout, block: Block, value: AxisValue) -> list[CellDocument]:
    return [cell for cell in block.cells if layout.columns and cell["axes"].get(layout.columns) == value]


def _in_row(layout: Layout, cell: CellDocument, value: AxisValue) -> bool:
    return cell["axes"].get(layout.rows) == value


def _row_cells(layout: Layout, block: Block, value: AxisValue) -> list[CellDocument]:
    return [cell for cell in block.cells if _in_row(layout, cell, value)]
