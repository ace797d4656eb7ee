"""A comparison as rows of text for the Compare screen: run times first, the host's figures below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vmlab.analysis.compare import Side, compare
from vmlab.analysis.comparison import INDEX, WALL_CLOCK, Comparison, Row
from vmlab.analysis.difference import Difference
from vmlab.analysis.figure import RUN_TIME, WALL_SECONDS, figure_of, host_mean
from vmlab.model.axes import axes_words
from vmlab.report.comparison import comparison_notes
from vmlab.report.host_rows import mean_text, row_label
from vmlab.report.verdicts import interval_text, percent_text
from vmlab.report.words import NOT_MEASURED, figure_text
from vmlab.telemetry.host_figures import HEADLINES

_RUN_TIMES = (RUN_TIME, WALL_SECONDS)


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One cell of the table: a figure, its difference from the baseline with its interval, and a tone.

    The baseline has no difference, and differences of too few readings have no interval.
    """

    text: str
    difference: str = ""
    interval: str = ""
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class TableRow:
    """A label with its entries, the baseline first; headings and notes have none, and a tone of their own."""

    label: str
    entries: tuple[TableEntry, ...] = ()
    tone: str = "title"


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """What the Compare screen shows: rows, with notes on what is known of the differences, and warnings."""

    rows: tuple[TableRow, ...] = ()
    warnings: tuple[str, ...] = ()


def compared_sides(sides: Sequence[Side], *, every_metric: bool = False) -> ComparedSides:
    """What comparing `sides` gives; only run times unless `every_metric` is set.

    Raises UsageError where no cells meet.
    """
    compared = compare(sides)
    emulated = any(side.run["accelerator"] == "tcg" for side in sides)
    times = _time_rows(compared, every_metric, " under emulation (TCG)" if emulated else "")
    notes = comparison_notes(compared, metrics=() if every_metric else _RUN_TIMES)
    rows = [*times, *(TableRow(note, tone="quiet") for note in notes), *_host_rows(sides)]
    return ComparedSides(tuple(rows), compared.warnings)


def _time_rows(compared: Comparison, every_metric: bool, how: str) -> list[TableRow]:
    rows: list[TableRow] = []
    place: object = None
    for row in compared.rows:
        if not every_metric and row.metric not in _RUN_TIMES:
            continue
        if row.axes != place:
            place = row.axes
            where = f", {axes_words(row.axes)}" if row.axes else ""
            rows.append(TableRow(f"Run time in s{how}{where}"))
        rows.append(TableRow(_label(row), tuple(_entries(row))))
    return rows


def _label(row: Row) -> str:
    if row.workload in (WALL_CLOCK, INDEX):
        return row.workload
    return (
        row.workload if row.metric == RUN_TIME else f"{row.workload} {row.metric} {'' if row.unit == '1' else row.unit}"
    )


def _entries(row: Row) -> Iterator[TableEntry]:
    yield TableEntry(figure_text(row.figures[0]))
    for figure, found in zip(row.figures[1:], row.differences, strict=True):
        yield TableEntry(figure_text(figure), percent_text(found), interval_text(found), _tone(found))


def _tone(found: Difference) -> str:
    if found.better is None:
        return "quiet"
    return "good" if found.better else "bad"


def _host_rows(sides: Sequence[Side]) -> list[TableRow]:
    rows: list[TableRow] = []
    for headline in HEADLINES:
        figures = [figure_of(side.cells, host_mean(headline.name)) for side in sides]
        if any(figure.spread for figure in figures):
            texts = [mean_text(headline, figure.spread.mean) if figure.spread else NOT_MEASURED for figure in figures]
            rows.append(TableRow(row_label(headline), tuple(TableEntry(text) for text in texts)))
    return [TableRow("Host, mean while the workloads ran"), *rows] if rows else []
