"""Folds a run's events into its state: one event after the other of a run that lives, or all of a stored one.

Every reader of a run takes its state from here and adds only its presentation: the documents, the progress on the
command line, and the console's screens, live and replayed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Self

from vmlab.analysis.record.cell_timeline import CellTimeline, PhaseSpan
from vmlab.model.cell_event import CellEnded, CellStarted, PhaseEnded, PhaseStarted
from vmlab.model.domain import Domain
from vmlab.model.errors import UsageError
from vmlab.model.event import (
    RESUME,
    AnotherRunSeen,
    AttemptsAsked,
    CellPlaced,
    CellsReplanned,
    CellWithdrawn,
    CommandReceived,
    DomainsSeen,
    Event,
    HostJoined,
    HostLeftOut,
    HostProbed,
    ImageReady,
    MeasuredAgain,
    Notice,
    RepeatsAdded,
    RepeatsEnded,
    RunEnded,
    RunnerFinished,
    RunStarted,
    TogetherEnded,
)
from vmlab.store.reader import RunReader


@dataclass(slots=True)
class RunTimeline:
    """A run as far as its events show. `cells` are by number, in the order in which they began; `cell` is the newest.

    `replanned` is the last change to the cells to come, None once the next of them has begun; `finished` the last
    event that says how the run went, and `ended` the very last. `repeats_ended` is set once there are enough repeats.
    """

    started: RunStarted | None = None
    image: ImageReady | None = None
    probed: HostProbed | None = None
    replanned: CellsReplanned | None = None
    finished: RunnerFinished | RunEnded | None = None
    ended: RunEnded | None = None
    repeats_ended: RepeatsEnded | None = None
    extensions: list[RepeatsAdded] = field(default_factory=list)
    stopping: bool = False
    cells_planned: int = 0
    expected_seconds: float = 0.0
    cell: CellTimeline | None = None
    cells: dict[int, CellTimeline] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    others: list[AnotherRunSeen] = field(default_factory=list)
    hosts: dict[str, HostJoined] = field(default_factory=dict)
    """The hosts of a fleet, by name, as they last joined."""
    left_out: dict[str, HostLeftOut] = field(default_factory=dict)
    together: list[TogetherEnded] = field(default_factory=list)
    """The cells that hosts ran together, as far as they have ended."""
    asked_again: set[int] = field(default_factory=set)
    """The cells that were asked to be measured again, by their numbers."""
    again: dict[int, int] = field(default_factory=dict)
    """The cell that each further attempt measures again, by their numbers."""
    placed: dict[int, str] = field(default_factory=dict)
    """The host of a fleet that each cell was last given to, by the cell's number."""
    added_images: dict[str, str] = field(default_factory=dict)
    domains: dict[str, Domain] = field(default_factory=dict)
    """The host's own guests that were seen, by name, each as it was seen last."""
    clocks: list[tuple[float, float]] = field(default_factory=list)
    """Both clocks, the monotonic one first, at the beginning and whenever a cell began."""
    last_mono: float = 0.0

    @classmethod
    def of(cls, events: Iterable[Event]) -> Self:
        """The state after all of `events`, which may leave out kinds that the caller does not ask about."""
        timeline = cls()
        for event in events:
            timeline.apply(event)
        return timeline

    @classmethod
    def read(cls, reader: RunReader, kinds: tuple[type[Event], ...]) -> Self:
        """The state after all events of these kinds in a store. Raises StoreError for a damaged one."""
        return cls.of(event for _, event in reader.events(kinds=kinds))

    def apply(self, event: Event) -> None:
        """Apply the next event. Events of a cell that never began, as in damaged stores, are skipped."""
        self.last_mono = event.mono
        if isinstance(event, CellStarted):
            self._begin(event)
            self.clocks.append((event.mono, event.wall))
            self.replanned = None
        elif isinstance(event, MeasuredAgain):
            self.again[event.cell] = event.again_of
        elif isinstance(event, CellPlaced):
            self.placed[event.cell] = event.name
        elif isinstance(event, CellWithdrawn):
            withdrawn = self.cells.pop(event.cell, None)
            self.cell = None if self.cell is withdrawn else self.cell
            for known in self.cells.values():
                if known.told.replaced_by == event.cell:
                    known.told = replace(known.told, replaced_by=None)
        elif (number := getattr(event, "cell", None)) is not None:
            cell = self.cells.get(number)
            if cell is not None:
                cell.apply(event)
        else:
            self._apply_run(event)

    def _begin(self, event: CellStarted) -> None:
        cell = CellTimeline.of(event, self.placed.get(event.cell, ""))
        if (before := self.cells.get(self.again.get(event.cell, 0))) is not None:
            before.told = replace(before.told, replaced_by=event.cell)
            cell.told = replace(cell.told, attempt=before.told.attempt + 1)
        self.cell = self.cells[event.cell] = cell

    def _apply_run(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.started = event
                self.clocks.append((event.mono, event.wall))
                self.cells_planned, self.expected_seconds = event.cells, event.expected_seconds
            case ImageReady(name=""):
                self.image = event
            case ImageReady():
                self.added_images[event.name] = event.image
            case HostProbed():
                self.probed = event
            case HostJoined():
                self.hosts[event.name] = event
            case TogetherEnded():
                self.together.append(event)
                for number in event.cells:
                    if number in self.cells:
                        self.cells[number].end_together(event)
            case HostLeftOut():
                self.left_out[event.name] = event
            case Notice():
                self.notices.append(event)
            case AnotherRunSeen():
                self.others.append(event)
            case CommandReceived(command="stop"):
                self.stopping = True
            case CommandReceived() if event.command == RESUME:
                self.stopping = False
            case CellsReplanned():
                self.replanned = event
                self.cells_planned = event.cells
                began = self.started.mono if self.started else event.mono
                self.expected_seconds = event.mono - began + event.expected_seconds
            case RepeatsEnded():
                self.repeats_ended = event
                self.cells_planned = event.cells
            case AttemptsAsked():
                self.asked_again |= set(event.cells)
            case RepeatsAdded():
                self.extensions.append(event)
                self.cells_planned = event.cells
            case DomainsSeen():
                self.domains |= {one.name: one for one in event.domains}
            case RunnerFinished():
                self.finished = event
            case RunEnded():
                self.finished = self.ended = event


_OF_SPANS = (RunStarted, CellStarted, PhaseStarted, PhaseEnded, CellEnded, CellWithdrawn, RunEnded)


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
        return cls.of(RunTimeline.read(reader, _OF_SPANS))

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


def demand_cell(run: str, numbers: Collection[int], cell: int) -> None:
    """Raises UsageError where the cells of a run have not this number among theirs."""
    if cell not in numbers:
        raise UsageError(f"run {run} has no cell {cell}; it has {len(numbers)}")
