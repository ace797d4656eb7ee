"""A stored run as a film: it plays, pauses, goes faster and is wound to any moment, from its store alone."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from pathlib import Path

from vmlab.model.errors import UsageError
from vmlab.model.event import CellEnded, CellStarted, Event, PhaseEnded, PhaseStarted
from vmlab.model.run import Phase
from vmlab.model.sample import Sample
from vmlab.store.reader import RunReader
from vmlab.store.samples import samples
from vmlab.tui.feed.past import intent_of
from vmlab.tui.state.history import KEPT

SPEEDS = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)


@dataclass(frozen=True, slots=True)
class Mark:
    """A cell on the time line: from `began` to `ended`, in seconds from the recording's beginning."""

    cell: int
    began: float
    ended: float
    outcome: str


class Recording:
    """All events and samples of a run, by the run's own monotonic clock. Raises UsageError for a run without events."""

    def __init__(self, store: Path) -> None:
        with RunReader(store) as reader:
            self.events = [event for _, event in reader.events()]
            self.samples = [sample for _, sample in samples(reader)]
            self.intent = intent_of(reader)
        if not self.events:
            raise UsageError(f"{store}: nothing was recorded yet")
        self.samples.sort(key=lambda sample: sample.mono)
        self.events.sort(key=lambda event: event.mono)
        self._event_times = [event.mono for event in self.events]
        self._sample_times = [sample.mono for sample in self.samples]
        self.began = self._event_times[0]
        self.ended = max([self._event_times[-1], *self._sample_times[-1:]])

    @property
    def length(self) -> float:
        """Seconds from the first event to the last event or sample."""
        return self.ended - self.began

    def between(self, since: float, until: float) -> tuple[list[Event], list[Sample]]:
        """What came after `since` and not after `until`, in order; both on the run's monotonic clock."""
        return (
            self.events[bisect.bisect_right(self._event_times, since) : bisect.bisect_right(self._event_times, until)],
            self.samples[
                bisect.bisect_right(self._sample_times, since) : bisect.bisect_right(self._sample_times, until)
            ],
        )

    def before(self, moment: float) -> tuple[list[Event], list[Sample]]:
        """Everything that a viewer knows at `moment`: all events, and as many samples as are kept."""
        events, taken = self.between(float("-inf"), moment)
        return events, taken[-KEPT:]

    def marks(self) -> tuple[Mark, ...]:
        """The cells on the time line."""
        found: list[Mark] = []
        open_cell: CellStarted | None = None
        for event in self.events:
            if isinstance(event, CellStarted):
                open_cell = event
            elif isinstance(event, CellEnded) and open_cell is not None:
                found.append(self._mark(open_cell, event.mono, event.outcome))
                open_cell = None
        if open_cell is not None:
            found.append(self._mark(open_cell, self.ended, "aborted"))
        return tuple(found)

    def executions(self) -> list[tuple[float, float]]:
        """When the workloads of each cell began and ended, in seconds from the recording's beginning."""
        began = [e.mono for e in self.events if isinstance(e, PhaseStarted) and e.phase == Phase.EXECUTE]
        ended = [e.mono for e in self.events if isinstance(e, PhaseEnded) and e.phase == Phase.EXECUTE]
        return [(first - self.began, last - self.began) for first, last in zip(began, ended, strict=False)]

    def _mark(self, cell: CellStarted, ended: float, outcome: str) -> Mark:
        return Mark(cell.cell, cell.mono - self.began, ended - self.began, outcome)


class Playback:
    """Where a recording stands: a position, a speed, and whether it is paused."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.position = 0.0
        """Seconds from the recording's beginning."""
        self.speed = 1.0
        self.paused = False

    @property
    def moment(self) -> float:
        """The position on the run's monotonic clock."""
        return self.recording.began + self.position

    @property
    def at_end(self) -> bool:
        """Whether everything has been played."""
        return self.position >= self.recording.length

    def advance(self, seconds: float) -> tuple[list[Event], list[Sample]]:
        """Play on for `seconds` of the viewer's time; what came in between."""
        if self.paused:
            return [], []
        since = self.moment
        self.position = min(self.recording.length, self.position + seconds * self.speed)
        return self.recording.between(since, self.moment)

    def wind(self, position: float) -> tuple[list[Event], list[Sample]]:
        """Go to `position` seconds; everything that a viewer knows there, from the beginning on."""
        self.position = min(self.recording.length, max(0.0, position))
        return self.recording.before(self.moment)

    def change_speed(self, steps: int) -> float:
        """The next speed up or down; the new one."""
        place = min(range(len(SPEEDS)), key=lambda each: abs(SPEEDS[each] - self.speed)) + steps
        self.speed = SPEEDS[min(len(SPEEDS) - 1, max(0, place))]
        return self.speed
