"""How a run goes on that was cut off, in its own record: cells that have ended count, and the others are measured."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.lab.process.dead_runs import sweep_run
from vmlab.lab.process.launch import check_ready, check_startable, spawn_launcher
from vmlab.lab.process.measuring_runs import Turn, claim, refuse_beside_others
from vmlab.lab.process.prepared import RunRequest, plan_of, scenario_of
from vmlab.lab.process.run_folder import RunFolder, RuntimeFolder, closed_after
from vmlab.lab.process.waiting_runs import Tell, in_turn
from vmlab.lab.provision.host_support import prepare_run
from vmlab.model.cell_event import FiguresRemade
from vmlab.model.errors import CleanupIncomplete, RefusedError, UsageError, in_one_line
from vmlab.model.event import (
    RESUME,
    CellsReplanned,
    CellWithdrawn,
    CommandReceived,
    Event,
    Notice,
)
from vmlab.model.quantities import about_seconds
from vmlab.model.run import WARM_UP, Outcome
from vmlab.model.visible import visible_line
from vmlab.plan.planning import Plan, check_fit, settings_of
from vmlab.store.life import is_recording
from vmlab.store.reader import RunReader
from vmlab.store.writer import RunWriter
from vmlab.system.terminal import say


@dataclass(slots=True)
class _Recorded:
    """What the record of a run that was cut off has."""

    timeline: RunTimeline = field(default_factory=RunTimeline)
    last: Event | None = None
    """The clocks when the last event or sample was taken."""
    changed: bool = False
    """Whether its cells to come were changed while it ran."""

    @classmethod
    def of(cls, folder: RunFolder) -> _Recorded:
        found = cls()
        with RunReader(folder.store) as reader:
            for _, event in reader.events():
                found.timeline.apply(event)
                # Figures that were made again later have the time of their cell.
                if not isinstance(event, FiguresRemade):
                    found.last = event
                if isinstance(event, CellsReplanned):
                    found.changed |= any(one["state"] != "planned" for one in event.coming or ())
            if found.last is not None:
                for row in reader.sample_rows(since=found.last.mono):
                    found.last = Event(wall=row.wall, mono=row.mono)
        return found

    def broke_off(self) -> Iterator[int]:
        """The cells that have begun and have no end that counts, and the warm-up, which those to come need anew."""
        for number, cell in self.timeline.cells.items():
            if cell.ended is None or cell.told.outcome == Outcome.ABORTED or cell.told.repeat == WARM_UP:
                yield number

    def seconds_left(self, plan: Plan) -> float:
        """For how many seconds the cells are planned that are to be measured."""
        kept = self.timeline.cells.keys() - set(self.broke_off())
        return sum(cell.seconds for cell in plan.cells if cell.index not in kept)

    def ended(self) -> int:
        """How many cells have ended, and count."""
        return len(self.timeline.cells) - len(list(self.broke_off()))

    def has_ended(self, plan: Plan) -> bool:
        """Whether nothing is left to measure or to decide, and it says so."""
        known = self.timeline
        over = known.ended is not None and known.ended.outcome != Outcome.ABORTED
        wanted = sum(cell.repeat != WARM_UP for cell in plan.cells)
        return over and (known.repeats_ended is not None or self.ended() == wanted)


def resume_run(folder: RunFolder, *, concurrent: bool = False, tell: Tell | None = None) -> None:
    """Have a run go on that was stopped or killed, independent of this process; returns as soon as its launcher runs.

    With `tell` it waits for its turn on this host, and calls that meanwhile with where it stands. What it left on this
    host is cleared first. Raises UsageError where there is nothing to go on with, RefusedError where it cannot go on
    here, HostBusy where another run measures or waits and this one is not `concurrent`, and CleanupIncomplete.
    """
    if os.geteuid() != 0:
        check_ready()
    if tell is None:
        _resume(folder, concurrent=concurrent)
        return

    def planned() -> float:
        # What would be refused after the waiting is refused at once.
        os.close(_locked(folder))
        plan, recorded = _cut_off(folder)
        return recorded.seconds_left(plan)

    in_turn(folder.id, lambda turn: _resume(folder, turn=turn), planned=planned, tell=tell)


def _locked(folder: RunFolder) -> int:
    """The run's lock. Raises UsageError where it is under way, or none that began to measure here."""
    if not folder.is_own() or is_recording(folder.path) or not folder.request.is_file() or not folder.store.is_file():
        raise UsageError(f"run {folder.id} is none that began to measure here")
    return folder.take_lock_of_dead()


