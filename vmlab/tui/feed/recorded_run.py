"""Replays a stored run from its store: play, pause, speed, and seeking to any moment."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.model.cell_event import CellStarted
from vmlab.model.errors import UsageError
from vmlab.model.event import Event
from vmlab.model.run import Outcome
from vmlab.model.sample import Sample
from vmlab.store.reader import RunReader
from vmlab.store.samples import HostReaders, samples
from vmlab.tui.feed.past import figures, intent_of
from vmlab.tui.state.history import KEPT, TICKS
from vmlab.tui.state.hosts_of_run import HOST_EVENTS, FleetHosts
from vmlab.tui.state.views import Axes

SPEEDS = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)


@dataclass(frozen=True, slots=True)
class Mark:
    """A cell on the time line: from `began` to `ended`, in seconds from the recording's beginning."""

    cell: int
    began: float
    ended: float
    outcome: str


class RecordedRun:
    """All events and samples of a run, by the run's own monotonic clock. Raises UsageError for a run without events."""

    def __init__(self, store: Path, host: str = "") -> None:
        """Of a fleet, one `host` is played back: its cells follow each other, as those of any run. By default it is the
        first that joined.
        """
        with RunReader(store) as whole, HostReaders(whole) as readers:
            self.hosts = whole.hosts()
            self.host = host if host in self.hosts else self.hosts[0] if self.hosts else ""
            reader = readers.of(self.host)
            self._host_events = [event for _, event in whole.events(0, HOST_EVENTS)] if self.hosts else []
            self.events = [event for _, event in reader.events(all_kept=True)]
            self.samples = [sample for _, sample in samples(reader)]
            self.intent = intent_of(reader)
            self._figures = {name: figures(readers.of(name)) for name in self.hosts}
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

    @property
    def opening(self) -> float:
        """Where something happens: the first cell's start, in seconds from the beginning; 0 where no cell began.

        Before that an image may be built for minutes, in which nothing moves.
        """
        return next((event.mono - self.began for event in self.events if isinstance(event, CellStarted)), 0.0)

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

    def hosts_at(self, moment: float) -> FleetHosts:
        """What all hosts of a fleet do at `moment` of the run's monotonic clock."""
        found = FleetHosts()
        for name in self.hosts:
            found.add(name)
        for event in self._host_events:
            if event.mono <= moment:
                found.apply(event)
        for name, taken in self._figures.items():
            last = bisect.bisect_right(taken, moment, key=lambda sample: sample.mono)
            found.take(name, taken[max(0, last - TICKS) : last])
        return found

    @cached_property
    def marks(self) -> tuple[Mark, ...]:
        """The cells on the time line."""
        return tuple(
            Mark(
                cell.told.cell,
                cell.started - self.began,
                (self.ended if cell.ended is None else cell.ended) - self.began,
                Outcome.ABORTED if cell.ended is None else cell.told.outcome,
            )
            for cell in RunTimeline.of(self.events).cells.values()
        )

    @cached_property
    def planned(self) -> tuple[Axes, ...]:
        """The axis values of its cells, in the order in which they ran; () of a fleet, whose hosts take turns."""
        if self.hosts:
            return ()
        return tuple(tuple(event.axes.items()) for event in self.events if isinstance(event, CellStarted))


class Playback:
    """The state of a replay: position, speed, and whether it is paused."""

    def __init__(self, recording: RecordedRun, onward: Callable[[float, float], float] = operator.add) -> None:
        self.recording = recording
        self._onward = onward
        """Where it is when it was played for so many seconds from a position on."""
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
        """Play `seconds` of the viewer's time; returns the events and samples in between."""
        if self.paused:
            return [], []
        since = self.moment
        self.position = min(self.recording.length, self._onward(self.position, seconds * self.speed))
        return self.recording.between(since, self.moment)

    def seek(self, position: float) -> tuple[list[Event], list[Sample]]:
        """Go to `position` seconds; everything that a viewer knows there, from the beginning on."""
        self.position = min(self.recording.length, max(0.0, position))
        return self.recording.before(self.moment)

    def change_speed(self, steps: int) -> float:
        """The next speed up or down; the new one."""
        place = min(range(len(SPEEDS)), key=lambda each: abs(SPEEDS[each] - self.speed)) + steps
        self.speed = SPEEDS[min(len(SPEEDS) - 1, max(0, place))]
        return self.speed
