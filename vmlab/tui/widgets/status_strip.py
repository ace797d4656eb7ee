"""The two lines on top: what runs where, how far it is, and whether the figures are live or a recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vmlab.model.axes import axes_words
from vmlab.model.ordered import shown_word
from vmlab.model.quantities import about_seconds
from vmlab.model.run import EMULATED, RUNNING
from vmlab.system.text_width import width_of
from vmlab.tui.state.history import Gauge
from vmlab.tui.state.views import NO_RUN, RunView
from vmlab.tui.widgets.charts.axis_scale import clock
from vmlab.tui.widgets.glyphs import tone_of
from vmlab.tui.widgets.painted import Line, Piece, Shown, line_width


class Origin(NamedTuple):
    """Where the figures come from: ``LIVE``, ``HOST`` or ``RECORDING``, with a word more such as a speed.

    `ended` stands in the place of how the run ended, where that is not what matters.
    """

    word: str
    tone: str
    more: str = ""
    ended: str = ""


LIVE = Origin("LIVE", "good")
HOST = Origin("LIVE", "good", "host")


_BAR, _WIDE_BAR = 5, 10
"""Columns of a gauge."""
_WIDE = 90
"""Columns from which on words are written out."""


class Strip(NamedTuple):
    """What the strip tells: `run` as at `now` (monotonic seconds).

    `outside` is a share of the CPUs, in percent, that other work takes and that the user is to know of. `gauges`
    stand behind the phase. `others` are runs that measure here while none is followed.
    """

    run: RunView = NO_RUN
    now: float = 0.0
    origin: Origin = HOST
    outside: float | None = None
    gauges: Sequence[Gauge] = ()
    others: str = ""


class StatusStrip(Shown[Strip]):
    """Scenario, cell, accelerator, phase, elapsed and expected time; the same for a live run and a recording."""

    shown = Strip()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """Two lines."""
        badge: list[Piece] = [(f"{self.glyphs.sign(RUNNING)} {self.shown.origin.word}", self.shown.origin.tone)]
        if self.shown.origin.more:
            badge.append((f" {self.shown.origin.more}", "quiet"))
        what = _fitting(self.shown.run, width, width - line_width(badge))
        return [_joined([*what, badge], width), _joined([*self._progress(width), []], width)]

    def _progress(self, width: int) -> list[list[Piece]]:
        run, now = self.shown.run, self.shown.now
        if not run.id and self.shown.others:
            return [[(f"the host, on which {self.shown.others}", "warning")]]
        if not run.id:
            return [[("the host as it is; no run is going on", "quiet")]]
        parts: list[list[Piece]] = []
        if run.outcome != RUNNING and self.shown.origin.ended:
            return [[(self.shown.origin.ended, "plain")]]
        if run.outcome != RUNNING:
            sign = f"{self.glyphs.sign(run.outcome)} {run.outcome}"
            ending = f" after {clock(run.elapsed(now))}" + (f": {run.reason}" if run.reason else "")
            return [[("run ", "quiet"), (sign, tone_of(run.outcome)), (ending, "plain")]]
        if run.stopping:
            parts.append([("stopping: guests are cleared away", "warning")])
        elif run.cell is not None and run.cell.phase:
            parts.append([(f"{run.cell.phase} {clock(now - run.cell.phase_began)}", "accent")])
        duration: list[Piece] = [("run ", "quiet"), (clock(run.elapsed(now)), "plain"), (_of_all(run, now), "quiet")]
        following: list[list[Piece]] = []
        if run.silent:
            # Imported late: reports would delay the first picture.
            from vmlab.report.words import silent_words

            following.append([(f"! {silent_words(run.silent, now)}", "bad")])
        if run.next_axes is not None:
            following.append([("next cell: ", "quiet"), (axes_words(dict(run.next_axes)), "accent")])
        elif run.coming is not None:
            following.append([("then ", "quiet"), (axes_words(dict(run.coming)), "plain")])
        if self.shown.outside is not None:
            words = "! other work takes {:.0f} % of the CPUs" if width >= _WIDE else "! other work {:.0f} % of CPUs"
            following.append([(words.format(self.shown.outside), "warning")])
        gauges = self._gauge_parts(_WIDE_BAR if width >= _WIDE else _BAR)
        every = [*parts, *gauges, duration, *following]
        if _width(every) <= width or not following:
            return every
        # What comes next, and what spoils the figures, is more than how long the run has taken, or a bar.
        shorter = [*parts, *gauges, *following]
        return shorter if _width(shorter) <= width else [*parts, *self._gauge_parts(0), *following]

    def _gauge_parts(self, columns: int) -> list[list[Piece]]:
        """The gauges, with bars of so many columns; with 0 as figures alone."""
        parts: list[list[Piece]] = []
        for gauge in self.shown.gauges:
            bar = gauge.bar(columns, plain=self.glyphs.plain) + " " * (columns > 0)
            parts.append([(f"{gauge.name.upper()} ", "quiet"), (f"{bar}{gauge.percent:>3.0f} %", gauge.tone)])
        return parts


def _width(parts: Iterable[list[Piece]]) -> int:
    """The columns that parts take beside each other, with the space behind each."""
    return sum(line_width(part) + 2 for part in parts)


def _of_all(run: RunView, now: float) -> str:
    """How long the run takes as a whole: known of a recording, else estimated."""
    if run.length is not None:
        return f" of {clock(run.length)}"
    if not run.expected_seconds:
        return ""
    over = run.elapsed(now) - run.expected_seconds
    return f", {clock(over)} longer than estimated" if over > 0 else f" of {about_seconds(run.expected_seconds)}"


def _fitting(run: RunView, width: int, room: int) -> list[list[Piece]]:
    """What runs and where, in `room` columns: of parts of a host that are not its own none rather than half a word."""
    ways = [_what(run, width), _what(run, width, tight=True), _what(run, 0, tight=True)]
    ways += [ways[-1][: -1 - place] for place in range(len(run.ordered))]
    return next((parts for parts in ways if _width(parts) <= room), ways[-1])


def _what(run: RunView, width: int, *, tight: bool = False) -> list[list[Piece]]:
    """What runs and where. Where not all has room (`tight`), what makes the figures others than they seem is first."""
    if not run.id:
        return [[("vmlab", "title")]]
    parts: list[list[Piece]] = [[(run.scenario, "title"), (f" {run.size}", "quiet")]]
    axes: list[list[Piece]] = []
    if run.cell is not None:
        planned = max(run.cells_planned, run.cell.number)
        parts.append([("cell ", "quiet"), (f"{run.cell.number}/{planned}", "plain")])
        axes.append([(axes_words(dict(run.cell.axes)), "accent")])
        now = [[(f"now {what} ", "quiet"), (state, "warning")] for what, state in run.cell.now.items()]
        axes = [*now, *axes] if tight else [*axes, *now]
    elif run.cells_planned:
        parts.append([(f"{run.cells_planned} cells", "plain")])
    behind: list[list[Piece]] = []
    if run.accelerator:
        emulated = run.accelerator == EMULATED
        slow = "TCG, emulated" if width >= _WIDE else "TCG"
        behind.append([(slow if emulated else run.accelerator.upper(), "warning" if emulated else "plain")])
    ordered: list[list[Piece]] = [[(shown_word(word), "warning")] for word in run.ordered]
    return [*parts, *behind, *axes, *ordered] if tight else [*parts, *axes, *behind, *ordered]


def _joined(parts: list[list[Piece]], width: int) -> list[Piece]:
    """Parts with two spaces between, the last one at the right edge; what has no room is cut before it."""
    if len(parts) < 2:
        return [piece for part in parts for piece in part]
    room = width - line_width(parts[-1]) - 2
    line: list[Piece] = []
    for part in parts[:-1]:
        line += [("  ", "plain"), *part] if line else part
    line = _cut(line, room)
    return [*line, (" " * (room + 2 - line_width(line)), "plain"), *parts[-1]]


def _cut(line: list[Piece], room: int) -> list[Piece]:
    kept: list[Piece] = []
    for text, tone in line:
        if line_width(kept) + width_of(text) > room:
            return [*kept, (text[: max(0, room - line_width(kept) - 1)] + "…", tone)]
        kept.append((text, tone))
    return kept