def _resume(folder: RunFolder, *, concurrent: bool = False, turn: Turn | None = None) -> None:
    lock = _locked(folder)
    notes: list[str] = []
    try:
        plan, recorded = _cut_off(folder)
        if not concurrent:
            refuse_beside_others(turn)
        if left := sweep_run(folder, tell=notes.append):
            raise CleanupIncomplete(f"run {folder.id} left behind: {', '.join(left)}")
        check_ready()
        _check_plan(folder, recorded, concurrent=concurrent)
        seconds = recorded.seconds_left(plan)
        with closed_after(claim(folder, planned=seconds, concurrent=concurrent, turn=turn)) as measuring:
            _reopen(folder, plan, recorded, notes)
            notes.clear()
            _make_folders(folder)
            folder.note_processes(launcher_pid=spawn_launcher(folder, lock, measuring))
    finally:
        os.close(lock)
        for line in notes:
            say(f"vmlab: {visible_line(line)}")


def _cut_off(folder: RunFolder) -> tuple[Plan, _Recorded]:
    """Plan and record. Raises UsageError unless cells of the plan are left that can be measured as planned."""
    plan, recorded = plan_of(folder), _Recorded.of(folder)
    if RunRequest.of(folder).held is not None:
        raise UsageError(f"run {folder.id} is a part of a fleet's run, and goes on with that")
    if recorded.timeline.started is None:
        raise UsageError(f"run {folder.id} never began; start it anew")
    if recorded.changed:
        raise UsageError(f"run {folder.id}: its cells to come were changed while it ran; start it anew")
    if recorded.has_ended(plan):
        raise UsageError(f"run {folder.id} has ended; `vmlab show {folder.id}` shows it")
    return plan, recorded


def _check_plan(folder: RunFolder, recorded: _Recorded, *, concurrent: bool) -> None:
    """Raise RefusedError where this program plans other cells by now, or the run cannot start on this host."""
    request = RunRequest.of(folder)
    plan, host = prepare_run(scenario_of(folder, request), request.overrides)
    cells = {cell.index: cell for cell in plan.cells}
    anew = {*recorded.broke_off()}
    for number, known in recorded.timeline.cells.items():
        told, cell = known.told, cells.get(number)
        then = (told.axes, told.repeat, {name: one for name, one in told.settings.items() if name != "host"})
        if number not in anew and (
            cell is None or _as_kept([cell.axes, cell.repeat, settings_of(cell)]) != _as_kept(then)
        ):
            raise RefusedError(f"run {folder.id}: cell {number} would be planned otherwise now; start it anew")
    if recorded.timeline.started is not None and len(cells) != recorded.timeline.started.cells:
        raise RefusedError(f"run {folder.id} has other cells than would be planned now; start it anew")
    check_fit(plan, host, overcommit=True)
    check_startable(plan, concurrent=concurrent)


def _as_kept(value: Sequence[Any]) -> Any:
    return json.loads(json.dumps(value))


def _make_folders(folder: RunFolder) -> None:
    try:
        folder.disks.mkdir(exist_ok=True)
        RuntimeFolder(folder.runtime).make(folder.id, folder.path)
    except OSError as error:
        raise RefusedError(f"cannot write {in_one_line(error)}") from error


def _reopen(folder: RunFolder, plan: Plan, recorded: _Recorded, notes: Sequence[str]) -> None:
    """Have the record go on. Killed between two of these steps, the run can be resumed once more."""
    assert recorded.last is not None
    with closing(RunWriter(folder.store)) as writer:
        writer.reopen(time.monotonic() - recorded.last.mono)
        writer.append(CommandReceived(command=RESUME, origin="vmlab resume"))
        for number in recorded.broke_off():
            writer.withdraw(CellWithdrawn(cell=number, name="", reason="the run was cut off"))
        pause = about_seconds(max(0.0, time.time() - recorded.last.wall))
        text = f"the run was cut off after {recorded.ended()} of {len(plan.cells)} cells, and went on {pause} later"
        for line in (text, *notes):
            writer.append(Notice(level="warning", text=line))
