"""All charts of a screen in one widget: one paint a tick, whatever their number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from vmlab.model.quantities import format_seconds
from vmlab.model.sample import Sample
from vmlab.system.text_width import right
from vmlab.telemetry.cpu_speed import SPEED
from vmlab.telemetry.host.host_figures import Terms
from vmlab.tui.state.charts import CPU, CPU_SPEED, IN_PANELS, Chart, chart_of, is_of_disk, resources, title_of
from vmlab.tui.state.history import History, cpu_use, value_of
from vmlab.tui.state.views import Moment
from vmlab.tui.widgets.charts.axis_scale import Scale, nice_top, scale_for
from vmlab.tui.widgets.charts.chart_head import axis_begin, axis_line, columns_of, framed, head_rows, with_users
from vmlab.tui.widgets.charts.raster import (
    AREAS,
    IDLE,
    PLAIN_LINES,
    Cell,
    Rows,
    lines,
    mark_behind,
    mark_column,
    means_of,
    pairs,
    plain_lines,
    stack,
    textured,
)
from vmlab.tui.widgets.charts.resource_lines import Row, heading, rows_of, spark_width
from vmlab.tui.widgets.painted import Line, Piece, Shown

Panel = tuple[Chart, ...]
Times = Sequence[tuple[float, float]] | None
"""Begins and ends on the monotonic clock; None for all times."""
EACH: tuple[Panel, ...] = tuple((chart,) for chart in IN_PANELS)
_NARROWEST = 24
_GAP = 1
_LEAST_ROWS, _LEAST_RASTER = 5, 2
_MOST_ACROSS = 4
_LEAST_OF_ALL = {False: 20, True: 14}
"""Rows from which on all charts have room, by whether so many are side by side."""
_CHARTS_ON, _TALL, _HIGH = (150, 40), 30, 48
"""Columns or rows of a screen with charts; rows from which on sparklines may be higher, and charts are wider."""
_AXIS_FROM = 14
"""Rows from which on one is for the time axis."""
_GUTTER = 5
"""Columns of a chart for the ends of its scale."""
_MARK, _SWITCHED = "┊", "│"
"""The lines where something began, and where guests were switched."""
_SPEED_ROWS = 2
"""Rows of the CPUs' speed at least, with its figure."""
_WAITING = "idle, waiting for disk"
_FIRST_WEIGHT, _WEIGHT = 3, 2
"""How high the uppermost charts are, and the others."""


class Charted(NamedTuple):
    """A `history`, with a line at each moment at which running guests were `switched`.

    What began at other `moments` has a line behind what is drawn. `ordered` has the words for parts of the host that
    are not its own. Figures of the disk stand there for the times that are `counted`, where these are known: without
    its limits an emulated one is as fast as the host's own.
    """

    history: History
    switched: tuple[float, ...] = ()
    moments: Sequence[Moment] = ()
    ordered: Sequence[str] = ()
    counted: Times = None


