"""A comparison as rows of text for the Compare screen: run times first, the host's figures below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vmlab.analysis.compare import WALL_CLOCK, Comparison, Row, Side, compare
from vmlab.analysis.figure import RUN_TIME, Figure, difference_percent, figure_of
from vmlab.model.quantities import format_bytes
from vmlab.report.host_rows import mean_of
from vmlab.report.words import difference_text, figure_text, number
from vmlab.tui.state.views import axes_words

HOST_ROWS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("CPU user %", "cpu_user_percent", number),
    ("CPU system %", "cpu_system_percent", number),
    ("CPU iowait %", "cpu_iowait_percent", number),
    ("disk await ms", "disk_await_ms", number),
    ("disk util %", "disk_util_percent", number),
    ("disk read MB/s", "disk_read_bytes_per_second", lambda value: number(value / 1e6)),
    ("disk written MB/s", "disk_write_bytes_per_second", lambda value: number(value / 1e6)),
    ("memory used", "memory_used_bytes", format_bytes),
    ("memory cached", "memory_cached_bytes", format_bytes),
    ("KSM saved", "ksm_saved_bytes", format_bytes),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell of the table: a figure, its difference to the baseline (empty for the baseline), and a tone."""

    text: str
    difference: str = ""
    tone: str = "plain"


@dataclass(frozen=True, slots=True)
class TableRow:
    """A label with its entries, the baseline first; a heading has none."""

    label: str
    entries: tuple[Entry, ...] = ()


def comparison_rows(sides: Sequence[Side], *, every_metric: bool = False) -> tuple[list[TableRow], tuple[str, ...]]:
    """The rows and the warnings of comparing `sides`; only run times unless `every_metric` is set.

    Raises UsageError where no cells meet.
    """
    compared = compare(sides)
    emulated = any(side.run["accelerator"] == "tcg" for side in sides)
    rows = [*_time_rows(compared, every_metric, " under emulation (TCG)" if emulated else ""), *_host_rows(sides)]
    return rows, compared.warnings


def _time_rows(compared: Comparison, every_metric: bool, how: str) -> list[TableRow]:
    rows: list[TableRow] = []
    place: object = None
    for row in compared.rows:
        if not every_metric and row.metric not in (RUN_TIME, "wall_seconds"):
            continue
        if row.axes != place:
            place = row.axes
            where = f", {axes_words(row.axes)}" if row.axes else ""
            rows.append(TableRow(f"Run time in s{how}{where}"))
        rows.append(TableRow(_label(row), tuple(_entry(row, place) for place in range(len(row.figures)))))
    return rows


def _label(row: Row) -> str:
    if row.workload == WALL_CLOCK:
        return WALL_CLOCK
    return (
        row.workload if row.metric == RUN_TIME else f"{row.workload} {row.metric} {'' if row.unit == '1' else row.unit}"
    )


def _entry(row: Row, place: int) -> Entry:
    figure = row.figures[place]
    if place == 0:
        return Entry(figure_text(figure))
    return Entry(figure_text(figure), *_difference(row.figures[0], figure, seconds=row.unit == "s"))


def _difference(baseline: Figure, candidate: Figure, *, seconds: bool) -> tuple[str, str]:
    """Text and tone: a shorter time is good, a longer one bad; within the spread of both it is neither."""
    percent = difference_percent(baseline, candidate)
    if percent is None:
        return difference_text(percent), "quiet"
    before, after = baseline.comparable, candidate.comparable
    same = bool(before and after and before.overlaps(after))
    tone = "quiet" if same or not seconds or abs(percent) < 1 else "good" if percent < 0 else "bad"
    return ("~ " if same else "") + difference_text(percent), tone


def _host_rows(sides: Sequence[Side]) -> list[TableRow]:
    rows: list[TableRow] = []
    for label, key, written in HOST_ROWS:
        figures = [figure_of(side.cells, mean_of(key)) for side in sides]
        if any(figure.spread for figure in figures):
            texts = [written(figure.spread.mean) if figure.spread else "-" for figure in figures]
            rows.append(TableRow(label, tuple(Entry(text) for text in texts)))
    return [TableRow("Host, mean while the workloads ran"), *rows] if rows else []
