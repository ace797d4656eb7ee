"""One workload: its name, how far it is, and its time against the last time."""

from __future__ import annotations

from vmlab.model.run import DONE, RUNNING, SETTLING
from vmlab.tui.state.views import WorkloadView
from vmlab.tui.widgets.charts.axis_scale import clock
from vmlab.tui.widgets.glyphs import Glyphs, tone_of
from vmlab.tui.widgets.painted import Piece, cut

_NAME = 10
_LEAST_BAR = 8
_PERCENT = 5


def workload_line(workload: WorkloadView, now: float, width: int, glyphs: Glyphs) -> list[Piece]:
    """A line of `width` columns; the bar takes what the words leave."""
    times = clock(workload.elapsed(now))
    last = f"  last {clock(workload.last_seconds)}" if workload.last_seconds is not None else ""
    room = width - _NAME - 1 - len(times) - 1
    if room - len(last) < _LEAST_BAR:
        last = ""
    bar = workload_bar(workload, room - len(last), glyphs)
    return [(f"{cut(workload.name, _NAME)} ", "accent"), *bar, (f" {times}", "plain"), (last, "quiet")]


def workload_bar(workload: WorkloadView, width: int, glyphs: Glyphs) -> list[Piece]:
    """How far it is in `width` columns: a bar with its percentage, or a word."""
    if workload.outcome != RUNNING:
        word = f"{glyphs.sign(workload.outcome)} {workload.outcome}"
        return [(cut(word, width), tone_of(workload.outcome))]
    if workload.stage in (DONE, SETTLING):
        return [(cut(workload.stage, width), "good" if workload.stage == DONE else "plain")]
    if workload.fraction is None:
        return [(cut("waiting", width), "quiet")]
    done, rest = glyphs.bar(workload.fraction, width - _PERCENT)
    return [(done, "good"), (rest, "quiet"), (f" {workload.fraction * 100:3.0f}%", "plain")]
