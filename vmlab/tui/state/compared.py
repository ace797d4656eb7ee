"""A comparison as rows of text for the Compare screen: what is asked first, the host's figures below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vmlab.analysis.comparison.compare import Side, cells_alike, compare
from vmlab.analysis.comparison.comparison import Comparison
from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.figures.figure import WALL_SECONDS, figure_of, host_mean
from vmlab.model.run import RUN_TIME
from vmlab.report.compared_rows import ComparedRow, compared_rows
from vmlab.report.comparison_text import comparison_notes, index_notes
from vmlab.report.heading import behind_words
from vmlab.report.headline import headline, repeats_to_tell
from vmlab.report.run.host_rows import mean_text, row_label
from vmlab.report.run.latency_text import KEYS, known_of, mean_percentiles, milliseconds, title
from vmlab.report.run.notice_text import AT_BEST, at_best_notes
from vmlab.report.run.target_text import missed_sentence
from vmlab.report.verdicts import interval_text, percent_text
from vmlab.report.words import NOT_MEASURED
from vmlab.telemetry.host.host_figures import headlines
from vmlab.tui.state.bars import BarRow, bar_rows

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
    """What the Compare screen shows: rows, with notes on what is known of the differences, and warnings.

    `sentence` says it in one, `bars` draw the first rows, of which there are `times`. `ordered` has the words for parts
    of a host that were not its own, on any side. `repeats` is how many a run needs where these prove nothing;
    None where they do, or several runs are compared.
    """

    rows: tuple[TableRow, ...] = ()
    warnings: tuple[str, ...] = ()
    sentence: str = ""
    bars: tuple[BarRow, ...] = ()
    times: int = 0
    ordered: tuple[str, ...] = ()
    repeats: int | None = None


def compared_sides(sides: Sequence[Side], *, every_metric: bool = False, left_out: Sequence[str] = ()) -> ComparedSides:
    """What comparing `sides` gives; only what its scenario asks for unless `every_metric`.

    `left_out` are the labels of sides for which there is no room, which is a warning.

    Raises UsageError where no cells meet.
    """
    compared = compare(sides)
    how = ", ".join(behind_words(compared.accelerators, compared.ordered))
    figures = _figure_rows(compared, every_metric, f" {how}" if how else "")
    metrics = () if every_metric else compared.asked
    notes = comparison_notes(compared, metrics=metrics)
    if every_metric:
        notes += [*index_notes(compared, compared.labels[0]), *at_best_notes(compared.speed, compared.rows)]
    rows = [*figures, *(TableRow(note, tone="quiet") for note in notes), *_host_rows(sides), *_latency_rows(sides)]
    more = f"not shown here: {', '.join(left_out)}; `vmlab compare` has every side"
    missed = [f"{side.label}: {words}" for side in sides if (words := missed_sentence(side.cells))]
    warnings = (*([more] if left_out else []), *missed, *compared.warnings)
    return ComparedSides(
        tuple(rows),
        warnings,
        headline(compared, metrics),
        bar_rows(compared, metrics),
        len(figures),
        compared.ordered,
        repeats_to_tell(compared, metrics) if len({side.run["id"] for side in sides}) == 1 else None,
    )


def _figure_rows(compared: Comparison, every_metric: bool, how: str) -> list[TableRow]:
    """The rows of the command line's table under a heading for each place; what is asked, or `every_metric`."""
    title = "Run times" if not every_metric and set(compared.asked) <= set(_RUN_TIMES) else "Figures"
    rows: list[TableRow] = []
    place: str | None = None
    for row in compared_rows(compared, () if every_metric else compared.asked):
        if row.place != place:
            place = row.place
            where = f", {place}" if place else ""
            rows.append(TableRow(f"{title}{how}{where}"))
        rows.append(TableRow(row.label, tuple(_entries(row))))
        if every_metric and any(row.at_best_speed):
            rows.append(TableRow(f"  {AT_BEST}", tuple(_at_best(row))))
    return rows


def _entries(row: ComparedRow) -> Iterator[TableEntry]:
    yield TableEntry(row.figures[0])
    for figure, found in zip(row.figures[1:], row.differences, strict=True):
        yield _entry(figure, found)


def _at_best(row: ComparedRow) -> Iterator[TableEntry]:
    """The differences of a row once more, at the CPUs' best speed."""
    yield TableEntry("")
    for found in row.at_best_speed:
        yield TableEntry("") if found is None else _entry("", found)


def _entry(figure: str, found: Difference) -> TableEntry:
    return TableEntry(figure, percent_text(found), interval_text(found), _tone(found))


def _tone(found: Difference) -> str:
    if found.better is None:
        return "quiet"
    return "good" if found.better else "bad"


def _host_rows(sides: Sequence[Side]) -> list[TableRow]:
    rows: list[TableRow] = []
    alike = cells_alike(sides)
    for shown in headlines():
        figures = [figure_of(cells, host_mean(shown.name)) for cells in alike]
        if any(figure.spread for figure in figures):
            texts = [mean_text(shown, figure.spread.mean) if figure.spread else NOT_MEASURED for figure in figures]
            rows.append(TableRow(row_label(shown), tuple(TableEntry(text) for text in texts)))
    return [TableRow("Host, mean while the workloads ran"), *rows] if rows else []


def _latency_rows(sides: Sequence[Side]) -> list[TableRow]:
    """How long requests of the guests' disks took on each side, with the error of the bins in the title."""
    alike = cells_alike(sides)
    rows = [
        TableRow(
            f"{operation} {key.removesuffix('_ms')}",
            tuple(TableEntry(milliseconds(percentiles[place])) for percentiles in of_sides),
        )
        for operation, of_sides in mean_percentiles(alike).items()
        for place, key in enumerate(KEYS)
    ]
    if not rows:
        return []
    head = title(known_of(*alike), which="")
    return [TableRow(f"{head[0].upper()}{head[1:]}"), *rows]
