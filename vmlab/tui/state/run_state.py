"""The reducer: events go in, frozen pictures come out. Live run, recording and replay go the same way."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from vmlab.model.event import (
    CacheProved,
    CellEnded,
    CellsReplanned,
    CellStarted,
    CommandReceived,
    Event,
    GuestStateChanged,
    HostProbed,
    PhaseEnded,
    PhaseStarted,
    RunEnded,
    RunStarted,
    WorkloadEnded,
    WorkloadProgressed,
    WorkloadStarted,
)
from vmlab.tui.state.views import DONE, RUNNING, Axes, CellView, GuestView, Intent, LogLine, RunView, WorkloadView
from vmlab.tui.state.wording import log_line

LOG_LINES = 1000
HOST_STATE = "ready"
"""The state of a place that is no guest of the lab, such as the host itself."""
PastTimes = Mapping[tuple[str, int, Axes], float]
"""Seconds that a workload took the last time, by its name, its tile and its cell's axes."""


class RunState:
    """What is known of one run so far.

    `past` holds how long workloads took in earlier runs of the same experiment, `intent` what the scenario says of
    them, so that guests have their workloads before these have said a word.
    """

    def __init__(self, past: PastTimes | None = None, intent: Intent | None = None) -> None:
        self._past = dict(past or {})
        self._intent = dict(intent or {})
        self._run = RunView()
        self._cell: CellView | None = None
        self._cells: list[CellView] = []
        self._guests: dict[tuple[int, str], GuestView] = {}
        self._workloads: dict[tuple[int, str], WorkloadView] = {}
        self._log: deque[LogLine] = deque(maxlen=LOG_LINES)

    def remember(self, past: PastTimes) -> None:
        """Take over how long workloads took in earlier runs; what this run has shown itself stands."""
        self._past = {**past, **self._past}

    def intend(self, intent: Intent) -> None:
        """Take over what the scenario says of its workloads."""
        self._intent = dict(intent)

    def apply(self, event: Event) -> None:
        """Take in the next event of the run; kinds that change nothing here are passed over."""
        line = log_line(event)
        if line is not None:
            self._log.append(line)
        self._apply_run(event)
        self._apply_cell(event)
        self._apply_work(event)

    def note(self, line: LogLine) -> None:
        """Put a line of the viewer's own into the log."""
        self._log.append(line)

    def abandon(self, now: float, reason: str) -> None:
        """The run's processes are gone without a last word: it counts as aborted from `now` on."""
        self._run = replace(self._run, outcome="aborted", reason=reason, ended=now)

    def snapshot(self) -> RunView:
        """The run as it stands."""
        guests = tuple(self._pictured(guest) for _, guest in sorted(self._guests.items()))
        return replace(self._run, cell=self._cell, cells=tuple(self._cells), guests=guests, log=tuple(self._log))

    def _pictured(self, guest: GuestView) -> GuestView:
        own = tuple(w for w in self._workloads.values() if w.tile == guest.tile and w.guest == guest.guest)
        busy = any(w.outcome == RUNNING and w.seconds is None for w in own) and guest.state != "gone"
        serves = tuple(name for name, part in self._intent.items() if part.server == guest.guest)
        return replace(guest, state=RUNNING if busy else guest.state, workloads=own, serves=serves)

    def _apply_run(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._run = RunView(
                    id=event.run,
                    scenario=event.scenario,
                    size=event.size,
                    cells_planned=event.cells,
                    expected_seconds=event.expected_seconds,
                    started_wall=event.wall,
                    began=event.mono,
                )
            case HostProbed():
                self._run = replace(self._run, accelerator=event.accelerator)
            case CommandReceived(command="stop"):
                self._run = replace(self._run, stopping=True)
            case CellsReplanned():
                self._run = replace(
                    self._run,
                    cells_planned=event.cells,
                    expected_seconds=event.mono - self._run.began + event.expected_seconds,
                    next_axes=tuple(event.next_axes.items()),
                )
            case RunEnded():
                self._run = replace(self._run, outcome=event.outcome, reason=event.reason, ended=event.mono)
            case _:
                pass

    def _apply_cell(self, event: Event) -> None:
        match event:
            case CellStarted():
                self._cell = CellView(event.cell, tuple(event.axes.items()), event.repeat, event.mono, event.guests)
                self._guests.clear()
                self._workloads.clear()
                self._run = replace(self._run, next_axes=None)
            case PhaseStarted() if self._cell:
                self._cell = replace(self._cell, phase=event.phase, phase_began=event.mono)
            case PhaseEnded() if self._cell:
                self._cell = replace(self._cell, phase="")
            case CacheProved() if self._cell:
                agrees = self._cell.proofs_agree and event.agrees
                self._cell = replace(self._cell, proofs=self._cell.proofs + 1, proofs_agree=agrees)
            case CellEnded() if self._cell:
                self._cell = replace(
                    self._cell,
                    phase="",
                    outcome=event.outcome,
                    reasons=tuple(event.reasons),
                    wall_seconds=event.wall_seconds,
                )
                self._cells.append(self._cell)
            case _:
                pass

    def _apply_work(self, event: Event) -> None:
        match event:
            case GuestStateChanged():
                self._guests[event.tile, event.guest] = GuestView(event.tile, event.guest, event.role, event.state)
            case WorkloadStarted():
                known = self._workloads.get((event.tile, event.workload))
                began = event.mono if known is None else known.began
                self._begin(event.workload, event.tile, event.guest, event.benchmark, began, known)
            case WorkloadProgressed():
                self._progressed(event)
            case WorkloadEnded():
                if (event.tile, event.workload) not in self._workloads:
                    self._begin(event.workload, event.tile, event.guest, "", event.mono - event.seconds)
                self._change(
                    event.tile, event.workload, outcome=event.outcome, seconds=event.seconds, reason=event.reason
                )
                if event.outcome == "passed" and self._cell:
                    self._past[event.workload, event.tile, self._cell.axes] = event.seconds
            case _:
                pass

    def _progressed(self, event: WorkloadProgressed) -> None:
        known = self._workloads.get((event.tile, event.workload))
        if known is None:
            part = self._intent.get(event.workload)
            began = self._cell.phase_began if self._cell and self._cell.phase else event.mono
            self._begin(event.workload, event.tile, part.client if part else "", part.kind if part else "", began)
        elif event.stage == DONE and known.seconds is None:
            # The client has ended; its figures are verified when all have, and until then this is its time.
            self._change(event.tile, event.workload, seconds=event.mono - known.began)
        self._change(event.tile, event.workload, fraction=_fraction(event), stage=event.stage)

    def _begin(
        self, workload: str, tile: int, guest: str, kind: str, began: float, known: WorkloadView | None = None
    ) -> None:
        last = self._past.get((workload, tile, self._cell.axes if self._cell else ()))
        fresh = WorkloadView(workload, tile, guest, kind, began, last_seconds=last)
        if known is not None:
            fresh = replace(known, guest=guest, kind=kind)
        self._workloads[tile, workload] = fresh
        if guest:
            self._guests.setdefault((tile, guest), GuestView(tile, guest, "", HOST_STATE))

    def _change(self, tile: int, workload: str, **changes: object) -> None:
        known = self._workloads.get((tile, workload))
        if known is not None:
            self._workloads[tile, workload] = replace(known, **changes)  # type: ignore[arg-type]


def _fraction(event: WorkloadProgressed) -> float:
    return min(1.0, max(0.0, event.done / event.total)) if event.total > 0 else 0.0
