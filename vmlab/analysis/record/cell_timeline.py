"""Folds the events of one cell into what documents tell of it, and into what viewers of a live run ask besides."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from vmlab.analysis.cell_shape import (
    BootDocument,
    CellDocument,
    DataDiskDocument,
    RoundDocument,
    RoundFigure,
    SeenDocument,
    SwitchDocument,
    TileChangeDocument,
    WorkloadDocument,
)
from vmlab.analysis.figures.over_tiles import Directions, over_tiles
from vmlab.analysis.record.coverage import Window
from vmlab.analysis.record.disk_latency import latency_document
from vmlab.analysis.record.loops import loop_rows
from vmlab.analysis.record.remade import changes_of
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
    LeverProved,
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
from vmlab.model.checked import made
from vmlab.model.event import Event, HalfEnded, TogetherEnded
from vmlab.model.jsonable import carried, common_fields, time_of_day
from vmlab.model.results import Measurement, Provision
from vmlab.model.run import DONE, RUNNING, WARM_UP, Outcome, Phase, worst

D = TypeVar("D")


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
    def first(self) -> WorkloadStarted | None:
        """Its start; None in later rounds, and while it is not known."""
        return None if self.start is None or self.start.round > 1 else self.start

    @property
    def span(self) -> tuple[float, float] | None:
        """Its run time on the monotonic clock; None in later rounds, and where start or end is not known."""
        if self.first is None or self.end is None:
            return None
        return self.first.mono, self.first.mono + self.end.seconds

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


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """A phase of a cell from `since` to `until`, on the monotonic clock."""

    cell: int
    phase: str
    since: float
    until: float


@dataclass(slots=True)
class CellTimeline:
    """One cell as far as it came: `told` has what documents say of it, and `document` makes the rest of them.

    `started` and `ended` are moments on the monotonic clock. `phase` is the one that goes on, `spans` are those that
    ended. `workloads` and `guests` are by tile and name, `ended_workloads` in the order in which they ended.
    """

    told: CellDocument
    started: float
    last_mono: float
    ended: float | None = None
    phase: PhaseStarted | None = None
    spans: list[PhaseSpan] = field(default_factory=list)
    guests: dict[tuple[int, str], GuestStateChanged] = field(default_factory=dict)
    workloads: dict[tuple[int, str], WorkloadTimeline] = field(default_factory=dict)
    ended_workloads: list[WorkloadEnded] = field(default_factory=list)
    latency: list[DiskLatencyRead] = field(default_factory=list)
    silent: dict[tuple[int, str, str], DiskSilent] = field(default_factory=dict)
    """The disks that answer nothing now, by tile, guest and disk."""
    read: dict[str, CountersRead] = field(default_factory=dict)
    """When counters were read as the workloads started and had ended, by the edge."""
    changes: list[Switched | TilesChanged] = field(default_factory=list)
    """What was changed under running guests, in order."""
    rounds: list[RoundEnded] = field(default_factory=list)
    disturbed: bool = False
    """Whether it is invalid for causes outside of it alone."""
    half: HalfEnded | None = None
    """In a record of an older version, how a cell with guests on two hosts has ended on the other one."""

    @classmethod
    def of(cls, event: CellStarted, host: str) -> Self:
        """A cell that begins; `host` is the host of a fleet that it was given to."""
        told = carried(
            CellDocument,
            event,
            hypervisor=host or None,
            block=event.repeat,
            warm_up=event.repeat == WARM_UP,
            outcome=RUNNING,
            provision=Provision(guests=event.guests),
        )
        return cls(told, event.mono, event.mono)

    def spans_until(self, last: float) -> list[PhaseSpan]:
        """Its phases; one that broke off ends at `last`."""
        under_way = self.phase
        if under_way is None:
            return self.spans
        return [*self.spans, PhaseSpan(self.told.cell, under_way.phase, under_way.mono, last)]

    @property
    def executed(self) -> tuple[float, float | None] | None:
        """The execute phase on the monotonic clock, without an end while it goes on; None before it."""
        if self.phase is not None and self.phase.phase == Phase.EXECUTE:
            return self.phase.mono, None
        return next(((one.since, one.until) for one in reversed(self.spans) if one.phase == Phase.EXECUTE), None)

    @property
    def began(self) -> float:
        """The moment from which what happened in it is told: the start of its workloads, or its own."""
        return self.executed[0] if self.executed else self.started

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

    @property
    def host(self) -> str:
        """The host of a fleet that it was given to; empty in any other run."""
        return self.told.hypervisor or ""

    @property
    def switches(self) -> list[Switched]:
        """What of running guests was switched."""
        return [one for one in self.changes if not isinstance(one, TilesChanged)]

    @property
    def tile_changes(self) -> list[TilesChanged]:
        """When tiles were added or retired."""
        return [one for one in self.changes if isinstance(one, TilesChanged)]

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
            case DiskLatencyRead():
                self.latency.append(event)
            case DiskSilent():
                self.silent.pop((event.tile, event.guest, event.disk), None)
                if event.requests:
                    self.silent[event.tile, event.guest, event.disk] = event
            case CountersRead():
                self.read[event.edge] = event
            case CacheSwitched() | KsmSwitched() | TilesChanged():
                self.changes.append(event)
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
            case PhaseStarted():
                self.phase = event
            case PhaseEnded():
                self._end_phase(event.mono)
                self.told.phases[event.phase] = event.seconds
            case CellEnded():
                self._end_phase(event.mono)
                self.disturbed = event.disturbed
                self._end(event)
            case HalfEnded():
                self.half = event
                self._end_half()
            case _:
                self._tell(event)

    def _tell(self, event: Event) -> None:
        """What documents have as it is in the event."""
        match event:
            case MeasurementTaken():
                self.told.measurements.append(_known(event.figure))
            case FiguresRemade():
                self._remake(event)
            case CacheProved():
                self.told.cache_proof.append(event.proof)
            case LeverProved():
                self.told.lever_proof.append(event.proof)
            case NetworkProved():
                self.told.network_proof.append(event.proof)
            case NeighboursCounted():
                self.told = replace(self.told, neighbours=event.neighbours)
            case GuestInspected():
                self._see(event)

    def _remake(self, event: FiguresRemade) -> None:
        """Put figures that were made again in the place of the old ones, which `remade` keeps."""
        self.told.remade.extend(changes_of(event))
        new = dict(event.values)
        figures: list[Measurement] = []
        for taken in self.told.measurements:
            if (taken.workload, taken.tile) != (event.workload, event.tile) or taken.metric not in event.units:
                figures.append(taken)
            elif taken.metric in new:
                figures.append(_known(replace(taken, value=new.pop(taken.metric))))
        place = event.workload, event.tile, event.guest
        figures += [
            _known(Measurement(*place, metric, value, event.units.get(metric, ""))) for metric, value in new.items()
        ]
        self.told.measurements[:] = figures

    def _see(self, event: GuestInspected) -> None:
        """What was seen in each guest, in the order of the first look."""
        seen = {(one.tile, one.guest): one for one in self.told.seen_in_guests}
        known = seen.get((event.tile, event.guest), SeenDocument(event.guest, event.tile))
        boot = _whole(BootDocument, event.seen.get("boot"), known.boot)
        data_disk = _whole(DataDiskDocument, event.seen.get("data_disk"), known.data_disk)
        seen[event.tile, event.guest] = replace(known, boot=boot, data_disk=data_disk)
        self.told.seen_in_guests[:] = seen.values()

    def _end_phase(self, mono: float) -> None:
        if self.phase is not None:
            self.spans = self.spans_until(mono)
            self.phase = None

    def _end(self, event: CellEnded) -> None:
        guests = self.told.provision.guests if event.provision.guests is None else event.provision.guests
        provision = carried(Provision, event.provision, guests=guests)
        self.told = replace(self.told, **common_fields(CellDocument, event) | {"provision": provision})
        self.ended = event.mono
        self.silent.clear()
        self._end_half()

    def _end_half(self) -> None:
        """A cell whose guests are on two hosts has the worse outcome of both, and the reasons of the other one too."""
        if self.ended is not None and self.half is not None and self.half.outcome != Outcome.PASSED:
            outcome = worst([self.told.outcome, self.half.outcome])
            self._worsen(str(outcome), [f"host {self.half.name}: {reason}" for reason in self.half.reasons])

    def end_together(self, event: TogetherEnded) -> None:
        """Take the outcome of the cells that hosts ran together: each counts only where all do."""
        if self.ended is not None and self.told.outcome != event.outcome:
            self._worsen(event.outcome, [event.reason])

    def _worsen(self, outcome: str, reasons: list[str]) -> None:
        self.told = replace(self.told, outcome=outcome, reasons=[*self.told.reasons, *reasons])

    def _workload(self, tile: int, name: str, began: float) -> WorkloadTimeline:
        known = self.workloads.get((tile, name))
        if known is None:
            known = self.workloads[tile, name] = WorkloadTimeline(name, tile, began)
        return known

    def _earliest(self, event: WorkloadProgressed) -> float:
        """The beginning of a workload whose progress comes before its start: that of the phase, if known."""
        return event.mono if self.phase is None else self.phase.mono

    def document(self, unended: str, directions: Directions) -> CellDocument:
        """What is told of it, the host's part still empty; `unended` is the outcome of one that has not ended."""
        workloads = [self._worked(one) for one in self.ended_workloads]
        return replace(
            self.told,
            outcome=unended if self.ended is None else self.told.outcome,
            workloads=workloads,
            over_tiles=over_tiles(self.told.measurements, workloads, directions),
            disk_latency=latency_document(self.latency),
            switches=[self._changed(SwitchDocument, one, what=one.what) for one in self.switches],
            tile_changes=[self._changed(TileChangeDocument, one) for one in self.tile_changes],
            loop=loop_rows(self.rounds),
            rounds=[
                carried(RoundDocument, one, verified=one.mono - self.began, figures=_figures(one))
                for one in self.rounds
            ],
        )

    def _worked(self, ended: WorkloadEnded) -> WorkloadDocument:
        first = self.workloads[ended.tile, ended.workload].first
        began = None if first is None else first.late_ms / 1e3
        until = None if began is None else finite(began + ended.seconds)
        return carried(WorkloadDocument, ended, began=finite(began), ended=until)

    def _changed(self, document: type[D], event: Switched | TilesChanged, **more: str) -> D:
        return carried(document, event, at=time_of_day(event.wall), seconds=event.mono - self.began, **more)


def _figures(event: RoundEnded) -> dict[str, RoundFigure]:
    return {name: RoundFigure(finite(value), event.units.get(name, "")) for name, value in event.values.items()}


def _whole(cls: type[D], body: dict[str, Any] | None, known: D | None) -> D | None:
    """What an event says; what is `known` before where it says nothing, or, of another version, lacks a part."""
    try:
        return known if body is None else made(cls, body)
    except ValueError:
        return known
