"""Which charts a report has, and of what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lxml import etree

from vmlab.analysis.comparison import Comparison
from vmlab.analysis.figure import (
    RUN_TIME,
    WALL_SECONDS,
    Figure,
    Value,
    figure_of,
    host_mean,
    over_tiles,
    wall_seconds,
    workloads_of,
)
from vmlab.analysis.intent import METRICS
from vmlab.analysis.result_table import Entry, Head, ResultTable, result_tables
from vmlab.analysis.shape import CellDocument, RunDocument
from vmlab.analysis.table_layout import axis_title, axis_values, cells_at, in_written_order, layout_of
from vmlab.model.axes import axes_words, axis_word, places_words
from vmlab.model.ordered import ORDERED_HOST
from vmlab.model.run import AxisValue, Outcome
from vmlab.model.written import written
from vmlab.report.blocks import metric_words
from vmlab.report.figures import with_unit
from vmlab.report.page.answer import head_words, place_words
from vmlab.report.page.drawing import Line, Point, Span, Timeline, Track, bars, dots, over, timeline
from vmlab.report.page.gathered import CellCourse

MOST_PANELS, MOST_LINES, MOST_ROWS = 6, 7, 30
_LEAST_PLACES = 3
"""Of fewer places of the axes each has a chart of its own."""
_GIB = 2.0**30
_CPU = (
    ("user", ("cpu_user_percent",)),
    ("system", ("cpu_system_percent",)),
    ("iowait", ("cpu_iowait_percent",)),
    ("steal", ("cpu_steal_percent",)),
    ("other", ("cpu_nice_percent", "cpu_irq_percent", "cpu_softirq_percent")),
)
_MOVED = (("read", "disk_read_bytes_per_second"), ("written", "disk_write_bytes_per_second"))
_MEMORY = (("used", "memory_used_bytes"), ("cached", "memory_cached_bytes"))
_ORDERED_MEMORY = (("used", "ordered_memory_used_bytes"), ("cached", "ordered_memory_cached_bytes"))
_ORDERED_LIMIT = "ordered_memory_limit_bytes"
COURSES = (
    *(name for _, names in _CPU for name in names),
    "disk_util_percent",
    *(name for _, name in _MOVED),
    *(name for _, name in (*_MEMORY, *_ORDERED_MEMORY)),
    _ORDERED_LIMIT,
)
"""The values whose courses timelines show."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its title, and a note on what it shows or leaves out."""

    title: str
    svg: etree._Element
    note: str = ""


def result_charts(document: RunDocument, prefix: str) -> list[Chart]:
    """The figures of the run's tables, one chart for each table and unit."""
    charts: list[Chart] = []
    for number, table in enumerate(result_tables(document)):
        for key in dict.fromkeys(_key(table, row, column, entry) for row, column, entry in _entries(table)):
            if len(charts) < MOST_PANELS:
                charts.append(_table_chart(table, key, f"{prefix}r{number}{len(charts)}-"))
    return charts


def _entries(table: ResultTable) -> Iterator[tuple[Head, Head, Entry]]:
    for row, line in zip(table.rows, table.entries, strict=True):
        for column, entry in zip(table.columns, line, strict=True):
            if entry.figure.spread is not None:
                yield row, column, entry


def _key(table: ResultTable, row: Head, column: Head, entry: Entry) -> tuple[str, str]:
    """Figures that share a chart have one unit, and one metric where these are at the top."""
    return entry.reading.unit, str(dict(column).get(METRICS, ""))


def _table_chart(table: ResultTable, key: tuple[str, str], prefix: str) -> Chart:
    own = {(row, column): entry for row, column, entry in _entries(table) if _key(table, row, column, entry) == key}
    rows = [row for row in table.rows if any(place[0] == row for place in own)]
    columns = [column for column in table.columns if any(place[1] == column for place in own)]
    unit = written(key[0])
    lines = [
        Line(_name(column), [_point(own.get((row, column)), unit.factor) for row in rows[:MOST_ROWS]])
        for column in columns[:MOST_LINES]
    ]
    metric = key[1] or str(table.fixed.get(METRICS, RUN_TIME))
    left_out = len(rows) > MOST_ROWS or len(columns) > MOST_LINES
    label = with_unit(metric_words(metric), key[0])
    svg = dots([head_words(row) for row in rows[:MOST_ROWS]], lines, label, prefix)
    return Chart(
        ", ".join([label, *place_words(table)]),
        svg,
        "The table has more rows or columns than this chart." if left_out else "",
    )


