"""A heat map of how long requests of the guests' disks took: a map for each operation, a column for each reading."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

from rich.color import Color, blend_rgb
from rich.color_triplet import ColorTriplet
from rich.style import Style

from vmlab.model.names import guest_key
from vmlab.report.run.latency_text import milliseconds, percentiles_text
from vmlab.system.text_width import first_columns, left, right
from vmlab.telemetry.latency_bins import OPERATIONS, Counts, LatencyBins
from vmlab.tui.state.latency_map import LatencyColumn, LatencyMap
from vmlab.tui.widgets.painted import Line, Painted, Piece, hint_lines, line_width

_TONES = {"read": "one", "write": "three", "flush": "two"}
_LEVELS = (0.0, 0.05, 0.15, 0.4)
"""The shares of a reading's requests from which on a field is of the next level; the first is of any request."""
_STRENGTH = (0.3, 0.5, 0.75, 1.0)
"""How much of its colour a level has."""
_SIGNS, _PLAIN_SIGNS = "░▒▓█", ".+*#"
_SCALE = 7
"""Columns for the names of the rows."""
_GAP = 1
_WIDEST = 4
"""Columns of the screen that a reading has at most."""
_PERCENTS = (50, 95, 99)
_HEADS = 3
"""Rows above the maps."""
_LEAST_ROWS = 4
_PLACE, _FIGURES = 18, 22
"""Columns for a disk's name, and for what is said of each operation."""
_COLUMNS = tuple(
    f"{words}Share of requests:" for words in ("Columns: up to 10 s, newest right. ", "Columns: up to 10 s. ", "")
)
"""What a column is, in as many words as there is room for."""
_NOTHING = (
    "Guests' disks: no latency has been read yet.",
    "It is read while workloads run: every ten seconds, at their end, and at a switch.",
)


