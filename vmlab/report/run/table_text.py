"""The tables of one block of a run as text."""

from __future__ import annotations

from collections.abc import Sequence

from vmlab.analysis.comparison.result_table import Entry, Head, ResultTable, tables_of
from vmlab.analysis.figures.figure import workloads_of
from vmlab.analysis.figures.table_layout import Block, TableLayout, axis_title, axis_values
from vmlab.analysis.shape import RunDocument
from vmlab.model.axes import axes_words
from vmlab.model.scenarios.table_words import METRICS, STATISTICS, WORKLOADS
from vmlab.report.blocks import Column
from vmlab.report.run.shares import share_columns
from vmlab.report.run.table_heads import TableHeads
from vmlab.report.verdicts import long_text, relative_text
from vmlab.report.words import APART
from vmlab.report.writers.text import grid, paragraph

_ABSENT = "absent"


def block_lines(document: RunDocument, layout: TableLayout, block: Block, width: int) -> list[str]:
    """The lines of a block's tables, under the values of its axes where these are varied."""
    varied = {name: value for name, value in block.axes.items() if len(axis_values(document, name)) > 1}
    lines = [axes_words(varied)] if varied else []
    for number, table in enumerate(tables_of(document, layout, block)):
        lines += [""] if number else []
        lines += _Text(document, layout, block, table).lines(width)
    return lines


def compares_below(layout: TableLayout) -> bool:
    """Whether what figures are to the baseline stands below them: the baseline is a row, and not a column."""
    return bool(layout.baseline) and not any(part in layout.baseline for part in layout.columns)


def intervals_shown(layout: TableLayout) -> bool:
    """Whether intervals of differences stand in the tables."""
    return layout.relative == "difference" or not compares_below(layout)


class _Text:
    """One table as text."""

    def __init__(self, document: RunDocument, layout: TableLayout, block: Block, table: ResultTable) -> None:
        self._document = document
        self._layout = layout
        self._block = block
        self._table = table
        self._heads = TableHeads(table)
        self._below = compares_below(layout)
        self._by_workload = layout.simple and layout.rows == (WORKLOADS,)
        self._by_rows = bool(self._titles(layout.rows))

    def lines(self, width: int) -> list[str]:
        """Caption and grid."""
        labels, columns = self._row_labels(), self._columns()
        columns += self._shares()
        caption = self._caption()
        titles = self._titles(self._layout.rows) or self._titles(self._layout.columns)
        corner = caption if self._by_workload else titles
        head = [] if self._by_workload or not caption else paragraph(caption, width, "  ")
        return [*head, *grid(corner, labels, columns, width)]

    def _caption(self) -> str:
        """What all figures of the table are: its workload, and its metric with the unit."""
        fixed = self._table.fixed
        parts = [str(fixed[WORKLOADS])] if WORKLOADS in fixed else []
        if METRICS in fixed:
            parts.append(self._heads.metric())
        if not self._layout.simple and self._layout.over == "repeats":
            parts.append("over the repeats")
        return ", ".join(parts)

    def _titles(self, parts: Sequence[str]) -> str:
        return " / ".join(filter(None, map(self._title, parts)))

    def _title(self, part: str) -> str:
        words = {WORKLOADS: "workload", METRICS: "metric", STATISTICS: ""}
        return words[part] if part in words else axis_title(self._document, part)

    def _row_labels(self) -> list[str]:
        labels = [self._label(place) for place in range(len(self._table.rows))]
        if not self._below:
            return labels
        return [text for place, label in enumerate(labels) for text in ((label, "") if self._two(place) else (label,))]

    def _two(self, row: int) -> bool:
        """Whether a row has a second line of comparisons."""
        return row not in self._table.absent and any(entry.difference for entry in self._table.entries[row])

    def _label(self, place: int) -> str:
        words = self._heads.row_words(place)
        if self._layout.simple and self._table.rows[place][-1][0] == STATISTICS:
            tiles = max(over["tiles"] for cell in self._block.cells for over in cell["over_tiles"])
            words[-1] = f"{words[-1]} of {tiles}"
        return ", ".join(words)

    def _columns(self) -> list[Column]:
        """A column for each head, the baseline's first, and beside each other one what it is to the baseline."""
        table, layout = self._table, self._layout
        places = sorted(range(len(table.columns)), key=lambda place: self._order(table.columns[place]))
        columns: list[Column] = []
        for place in places:
            column = [line[place] for line in table.entries]
            *above, heading = self._heads.column_words(place, named=self._by_workload or self._by_rows) or ["all cells"]
            absent = place in table.absent_columns
            columns.append(Column(heading, self._texts(place, absent=absent), above=tuple(above)))
            if (
                not self._below
                and not absent
                and layout.relative
                and any(entry.difference is not None for entry in column)
            ):
                beside = [_to_baseline(entry, layout, interval=True) for entry in column]
                columns.append(Column(self._relative_word(), beside, beside=True, above=tuple(above)))
        return columns

    def _order(self, head: Head) -> bool:
        """The baseline of a simple table comes first; others keep the order of the scenario."""
        return self._layout.simple and any(self._layout.baseline.get(part, value) != value for part, value in head)

    def _relative_word(self) -> str:
        return str(self._layout.relative)

    def _texts(self, column: int, *, absent: bool) -> list[str]:
        texts: list[str] = []
        for row, line in enumerate(self._table.entries):
            entry = line[column]
            apart = f" {APART}" if entry.reading.apart and entry.figure.spread else ""
            texts.append(_ABSENT if absent or row in self._table.absent else f"{self._heads.text(row, column)}{apart}")
            if self._below and self._two(row):
                texts.append(_below(entry, self._layout))
        return texts

    def _shares(self) -> list[Column]:
        """CPU shares, where workloads are the columns of a simple table and shares were measured."""
        if not (self._layout.simple and self._layout.columns == (WORKLOADS,)):
            return []
        return share_columns(workloads_of(self._block.cells), list(self._layout.groups(self._block).values()))


def _below(entry: Entry, layout: TableLayout) -> str:
    """What stands below a figure: the form that its scenario asks for, or the difference with its interval."""
    if layout.relative == "difference":
        return _to_baseline(entry, layout, interval=True)
    text = _to_baseline(entry, layout)
    return f"({text})" if text else ""


def _to_baseline(entry: Entry, layout: TableLayout, *, interval: bool = False) -> str:
    if entry.difference is None or layout.relative is None:
        return ""
    return (long_text if interval else relative_text)(entry.difference, layout.relative)
