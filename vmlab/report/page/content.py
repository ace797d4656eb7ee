"""Which charts a report has, and of what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.comparison import Comparison, Row
from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.comparison.result_table import Entry, Head, ResultTable
from vmlab.analysis.figures.figure import MISSING, WALL_CLOCK, WALL_SECONDS, Figure, figure_of, host_mean, workloads_of
from vmlab.analysis.figures.reading import Asked, of_cells_alone, read
from vmlab.analysis.figures.table_layout import axis_title, axis_values, cells_at, in_written_order, layout_of
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.target_results import first_metric, timed_of
from vmlab.model.axes import axes_words, axis_word, places_words
from vmlab.model.errors import UsageError
from vmlab.model.grouping import grouped
from vmlab.model.run import RUN_TIME, AxisValue, Outcome
from vmlab.model.scenarios.table_words import METRICS, WORKLOADS
from vmlab.report.blocks import Chart
from vmlab.report.comparison_text import row_name
from vmlab.report.figures import form_of, with_unit
from vmlab.report.page.drawing import Dots, Line, Point, Span, Timeline, Track, bars, over, timeline
from vmlab.report.page.gathered import CellCourse
from vmlab.report.run.mind_text import signs_line
from vmlab.report.run.shown_tables import head_words, metric_of, metric_words, place_words
from vmlab.report.verdicts import percent_text
from vmlab.telemetry.host.host_figures import HostChart, HostFigure, charts, figures_of_chart

MOST_PANELS, MOST_LINES, MOST_ROWS = 6, 7, 30
_MOST_NAMED = 20
_LEAST_PLACES = 3
"""Of fewer places of the axes each has a chart of its own."""
_FACTORS = {"GiB": 2.0**-30, "MB/s": 1e-6}
"""What a value is multiplied by for its number on a page; 1 in all other units."""


def _drawn(chart: HostChart) -> list[HostFigure]:
    """What a page shows of a chart, what is idle over all others."""
    shown = [one for one in figures_of_chart(chart) if one.drawn and (one.headline or chart.whole)]
    return sorted(shown, key=lambda one: one.idle)


def _top(chart: HostChart) -> float | str | None:
    """The end of the scale on a page: a number, the name of a value whose course is known, or None for the largest."""
    return chart.top if chart.whole else None


_HOST_CHARTS = [chart for chart in charts() if chart.page]
_TRACKS = [chart for chart in _HOST_CHARTS if chart.track]
COURSES = (
    *(name for chart in _TRACKS for one in _drawn(chart) for name in (one.name, *one.added)),
    *(top for chart in _TRACKS if isinstance(top := _top(chart), str)),
)
"""The values whose courses timelines show."""


def result_charts(tables: Sequence[ResultTable]) -> list[Chart]:
    """The figures of a run's tables, one chart for each table and unit."""
    found = [
        (table, key)
        for table in tables
        for key in dict.fromkeys(_key(table, row, column, entry) for row, column, entry in _measured(table))
    ]
    return [_table_chart(table, key) for table, key in found[:MOST_PANELS]]


def _measured(table: ResultTable) -> Iterator[tuple[Head, Head, Entry]]:
    return (one for one in table.each() if one[2].figure.spread is not None)


def _key(table: ResultTable, row: Head, column: Head, entry: Entry) -> tuple[str, str]:
    """Figures that share a chart have one unit and one metric."""
    return entry.reading.unit, metric_of(table, row, column)


def _table_chart(table: ResultTable, key: tuple[str, str]) -> Chart:
    own = {(row, column): entry for row, column, entry in _measured(table) if _key(table, row, column, entry) == key}
    rows = [row for row in table.rows if any(place[0] == row for place in own)]
    columns = [column for column in table.columns if any(place[1] == column for place in own)]
    unit, metric = key
    absent = Figure(MISSING)
    sides = [
        (_name(table, column), [own[row, column].figure if (row, column) in own else absent for row in rows])
        for column in columns
    ]
    left_out = len(rows) > MOST_ROWS or len(columns) > MOST_LINES
    note = "The table has more rows or columns than this chart." if left_out else ""
    behind = "".join(f", {words}" for words in place_words(table))
    against = [[own[row, column].difference for column in columns if (row, column) in own] for row in rows]
    return _dots([_name(table, row) for row in rows], sides, metric, unit, behind, note, against)