class LatencyBoard(Painted):
    """Draws a `LatencyMap`: slow requests above, quick ones below, the newest reading to the right."""

    DEFAULT_CSS = "LatencyBoard { scrollbar-size: 0 0; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._map = LatencyMap()
        self._drawn = -1

    def show(self, latency: LatencyMap) -> None:
        """Draw `latency` as it is now; nothing happens when it has been drawn already."""
        if latency is not self._map or latency.version != self._drawn:
            self._map, self._drawn = latency, latency.version
            self.repaint()

    def tone(self, name: str) -> Style:
        """A tone, or with a colon and a number behind it one of its levels."""
        base, _, level = name.partition(":")
        style = super().tone(base)
        if not level or not self._has_shades or style.color is None or style.color.triplet is None:
            return style
        behind = self.ground.bgcolor
        back = ColorTriplet(0, 0, 0) if behind is None or behind.triplet is None else behind.triplet
        mixed = blend_rgb(back, style.color.triplet, _STRENGTH[int(level)])
        return style + Style(color=Color.from_triplet(mixed))

    @property
    def _has_shades(self) -> bool:
        """Whether the terminal can show levels by shades of a colour."""
        return not self.app.no_color and self.app.console.color_system in ("256", "truecolor")

    @property
    def _signs(self) -> str:
        """A sign for each level, of which the colour says more where it can."""
        if self.glyphs.plain:
            return _PLAIN_SIGNS
        return "████" if self._has_shades else _SIGNS

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The maps side by side, and each disk's percentiles where there is room for them."""
        known = self._map
        if not known.columns:
            yield from hint_lines(_NOTHING, width - 1)
            return
        each = (width - _SCALE - _GAP * (len(OPERATIONS) - 1)) // len(OPERATIONS)
        table = list(self._table(width))
        below = min(len(table), max(0, height // 3)) if height >= 2 * (_HEADS + _LEAST_ROWS) else 0
        has_legend = height >= _HEADS + _LEAST_ROWS + 2
        yield self._title(width)
        yield from self._heads(each)
        columns = _newest(known.columns, each)
        wide = max(1, min(_WIDEST, (each - _parts(columns) + 1) // len(columns)))
        rows = _rows(columns, max(1, height - _HEADS - 1 - has_legend - below))
        for row in reversed(rows):
            yield self._row(row, columns, wide, each)
        yield self._axis(columns, wide, each)
        if has_legend:
            legend = list(self._legend())
            room = width - line_width(legend)
            words = next((one for one in _COLUMNS if len(one) <= room), _COLUMNS[-1])
            yield [(words, "quiet"), *legend]
        yield from table[:below]

    def _title(self, width: int) -> Line:
        known = self._map
        about = f"  {known.about}" if known.about else ""
        error = f"p50 / p95 / p99 in ms, ± {known.bins.error_percent:.0f} %"
        head = "Guests' disks: latency "
        if len(head) + len(error) + len(about) > width:
            head = "Guests' disks: "
        return [(head, "title"), (error, "quiet"), (about, "plain")]

    def _legend(self) -> Iterator[Piece]:
        for level, (sign, share) in enumerate(zip(self._signs, _LEVELS, strict=True)):
            yield from ((f" {sign}", f"one:{level}"), (f" {share:.0%}" if share else " any", "quiet"))

    def _heads(self, each: int) -> Iterator[Line]:
        """Each operation with its number of requests, and the percentiles of the newest part."""
        first: list[Piece] = [(" " * _SCALE, "plain")]
        second: list[Piece] = [(" " * _SCALE, "plain")]
        gap = (" " * _GAP, "plain")
        for operation in OPERATIONS:
            counts, room = self._map.total[operation], each - len(operation)
            words = left(f" {sum(counts)} requests"[:room], room)
            first += [(operation, _TONES[operation]), (words, "quiet"), gap]
            second += [(left(_texts(self._map.bins, counts)[:each], each), "plain"), gap]
        yield first
        yield second

    def _row(self, row: range, columns: Sequence[LatencyColumn], wide: int, each: int) -> Line:
        line: list[Piece] = [(f"{_time(self._map.bins, row.start):>{_SCALE - 1}} ", "quiet")]
        signs = self._signs
        for operation in OPERATIONS:
            used = 0
            for place, column in enumerate(columns):
                if place and column.part != columns[place - 1].part:
                    line.append((self.glyphs.line("┊"), "quiet"))
                    used += 1
                level = _level(column.counts[operation], row)
                sign = " " if level is None else signs[level]
                line.append((sign * wide, "plain" if level is None else f"{_TONES[operation]}:{level}"))
                used += wide
            line.append((" " * (each - used + _GAP), "plain"))
        return line

    def _axis(self, columns: Sequence[LatencyColumn], wide: int, each: int) -> Line:
        """The names of the parts, each under its first reading where it has room: a part of one says another thing."""
        text = ""
        for _, readings in itertools.groupby(columns, key=lambda column: column.part):
            words = [column.word for column in readings]
            room = len(words) * wide
            text += left(words[0] if len(words[0]) <= room else "", room + 1)
        return [(" " * _SCALE, "plain"), *[(left(text[:each], each + _GAP), "quiet")] * len(OPERATIONS)]

    def _table(self, width: int) -> Iterator[Line]:
        if width < _PLACE + _FIGURES * len(OPERATIONS):
            return
        heads = "".join(right(f"{operation} p50 / p95 / p99", _FIGURES) for operation in OPERATIONS)
        yield [(f"{'ms':<{_PLACE}}{heads}", "quiet")]
        for (tile, guest, disk), operations in sorted(self._map.disks.items()):
            name = f"{guest_key(tile, guest)} {disk}"
            texts = (_texts(self._map.bins, operations[operation]) for operation in OPERATIONS)
            yield [
                (left(first_columns(name, _PLACE - 1), _PLACE), "plain"),
                *((right(text, _FIGURES), "plain") for text in texts),
            ]


def _texts(bins: LatencyBins, counts: Counts) -> str:
    return percentiles_text([bins.percentile_ms(counts, percent) for percent in _PERCENTS])


def _newest(columns: Iterable[LatencyColumn], each: int) -> list[LatencyColumn]:
    """As many of the newest readings as fit, each and each border between parts in a column."""
    found: list[LatencyColumn] = []
    used = 0
    for column in reversed(list(columns)):
        used += 1 + bool(found and found[-1].part != column.part)
        if used > each:
            break
        found.append(column)
    return found[::-1]


def _parts(columns: Sequence[LatencyColumn]) -> int:
    return sum(1 for _ in itertools.groupby(columns, key=lambda column: column.part))


def _rows(columns: Iterable[LatencyColumn], room: int) -> list[range]:
    """The bins of each row, the quickest first: all that have a request, in `room` rows at most."""
    every = (counts for column in columns for counts in column.counts.values())
    sums = [sum(counts) for counts in zip(*every, strict=True)]
    used = [place for place, count in enumerate(sums) if count] or [0]
    first, last = used[0], used[-1]
    step = math.ceil((last - first + 1) / room)
    return [range(low, low + step) for low in range(first, last + 1, step)]


def _level(counts: Counts, row: range) -> int | None:
    """How much of a reading's requests lies in a row; None for nothing."""
    inside = sum(counts[row.start : row.stop])
    if not inside:
        return None
    share = inside / sum(counts)
    return max(level for level, least in enumerate(_LEVELS) if share >= least)


def _time(bins: LatencyBins, place: int) -> str:
    """Where a bin begins: ``79 µs``, ``1.3 ms``, ``10 s``."""
    ms = bins.boundaries[place - 1] / 1e6 if place else 0.0
    if ms >= 1000:
        return f"{milliseconds(ms / 1000)} s"
    return f"{milliseconds(ms)} ms" if ms >= 1 or not ms else f"{milliseconds(ms * 1000)} µs"