def _name(column: Head) -> str:
    return head_words(tuple((part, value) for part, value in column if part != METRICS))


def _point(entry: Entry | None, factor: float) -> Point:
    return Point(None) if entry is None else point_of(entry.figure, factor)


def point_of(figure: Figure, factor: float = 1.0) -> Point:
    """A figure to be drawn."""
    spread = figure.spread
    if spread is None:
        return Point(None)
    half = None if spread.half_width is None else spread.half_width * factor
    return Point(spread.mean * factor, half, figure.state == Outcome.PASSED)


def places_chart(document: RunDocument, prefix: str) -> Chart | None:
    """The total wall clock at each place of the axes that are on no side of the tables; None for fewer than three."""
    found = [
        (table, dict(zip(table.columns, line, strict=True)))
        for table in result_tables(document)
        for row, line in zip(table.rows, table.entries, strict=True)
        if WALL_SECONDS in dict(row).values() and any(entry.figure.spread for entry in line)
    ]
    columns = list(dict.fromkeys(column for table, _ in found for column in table.columns))
    sides = [(_name(column), [_point(entries.get(column), 1.0) for _, entries in found]) for column in columns]
    return _over_places([table.axes for table, _ in found], sides, prefix)


def _over_places(
    places: Sequence[Mapping[str, AxisValue]], sides: Sequence[tuple[str, Sequence[Point]]], prefix: str
) -> Chart | None:
    """The total wall clock of each side at each place; None for fewer than three places."""
    if len(places) < _LEAST_PLACES:
        return None
    axes, rows = places_words(places)
    lines = [Line(name, points[:MOST_ROWS]) for name, points in sides[:MOST_LINES]]
    label = with_unit(metric_words(WALL_SECONDS), "s")
    left_out = "" if len(rows) <= MOST_ROWS else f" The first {MOST_ROWS} of {len(rows)} places."
    return Chart(f"{label} by {axes}", dots(rows[:MOST_ROWS], lines, label, prefix), left_out.strip())


def comparison_chart(comparison: Comparison, prefix: str) -> Chart:
    """The run times of several runs; the total wall clock of each place alone where they meet at many."""
    whole = [row for row in comparison.rows if row.metric == WALL_SECONDS]
    sides = [
        (label, [point_of(row.figures[number]) for row in whole]) for number, label in enumerate(comparison.labels)
    ]
    if (chart := _over_places([row.axes for row in whole], sides, prefix)) is not None:
        return chart
    timed = [row for row in comparison.rows if row.metric in (RUN_TIME, WALL_SECONDS)]
    shown = [row for row in timed if row.axes == timed[0].axes][:MOST_ROWS]
    lines = [
        Line(label, [point_of(row.figures[place]) for row in shown])
        for place, label in enumerate(comparison.labels[:MOST_LINES])
    ]
    note = "" if len(shown) == len(timed) else f"At {axes_words(timed[0].axes)}; the table has all places."
    return Chart("run time (s)", dots([row.workload for row in shown], lines, "run time (s)", prefix), note)


def axis_charts(document: RunDocument, prefix: str) -> list[Chart]:
    """Run times over an axis of numbers, such as tiles: a chart for each workload, a line for each other value."""
    layout = layout_of(document)
    varied = [name for name in layout.axes if len(axis_values(document, name)) > 1]
    numeric = [name for name in varied if _numbers(document, name)]
    if not numeric or len(varied) > 2:
        return []
    axis = numeric[0]
    values = _numbers(document, axis)
    lines = next((name for name in varied if name != axis), None)
    wanted: list[tuple[str, Value]] = [(name, over_tiles(name)) for name in workloads_of(document["cells"])]
    charts = []
    for number, (name, value) in enumerate([*wanted, (metric_words(WALL_SECONDS), wall_seconds)]):
        drawn = (
            [
                Line(axis_word(other), [_at(document, {axis: x, lines: other}, value) for x in values])
                for other in axis_values(document, lines)
            ]
            if lines
            else [Line(name, [_at(document, {axis: x}, value) for x in values])]
        )
        if any(point.value is not None for line in drawn for point in line.points):
            svg = over(values, drawn[:MOST_LINES], axis_title(document, axis), "s", f"{prefix}x{number}-")
            charts.append(Chart(f"{name}: run time over {axis_title(document, axis)}", svg))
    return charts


