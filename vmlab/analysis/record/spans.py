"""When cells and their phases were, on the monotonic clock."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from vmlab.analysis.record.cell_timeline import PhaseSpan
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.model.cell_event import CellEnded, CellStarted, PhaseEnded, PhaseStarted
from vmlab.model.event import CellWithdrawn, RunEnded, RunStarted
from vmlab.store.reader import RunReader

KINDS = (RunStarted, CellStarted, PhaseStarted, PhaseEnded, CellEnded, CellWithdrawn, RunEnded)


@dataclass(frozen=True, slots=True)
class RunSpans:
    """All phases of a run in order. `began` is its beginning on the monotonic clock; `clocks` has both clocks, the
    monotonic one first, at the beginning and whenever a cell began.
    """

    began: float
    phases: Sequence[PhaseSpan]
    clocks: Sequence[tuple[float, float]]

    @classmethod
    def read(cls, reader: RunReader) -> RunSpans:
        """Those of a stored run. Raises StoreError for a damaged store."""
        return cls.of(RunTimeline.read(reader, KINDS))

    @classmethod
    def of(cls, run: RunTimeline) -> RunSpans:
        """A phase that broke off ends with the run's last event."""
        phases = [span for cell in run.cells.values() for span in cell.spans_until(run.last_mono)]
        began = run.started.mono if run.started else 0.0
        return cls(began, sorted(phases, key=lambda span: span.until), run.clocks)

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
