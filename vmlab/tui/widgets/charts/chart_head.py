"""The rows above a chart: its title with the unit, and every series' newest figure in the series' colour."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from vmlab.model.sample import Sample
from vmlab.system.text_width import right
from vmlab.tui.state.charts import Chart, Series, title_of
from vmlab.tui.state.history import MUCH_PERCENT, CpuUse, value_of
from vmlab.tui.state.views import Moment
from vmlab.tui.widgets.charts.axis_scale import Scale, figure
from vmlab.tui.widgets.painted import Piece, line_width

_MOST_ROWS = 3
PAUSED = ("no workload runs", "no work")
"""In place of figures that an emulated disk need not have now; the shorter words where the others need a row more."""
_WIDTH = {"%": 3, "pages": 5}


def head_rows(
    chart: Chart,
    last: Sample | None,
    scale: Scale,
    width: int,
    marks: str = "",
    ordered: Sequence[str] = (),
    *,
    paused: bool = False,
) -> list[list[Piece]]:
    """Rows of pieces, none wider than `width`. Figures keep their width, so that nothing jumps from tick to tick.

    `ordered` has the words for parts of the host that are not its own. While the chart is `paused`, words stand in the
    place of its figures, and never in its area, where they would be taken for data.
    """
    title: list[Piece] = [(title_of(chart, ordered), "title"), (f" {scale.unit}", "quiet")]
    signs = dict(zip(chart.drawn, marks, strict=False))
    items = [item(series, last, chart, scale, signs.get(series, "")) for series in chart.series]
    wanted = [item for item, series in zip(items, chart.series, strict=True) if not series.minor]
    minor = [item for item, series in zip(items, chart.series, strict=True) if series.minor]
    rows = flow([title, *wanted], width)
    if paused:
        labels = [[(series.label, series.tone)] for series in chart.series if series.drawn]
        ways = [[title, *before, [(words, "quiet")]] for words in PAUSED for before in (labels, [])]
        return next((found for way in ways if len(found := flow(way, width)) <= len(rows)), rows)
    fuller = flow([title, *wanted, *minor], width)
    return fuller if len(fuller) == len(rows) else rows[:_MOST_ROWS]


def with_users(head: list[list[Piece]], use: CpuUse, width: int) -> list[list[Piece]]:
    """The head of the CPU chart, with a line that says for whom the CPUs work."""
    line = users_of(use, width)
    if not line:
        return head
    room = width - line_width(head[-1]) - 1
    if len(head) > 1 and line_width(line) < room:
        return [*head[:-1], [*head[-1], (" ", "plain"), *line]]
    return [*head, line]


def users_of(use: CpuUse, width: int) -> list[Piece]:
    """For whom the CPUs work, in `width` columns; nothing where that is not known."""
    words = ("guests", "vmlab" if use.watched else "guests+lab" if use.undivided else "lab", "other")
    users = zip(words, (use.guests, use.lab, use.outside), strict=True)
    told = [f"{word} {value:.0f}" for word, value in users if not math.isnan(value)]
    if len(" ".join(told)) > width:
        least = words[2] if use.undivided else words[1]
        told = [text for text in told if not text.startswith(least)]
    has_guests = use.undivided or not math.isnan(use.guests)
    much = not use.watched and has_guests and use.outside >= MUCH_PERCENT
    return [(f"{text} ", "warning" if much and text.startswith(words[2]) else "plain") for text in told]


def framed(head: list[list[Piece]], width: int) -> list[list[Piece]]:
    """`head` with a line from its title on to the edge of the chart."""
    room = width - line_width(head[0]) - 1
    return head if room < 1 else [[*head[0], (" " + "─" * room, "quiet")], *head[1:]]


def item(series: Series, last: Sample | None, chart: Chart, scale: Scale, mark: str) -> list[Piece]:
    """A series' newest figure behind its label, and its unit where that is not the chart's."""
    unit = series.unit or chart.unit
    value = math.nan if last is None else value_of(last, series.shown)
    value_text = right(figure(value, unit, scale), _WIDTH.get(unit, 4))
    word = f"{mark}{series.label}" if mark and series.drawn else series.label
    tail = f" {series.unit}" if series.unit else ""
    return [(f"{word} {value_text}{tail}", series.tone)]


def flow(items: list[list[Piece]], width: int) -> list[list[Piece]]:
    """`items` with a space between them, in rows of `width` columns."""
    rows: list[list[Piece]] = [[]]
    used = 0
    for item in items:
        length = line_width(item)
        if rows[-1] and used + 1 + length > width:
            rows.append([])
            used = 0
        if rows[-1]:
            rows[-1].append((" ", "plain"))
            used += 1
        rows[-1] += item
        used += length
    return rows


_LEAST_GAP = 2


def columns_of(moments: Iterable[Moment], newest: float, seconds_a_column: float, width: int) -> dict[int, Moment]:
    """The column of each moment on a chart whose last column ends at `newest`; the later of two in one column.

    A phase is left out where its word does not fit before the next mark: many short ones would hide the chart.
    """
    found: dict[int, Moment] = {}
    for moment in moments:
        column = width - 1 - int((newest - moment.mono) / seconds_a_column)
        if 0 <= column < width and moment.mono <= newest:
            found[column] = moment
    places = sorted(found)
    ends = dict(zip(places, [*places[1:], width], strict=False))
    return {
        column: moment
        for column, moment in found.items()
        if moment.tone != "quiet" or len(moment.word) + _LEAST_GAP <= ends[column] - column
    }


def axis_begin(seconds: float) -> str:
    """How long ago charts over `seconds` begin, for the room at their left: ``-78 s``, ``-104s``, ``-40 m``."""
    if seconds >= 999.5:
        return f"-{seconds / 60:.0f} m"
    return f"-{seconds:.0f} s" if seconds < 99.5 else f"-{seconds:.0f}s"


def axis_line(marks: dict[int, Moment], width: int, sign: str) -> list[Piece]:
    """One line of `width` columns: each mark with its word where that fits, and ``now``."""
    texts: list[str] = [" "] * width
    tones: list[str] = ["quiet"] * width
    ends = sorted(marks)
    for place, column in enumerate(ends):
        moment = marks[column]
        room = (ends[place + 1] if place + 1 < len(ends) else width) - column
        word = moment.word if len(moment.word) + _LEAST_GAP <= room else ""
        _put(texts, tones, column, sign + word, moment.tone)
    now = "now"
    if width > len(now) and not "".join(texts[width - len(now) - 1 :]).strip():
        _put(texts, tones, width - len(now), now, "quiet")
    return _pieces(texts, tones)


def _put(texts: list[str], tones: list[str], column: int, text: str, tone: str) -> None:
    for place, character in enumerate(text, start=column):
        if place < len(texts):
            texts[place], tones[place] = character, tone


def _pieces(texts: Sequence[str], tones: Sequence[str]) -> list[Piece]:
    """Neighbours of one tone become one piece."""
    by_tone = groupby(zip(texts, tones, strict=True), key=itemgetter(1))
    return [("".join(text for text, _ in pieces), tone) for tone, pieces in by_tone]
