"""The console's state of a run: its timeline as frozen views, with the log and data of earlier runs and the plan."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from vmlab.analysis.cell_shape import LoopRow
from vmlab.analysis.record.cell_timeline import CellTimeline, WorkloadTimeline
from vmlab.analysis.record.loops import loop_rows
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.model.axes import axes_words, axis_word
from vmlab.model.cell_event import (
    CacheSwitched,
    CellEnded,
    CellStarted,
    DiskLatencyRead,
    KsmSwitched,
    PhaseStarted,
    RoundEnded,
    SnapshotMade,
    SnapshotProgressed,
    TilesChanged,
)
from vmlab.model.domain import Domain
from vmlab.model.event import (
    RESUME,
    CellsReplanned,
    CellWithdrawn,
    CommandReceived,
    DomainsSeen,
    Event,
)
from vmlab.model.ordered import ordered_words
from vmlab.model.run import RUNNING, AxisValue, Outcome
from vmlab.report.event_words import events_sentence, like
from vmlab.tui.state.latency_map import LatencyMap
from vmlab.tui.state.views import (
    Axes,
    CellView,
    FreezingView,
    GuestView,
    Intent,
    LogLine,
    Moment,
    RunView,
    WorkloadView,
)

LOG_LINES = 1000
_AT_ONCE = 2.0
"""Seconds within which events that say the same have one line."""
_MOST_MOMENTS = 60
_OF_QEMU = "guests are emulated (TCG): QEMU ended: "
"""Begins a notice of earlier versions, which went on with QEMU's own last words."""
HOST_STATE = "ready"
"""The state of a place that is no guest of the lab, such as the host itself."""
PastTimes = Mapping[tuple[str, int, Axes], float]
"""Seconds that a workload took the last time, by its name, its tile and its cell's axes."""


