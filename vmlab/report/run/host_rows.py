"""The host's figures while the workloads ran, below the run times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.figures.figure import figure_of, host_mean
from vmlab.analysis.figures.table_layout import Block, TableLayout, absent_reason, axis_title
from vmlab.analysis.shape import RunDocument
from vmlab.model.axes import axis_word
from vmlab.model.quantities import format_bytes, written
from vmlab.report.blocks import Column, Section, Table
from vmlab.report.bound_text import LIMIT_ROW, MOVED, traffic_row
from vmlab.report.words import NOT_MEASURED, host_number
from vmlab.telemetry.host.host_figures import HostFigure, headlines

Groups = Mapping[str, Sequence[CellDocument]]
"""Cells that share a column, by its heading."""
HOST_TITLE = "host, mean while the workloads ran"


def row_label(figure: HostFigure) -> str:
    """``disk read MB/s``: the label of a row of means; bytes carry their unit themselves."""
    unit = "" if figure.unit == "B" else written(figure.unit).unit
    return f"{figure.label} {unit}".rstrip()


def mean_text(figure: HostFigure, mean: float) -> str:
    """A mean as text in such a row."""
    if figure.unit == "B":
        return format_bytes(mean)
    return host_number(mean if figure.unit in ("%", "ms") else mean * written(figure.unit).factor)


def host_table(corner: str, columns: Sequence[tuple[str, Mapping[str, float | None]]]) -> Table:
    """The figures that the host has in any of these columns, each by its name."""
    rows = [figure for figure in headlines() if any(figure.name in known for _, known in columns)]
    return Table(
        corner,
        list(map(row_label, rows)),
        [Column(head, [_text(figure, known.get(figure.name)) for figure in rows]) for head, known in columns],
    )


def _text(figure: HostFigure, mean: float | None) -> str:
    return NOT_MEASURED if mean is None else mean_text(figure, mean)


def shown_groups(document: RunDocument, layout: TableLayout, block: Block) -> dict[str, list[CellDocument]]:
    """A block's cells by the values of the axis that is varied, without those that have no cells."""
    axis = layout.main_axis
    absent = {axis_word(value) for value in layout.values.get(axis or "", ()) if absent_reason(document, axis, value)}
    return {name: cells for name, cells in layout.groups(block).items() if name not in absent}


def host_section(document: RunDocument, layout: TableLayout, block: Block) -> Section:
    """Means over the execute phase, in a column for each value of the axis that is varied; no rows without samples."""
    groups = shown_groups(document, layout, block)
    means, rows = means_table(axis_title(document, layout.main_axis), groups), _known_rows(groups, LIMIT_ROW)
    columns = [
        Column(one.heading, [*one.texts, *(traffic_row(row, cells) for row in rows)])
        for one, cells in zip(means.columns, groups.values(), strict=True)
    ]
    return Section(HOST_TITLE, [Table(means.corner, [*means.labels, *rows], columns)] if means.labels else [])


def means_table(corner: str, groups: Groups) -> Table:
    """The host's means alone, in a column for each group of cells."""
    return host_table(corner, [(name, _means(cells)) for name, cells in groups.items()])


def _means(cells: Sequence[CellDocument]) -> dict[str, float | None]:
    """The means by their names; None for a figure of cells that do not count."""
    known = [figure.name for figure in headlines() if any(figure.name in cell.host for cell in cells)]
    return {name: figure_of(cells, host_mean(name)).mean for name in known}


def moved_table(groups: Groups) -> Table:
    """What the guests read and wrote in a cell, on average over the cells of a column."""
    known = _known_rows(groups)
    columns = [Column(name, [traffic_row(row, cells) for row in known]) for name, cells in groups.items()]
    return Table("guests, a cell", [name for name, row in MOVED.items() if row in known], columns)


def _known_rows(groups: Groups, *more: str) -> list[str]:
    cells = [cell for those in groups.values() for cell in those]
    return [row for row in (*MOVED.values(), *more) if any(traffic_row(row, [cell]) != NOT_MEASURED for cell in cells)]