def _numbers(document: RunDocument, axis: str) -> list[float]:
    values = axis_values(document, axis)
    plain = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return sorted(plain) if len(plain) == len(values) > 1 else []


def _at(document: RunDocument, axes: dict[str, object], value: Value) -> Point:
    return point_of(figure_of(cells_at(document["cells"], axes), value))  # type: ignore[arg-type]


def host_charts(document: RunDocument, prefix: str) -> list[Chart]:
    """The host while the workloads ran: a bar for each place of the axes, over its repeats, in the tables' order."""
    places: dict[str, list[CellDocument]] = {}
    for cell in in_written_order(document):
        if cell["host"]:
            places.setdefault(axes_words(cell["axes"]), []).append(cell)
    rows = list(places)[:MOST_ROWS]
    if not rows:
        return []
    cells = [places[row] for row in rows]
    asked = [
        ("CPU, % of all CPUs", [Line(name, values=_sums(cells, names)) for name, names in _CPU], 100.0),
        ("disk busy, % of the time", [_means(cells, "disk", "disk_util_percent")], 100.0),
        ("disk await, ms", [_means(cells, "await", "disk_await_ms")], None),
        ("disk, MB/s", [_means(cells, word, name, 1e-6) for word, name in _MOVED], None),
        ("memory, GiB", [_means(cells, word, name, 1 / _GIB) for word, name in _MEMORY], None),
        (f"{ORDERED_HOST} memory, GiB", [_means(cells, word, name, 1 / _GIB) for word, name in _ORDERED_MEMORY], None),
        ("saved by KSM, GiB", [_means(cells, "saved", "ksm_saved_bytes", 1 / _GIB)], None),
    ]
    note = "" if len(places) == len(rows) else f"The first {len(rows)} of {len(places)} places."
    return [
        Chart(title, bars(rows, lines, title, f"{prefix}h{number}-", top), note)
        for number, (title, lines, top) in enumerate(asked)
        if any(any(line.values) for line in lines)
    ]


def _sums(cells: Sequence[Sequence[CellDocument]], names: Sequence[str]) -> list[float]:
    return [sum(_mean(group, name) for name in names) for group in cells]


def _means(cells: Sequence[Sequence[CellDocument]], word: str, name: str, factor: float = 1.0) -> Line:
    return Line(word, values=[_mean(group, name) * factor for group in cells])


def _mean(cells: Sequence[CellDocument], name: str) -> float:
    spread = figure_of(cells, host_mean(name)).spread
    return spread.mean if spread else 0.0


def cell_chart(course: CellCourse, prefix: str) -> etree._Element:
    """The timeline of a cell: phases and workloads, CPU, disk and memory."""
    drawn = Timeline([Span("phases", since, until, name) for name, since, until in course.phases])
    drawn.marks += course.marks
    drawn.spans += [Span(name, since, until) for name, since, until in course.workloads[:MOST_ROWS]]
    values = course.values
    user = values[_CPU[0][1][0]]
    if user.seconds:
        stack = [Line(name, values=_added(course, names, len(user.values))) for name, names in _CPU]
        drawn.tracks.append(Track("CPU %", [user.seconds], stack, stacked=True, top=100.0))
    busy = values["disk_util_percent"]
    if busy.seconds:
        drawn.tracks.append(Track("disk busy %", [busy.seconds], [Line("busy", values=busy.values)], top=100.0))
    limit = max(values[_ORDERED_LIMIT].values, default=0.0) / _GIB or None
    tracks = (
        ("MB/s", _MOVED, 1e-6, False, None),
        ("GiB", _MEMORY, 1 / _GIB, True, None),
        (f"{ORDERED_HOST} GiB", _ORDERED_MEMORY, 1 / _GIB, True, limit),
    )
    for label, pairs, factor, stacked, top in tracks:
        known = [(word, values[name]) for word, name in pairs if values[name].seconds]
        if known and (not stacked or len({len(one.seconds) for _, one in known}) == 1):
            lines = [Line(word, values=[value * factor for value in one.values]) for word, one in known]
            drawn.tracks.append(Track(label, [one.seconds for _, one in known], lines, stacked=stacked, top=top))
    return timeline(drawn, prefix)


def _added(course: CellCourse, names: Sequence[str], count: int) -> list[float]:
    """The sum of several courses of equal length; one of another length, which was not always read, is left out."""
    columns = [course.values[name].values for name in names if len(course.values[name].values) == count]
    return [sum(values) for values in zip(*columns, strict=True)] or [0.0] * count
