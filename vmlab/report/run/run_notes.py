"""What the figures of a run's tables mean, and which of its cells count in none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmlab.analysis.comparison.result_table import ResultTable
from vmlab.analysis.figures.table_layout import TableLayout
from vmlab.analysis.shape import RunDocument
from vmlab.model.axes import absent_words, axes_words, axis_word
from vmlab.model.grouping import grouped
from vmlab.model.run import WARM_UP
from vmlab.model.scenarios.table_words import WORKLOADS
from vmlab.report.figures import mark_words
from vmlab.report.words import STATISTIC_WORDS, apart_words, plural


def meanings(document: RunDocument, layout: TableLayout) -> Iterator[str]:
    """What the mark, ratios, statistics, the best of several repeats and sums of rates in the tables are."""
    entries = [entry for table in document.tables for *_, entry in table.each()]
    compared = ", and differences are of whole repeats" if any(one.difference for one in entries) else ""
    yield from (f"{words}{compared}" for words in mark_words(one.figure for one in entries))
    yield from _relative_notes(layout, document.tables)
    yield from (text for name, text in STATISTIC_WORDS.items() if name in layout.statistics)
    if layout.best_of is not None:
        repeats = max((cell.repeat for cell in document.cells), default=0)
        short = "" if repeats >= layout.best_of else f", as it was published; this run has {plural(repeats, 'repeat')}"
        yield f"each value is the best of {plural(layout.best_of, 'repeat')}{short}"
    yield from _apart(document.tables)


def odd_cells(document: RunDocument) -> Iterator[str]:
    """Warm-ups and loops, which count in no figure."""
    for cell in document.cells:
        if cell.repeat == WARM_UP:
            yield f"cell {cell.cell} ({axes_words(cell.axes)}) is the warm-up and does not count"
        if cell.looped:
            rounds = plural(len(cell.rounds), "round")
            yield f"cell {cell.cell} ({axes_words(cell.axes)}) is a loop of {rounds}, and does not count"


def absent_notes(document: RunDocument) -> Iterator[str]:
    """A line for each reason why values of an axis have no cells, wherever the axis stands."""
    absent = ((one.reason, name, value) for one in document.run.absent for name, value in one.axes.items())
    values = grouped(((name, reason), value) for reason, name, value in absent)
    yield from (absent_words(name, those, reason) for (name, reason), those in values.items())


def _relative_notes(layout: TableLayout, tables: Sequence[ResultTable]) -> Iterator[str]:
    """What a ratio, or another form of it, means in the tables."""
    compared = [one for table in tables for *_, one in table.each() if one.difference is not None]
    simple_rows = layout.simple and layout.rows == (WORKLOADS,)
    if not compared or layout.relative is None or simple_rows:
        return
    base = ", ".join(map(axis_word, layout.baseline.values()))
    ways = {one.reading.more_is_better is False for one in compared if one.figure.spread} or {True}
    for inverse in sorted(ways, reverse=True):
        yield _meaning(layout, base, inverse=inverse)


def _meaning(layout: TableLayout, base: str, *, inverse: bool) -> str:
    if layout.relative == "difference":
        return f"difference: how much more than {base}, in percent of it"
    column = " in the column before" if layout.simple else ""
    ratio = f"time of {base} over the time{column}" if inverse else f"value{column} over the value of {base}"
    match layout.relative:
        case "ratio":
            return f"ratio: {ratio}; 1 is as fast, less is slower"
        case "percent":
            return f"percent: {ratio}; 100 % is as fast, less is slower"
        case "overhead":
            return f"overhead: 100 % less the {ratio}"
        case _:
            return f"slowdown: one over the {ratio}; 1 is as fast, more is slower"


def _apart(tables: Sequence[ResultTable]) -> Iterator[str]:
    """A note if rates of tiles were added up, or their fairness calculated, that did not run at the same time."""
    apart = [one.reading.overlap for table in tables for *_, one in table.each() if one.reading.apart]
    if apart:
        yield apart_words(apart)
