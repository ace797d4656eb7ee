"""How a run goes on in its own record, one that was cut off or one that is to have more: cells that have ended count,
and the others are measured.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from vmlab.analysis.record.cell_timeline import CellTimeline
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.lab.process.dead_runs import sweep_run
from vmlab.lab.process.launch import check_ready, check_startable, spawn_launcher
from vmlab.lab.process.measuring_runs import Turn, claim, refuse_beside_others
from vmlab.lab.process.prepared import RunRequest, keep_request, plan_of, scenario_of
from vmlab.lab.process.run_folder import RunFolder, RuntimeFolder
from vmlab.lab.process.waiting_runs import Tell, in_turn
from vmlab.lab.provision.host_support import prepare_run
from vmlab.model.cell_event import FiguresRemade
from vmlab.model.errors import CleanupIncomplete, RefusedError, UsageError, in_one_line
from vmlab.model.event import (
    RESUME,
    AttemptsAsked,
    CellsReplanned,
    CellWithdrawn,
    CommandReceived,
    Event,
    Notice,
    RepeatsAdded,
)
from vmlab.model.quantities import about_seconds
from vmlab.model.run import MOST_EXTENSIONS, WARM_UP, Outcome
from vmlab.model.visible import visible_line
from vmlab.plan.cell_settings import settings_of
from vmlab.plan.hosting import check_fit
from vmlab.plan.terms import Place, Plan, place_of
from vmlab.store.life import is_recording
from vmlab.store.reader import RunReader
from vmlab.store.writer import RunWriter
from vmlab.system.descriptors import closed_after
from vmlab.system.terminal import say


@dataclass(frozen=True, slots=True)
class More:
    """What is asked of a run that has ended: its `invalid` and failed cells once more, and so many further repeats."""

    invalid: bool = False
    repeats: int = 0

    @property
    def asked(self) -> bool:
        """Whether anything is."""
        return self.invalid or self.repeats > 0


NO_MORE = More()
"""For a run that was cut off, and goes on as it was planned."""


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

    def kept(self) -> dict[Place, CellTimeline]:
        """The last attempt at each planned cell that has ended."""
        anew = {*self.broke_off()}
        known = ((number, cell) for number, cell in self.timeline.cells.items() if number not in anew)
        return {place_of(cell.told.axes, cell.told.repeat): cell for _, cell in known}

    def asked_again(self) -> list[int]:
        """The cells that were asked to be measured again, and have not been."""
        final = {cell.told.cell for cell in self.kept().values()}
        return sorted(self.timeline.asked_again & final)

    def unpassed(self) -> list[int]:
        """The cells that are invalid or have failed, by their last attempts."""
        return [cell.told.cell for cell in self.kept().values() if cell.told.outcome != Outcome.PASSED]

    def seconds_left(self, plan: Plan, more: More) -> float:
        """For how many seconds the cells are planned that are to be measured."""
        kept = self.kept()
        again = {*self.asked_again(), *(self.unpassed() if more.invalid else ())}
        left = {place for place, cell in kept.items() if cell.told.cell not in again}
        return sum(cell.seconds for cell in plan.cells if place_of(cell.axes, cell.repeat) not in left)

    def has_ended(self, plan: Plan) -> bool:
        """Whether nothing is left to measure or to decide, and it says so."""
        known = self.timeline
        over = known.ended is not None and known.ended.outcome != Outcome.ABORTED
        wanted = sum(cell.repeat != WARM_UP for cell in plan.cells)
        done = known.repeats_ended is not None or len(self.kept()) == wanted
        return over and done and not self.asked_again()

    def planned_cells(self) -> int:
        """How many cells the record has as planned."""
        known = self.timeline
        return known.extensions[-1].cells if known.extensions else known.started.cells if known.started else 0


def resume_run(folder: RunFolder, more: More = NO_MORE, *, concurrent: bool = False, tell: Tell | None = None) -> None:
    """Have a run go on that was stopped or killed, or has ended and is to have `more`, independent of this process;
    returns as soon as its launcher runs.

    With `tell` it waits for its turn on this host, and calls that meanwhile with where it stands. What it left on this
    host is cleared first. Raises UsageError where there is nothing to go on with, RefusedError where it cannot go on
    here, HostBusy where another run measures or waits and this one is not `concurrent`, and CleanupIncomplete.
    """
    if os.geteuid() != 0:
        check_ready()
    if tell is None:
        _resume(folder, more, concurrent=concurrent)
        return

    def planned() -> float:
        # What would be refused after the waiting is refused at once.
        os.close(_locked(folder))
        _, plan, recorded = _cut_off(folder, more)
        return recorded.seconds_left(plan, more)

    in_turn(folder.id, lambda turn: _resume(folder, more, turn=turn), planned=planned, tell=tell)


def _locked(folder: RunFolder) -> int:
    """The run's lock. Raises UsageError where it is under way, or none that began to measure here."""
    if not folder.is_own() or is_recording(folder.path) or not folder.request.is_file() or not folder.store.is_file():
        raise UsageError(f"run {folder.id} is none that began to measure here")
    return folder.take_lock_of_dead()


