"""Folds a run's events into its state: one event after the other of a run that lives, or all of a stored one.

Every reader of a run takes its state from here and adds only its presentation: the documents, the progress on the
command line, and the console's screens, live and replayed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

from vmlab.analysis.record.coverage import Window
from vmlab.analysis.statistics.descriptive import finite
from vmlab.model.cell_event import (
    CacheProved,
    CacheSwitched,
    CellEnded,
    CellStarted,
    CountersRead,
    DiskLatencyRead,
    DiskSilent,
    FiguresRemade,
    GuestInspected,
    GuestStateChanged,
    KsmSwitched,
    MeasurementTaken,
    NeighboursCounted,
    NetworkProved,
    PhaseEnded,
    PhaseStarted,
    RoundEnded,
    Switched,
    TilesChanged,
    WorkloadEnded,
    WorkloadProgressed,
    WorkloadStarted,
)
from vmlab.model.domain import Domain
from vmlab.model.event import (
    RESUME,
    AnotherRunSeen,
    CellPlaced,
    CellsReplanned,
    CellWithdrawn,
    CommandReceived,
    DomainsSeen,
    Event,
    HalfEnded,
    HostJoined,
    HostLeftOut,
    HostProbed,
    ImageReady,
    Notice,
    RepeatsEnded,
    RunEnded,
    RunnerFinished,
    RunStarted,
    TogetherEnded,
)
from vmlab.model.results import CacheProof, Measurement, NeighbourUse, NetworkProof
from vmlab.model.run import DONE, Outcome, Phase, worst


def _known(figure: Measurement) -> Measurement:
    """A figure that is no number is not known."""
    return replace(figure, value=finite(figure.value))


@dataclass(slots=True)
class WorkloadTimeline:
    """One workload of one tile. `began` is on the monotonic clock, as is `done_at`, when its client had ended."""

    workload: str
    tile: int
    began: float
    start: WorkloadStarted | None = None
    progress: WorkloadProgressed | None = None
    done_at: float | None = None
    end: WorkloadEnded | None = None

    @property
    def guest(self) -> str:
        """The guest that runs its client; empty while no event has named it."""
        known = self.start or self.end
        return known.guest if known else ""

    @property
    def seconds(self) -> float | None:
        """How long it took; None while its client runs. Until its figures are verified, the time of its client."""
        if self.end is not None:
            return self.end.seconds
        return None if self.done_at is None else self.done_at - self.began

    @property
    def fraction(self) -> float | None:
        """How far it is in its stage, from 0 to 1; None before its first progress."""
        if self.progress is None:
            return None
        total = self.progress.total
        return min(1.0, max(0.0, self.progress.done / total)) if total > 0 else 0.0

    def take_progress(self, event: WorkloadProgressed) -> None:
        """Note how far it is now."""
        if event.stage == DONE and self.seconds is None:
            self.done_at = event.mono
        self.progress = event


@dataclass(slots=True)
class CellTimeline:
    """One cell as far as it came. `executed` is the execute phase on the monotonic clock, None before it.

    `phase` is the one that goes on; `phases` holds the seconds that ended ones took, by name. `workloads` and
    `guests` are by tile and name, `ended_workloads` in the order in which they ended. `host` is the host of a fleet
    that it was given to.
    """

    start: CellStarted
    last_mono: float
    host: str = ""
    end: CellEnded | None = None
    phase: PhaseStarted | None = None
    executed: tuple[float, float | None] | None = None
    phases: dict[str, float] = field(default_factory=dict)
    guests: dict[tuple[int, str], GuestStateChanged] = field(default_factory=dict)
    workloads: dict[tuple[int, str], WorkloadTimeline] = field(default_factory=dict)
    ended_workloads: list[WorkloadEnded] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    remade: list[FiguresRemade] = field(default_factory=list)
    proofs: list[CacheProof] = field(default_factory=list)
    network: list[NetworkProof] = field(default_factory=list)
    latency: list[DiskLatencyRead] = field(default_factory=list)
    silent: dict[tuple[int, str, str], DiskSilent] = field(default_factory=dict)
    """The disks that answer nothing now, by tile, guest and disk."""
    read: dict[str, CountersRead] = field(default_factory=dict)
    """When counters were read as the workloads started and had ended, by the edge."""
    neighbours: list[NeighbourUse] | None = None
    switches: list[Switched] = field(default_factory=list)
    tile_changes: list[TilesChanged] = field(default_factory=list)
    rounds: list[RoundEnded] = field(default_factory=list)
    inspected: list[GuestInspected] = field(default_factory=list)
    half: HalfEnded | None = None
    """In a record of an older version, how a cell with guests on two hosts has ended on the other one."""

    @property
    def began(self) -> float:
        """The moment from which what happened in it is told: the start of its workloads, or its own."""
        return self.executed[0] if self.executed else self.start.mono

    @property
    def execution(self) -> tuple[float, float] | None:
        """Beginning and end of the execute phase; of a cell that broke off in it, the end is its last event."""
        if self.executed is None:
            return None
        since, until = self.executed
        return since, self.last_mono if until is None else until

    @property
    def window(self) -> Window | None:
        """The span of the figures of host and guests: that between the readings as the workloads started and had ended,
        else the execute phase.
        """
        first, last = self.read.get("start"), self.read.get("end")
        if first is None or last is None or self.execution is None:
            return None if self.execution is None else Window.plain(*self.execution)
        return Window(
            (first.mono - first.host_ago, last.mono - last.host_ago),
            (first.mono - first.guests_ago, last.mono - last.guests_ago),
            (first.mono - first.guests_disks_ago, last.mono - last.guests_disks_ago),
            last.mono - last.sample_ago,
        )

    def is_retired(self, tile: int) -> bool:
        """Whether this tile was retired while the others worked."""
        return bool(self.tile_changes) and tile > self.tile_changes[-1].after

    def apply(self, event: Event) -> None:
        """Apply the next event of this cell."""
        self.last_mono = event.mono
        match event:
            # Most events are of this kind, so it is checked first.
            case WorkloadProgressed():
                self._workload(event.tile, event.workload, self._earliest(event)).take_progress(event)
            case GuestStateChanged():
                self.guests[event.tile, event.guest] = event
            case MeasurementTaken():
                self.measurements.append(_known(event.figure))
            case FiguresRemade():
                self._remake(event)
            case CacheProved():
                self.proofs.append(event.proof)
            case NetworkProved():
                self.network.append(event.proof)
            case DiskLatencyRead():
                self.latency.append(event)
            case DiskSilent():
                self.silent.pop((event.tile, event.guest, event.disk), None)
                if event.requests:
                    self.silent[event.tile, event.guest, event.disk] = event
            case CountersRead():
                self.read[event.edge] = event
            case NeighboursCounted():
                self.neighbours = event.neighbours
            case CacheSwitched() | KsmSwitched():
                self.switches.append(event)
            case TilesChanged():
                self.tile_changes.append(event)
            case GuestInspected():
                self.inspected.append(event)
            case WorkloadStarted():
                known = self.workloads.get((event.tile, event.workload))
                if known is not None and (event.round > 1 or known.end is not None):
                    self.workloads.pop((event.tile, event.workload), None)
                self._workload(event.tile, event.workload, event.mono).start = event
            case RoundEnded():
                self.rounds.append(event)
            case WorkloadEnded():
                self._workload(event.tile, event.workload, event.mono - event.seconds).end = event
                self.ended_workloads.append(event)
            case _:
                self._apply_phase(event)

    def _remake(self, event: FiguresRemade) -> None:
        """Put figures that were made again in the place of the old ones, which `remade` keeps."""
        self.remade.append(event)
        new = dict(event.values)
        figures: list[Measurement] = []
        for taken in self.measurements:
            if (taken.workload, taken.tile) != (event.workload, event.tile) or taken.metric not in event.units:
                figures.append(taken)
            elif taken.metric in new:
                figures.append(_known(replace(taken, value=new.pop(taken.metric))))
        place = event.workload, event.tile, event.guest
        figures += [
            _known(Measurement(*place, metric, value, event.units.get(metric, ""))) for metric, value in new.items()
        ]
        self.measurements = figures

    def _apply_phase(self, event: Event) -> None:
        match event:
            case PhaseStarted():
                self.phase = event
                if event.phase == Phase.EXECUTE:
                    self.executed = (event.mono, None)
            case PhaseEnded():
                self.phase = None
                self.phases[event.phase] = event.seconds
                if event.phase == Phase.EXECUTE and self.executed is not None:
                    self.executed = (self.executed[0], event.mono)
            case CellEnded():
                self.phase = None
                self.end = event
                self.silent.clear()
                self._end_half()
            case HalfEnded():
                self.half = event
                self._end_half()

    def _end_half(self) -> None:
        """A cell whose guests are on two hosts has the worse outcome of both, and the reasons of the other one too."""
        if self.end is None or self.half is None or self.half.outcome == Outcome.PASSED:
            return
        outcome = worst([self.end.outcome, self.half.outcome])
        reasons = [f"host {self.half.name}: {reason}" for reason in self.half.reasons]
        self.end = replace(self.end, outcome=str(outcome), reasons=[*self.end.reasons, *reasons])

    def end_together(self, event: TogetherEnded) -> None:
        """Take the outcome of the cells that hosts ran together: each counts only where all do."""
        if self.end is not None and self.end.outcome != event.outcome:
            self.end = replace(self.end, outcome=event.outcome, reasons=[*self.end.reasons, event.reason])

    def _workload(self, tile: int, name: str, began: float) -> WorkloadTimeline:
        known = self.workloads.get((tile, name))
        if known is None:
            known = self.workloads[tile, name] = WorkloadTimeline(name, tile, began)
        return known

    def _earliest(self, event: WorkloadProgressed) -> float:
        """The beginning of a workload whose progress comes before its start: that of the phase, if known."""
        return event.mono if self.phase is None else self.phase.mono


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
    placed: dict[int, str] = field(default_factory=dict)
    """The host of a fleet that each cell was last given to, by the cell's number."""
    added_images: dict[str, str] = field(default_factory=dict)
    domains: dict[str, Domain] = field(default_factory=dict)
    """The host's own guests that were seen, by name, each as it was seen last."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> Self:
        """The state after all of `events`, which may leave out kinds that the caller does not ask about."""
        timeline = cls()
        for event in events:
            timeline.apply(event)
        return timeline

    def apply(self, event: Event) -> None:
        """Apply the next event. Events of a cell that never began, as in damaged stores, are skipped."""
        if isinstance(event, CellStarted):
            host = self.placed.get(event.cell, "")
            self.cell = self.cells[event.cell] = CellTimeline(event, event.mono, host)
            self.replanned = None
        elif isinstance(event, CellPlaced):
            self.placed[event.cell] = event.name
        elif isinstance(event, CellWithdrawn):
            withdrawn = self.cells.pop(event.cell, None)
            self.cell = None if self.cell is withdrawn else self.cell
        elif (number := getattr(event, "cell", None)) is not None:
            cell = self.cells.get(number)
            if cell is not None:
                cell.apply(event)
        else:
            self._apply_run(event)

    def _apply_run(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.started = event
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
            case DomainsSeen():
                self.domains |= {one.name: one for one in event.domains}
            case RunnerFinished():
                self.finished = event
            case RunEnded():
                self.finished = self.ended = event
