"""What each host of a fleet does, from the events of all of them and their newest figures."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.model.cell_event import (
    CacheSwitched,
    CellEnded,
    CellStarted,
    PhaseStarted,
)
from vmlab.model.event import (
    CellPlaced,
    CellWithdrawn,
    Event,
    HostJoined,
    HostLeftOut,
    RunEnded,
)
from vmlab.model.names import HOST_PLACE
from vmlab.model.run import RUNNING, AxisValue, Outcome
from vmlab.model.sample import Sample
from vmlab.tui.state.history import TICKS, Gauge, gauges

HOST_EVENTS = (
    HostJoined,
    HostLeftOut,
    CellPlaced,
    CellWithdrawn,
    CellStarted,
    PhaseStarted,
    CacheSwitched,
    CellEnded,
    RunEnded,
)
"""The kinds of events that tell what a host does."""
SILENT_SECONDS = 10.0
"""A host at work whose newest figures are older is not heard of."""
JOINS, FREE, PLACED, OVER = "joins", "free", "begins", "over"
FAILED, LEFT_OUT, SILENT = "broke off", "left out", "silent"
_NOT_THERE = (JOINS, OVER, FAILED, LEFT_OUT)
_TONES = {
    **dict.fromkeys((JOINS, FREE, OVER), "quiet"),
    **dict.fromkeys((FAILED, LEFT_OUT, Outcome.FAILED, Outcome.ABORTED), "bad"),
    Outcome.INVALID: "warning",
}


class HostView(NamedTuple):
    """A host as it stands: a word for its `state` with the tone of it, and why, if it failed.

    `since` is the moment on the monotonic clock from which on it is so. `cell` is 0 while it has none, `done` how many
    it has ended.
    """

    name: str
    state: str
    tone: str = "quiet"
    since: float = math.nan
    reason: str = ""
    cell: int = 0
    axes: Mapping[str, AxisValue] = {}
    repeat: int = 0
    cache: str = ""
    done: int = 0
    gauges: tuple[Gauge, ...] = ()


class FleetHosts:
    """The hosts of one run by name, those with a number in the order of these."""

    def __init__(self) -> None:
        self._run = RunTimeline()
        self._newest: dict[str, Event | None] = {}
        """The event from which on each host does what it does; None of a host from which nothing came so far."""
        self._samples: dict[str, deque[Sample]] = {}

    def __len__(self) -> int:
        return len(self._newest)

    @property
    def names(self) -> tuple[str, ...]:
        """All hosts."""
        return tuple(sorted(self._newest, key=lambda name: (len(name), name)))

    def add(self, name: str) -> None:
        """A host that is known, although nothing came of it so far."""
        self._newest.setdefault(name, None)

    def take(self, name: str, samples: Sequence[Sample]) -> None:
        """The newest samples of one host, in order."""
        self._samples.setdefault(name, deque(maxlen=TICKS)).extend(samples)

    def apply(self, event: Event) -> None:
        """Take in the next event, of those of `HOST_EVENTS`."""
        match event:
            case CellWithdrawn() if not self._has(event.name, event.cell):
                pass  # One of a block that is measured again as a whole: it had ended here.
            case HostJoined() | CellPlaced() | CellWithdrawn() | HostLeftOut():
                self._newest[event.name] = event
            case CellEnded():
                if (host := self._run.placed.get(event.cell, "")) in self._newest:
                    self._newest[host] = event
            case RunEnded():
                gone = (CellWithdrawn, HostLeftOut)
                self._newest = {name: one if isinstance(one, gone) else event for name, one in self._newest.items()}
        self._run.apply(event)

    def _has(self, name: str, cell: int) -> bool:
        """Whether this cell is under way on a host."""
        newest = self._newest.get(name)
        return isinstance(newest, CellPlaced) and newest.cell == cell

    def views(self, now: float) -> tuple[HostView, ...]:
        """All hosts as at `now`, on the monotonic clock."""
        return tuple(self._view(name, now) for name in self.names)

    def _view(self, name: str, now: float) -> HostView:
        event, samples = self._newest[name], self._samples.get(name, ())
        state, reason = _state(event)
        cell = self._run.cells.get(event.cell) if isinstance(event, CellPlaced) else None
        since = math.nan if event is None else event.mono
        if cell is not None:
            state, since = (cell.phase.phase, cell.phase.mono) if cell.phase else (RUNNING, cell.started)
        done = sum(one.told.hypervisor == name and one.ended is not None for one in self._run.cells.values())
        view = HostView(name, state, _TONES.get(state, "good"), since, reason, done=done)
        newest = samples[-1].mono if samples else math.nan
        if state in _NOT_THERE:
            return view
        if now - newest > SILENT_SECONDS:
            return view._replace(state=SILENT, tone="bad", since=newest, reason="its metrics have ended")
        view = view._replace(gauges=gauges([sample for sample in samples if sample.mono > now - TICKS - 1]))
        if cell is None:
            return view
        told = cell.told
        axes = {axis: value for axis, value in told.axes.items() if axis != HOST_PLACE}
        cache = str(told.axes.get("cache") or told.settings.get("cache") or "")
        cache = cell.switches[-1].after if cell.switches else cache
        return view._replace(cell=told.cell, axes=axes, repeat=told.repeat, cache=cache)


def _state(event: Event | None) -> tuple[str, str]:
    """What a host does from this event on, and why, if it failed."""
    match event:
        case CellPlaced():
            return PLACED, ""
        case CellWithdrawn():
            return FAILED, event.reason
        case HostLeftOut():
            return LEFT_OUT, event.reason
        case CellEnded() if event.outcome != Outcome.PASSED and event.reasons:
            return event.outcome, "; ".join(event.reasons)
        case RunEnded():
            return OVER, ""
        case _:
            return JOINS if event is None else FREE, ""
