"""Names for what stands in a run's tables, for the notes below them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.comparison.result_table import Entry, Head, ResultTable
from vmlab.analysis.figures.figure import Figure
from vmlab.model.axes import axes_words, axis_word
from vmlab.model.scenarios.table_words import METRICS
from vmlab.report.run.table_heads import metric_words


def named_differences(tables: Sequence[ResultTable]) -> Iterator[tuple[str, Difference]]:
    """Each difference with its place; the column is left out where only one is compared."""
    for table, row, column, entry in _entries(tables):
        if entry.difference is not None:
            compared = {place for line in table.entries for place, one in enumerate(line) if one.difference is not None}
            yield _name(tables, table, row, column if len(compared) > 1 else ()), entry.difference


def named_figures(tables: Sequence[ResultTable]) -> Iterator[tuple[str, Figure, str]]:
    """Each figure with its place and its unit."""
    for table, row, column, entry in _entries(tables):
        yield _name(tables, table, row, column), entry.figure, entry.reading.unit


def _entries(tables: Sequence[ResultTable]) -> Iterator[tuple[ResultTable, Head, Head, Entry]]:
    for table in tables:
        for row, line in zip(table.rows, table.entries, strict=True):
            for column, entry in zip(table.columns, line, strict=True):
                yield table, row, column, entry


def _name(tables: Sequence[ResultTable], table: ResultTable, row: Head, column: Head) -> str:
    several = len({str(one.axes) for one in tables}) > 1
    block = [axes_words(table.axes)] if several and table.axes else []
    fixed = [str(value) for part, value in table.fixed.items() if part != METRICS]
    return ", ".join([*block, *fixed, *_words(row), *_words(column)]) or "all cells"


def _words(head: Head) -> list[str]:
    return [metric_words(str(value)) if part == METRICS else axis_word(value) for part, value in head]