def _dots(
    rows: Sequence[str],
    sides: Sequence[tuple[str, Sequence[Figure]]],
    metric: str,
    unit: str,
    behind: str = "",
    note: str = "",
    against: Sequence[Sequence[Difference | None]] = (),
) -> Chart:
    """The first figures of each side, one a row; `behind` stands behind the metric in the title.

    Below the names stands the difference of a row, by `against`, unless any row has several.
    """
    form = form_of(unit, [figure for _, figures in sides for figure in figures])
    lines = [
        Line(name, [point_of(figure, form.factor) for figure in figures[:MOST_ROWS]])
        for name, figures in sides[:MOST_LINES]
    ]
    label = with_unit(metric_words(metric), unit, form)
    found = [[one for one in differences if one is not None] for differences in against[:MOST_ROWS]]
    if any(len(one) > 1 for one in found):
        found = []
    half = any(point.half is not None for line in lines for point in line.points)
    bars = "± and bars: 95 % confidence intervals" if half else ""
    marks = signs_line([one for differences in found for one in differences], half=False, intervals=False)
    note = ". ".join(filter(None, [bars, marks, note]))
    under = ["".join(percent_text(one) for one in those if one.is_compared) for those in found]
    return Chart(f"{label}{behind}", Dots(rows[:MOST_ROWS], lines, label, under), note)


def _name(table: ResultTable, head: Head) -> str:
    """A head without its metric, which the chart has as its title; a row of the wall clock has no other name."""
    rest = tuple((part, value) for part, value in head if part != METRICS)
    if rest:
        return head_words(rest)
    if METRICS in table.fixed or not head:
        return head_words(head)
    return str(table.fixed.get(WORKLOADS, "all cells"))


def point_of(figure: Figure, factor: float = 1.0) -> Point:
    """A figure to be drawn."""
    spread = figure.spread
    if spread is None:
        return Point(None)
    half = None if spread.half_width is None else spread.half_width * factor
    return Point(spread.mean * factor, half, figure.state == Outcome.PASSED)


def places_chart(tables: Sequence[ResultTable]) -> Chart | None:
    """The total wall clock at each place of the axes that are on no side of the tables; None for fewer than three."""
    found = [
        (table, dict(zip(table.columns, line, strict=True)))
        for table in tables
        for row, line in zip(table.rows, table.entries, strict=True)
        if WALL_SECONDS in dict(row).values() and any(entry.figure.spread for entry in line)
    ]
    columns = list(dict.fromkeys(column for table, _ in found for column in table.columns))
    figures = [
        (head_words(tuple((part, value) for part, value in column if part != METRICS)), _at_places(column, found))
        for column in columns
    ]
    return _over_places([table.axes for table, _ in found], figures, WALL_SECONDS, "s")


def _at_places(column: Head, found: Sequence[tuple[ResultTable, Mapping[Head, Entry]]]) -> list[Figure]:
    known = [entries.get(column) for _, entries in found]
    return [entry.figure if entry else Figure(MISSING) for entry in known]


def _over_places(
    places: Sequence[Mapping[str, AxisValue]],
    sides: Sequence[tuple[str, Sequence[Figure]]],
    name: str,
    unit: str,
) -> Chart | None:
    """A figure of each side at each place; None for fewer than three places."""
    if len(places) < _LEAST_PLACES:
        return None
    axes, rows = places_words(places)
    note = "" if len(rows) <= MOST_ROWS else f"The first {MOST_ROWS} of {len(rows)} configurations."
    return _dots(rows, sides, name, unit, f" by {axes}", note)


def comparison_charts(comparison: Comparison) -> list[Chart]:
    """What the scenario asks for, at each place where the runs meet at many.

    Run times are one chart, or only the total wall clock at many places; of other metrics each has its own.
    """
    groups = _by_metric(comparison.told(comparison.asked))
    return [_compared(comparison, rows, metric) for metric, rows in groups[:MOST_PANELS]]


