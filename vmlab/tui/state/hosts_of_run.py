"""What each host of a fleet does, from the events of all of them and their newest figures."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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


@dataclass
class _Host:
    name: str
    state: str = JOINS
    since: float = math.nan
    reason: str = ""
    current: int = 0
    started: CellStarted | None = None
    cache: str = ""
    done: int = 0
    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=TICKS))


class FleetHosts:
    """The hosts of one run by name, those with a number in the order of these."""

    def __init__(self) -> None:
        self._hosts: dict[str, _Host] = {}
        self._placed: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._hosts)

    @property
    def names(self) -> tuple[str, ...]:
        """All hosts."""
        return tuple(sorted(self._hosts, key=_rank))

    def add(self, name: str) -> None:
        """A host that is known, although nothing came of it so far."""
        self._hosts.setdefault(name, _Host(name))

    def take(self, name: str, samples: Sequence[Sample]) -> None:
        """The newest samples of one host, in order."""
        if name in self._hosts:
            self._hosts[name].samples.extend(samples)

    def apply(self, event: Event) -> None:
        """Take in the next event, of those of `HOST_EVENTS`."""
        match event:
            case HostJoined() | CellPlaced() | CellWithdrawn() | HostLeftOut():
                self.add(event.name)
                self._of_host(self._hosts[event.name], event)
            case RunEnded():
                for host in self._hosts.values():
                    if host.state not in (LEFT_OUT, FAILED):
                        _turn(host, OVER, event)
            case CellStarted() | PhaseStarted() | CacheSwitched() | CellEnded():
                if (placed := self._placed.get(event.cell)) in self._hosts:
                    _go_on(self._hosts[placed], event)

    def _of_host(self, host: _Host, event: HostJoined | CellPlaced | CellWithdrawn | HostLeftOut) -> None:
        match event:
            case HostJoined():
                _turn(host, FREE, event)
            case CellPlaced():
                self._placed[event.cell] = host.name
                _turn(host, PLACED, event)
                host.current = event.cell
            case CellWithdrawn():
                self._placed.pop(event.cell, None)
                if host.current == event.cell:
                    _turn(host, FAILED, event, event.reason)
                else:
                    # One of a block that is measured again as a whole: it had ended here.
                    host.done -= 1
            case HostLeftOut():
                _turn(host, LEFT_OUT, event, event.reason)

    def views(self, now: float) -> tuple[HostView, ...]:
        """All hosts as at `now`, on the monotonic clock."""
        return tuple(_view(self._hosts[name], now) for name in self.names)


def _rank(name: str) -> tuple[int, str]:
    return len(name), name


def _turn(host: _Host, state: str, event: Event, reason: str = "") -> None:
    """No cell is under way from this event on."""
    host.state, host.since, host.reason = state, event.mono, reason
    host.current, host.started, host.cache = 0, None, ""


def _go_on(host: _Host, event: CellStarted | PhaseStarted | CacheSwitched | CellEnded) -> None:
    """Something has happened to the cell that a host has."""
    match event:
        case CellStarted():
            host.started, host.state, host.since = event, RUNNING, event.mono
            host.cache = str(event.axes.get("cache") or event.settings.get("cache") or "")
        case PhaseStarted():
            host.state, host.since = event.phase, event.mono
        case CacheSwitched():
            host.cache = event.after
        case CellEnded():
            host.done += 1
            reason = "" if event.outcome == Outcome.PASSED else "; ".join(event.reasons)
            _turn(host, event.outcome if reason else FREE, event, reason)


def _view(host: _Host, now: float) -> HostView:
    view = HostView(host.name, host.state, _TONES.get(host.state, "good"), host.since, host.reason, done=host.done)
    newest = host.samples[-1].mono if host.samples else math.nan
    if host.state in _NOT_THERE:
        return view
    if now - newest > SILENT_SECONDS:
        return view._replace(state=SILENT, tone="bad", since=newest, reason="its figures have ended")
    view = view._replace(gauges=gauges([sample for sample in host.samples if sample.mono > now - TICKS - 1]))
    if host.started is None:
        return view
    axes = {name: value for name, value in host.started.axes.items() if name != HOST_PLACE}
    return view._replace(cell=host.started.cell, axes=axes, repeat=host.started.repeat, cache=host.cache)