class ChartBoard(Shown[Charted]):
    """Draws the newest part of a `History`. Two samples go into a column, so a chart of 38 columns shows 76 of them.

    On a low screen, and on a board of few rows, a line for each resource stands in place of charts.
    """

    DEFAULT_CSS = "ChartBoard { scrollbar-size: 0 0; }"
    has_lines = True
    """Whether there may be lines in place of charts."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.shown = Charted(History())
        self._drawn = -1
        self._marked: tuple[int, ...] = ()
        self._looks: dict[tuple[str, ...], _Looks] = {}
        self.is_whole = False
        """Whether charts cover all that is kept, several samples in a column, and not the newest alone."""
        self.panels: tuple[Panel, ...] = ()
        """Those below each other that are drawn in place of all."""
        self.heads: dict[str, str] = {}
        """The head of every chart by its title and unit, as it was drawn last."""

    def show(self, shown: Charted) -> None:
        """Draw `shown` as it is now; nothing happens when it has been drawn already."""
        super().show(shown)
        if shown.history.version != self._drawn:
            self.repaint()

    def switch_span(self) -> None:
        """Draw all that is kept, or the newest ticks again; says which."""
        self.is_whole = not self.is_whole
        self.repaint()
        what = "all that is kept" if self.is_whole else "the newest ticks"
        self.notify(f"charts: {what}, {format_seconds(self.span_seconds)}")

    @property
    def span_seconds(self) -> float:
        """How much time a chart covers from left to right."""
        width, height = self.size
        drawn = spark_width(width) if self._draws_lines else self._grid(width, height)[1] - _GUTTER
        return self._column_seconds(drawn) * drawn

    def _stretch(self, drawn: int) -> int:
        """How many samples stand in half a column of charts that draw `drawn` columns, as their mean."""
        return max(1, math.ceil(len(self.shown.history) / (2 * drawn))) if self.is_whole and drawn > 0 else 1

    @property
    def _draws_lines(self) -> bool:
        """By the screen where guests take and give rows as a run goes on: what is drawn keeps its kind and place."""
        (columns, rows), (width, height) = self.screen.size, self.size
        is_low = columns < _CHARTS_ON[0] and rows < _CHARTS_ON[1]
        least = _LEAST_OF_ALL[most_across(width) >= _MOST_ACROSS]
        return self.has_lines and not self.panels and (is_low or height < least)

    def _grid(self, width: int, height: int) -> tuple[int, int, tuple[Panel, ...]]:
        """Charts side by side, columns of each, and which ones there are: the same ones in the same places, always."""
        across = _MOST_ACROSS if width >= 120 or self.screen.size.height < _HIGH else 2
        across = across if across <= most_across(width) else min(2, most_across(width))
        panels = EACH
        if self.panels:
            across, panels = 1, self.panels
        elif self.shown.history.last is not None and SPEED in self.shown.history.last.layout.position:
            panels = ((CPU, CPU_SPEED), *panels[1:])
        panels = tuple(tuple(chart_of(chart, self.shown.ordered) for chart in panel) for panel in panels)
        return across, (width - _GAP * (across - 1)) // across, panels

    def repaint(self) -> None:
        """Draw all charts in columns, or the resources; where there is room, the time axis is the last line."""
        width, height = self.size
        if width <= _GUTTER or not height:
            return
        self._drawn = self.shown.history.version
        if self._draws_lines:
            self.put([self._strip(line, width) for line in self._resources(width, height)])
            return
        across, each, panels = self._grid(width, height)
        has_axis = height >= _AXIS_FROM
        self._marked = tuple(self._columns(each - _GUTTER)) if has_axis else ()
        below = [self._axis(across, each, width)] if has_axis else []
        height -= len(below)
        most = max(1, height // _LEAST_ROWS)
        columns = [self._column(panels[place::across][:most], each, height) for place in range(across)]
        columns = [column for column in columns if column]
        used = len(columns) * (each + _GAP) - _GAP
        self.put([*(self._joined(columns, row, used, width) for row in range(height)), *below])

    def _resources(self, width: int, height: int) -> list[Line]:
        """A line with the time, and those of the resources in `height` lines in all."""
        room = spark_width(width)
        axis = axis_line(self._columns(room), room, self.glyphs.line(_MARK))
        rows = []
        for resource in resources(self.shown.ordered):
            chart, terms = resource.chart, resource.terms
            values = pairs(self._values(chart, terms, room), odd=self._unpaired(room))
            if resource.above is not None and not any(value > resource.above for value in values):
                continue
            last = self._last(chart)
            scale = self._scale(chart, [values], whole=True)
            now = math.nan if last is None else value_of(last, terms)
            use = cpu_use(last) if chart is CPU and last is not None else None
            spark = partial(self._spark, values, scale.top, room)
            rows.append(Row(resource, scale, now, spark, last, use, is_paused=last is not self.shown.history.last))
        most = 3 if self.screen.size.height >= _TALL else 1
        found = [heading(axis_begin(self.span_seconds), axis), *rows_of(rows, width, height - 1, most)]
        self.heads = {line[0][0]: "".join(text for text, _ in line) for line in found[1:] if line}
        return found

    def _spark(self, values: Sequence[float], top: float, room: int, rows: int) -> list[str]:
        sparks = [right(spark, room) for spark in self.glyphs.spark(values, top, rows)]
        for column in self._marked_columns(room, self._unpaired(room)):
            sparks = [f"{one[:column]}{self.glyphs.line(_SWITCHED)}{one[column + 1 :]}" for one in sparks]
        return sparks

    def notify_style_update(self) -> None:
        """A new theme has new colours."""
        self._looks = {}
        super().notify_style_update()

    def _columns(self, drawn: int) -> dict[int, Moment]:
        last = self.shown.history.last
        return {} if last is None else columns_of(self.shown.moments, last.mono, self._column_seconds(drawn), drawn)

    def _column_seconds(self, drawn: int) -> float:
        return 2 * self._stretch(drawn) * self.shown.history.interval

    def _axis(self, across: int, each: int, width: int) -> Strip:
        drawn = each - _GUTTER
        line = axis_line(self._columns(drawn), drawn, self.glyphs.line(_MARK))
        each_line = [(f"{axis_begin(self.span_seconds):>{_GUTTER}}", "quiet"), *line, (" " * _GAP, "plain")]
        return self._strip(each_line * across, width)

    def _column(self, panels: Sequence[Panel], width: int, height: int) -> list[list[Segment]]:
        """Charts one below the other; the first ones are the higher ones where they do not come out even."""
        weights = [_WEIGHT if place else _FIRST_WEIGHT for place in range(len(panels))]
        out: list[list[Segment]] = []
        for place, panel in enumerate(panels):
            rows = round(height * sum(weights[: place + 1]) / sum(weights)) - len(out)
            out += self._panel(panel, width, rows)
        return out

    def _joined(self, blocks: Sequence[list[list[Segment]]], row: int, used: int, width: int) -> Strip:
        """A line across all columns, which are `used` wide together."""
        gap = Segment(" " * _GAP, self.ground)
        segments = [one for block in blocks for one in (gap, *block[row])][1:]
        if width > used:
            segments.append(Segment(" " * (width - used), self.ground))
        return Strip(segments, width)

    def _panel(self, panel: Panel, width: int, height: int) -> list[list[Segment]]:
        out: list[list[Segment]] = []
        for lane, chart in enumerate(panel):
            rows = height // len(panel) + (lane < height % len(panel))
            if CPU_SPEED in panel:
                # A line that seldom moves takes no more rows from the CPUs' work than it has to.
                speed = max(_SPEED_ROWS, height // 4)
                rows = speed if chart is CPU_SPEED else height - speed
            out += self._chart(chart, width, rows)
        return out

    def _values(self, chart: Chart, terms: Terms, drawn: int) -> list[float]:
        """What `terms` come to in each half of the newest `drawn` columns of `chart`; NaN where that does not count."""
        stretch = self._stretch(drawn)
        history, count = self.shown.history, 2 * drawn * stretch
        values = history.values(terms, count)
        if self.shown.counted is not None and is_of_disk(chart):
            counts = map(self._counts, history.newest(count))
            values = [one if said else math.nan for one, said in zip(values, counts, strict=True)]
        return means_of(values, stretch, history.taken)

    def _unpaired(self, drawn: int) -> int:
        """As of `raster.pairs`."""
        return -(-self.shown.history.taken // self._stretch(drawn)) % 2

    def _chart(self, chart: Chart, width: int, height: int) -> list[list[Segment]]:
        drawn = chart.drawn
        room = width - _GUTTER
        values = [self._values(chart, series.drawn, room) for series in drawn]
        odd = self._unpaired(room)
        if chart.stacked:
            values = [pairs(each, odd=odd) for each in values]
        scale, last = self._scale(chart, values), self._last(chart)
        is_paused = last is not self.shown.history.last
        head = head_rows(chart, last, scale, width, self._marks(chart), self.shown.ordered, paused=is_paused)
        if chart is CPU and self.shown.history.last is not None:
            head = with_users(head, cpu_use(self.shown.history.last), width)
        self._keep_head(chart, scale, head)
        head = head[: max(1, height - _LEAST_RASTER)]
        rows = self._raster(chart, values, scale.top, room, max(1, height - len(head)))
        for column in self._marked:
            mark_behind(rows, column, self.glyphs.line(_MARK))
        for column in self._marked_columns(room, odd if chart.stacked else 0):
            mark_column(rows, column, self.glyphs.line(_SWITCHED))
        if any(series.idle for series in drawn):
            _say_idle(rows)
        looks = self._looks_of(tuple(series.tone for series in drawn))
        heading = [self._segments(row, width) for row in framed(head, width)]
        ends = self._ends(scale, len(rows))
        return [*heading, *([end, *_segments(row, looks)] for end, row in zip(ends, rows, strict=True))][:height]

    def _ends(self, scale: Scale, rows: int) -> list[Segment]:
        """What stands at the left of a chart: the ends of its scale, and a line between them."""
        tick, line = ("-", "|") if self.glyphs.plain else ("┤", "│")
        texts = [f"{scale.text(scale.top)}{tick}", *[line] * (rows - 2), *[f"0{tick}"] * (rows > 1)]
        return [Segment(f"{text:>{_GUTTER}}", self.tone("quiet")) for text in texts]

    def _last(self, chart: Chart) -> Sample | None:
        """The newest sample, if there is one whose figures count in `chart`."""
        last = self.shown.history.last
        return None if last is None or (is_of_disk(chart) and not self._counts(last)) else last

    def _counts(self, sample: Sample) -> bool:
        """Whether the disk's figures in all of `sample` do."""
        begin, end = sample.mono - sample.length, sample.mono
        return self.shown.counted is None or any(since <= begin and end <= until for since, until in self.shown.counted)

    def _looks_of(self, tones: tuple[str, ...]) -> _Looks:
        """The styles of a chart whose series have `tones`."""
        found = self._looks.get(tones)
        if found is None:
            found = self._looks[tones] = _Looks([self.tone(tone) for tone in tones], self.tone("ground"))
        return found

    def _marked_columns(self, width: int, odd: int) -> set[int]:
        """The columns that have the first sample after a moment to be marked; `odd` is as in `raster.pairs`."""
        newer = (self.shown.history.newer_than(moment) for moment in self.shown.switched)
        half = self._stretch(width)
        columns = {
            width - 1 - ((count - 1) // half + odd) // 2 for count in newer if 0 < count <= len(self.shown.history) - 1
        }
        return {column for column in columns if column >= 0}

    def _keep_head(self, chart: Chart, scale: Scale, head: Sequence[Sequence[Piece]]) -> None:
        self.heads[f"{title_of(chart, self.shown.ordered)} {scale.unit}"] = " ".join(
            text for row in head for text, _ in row
        )

    def _scale(self, chart: Chart, values: list[list[float]], *, whole: bool = False) -> Scale:
        """The end is fixed, or fits `values`; one such as the total of memory is so where it is to be the `whole`."""
        if isinstance(chart.top, str):
            last = self.shown.history.last
            most = last.get(chart.top) if last is not None else math.nan
            sums = _sums(values)
            # All of the host's memory would leave the guests' a thin strip at the bottom.
            top = most if whole else min(most, nice_top(max(sums, default=2.0**30), binary=True))
            return scale_for(chart.unit, 2.0**30, None if math.isnan(most) else top)
        sums = _sums(values) if chart.stacked else [value for each in values for value in each if value == value]
        return scale_for(chart.unit, max(sums, default=0.0), chart.top)

    def _marks(self, chart: Chart) -> str:
        """Signs that distinguish series without colour; empty where there is colour."""
        if not self.has_signs:
            return ""
        return AREAS[self.glyphs.plain] if chart.stacked else PLAIN_LINES

    def _raster(self, chart: Chart, values: list[list[float]], top: float, width: int, height: int) -> Rows:
        if not chart.stacked:
            return (plain_lines if self.has_signs else lines)(values, top, width, height)
        if self.has_signs:
            return textured(values, top, width, height, ascii_only=self.glyphs.plain)
        idle = next((place for place, one in enumerate(chart.drawn) if one.idle), None)
        return stack(values, top, width, height, idle)


def _sums(values: Sequence[Sequence[float]]) -> list[float]:
    """What areas that lie on each other come to, at each moment."""
    return [math.fsum(v for v in column if v == v) for column in zip(*values, strict=True)]


def _say_idle(rows: Rows) -> None:
    """Words in the shaded area, where it is as wide as they are."""
    row = "".join(sign for sign, _, _ in rows[0])
    if (start := row.find(IDLE * (len(_WAITING) + 2))) >= 0:
        rows[0][start : start + len(_WAITING) + 2] = [(sign, None, None) for sign in f" {_WAITING} "]


def most_across(width: int) -> int:
    """How many charts stand side by side in so many columns at most."""
    return max(1, (width + _GAP) // (_NARROWEST + _GAP))


class _Looks(dict[tuple[int | None, int | None], Style]):
    """The style of a cell by the series that give its foreground and its background, made when first drawn."""

    def __init__(self, tones: Sequence[Style], ground: Style) -> None:
        super().__init__({(None, None): ground})
        self._tones, self._ground = tones, ground

    def __missing__(self, look: tuple[int | None, int | None]) -> Style:
        front, back = look
        style = self._ground
        if front is not None:
            behind = self._ground if back is None else self._tones[back]
            style = Style(color=self._tones[front].color, bgcolor=behind.bgcolor if back is None else behind.color)
        self[look] = style
        return style


_character, _look = itemgetter(0), itemgetter(1, 2)


def _segments(row: list[Cell], looks: _Looks) -> list[Segment]:
    """Neighbours of one look become one segment."""
    return [Segment("".join(map(_character, cells)), looks[look]) for look, cells in groupby(row, _look)]
