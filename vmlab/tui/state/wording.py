"""Events as lines for people."""

from __future__ import annotations

from vmlab.model.event import (
    CacheProved,
    CellEnded,
    CellStarted,
    CommandReceived,
    Event,
    GuestStateChanged,
    HostProbed,
    ImageReady,
    Notice,
    PhaseEnded,
    PhaseStarted,
    RunEnded,
    RunnerFinished,
    RunStarted,
    WorkloadEnded,
    WorkloadStarted,
)
from vmlab.model.quantities import format_seconds
from vmlab.model.run import Outcome
from vmlab.tui.state.views import LogLine, axes_words

_LEVELS = {Outcome.PASSED: "good", Outcome.INVALID: "warning", Outcome.FAILED: "error", Outcome.ABORTED: "error"}


def level_of(outcome: str) -> str:
    """The level of a line that tells an outcome."""
    return _LEVELS.get(Outcome(outcome), "info") if outcome in set(Outcome) else "info"


def log_line(event: Event) -> LogLine | None:
    """The line that the log shows for `event`; None for events that other widgets show better."""
    said = _said(event)
    return None if said is None else LogLine(event.wall, *said)


def _said(event: Event) -> tuple[str, str] | None:
    match event:
        case RunStarted():
            return "info", f"run {event.run} started: {event.scenario}, size {event.size}, {event.cells} cells"
        case HostProbed():
            emulated = ": figures describe emulation" if event.accelerator == "tcg" else ""
            return "info", f"accelerator {event.accelerator}{emulated}"
        case ImageReady():
            return "info", f"image {event.image} {event.how} in {format_seconds(event.seconds)}"
        case CellStarted():
            return "info", f"cell {event.cell} started: {axes_words(event.axes)}, repeat {event.repeat}"
        case PhaseStarted():
            return "info", f"{event.phase} began"
        case PhaseEnded():
            return "info", f"{event.phase} took {format_seconds(event.seconds)}"
        case GuestStateChanged():
            return "info", f"tile {event.tile} {event.guest} is {event.state}"
        case CacheProved(agrees=False):
            return "error", f"{event.guest}: {event.file} is not in cache mode {event.expected}"
        case Notice():
            return event.level, event.text
        case CommandReceived():
            return "warning", f"{event.origin} asked: {event.command}"
        case _:
            return _ended(event)


def _ended(event: Event) -> tuple[str, str] | None:
    match event:
        case WorkloadStarted():
            return "info", f"tile {event.tile} {event.workload} started on {event.guest}, {event.late_ms:.1f} ms late"
        case WorkloadEnded():
            reason = f": {event.reason}" if event.reason else ""
            took = format_seconds(event.seconds)
            return level_of(event.outcome), f"tile {event.tile} {event.workload} {event.outcome} after {took}{reason}"
        case CellEnded():
            reasons = f": {'; '.join(event.reasons)}" if event.reasons else ""
            return level_of(event.outcome), f"cell {event.cell} {event.outcome}{reasons}"
        case RunnerFinished():
            return "info", "the runner has finished; its guests are cleared away"
        case RunEnded():
            return level_of(event.outcome), f"run {event.outcome}" + (f": {event.reason}" if event.reason else "")
        case _:
            return None