def _by_metric(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """The rows that share a chart, with their metric: run times first, at many places only the total wall clock."""
    whole = [row for row in rows if row.metric == WALL_SECONDS]
    timed = [row for row in rows if row.metric in (RUN_TIME, WALL_SECONDS)]
    groups = grouped(((row.metric, row.unit), row) for row in rows if row not in timed)
    first = [(RUN_TIME, whole if len(whole) >= _LEAST_PLACES else timed)] if timed else []
    return first + [(metric, those) for (metric, _), those in groups.items()]


def chart_of(comparison: Comparison, figure: str | None) -> tuple[Chart, Dots]:
    """The one chart of a comparison whose figures are called `figure`: WORKLOAD, METRIC or WORKLOAD.METRIC.

    For None it is that of what the scenario asks for. Raises UsageError where there are several, or none.
    """
    asked = comparison.told(comparison.asked)
    named = [row for row in comparison.told() if figure in (row.metric, f"{row.workload}.{row.metric}")]
    named = named or [row for row in asked if row.workload == figure]
    charts = _by_metric(asked if figure is None else named)
    if len(charts) == 1:
        ((metric, rows),) = charts
        chart = _compared(comparison, rows, metric)
        assert isinstance(chart.draw, Dots)
        return chart, chart.draw
    known = [metric for metric, _ in charts or _by_metric(comparison.told())]
    what = f"no figure is called {figure[:64]!r}" if figure and not charts else f"there are {len(charts)} charts"
    raise UsageError(f"{what}; choose one by --figure: {', '.join(known[:_MOST_NAMED])}")


def _compared(comparison: Comparison, rows: Sequence[Row], metric: str) -> Chart:
    """The figures of `rows`, which have one unit: of one workload at all places, or of all at the first."""
    unit = rows[0].unit
    if len({row.workload for row in rows}) == 1:
        sides = [(label, [row.figures[at] for row in rows]) for at, label in enumerate(comparison.labels)]
        name = rows[0].metric if rows[0].metric == WALL_SECONDS else row_name(rows[0])
        if (chart := _over_places([row.axes for row in rows], sides, name, unit)) is not None:
            return chart
    shown = [row for row in rows if row.axes == rows[0].axes][:MOST_ROWS]
    figures = [(label, [row.figures[at] for row in shown]) for at, label in enumerate(comparison.labels)]
    note = "" if len(shown) == len(rows) else f"At {axes_words(rows[0].axes)}; the table has all configurations."
    against = [row.differences for row in shown]
    return _dots([row.workload for row in shown], figures, metric, unit, note=note, against=against)


def axis_charts(document: RunDocument) -> list[Chart]:
    """What the table has over an axis of numbers, such as tiles: a chart a figure, a line for each other value."""
    layout = layout_of(document)
    varied = [name for name in layout.axes if len(axis_values(document, name)) > 1]
    numeric = [name for name in varied if _numbers(document, name)]
    if not numeric or len(varied) > 2:
        return []
    axis = numeric[0]
    values = _numbers(document, axis)
    lines = next((name for name in varied if name != axis), None)
    places = {axis_word(one): {lines: one} for one in axis_values(document, lines)} if lines else {"": {}}
    charts = []
    for asked in _asked(document, layout.metrics):
        found = {
            name: [read(cells_at(document.cells, {axis: x, **other}), asked) for x in values]
            for name, other in places.items()
        }
        units = {one.unit for those in found.values() for one in those if one.figure.spread}
        if len(units) != 1:
            continue
        unit = units.pop()
        form = form_of(unit, [one.figure for those in found.values() for one in those])
        label = with_unit(metric_words(asked.metric), unit, form)
        drawn = [
            Line(name or asked.workload or label, [point_of(one.figure, form.factor) for one in those])
            for name, those in found.items()
        ]
        title = f"{asked.workload}: {metric_words(asked.metric)}" if asked.workload else metric_words(asked.metric)
        draw = partial(over, values, drawn[:MOST_LINES], axis_title(document, axis), label)
        charts.append(Chart(f"{title} over {axis_title(document, axis)}", draw))
    return charts[:MOST_PANELS]


def _asked(document: RunDocument, metrics: Sequence[str]) -> Iterator[Asked]:
    """What the tables have of each workload and of whole cells; beside run times the total wall clock.

    A workload of fixed duration has its throughput in place of its run time.
    """
    timed = timed_of(document.cells, document.run.throughput)
    for metric in metrics:
        if of_cells_alone(metric):
            yield Asked(metric)
        else:
            workloads = workloads_of(document.cells)
            yield from (Asked(first_metric(metric, workload, timed), workload) for workload in workloads)
    if RUN_TIME in metrics and WALL_CLOCK not in timed:
        yield Asked(WALL_SECONDS)


def _numbers(document: RunDocument, axis: str) -> list[float]:
    values = axis_values(document, axis)
    plain = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return sorted(plain) if len(plain) == len(values) > 1 else []


def host_charts(document: RunDocument) -> list[Chart]:
    """The host while the workloads ran: a bar for each place of the axes, over its repeats, in the tables' order."""
    recorded = document.recording is not None
    measured = (cell for cell in in_written_order(document) if cell.host)
    places = grouped(("host" if recorded else axes_words(cell.axes), cell) for cell in measured)
    rows = list(places)[:MOST_ROWS]
    if not rows:
        return []
    cells = [places[row] for row in rows]
    asked = [
        (f"{one.name}, {one.page}", [_means(cells, figure, one) for figure in _drawn(one)], _top(one))
        for one in _HOST_CHARTS
    ]
    note = "" if len(places) == len(rows) else f"The first {len(rows)} of {len(places)} configurations."
    return [
        Chart(title, partial(bars, rows, lines, title, None if isinstance(top, str) else top), note)
        for title, lines, top in asked
        if any(any(line.values) for line in lines)
    ]


def _means(cells: Sequence[Sequence[CellDocument]], figure: HostFigure, chart: HostChart) -> Line:
    names, factor = (figure.name, *figure.added), _FACTORS.get(chart.page, 1.0)
    return Line(figure.short, values=[sum(_mean(group, name) for name in names) * factor for group in cells])


def _mean(cells: Sequence[CellDocument], name: str) -> float:
    return figure_of(cells, host_mean(name)).mean or 0.0


def cell_chart(course: CellCourse, title: str) -> Chart:
    """The timeline of a cell: phases and workloads, CPU, disk and memory."""
    drawn = Timeline([Span("phases", since, until, name) for name, since, until in course.phases])
    drawn.marks += course.marks
    drawn.spans += [Span(name, since, until) for name, since, until in course.workloads[:MOST_ROWS]]
    for chart in _TRACKS:
        figures, factor, top = _drawn(chart), _FACTORS.get(chart.page, 1.0), _top(chart)
        stacked = chart.stacked and len(figures) > 1
        known = [one for one in figures if course.values[one.name].seconds]
        if stacked:
            known = [one for one in known if _count(course, one) == _count(course, known[0])]
        if known:
            seconds = [course.values[one.name].seconds for one in known]
            lines = [Line(one.short, values=_added(course, one, factor), idle=one.idle) for one in known]
            if isinstance(top, str):
                top = max(course.values[top].values, default=0.0) * factor or None
            drawn.tracks.append(Track(chart.track, seconds, lines, stacked=stacked, top=top))
    for label, guests in course.guests:
        lines = [Line(name, values=one.values) for name, one in guests.items()]
        drawn.tracks.append(Track(label, [one.seconds for one in guests.values()], lines))
    phases = ", ".join(f"{name} {until - since:.1f} s" for name, since, until in course.phases)
    return Chart(title, partial(timeline, drawn), f"{phases}.")


def _count(course: CellCourse, figure: HostFigure) -> int:
    return len(course.values[figure.name].values)


def _added(course: CellCourse, figure: HostFigure, factor: float) -> list[float]:
    """The sum of a figure's courses; one of another length than its own, which was not always read, is left out."""
    columns = [course.values[name].values for name in (figure.name, *figure.added)]
    columns = [values for values in columns if len(values) == _count(course, figure)]
    return [sum(values) * factor for values in zip(*columns, strict=True)]
