"""Time series of several sides over each other, on seconds since their workloads started."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from vmlab.model.sample import unit_of
from vmlab.tui.widgets.charts.axis_scale import scale_for
from vmlab.tui.widgets.charts.raster import PLAIN_LINES, Rows, lines, plain_lines
from vmlab.tui.widgets.painted import Shown
from vmlab.tui.widgets.side_table import TONES

Curve = tuple[Sequence[float], Sequence[float]]
"""Seconds and values, parallel."""


class Overlay(NamedTuple):
    """`curves` of the value `name`, a line for each of the `labels`, under `title`.

    `switches` has for each side the moments at which its running guests were switched: a line in the side's tone.
    """

    title: str = ""
    name: str = ""
    curves: Sequence[Curve] = ()
    labels: Sequence[str] = ()
    switches: Sequence[Sequence[float]] = ()


class OverlayChart(Shown[Overlay]):
    """One value of every side as a line, in the tone of the side; all share both scales."""

    shown = Overlay()

    def repaint(self) -> None:
        """Draw the title, the lines and the time axis."""
        width, height = self.size
        if not width or height < 3:
            return
        longest = max((times[-1] for times, _ in self.shown.curves if times), default=0.0)
        largest = max((v for _, values in self.shown.curves for v in values if not math.isnan(v)), default=0.0)
        unit = unit_of(self.shown.name)
        unit = unit if unit in ("%", "B", "B/s", "ms") else "1"
        scale = scale_for(unit, largest, 100.0 if unit == "%" and largest <= 100 else None)
        dots = [_resampled(curve, longest, 2 * width) for curve in self.shown.curves]
        rows = (plain_lines if self._has_signs else lines)(dots, scale.top, width, height - 2)
        self._mark_switches(rows, longest)
        tones = [self.tone(tone) for tone in TONES]
        head = [(self.shown.title, "title"), (f" {scale.unit}, top {scale.text(scale.top)}", "quiet"), *self._legend()]
        begin = f"0 s  {self._sign} guests switched while they ran" if any(self.shown.switches) else "0 s"
        foot = f"{begin}{f'{longest:.0f} s since the workloads started':>{max(1, width - len(begin))}}"
        self.put(
            [
                self._strip(head, width),
                *(Strip([_segment(cell, tones, self.ground) for cell in row]).simplify() for row in rows),
                self._strip([(foot, "quiet")], width),
            ]
        )

    @property
    def _has_signs(self) -> bool:
        """Whether lines are distinguished by signs, as there is no colour for that or nothing finer to draw with."""
        return self.glyphs.plain or self.app.no_color

    @property
    def _sign(self) -> str:
        """The line at a switch, as in the charts of a run."""
        return "|" if self.glyphs.plain else "│"

    def _mark_switches(self, rows: Rows, longest: float) -> None:
        """A line down each column that has the first value after a switch, in the tone of its side."""
        width = len(rows[0])
        for side, moments in enumerate(self.shown.switches):
            for moment in moments:
                step = math.ceil(moment / longest * 2 * width) - 1 if longest else 0
                column = min(width - 1, max(0, step) // 2)
                for row in rows:
                    row[column] = (self._sign, side, None)

    def _legend(self) -> list[tuple[str, str]]:
        if not any(times for times, _ in self.shown.curves):
            return [("  nothing was sampled here", "quiet")]
        marks = PLAIN_LINES if self._has_signs else "────"
        return [(f"  {marks[place % 4]} {label}", TONES[place % 4]) for place, label in enumerate(self.shown.labels)]


def _segment(cell: tuple[str, int | None, int | None], tones: Sequence[Style], ground: Style) -> Segment:
    text, owner, _ = cell
    return Segment(text, ground if owner is None else tones[owner % len(tones)])


def _resampled(curve: Curve, longest: float, count: int) -> list[float]:
    """The curve at `count` moments from 0 to `longest`, each the newest value at or before it; NaN outside."""
    times, values = curve
    out: list[float] = []
    place = -1
    for step in range(count):
        moment = longest * (step + 1) / count
        while place + 1 < len(times) and times[place + 1] <= moment:
            place += 1
        ended = not times or moment > times[-1] + longest / count
        out.append(math.nan if place < 0 or ended else values[place])
    return out