def _resume(folder: RunFolder, more: More, *, concurrent: bool = False, turn: Turn | None = None) -> None:
    lock = _locked(folder)
    notes: list[str] = []
    try:
        request, plan, recorded = _cut_off(folder, more)
        if not concurrent:
            refuse_beside_others(turn)
        if left := sweep_run(folder, tell=notes.append):
            raise CleanupIncomplete(f"run {folder.id} left behind: {', '.join(left)}")
        check_ready()
        _check_plan(folder, request, plan, recorded, concurrent=concurrent)
        seconds = recorded.seconds_left(plan, more)
        with closed_after(claim(folder, planned=seconds, concurrent=concurrent, turn=turn)) as measuring:
            keep_request(folder, request)
            _reopen(folder, plan, recorded, more, notes)
            notes.clear()
            _make_folders(folder)
            folder.note_processes(launcher_pid=spawn_launcher(folder, lock, measuring))
    finally:
        os.close(lock)
        for line in notes:
            say(f"vmlab: {visible_line(line)}")


def _cut_off(folder: RunFolder, more: More) -> tuple[RunRequest, Plan, _Recorded]:
    """Request, plan and record. Raises UsageError unless cells of the plan are left that can be measured as planned."""
    request, recorded = RunRequest.of(folder), _Recorded.of(folder)
    plan = plan_of(folder)
    if more.asked:
        _demand_extensible(folder, plan, recorded)
    if more.repeats:
        request = replace(request, overrides=replace(request.overrides, repeats=plan.scenario.repeats + more.repeats))
        plan = plan_of(folder, request)
    if request.held is not None:
        raise UsageError(f"run {folder.id} is a part of a fleet's run, and goes on with that")
    if recorded.timeline.started is None:
        raise UsageError(f"run {folder.id} never began; start it anew")
    if recorded.changed:
        raise UsageError(f"run {folder.id}: its cells to come were changed while it ran; start it anew")
    if more.invalid and not recorded.unpassed() and recorded.has_ended(plan):
        raise UsageError(f"run {folder.id} has no cell that is invalid or has failed")
    if not more.asked and recorded.has_ended(plan):
        raise UsageError(f"run {folder.id} has ended; `vmlab show {folder.id}` shows it")
    return request, plan, recorded


def _demand_extensible(folder: RunFolder, plan: Plan, recorded: _Recorded) -> None:
    """Raises UsageError for a run to which nothing can be added."""
    if plan.scenario.until is not None:
        raise UsageError(f"run {folder.id} ended by its `until`, which decides how many repeats there are")
    if len(recorded.timeline.extensions) >= MOST_EXTENSIONS:
        raise UsageError(f"run {folder.id} had repeats added {MOST_EXTENSIONS} times, which is the most")
    if plan.loop is not None:
        raise UsageError(f"run {folder.id} is a loop, whose values do not count")
    if not recorded.has_ended(plan):
        raise UsageError(f"run {folder.id} has cells left to measure; `vmlab resume {folder.id}` measures them first")


def _check_plan(folder: RunFolder, request: RunRequest, asked: Plan, recorded: _Recorded, *, concurrent: bool) -> None:
    """Raise RefusedError where this program plans other cells by now, or the run cannot start on this host."""
    plan, host = prepare_run(scenario_of(folder, request), request.overrides)
    cells = {place_of(cell.axes, cell.repeat): cell for cell in plan.cells}
    anew = {*recorded.broke_off()}
    for number, known in recorded.timeline.cells.items():
        told = known.told
        cell = cells.get(place_of(told.axes, told.repeat))
        then = (told.axes, told.repeat, {name: one for name, one in told.settings.items() if name != "host"})
        # Records of older versions do not say which caches started warm.
        left_out = () if "warm" in told.settings else ("warm",)
        now = {} if cell is None else {key: one for key, one in settings_of(cell).items() if key not in left_out}
        if number not in anew and (cell is None or _as_kept([cell.axes, cell.repeat, now]) != _as_kept(then)):
            raise RefusedError(f"run {folder.id}: cell {number} would be planned otherwise now; start it anew")
    if len(plan.cells) != len(asked.cells) or len(plan.cells) < recorded.planned_cells():
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


def _reopen(folder: RunFolder, plan: Plan, recorded: _Recorded, more: More, notes: Sequence[str]) -> None:
    """Have the record go on. Killed between two of these steps, the run can be resumed once more."""
    assert recorded.last is not None
    added = len(plan.cells) - recorded.planned_cells()
    again = recorded.unpassed() if more.invalid else []
    with closing(RunWriter(folder.store)) as writer:
        writer.reopen(time.monotonic() - recorded.last.mono)
        writer.append(CommandReceived(command=RESUME, origin="vmlab resume"))
        for number in recorded.broke_off():
            writer.withdraw(CellWithdrawn(cell=number, name="", reason="the run was cut off"))
        if again:
            writer.append(AttemptsAsked(cells=again))
        if added > 0:
            # Also where this was asked for and the process died before it was recorded.
            writer.append(RepeatsAdded(repeats=plan.scenario.repeats, cells=len(plan.cells)))
            writer.document("request", folder.request.read_text(encoding="utf-8"))
        pause = about_seconds(max(0.0, time.time() - recorded.last.wall))
        if more.asked:
            text = f"the run was resumed {pause} after its end: {_more_words(plan, again, added)}"
        else:
            ended = len(recorded.kept())
            text = f"the run was cut off after {ended} of {recorded.planned_cells()} cells, and resumed {pause} later"
        for line in (text, *notes):
            writer.append(Notice(level="warning", text=line))


def _more_words(plan: Plan, again: Sequence[int], added: int) -> str:
    parts = [f"{len(again)} cell{'s' if len(again) > 1 else ''} measured again"] if again else []
    return ", ".join([*parts, *([f"up to {plan.scenario.repeats} repeats"] if added > 0 else [])])