class RunState:
    """What is known of one run so far.

    `past` holds how long workloads took in earlier runs of the same experiment, `intent` what the scenario says of
    them, so that guests have their workloads before the first event of these. `planned` are the axis values of its
    cells in order, as far as they are known.
    """

    def __init__(
        self, past: PastTimes | None = None, intent: Intent | None = None, planned: Sequence[Axes] = ()
    ) -> None:
        self._past = dict(past or {})
        self._intent = dict(intent or {})
        self._planned = list(planned)
        self._timeline = RunTimeline()
        self._ended: list[CellView] = []
        self._log: deque[LogLine] = deque(maxlen=LOG_LINES)
        self._alike: list[Event] = []
        """The events of which the newest line of the log tells."""
        self._moments: deque[Moment] = deque(maxlen=_MOST_MOMENTS)
        self.latency = LatencyMap()
        """How long requests of the guests' disks took, in the newest readings."""
        self._freezing: dict[str, FreezingView] = {}
        self._loop: tuple[LoopRow, ...] = ()
        self._changed: CellsReplanned | None = None
        self._asked = False
        self._abandoned: tuple[float, str] | None = None
        self.domains: tuple[Domain, ...] | None = None
        """The host's own guests that run now, in a recording of the host; None in every other run."""

    def remember(self, past: PastTimes) -> None:
        """Take over how long workloads took in earlier runs; times of this run itself take precedence."""
        self._past = {**past, **self._past}

    def apply(self, event: Event) -> None:
        """Take in the next event of the run."""
        self._log_event(event)
        if isinstance(event, CellStarted) and self._timeline.cell is not None:
            self._past |= passed_times(self._timeline.cell)
        self._timeline.apply(event)
        if isinstance(event, DomainsSeen):
            self.domains = tuple(event.domains)
        moment = _moment(event)
        if isinstance(event, CommandReceived):
            self._asked = event.command != RESUME
        elif isinstance(event, CellsReplanned):
            # Where nobody asked, the run goes on, or measures a cell again.
            moment, self._asked = moment if self._asked else None, False
        self._changed = event if isinstance(event, CellsReplanned) else self._changed
        if moment is not None:
            self._moments.append(moment)
        self._note_freezing(event)
        self._note_latency(event)
        if isinstance(event, RoundEnded | TilesChanged | CellStarted) and self._timeline.cell is not None:
            # Made once: a loop may have thousands of rounds, and the screen is drawn four times a second.
            cell = self._timeline.cell
            self._loop = tuple(loop_rows((one for one in cell.rounds if not cell.is_retired(one.tile)), newest=1))
        if isinstance(event, CellEnded) and event.cell in self._timeline.cells:
            # Made once: a run may have hundreds of cells, and the screen is drawn four times a second.
            self._ended.append(cell_view(self._timeline.cells[event.cell]))
        elif isinstance(event, CellWithdrawn):
            self._ended = [one for one in self._ended if one.number != event.cell]

    def _log_event(self, event: Event) -> None:
        """A line for the event, or for all that came at once and say the same."""
        alike = [one for one in self._alike if like(one, event) and event.mono - self._alike[0].mono <= _AT_ONCE]
        sentence = events_sentence([*alike, event])
        if sentence is None:
            return
        if alike:
            self._log.pop()
        self._alike = [*alike, event]
        self._log.append(LogLine(self._alike[0].wall, sentence.level, _of_screen(sentence.text)))

    def note(self, line: LogLine) -> None:
        """Put a line of the viewer's own into the log."""
        self._alike = []
        self._log.append(line)

    def abandon(self, now: float, reason: str) -> None:
        """The run's processes are gone and it has no last event: it counts as aborted from `now` on."""
        self._abandoned = now, reason

    def snapshot(self) -> RunView:
        """The run as it stands."""
        known = self._timeline
        started, probed, cell = known.started, known.probed, known.cell
        outcome, reason, ended = self._ending()
        next_axes = (tuple(known.replanned.next_axes.items()) or None) if known.replanned else None
        return RunView(
            id=started.run if started else "",
            scenario=started.scenario if started else "",
            size=started.size if started else "",
            cells_planned=known.cells_planned,
            expected_seconds=known.expected_seconds,
            began=started.mono if started else 0.0,
            accelerator=probed.accelerator if probed and self._has_guests() else "",
            ordered=ordered_words(probed.host) if probed else (),
            outcome=outcome,
            reason=reason,
            ended=ended,
            stopping=known.stopping,
            cell=cell_view(cell) if cell else None,
            cells=tuple(self._ended),
            guests=self._guest_views(cell) if cell else (),
            log=tuple(self._log),
            moments=tuple(self._moments),
            next_axes=next_axes,
            freezing=tuple(self._freezing.values()),
            executed=tuple(self._executed(ended)),
            silent=tuple(cell.silent.values()) if cell and ended is None else (),
            loop=self._loop,
            coming=next_axes or self._coming(cell),
        )

    def _has_guests(self) -> bool:
        """Whether a cell has had guests, or may have: a host that works alone is not emulated."""
        cells = self._timeline.cells.values()
        return not cells or any(cell.told.provision.guests for cell in cells)

    def _executed(self, ended: float | None) -> Iterator[tuple[float, float]]:
        """When workloads ran, in the newest cells; `ended` is the end of the run."""
        newest = list(self._timeline.cells.values())[-_MOST_MOMENTS:]
        for cell in newest:
            if cell.executed is not None and cell.execution is not None:
                since, until = cell.executed
                goes_on = until is None and cell is newest[-1] and cell.ended is None and ended is None
                yield (since, math.inf) if goes_on else cell.execution

    def _note_latency(self, event: Event) -> None:
        match event:
            case DiskLatencyRead():
                self.latency.take(event)
            case CellStarted():
                word = " ".join(_axis_of_map(name, value) for name, value in event.axes.items()) or f"cell {event.cell}"
                self.latency.begin(word, f"cell {event.cell}: {axes_words(event.axes)}")
            case CacheSwitched() | KsmSwitched():
                self.latency.begin(event.after, f"cell {event.cell}: now {event.what} {event.after}")
            case TilesChanged():
                self.latency.begin(f"tiles {event.after}", f"cell {event.cell}: now tiles {event.after}")

    def _note_freezing(self, event: Event) -> None:
        """Which guests are being frozen, and how far they are; each cell begins anew."""
        match event:
            case CellStarted():
                self._freezing = {}
            case SnapshotProgressed():
                began = self._freezing[event.guest].began if event.guest in self._freezing else event.mono
                self._freezing[event.guest] = FreezingView(event.guest, event.stage, began)
            case SnapshotMade() if event.guest in self._freezing:
                self._freezing[event.guest] = self._freezing[event.guest]._replace(seconds=event.seconds)

    def _coming(self, cell: CellTimeline | None) -> Axes | None:
        """The axis values of the cell after this one; None where the record does not tell what was changed."""
        place = cell.told.cell if cell else 0
        if self._changed is None:
            return self._planned[place] if 0 < place < len(self._planned) else None
        for one in self._changed.coming or ():
            if one["cell"] > place and one["state"] != "skipped":
                return tuple(one["axes"].items())
        return None

    def _ending(self) -> tuple[str, str, float | None]:
        """Outcome and reason of the run, and the moment of its end."""
        end = self._timeline.ended
        if end is not None:
            return end.outcome, end.reason, end.mono
        if self._abandoned is not None:
            now, reason = self._abandoned
            return Outcome.ABORTED, reason, now
        return RUNNING, "", None

    def _guest_views(self, cell: CellTimeline) -> tuple[GuestView, ...]:
        """The guests of a cell, and other places whose workloads have begun, by tile and name."""
        own: dict[tuple[int, str], list[WorkloadView]] = {}
        for known in cell.workloads.values():
            part = self._intent.get(known.workload)
            guest = known.guest or (part.client if part else "")
            own.setdefault((known.tile, guest), []).append(self._workload_view(known, cell))
        there = {
            place for place, guest in cell.guests.items() if guest.state != "gone" or not cell.is_retired(place[0])
        }
        places = {*there, *(place for place in own if place[1] and not cell.is_retired(place[0]))}
        return tuple(self._guest_view(cell, *place, tuple(own.get(place, ()))) for place in sorted(places))

    def _guest_view(self, cell: CellTimeline, tile: int, guest: str, workloads: tuple[WorkloadView, ...]) -> GuestView:
        known = cell.guests.get((tile, guest))
        role, state = (known.role, known.state) if known else ("", HOST_STATE)
        if state != "gone" and any(each.outcome == RUNNING and each.seconds is None for each in workloads):
            state = RUNNING
        serves = tuple(name for name, part in self._intent.items() if part.server == guest)
        own = (cell.told.settings.get("guests") or {}).get(guest) or {}
        return GuestView(tile, guest, role, state, workloads, serves, own.get("vcpus") or 0)

    def _workload_view(self, known: WorkloadTimeline, cell: CellTimeline) -> WorkloadView:
        return WorkloadView(
            name=known.workload,
            began=known.began,
            fraction=known.fraction,
            stage=known.progress.stage if known.progress else "",
            outcome=known.end.outcome if known.end else RUNNING,
            seconds=known.seconds,
            last_seconds=self._past.get((known.workload, known.tile, _axes(cell))),
        )


