"""The tables of a run's results as they are shown, and the names of what stands in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.comparison.result_table import Entry, Head, ResultTable
from vmlab.analysis.figures.counted_cells import as_of
from vmlab.analysis.figures.figure import Figure, figure_of, over_tiles, workloads_of
from vmlab.analysis.figures.table_layout import Block, TableLayout, axis_title, axis_values
from vmlab.analysis.shape import RunDocument
from vmlab.model.axes import axes_words, axis_word
from vmlab.model.scenarios.table_words import METRICS, STATISTICS, WORKLOADS
from vmlab.report.blocks import Column, Section, Table
from vmlab.report.run.table_heads import TableHeads, metric_words
from vmlab.report.verdicts import difference_words, long_text, relative_text, verdict_words
from vmlab.report.words import APART, MARK, NOT_MEASURED

_ABSENT = "absent"
_CONFIGURED = "cpu_share_configured"
_GOT = "cpu_share_got"


def block_section(document: RunDocument, layout: TableLayout, block: Block) -> Section:
    """A block's tables, under the values of its axes where these are varied."""
    varied = {name: value for name, value in block.axes.items() if len(axis_values(document, name)) > 1}
    own = (table for table in document.tables if table.axes == block.axes)
    shown = [_Shown(document, layout, block, table).table() for table in own]
    return Section(axes_words(varied) if varied else "", shown)


def compares_below(layout: TableLayout) -> bool:
    """Whether what figures are to the baseline stands below them: the baseline is a row, and not a column."""
    return bool(layout.baseline) and not any(part in layout.baseline for part in layout.columns)


def intervals_shown(layout: TableLayout) -> bool:
    """Whether intervals of differences stand in the tables."""
    return layout.relative == "difference" or not compares_below(layout)


class _Shown:
    """One table as it is shown."""

    def __init__(self, document: RunDocument, layout: TableLayout, block: Block, table: ResultTable) -> None:
        self._document = document
        self._layout = layout
        self._block = block
        self._table = table
        self._heads = TableHeads(table)
        self._below = compares_below(layout)
        self._by_workload = layout.simple and layout.rows == (WORKLOADS,)
        self._by_rows = bool(self._titles(layout.rows))

    def table(self) -> Table:
        """Labels, figures, and beside or below them what they are to the baseline."""
        caption = self._caption()
        titles = self._titles(self._layout.rows) or self._titles(self._layout.columns)
        columns = [*self._columns(), *self._shares()]
        if self._by_workload:
            return Table(caption, self._row_labels(), columns)
        return Table(titles, self._row_labels(), columns, caption)

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
            tiles = max(over.tiles for cell in self._block.cells for over in cell.over_tiles)
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
            texts, notes = self._texts(place, absent=absent)
            columns.append(Column(heading, texts, above=tuple(above), notes=notes))
            relative = None if self._below or absent else layout.relative
            if relative and any(entry.difference is not None for entry in column):
                texts = [_to_baseline(entry, layout, interval=True) for entry in column]
                notes = [_note(entry, layout) for entry in column]
                columns.append(Column(relative, texts, beside=True, above=tuple(above), notes=notes))
        return columns

    def _order(self, head: Head) -> bool:
        """The baseline of a simple table comes first; others keep the order of the scenario."""
        return self._layout.simple and any(self._layout.baseline.get(part, value) != value for part, value in head)

    def _texts(self, column: int, *, absent: bool) -> tuple[list[str], list[str]]:
        """The figures of a column, what they are to the baseline below each of them, and the notes on these."""
        texts, notes = list[str](), list[str]()
        for row, line in enumerate(self._table.entries):
            entry = line[column]
            apart = f" {APART}" if entry.reading.apart and entry.figure.spread else ""
            texts.append(_ABSENT if absent or row in self._table.absent else f"{self._heads.text(row, column)}{apart}")
            notes.append("")
            if self._below and self._two(row):
                texts.append(_below(entry, self._layout))
                notes.append(_note(entry, self._layout))
        return texts, notes

    def _shares(self) -> list[Column]:
        """CPU shares, where workloads are the columns of a simple table and shares were measured."""
        if not (self._layout.simple and self._layout.columns == (WORKLOADS,)):
            return []
        return _share_columns(workloads_of(self._block.cells), list(self._layout.groups(self._block).values()))


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


def _note(entry: Entry, layout: TableLayout) -> str:
    """What is known of a difference, and the difference itself where another form of it is shown."""
    if entry.difference is None or entry.figure.spread is None:
        return ""
    return verdict_words(entry.difference) if layout.relative == "difference" else difference_words(entry.difference)


def _share_columns(workloads: Sequence[str], groups: Sequence[Sequence[CellDocument]]) -> list[Column]:
    """Shares configured and got in percent, workload by workload, for each group; none where nothing was measured."""
    found: list[Column] = []
    for heading, metric in (("share set", _CONFIGURED), ("share got", _GOT)):
        figures = [[figure_of(as_of(name, cells), over_tiles(name, metric)) for name in workloads] for cells in groups]
        if any(figure.spread for row in figures for figure in row):
            found.append(Column(heading, [_shares(row) for row in figures], beside=bool(found)))
    return found


def _shares(figures: Sequence[Figure]) -> str:
    text = " / ".join(f"{100 * f.spread.mean:.0f}" if f.spread else NOT_MEASURED for f in figures)
    if all(figure.spread is None for figure in figures):
        return NOT_MEASURED
    return f"{text} %" if all(figure.comparable for figure in figures) else f"{text} % {MARK}"


def named_differences(tables: Sequence[ResultTable]) -> Iterator[tuple[str, Difference]]:
    """Each difference with its place; the column is left out where only one is compared."""
    for table in tables:
        compared = [(row, column, found) for row, column, entry in table.each() if (found := entry.difference)]
        several = len({column for _, column, _ in compared}) > 1
        for row, column, found in compared:
            yield _name(tables, table, row, column if several else ()), found


def named_figures(tables: Sequence[ResultTable]) -> Iterator[tuple[str, Figure, str]]:
    """Each figure with its place and its unit."""
    for table in tables:
        for row, column, entry in table.each():
            yield _name(tables, table, row, column), entry.figure, entry.reading.unit


def _name(tables: Sequence[ResultTable], table: ResultTable, row: Head, column: Head) -> str:
    several = len({str(one.axes) for one in tables}) > 1
    block = [axes_words(table.axes)] if several and table.axes else []
    fixed = [str(value) for part, value in table.fixed.items() if part != METRICS]
    return ", ".join([*block, *fixed, *_words(row), *_words(column)]) or "all cells"


def _words(head: Head) -> list[str]:
    return [metric_words(str(value)) if part == METRICS else axis_word(value) for part, value in head]
