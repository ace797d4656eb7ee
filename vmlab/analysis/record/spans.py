"""When cells and their phases were, on the monotonic clock."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    PhaseEnded,
    PhaseStarted,
)
from vmlab.model.event import (
    CellWithdrawn,
    Event,
    RunEnded,
    RunStarted,
)
from vmlab.store.reader import RunReader

KINDS = (RunStarted, CellStarted, PhaseStarted, PhaseEnded, CellEnded, CellWithdrawn, RunEnded)


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """A phase of a cell from `since` to `until`."""

    cell: int
    phase: str
    since: float
    until: float


@dataclass(slots=True)
class RunSpans:
    """All phases of a run in order. `began` is its beginning on the monotonic clock; `clocks` has both clocks, the
    monotonic one first, at the beginning and whenever a cell began.
    """

    began: float = 0.0
    clocks: list[tuple[float, float]] = field(default_factory=list)
    phases: list[PhaseSpan] = field(default_factory=list)

    @classmethod
    def read(cls, reader: RunReader) -> RunSpans:
        """Those of a stored run. Raises StoreError for a damaged store."""
        return cls.of(event for _, event in reader.events(kinds=KINDS))

    @classmethod
    def of(cls, events: Iterable[Event]) -> RunSpans:
        """From the run's events in order; a phase that broke off ends with the last of them."""
        spans, under_way, last = cls(), None, 0.0
        for event in events:
            last = event.mono
            match event:
                case RunStarted():
                    spans.began = event.mono
                    spans.clocks.append((event.mono, event.wall))
                case CellStarted():
                    spans.clocks.append((event.mono, event.wall))
                case PhaseStarted():
                    under_way = event
                case PhaseEnded() | CellEnded():
                    spans._close(under_way, event.mono)
                    under_way = None
                case CellWithdrawn():
                    spans.phases = [span for span in spans.phases if span.cell != event.cell]
                    under_way = None if under_way is not None and under_way.cell == event.cell else under_way
        spans._close(under_way, last)
        return spans

    def _close(self, started: PhaseStarted | None, until: float) -> None:
        if started is not None:
            self.phases.append(PhaseSpan(started.cell, started.phase, started.mono, until))

    def at(self, mono: float) -> PhaseSpan | None:
        """The phase in which a tick ended; None between the cells."""
        place = bisect_left(self.phases, mono, key=lambda span: span.until)
        found = self.phases[place] if place < len(self.phases) else None
        return found if found is not None and found.since < mono else None

    def wall_at(self, mono: float) -> float:
        """Seconds since the epoch at a moment of the monotonic clock, by the clocks when the newest cell began; a run
        that was cut off and went on leaves out the time in between.
        """
        before = bisect_right(self.clocks, (mono, inf)) - 1
        then, wall = self.clocks[max(0, before)] if self.clocks else (self.began, 0.0)
        return wall + mono - then