def _axis_of_map(name: str, value: AxisValue) -> str:
    """A value for the axis of the heat map; a number alone would not say of what it is."""
    return f"{name} {value}" if isinstance(value, int) and not isinstance(value, bool) else axis_word(value)


def _of_screen(text: str) -> str:
    """A text of the log without QEMU's own words, which `vmlab doctor` and the launcher's log have."""
    return "guests are emulated: no usable KVM" if text.startswith(_OF_QEMU) else text


def _moment(event: Event) -> Moment | None:
    """The mark that an event has on the time axis, if any."""
    match event:
        case CellStarted():
            return Moment(event.mono, f"cell {event.cell}", "accent")
        case PhaseStarted():
            return Moment(event.mono, event.phase)
        case CellsReplanned():
            return Moment(event.mono, "changed", "warning")
        case CommandReceived() if event.command == RESUME:
            return Moment(event.mono, "resumed", "warning")
        case CacheSwitched() | KsmSwitched():
            return Moment(event.mono, f"{event.what} {event.after}", "warning")
        case TilesChanged():
            return Moment(event.mono, f"tiles {event.after}", "warning")
        case _:
            return None


def passed_times(cell: CellTimeline) -> dict[tuple[str, int, Axes], float]:
    """How long the workloads of a cell took that passed."""
    axes = _axes(cell)
    return {
        (end.workload, end.tile, axes): end.seconds for end in cell.ended_workloads if end.outcome == Outcome.PASSED
    }


def _axes(cell: CellTimeline) -> Axes:
    return tuple(cell.told.axes.items())


def cell_view(cell: CellTimeline) -> CellView:
    """A cell as the console draws it."""
    return CellView(
        number=cell.told.cell,
        axes=_axes(cell),
        repeat=cell.told.repeat,
        phase=cell.phase.phase if cell.phase else "",
        phase_began=cell.phase.mono if cell.phase else 0.0,
        outcome=cell.told.outcome,
        wall_seconds=cell.told.wall_seconds,
        settings=cell.told.settings,
        switches=tuple((one.mono, one.what, one.after) for one in cell.switches),
        tile_changes=tuple((one.mono, one.after) for one in cell.tile_changes),
    )
