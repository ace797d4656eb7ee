"""What a comparison draws of its sides: bars with intervals, curves over each other, and phases below each other."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from vmlab.model.quantities import format_seconds
from vmlab.model.sample import unit_of
from vmlab.system.text_width import ends_of, exactly, first_columns, left, width_of, wrapped
from vmlab.tui.state.compared import ComparedSides, Entry, SideRow
from vmlab.tui.widgets.charts.axis_scale import scale_for
from vmlab.tui.widgets.charts.raster import PLAIN_LINES, Cell, Rows, lines, plain_lines
from vmlab.tui.widgets.painted import Line, Piece, Shown, line_width
from vmlab.tui.widgets.side_table import TONES
from vmlab.tui.widgets.tables.result_board import struck_pieces

_LEAST_NAME = 20
_SIDE = 20
_FIGURE = 15
_DIFFERENCE, _BASELINE = 26, "baseline"
_LEAST_BAR = 12
_LEAST_LABEL = 8
_MEAN, _SWITCHED = "┃", "│"
"""The line at a mean, and that at a switch, as in the charts of a run."""
_SIGNS = "; ~ no difference proven, ? too few measurements"
"""What stands before a difference; one without a sign is proven."""


class SideBars(Shown[ComparedSides]):
    """A sentence, the sides with their colours, and the bars."""

    can_focus = True

    shown = ComparedSides()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The sentence, then a line for each side of each figure."""
        for text in _sentence(self.shown, width):
            yield [(text, "title")]
        airy = _rows(self.shown, width, airy=True) <= height
        for row in self.shown.bars:
            if airy:
                yield []
            if not row.entries:
                yield [(row.label, "title")]
            yield from self._figure(row, width)
        yield self._key()

    def _key(self) -> list[Piece]:
        """What the shades of a bar mean."""
        solid, shade = self._signs
        several = any(bar.half for row in self.shown.bars for bar in row.entries)
        mark = self.glyphs.line(_MEAN)
        mean = f"{mark} mean, in {shade} its 95 % interval" if several else f"{solid} one measurement, no interval"
        return [(f"{mean}{_SIGNS}", "quiet")]

    @property
    def _signs(self) -> tuple[str, str]:
        return ("#", "=") if self.glyphs.plain else ("█", "▒")

    def _figure(self, row: SideRow, width: int) -> Iterator[list[Piece]]:
        every = [bar for one in self.shown.bars for bar in one.entries]
        name = max(_LEAST_NAME, min(width // 5, max(width_of(one.label) for one in self.shown.bars)))
        side = max(_SIDE, min(3 * width // 10, max(map(width_of, self.shown.labels))))
        figure = max(_FIGURE, *(len(bar.text) + 1 for bar in every))
        difference = max(len(_BASELINE), min(max(_DIFFERENCE, width // 4), max(len(bar.whole) for bar in every)))
        room = max(_LEAST_BAR, width - name - side - figure - difference - 3)
        for place, bar in enumerate(row.entries):
            tone = TONES[place % len(TONES)]
            yield [
                (f"{left('' if place else ends_of(row.label, name), name)} ", "plain"),
                (f"{left(ends_of(self.shown.labels[place], side), side)} ", tone),
                *self._bar(bar, row.top, room, tone if bar.counts else "rest"),
                *struck_pieces(f"{bar.text:>{figure}} ", "plain"),
                (bar.whole if place else _BASELINE, bar.tone),
            ]

    def _bar(self, bar: Entry, top: float, room: int, tone: str) -> list[Piece]:
        solid, shade = self._signs
        if bar.mean is None or top <= 0:
            return [(" " * room, "plain")]
        half = bar.half
        low, high = (round(max(0.0, end) / top * room) for end in (bar.mean - half, bar.mean + half))
        high = max(high, low + (half > 0))
        text = solid * low + shade * (high - low)
        if half:
            place = min(max(low, round(bar.mean / top * room)), high - 1)
            text = text[:place] + self.glyphs.line(_MEAN) + text[place + 1 :]
        return [(left(first_columns(text, room), room), tone)]


def rows_of_bars(compared: ComparedSides, width: int, most: int) -> int:
    """The rows that bars take, with a blank line before each figure if that fits into `most`; never more than these."""
    every = (_rows(compared, width, airy=airy) for airy in (True, False))
    return next((rows for rows in every if rows <= most), most)


def _sentence(compared: ComparedSides, width: int) -> list[str]:
    return wrapped(compared.sentence, max(20, width - 1))


def _rows(compared: ComparedSides, width: int, *, airy: bool) -> int:
    lines = sum((len(row.entries) or 1) + airy for row in compared.bars)
    return len(_sentence(compared, width)) + lines + 1


Curve = tuple[Sequence[float], Sequence[float]]
"""Seconds and values, parallel."""


class Overlay(NamedTuple):
    """`curves` of the value `name`, those of each of the `labels`, under `title`.

    `switches` has for each side the moments at which its running guests were switched: a line in the side's tone.
    """

    title: str = ""
    name: str = ""
    curves: Sequence[Sequence[Curve]] = ()
    labels: Sequence[str] = ()
    switches: Sequence[Sequence[float]] = ()


class OverlayChart(Shown[Overlay]):
    """One value of every side as a line for each of its cells, in the tone of the side; all share both scales."""

    shown = Overlay()

    def repaint(self) -> None:
        """Draw the title, the lines and the time axis."""
        width, height = self.size
        if not width or height < 3:
            return
        every = [(side, curve) for side, curves in enumerate(self.shown.curves) for curve in curves]
        longest = max((times[-1] for _, (times, _) in every if times), default=0.0)
        largest = max((v for _, (_, values) in every for v in values if not math.isnan(v)), default=0.0)
        unit = unit_of(self.shown.name)
        unit = unit if unit in ("%", "B", "B/s", "ms") else "1"
        scale = scale_for(unit, largest, 100.0 if unit == "%" and largest <= 100 else None)
        dots = [_resampled(curve, longest, 2 * width) for _, curve in every]
        rows = (plain_lines if self.has_signs else lines)(dots, scale.top, width, height - 2)
        sides = [side for side, _ in every]
        rows = [[self._of_side(cell, sides, signs=self.has_signs) for cell in row] for row in rows]
        self._mark_switches(rows, longest)
        tones = [self.tone(tone) for tone in TONES]
        head = [(self.shown.title, "title"), (f" {scale.unit}, top {scale.text(scale.top)}", "quiet")]
        head += self._legend(width - line_width(head))
        sign = self.glyphs.line(_SWITCHED)
        begin = f"0 s  {sign} guests switched while they ran" if any(self.shown.switches) else "0 s"
        foot = f"{begin}{f'{longest:.0f} s since the workloads started':>{max(1, width - len(begin))}}"
        self.put(
            [
                self._strip(head, width),
                *(Strip([_segment(cell, tones, self.ground) for cell in row]).simplify() for row in rows),
                self._strip([(foot, "quiet")], width),
            ]
        )

    @staticmethod
    def _of_side(cell: Cell, sides: Sequence[int], *, signs: bool) -> Cell:
        """A cell of a curve as one of the curve's side, whose sign and tone all its curves have."""
        text, owner, back = cell
        if owner is None:
            return cell
        side = sides[owner]
        return (PLAIN_LINES[side % len(PLAIN_LINES)] if signs else text), side, back

    def _mark_switches(self, rows: Rows, longest: float) -> None:
        """A line down each column that has the first value after a switch, in the tone of its side."""
        width = len(rows[0])
        for side, moments in enumerate(self.shown.switches):
            for moment in moments:
                step = math.ceil(moment / longest * 2 * width) - 1 if longest else 0
                column = min(width - 1, max(0, step) // 2)
                for row in rows:
                    row[column] = (self.glyphs.line(_SWITCHED), side, None)

    def _legend(self, room: int) -> list[tuple[str, str]]:
        if not any(times for curves in self.shown.curves for times, _ in curves):
            return [("  nothing was sampled here", "quiet")]
        marks, labels = PLAIN_LINES if self.has_signs else "────", self.shown.labels
        most = room if sum(width_of(label) + 4 for label in labels) <= room else room // len(labels) - 4
        shown = (ends_of(label, max(_LEAST_LABEL, most)) for label in labels)
        return [(f"  {marks[place % 4]} {label}", TONES[place % 4]) for place, label in enumerate(shown)]


def _segment(cell: tuple[str, int | None, int | None], tones: Sequence[Style], ground: Style) -> Segment:
    text, owner, _ = cell
    return Segment(text, ground if owner is None else tones[owner % len(tones)])


def _resampled(curve: Curve, longest: float, count: int) -> list[float]:
    """The curve at `count` moments from 0 to `longest`, each the newest value at or before it; NaN outside."""
    times, values = curve
    out: list[float] = []
    for step in range(count):
        moment = longest * (step + 1) / count
        place = bisect_right(times, moment) - 1
        ended = not times or moment > times[-1] + longest / count
        out.append(math.nan if place < 0 or ended else values[place])
    return out


_LABEL = 20


class Phases(NamedTuple):
    """The `phases` of sides with these labels, in seconds; `cells` are the numbers of their cells."""

    labels: Sequence[str] = ()
    phases: Sequence[Mapping[str, float]] = ()
    cells: Sequence[int] = ()


class PhaseLines(Shown[Phases]):
    """How long each phase of each side's cell took, by the length of its part of the line."""

    shown = Phases()

    def show(self, shown: Phases) -> None:
        """Draw `shown`, as high as it takes."""
        self.styles.height = 1 + len(shown.labels)
        super().show(shown)

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """A heading, and a line for each side."""
        yield [
            ("Phases", "title"),
            (f" of the first cell of each side: {', '.join(map(str, self.shown.cells))}", "quiet"),
        ]
        longest = max((sum(phases.values()) for phases in self.shown.phases), default=0.0)
        for place, (label, phases) in enumerate(zip(self.shown.labels, self.shown.phases, strict=False)):
            tone = TONES[place % len(TONES)]
            yield [(f"{exactly(label, _LABEL)} ", tone), *self._parts(phases, longest, width - _LABEL - 1)]

    def _parts(self, phases: Mapping[str, float], longest: float, room: int) -> Iterable[Piece]:
        sign = self.glyphs.line("▏")
        passed, used = 0.0, 0
        for number, (name, seconds) in enumerate(phases.items()):
            passed += seconds
            columns = (round(passed / longest * room) if longest else 0) - used
            used += columns
            text = f"{sign}{name} {format_seconds(seconds)}"
            if width_of(text) > columns:
                text = f"{sign}{format_seconds(seconds)}"
            shown = text if width_of(text) <= columns else sign[:columns]
            yield (left(shown, columns), "accent" if name == "execute" else "plain" if number % 2 else "quiet")
