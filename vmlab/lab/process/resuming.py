"""How a run goes on that was cut off, in its own record: cells that have ended count, and the others are measured."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.lab.process.dead_runs import sweep_run
from vmlab.lab.process.launch import spawn_launcher
from vmlab.lab.process.measuring_runs import claim
from vmlab.lab.process.preflight import check_ready
from vmlab.lab.process.prepared import plan_of
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.process.run_request import RunRequest
from vmlab.lab.process.runtime_folder import RuntimeFolder
from vmlab.lab.provision.host_support import prepare_run
from vmlab.model.errors import CleanupIncomplete, RefusedError, UsageError, in_one_line
from vmlab.model.event import CellsReplanned, CellWithdrawn, Event, Notice
from vmlab.model.quantities import about_seconds
from vmlab.model.run import Outcome
from vmlab.plan.planning import Plan, check_fit
from vmlab.plan.scenario_file.loading import load
from vmlab.store.life import is_recording
from vmlab.store.reader import RunReader
from vmlab.store.writer import RunWriter


@dataclass(slots=True)
class _Recorded:
    """What the record of a run that was cut off has; `last` is its last event."""

    timeline: RunTimeline = field(default_factory=RunTimeline)
    last: Event | None = None
    changed: bool = False
    """Whether its cells to come were changed while it ran."""

    @classmethod
    def of(cls, folder: RunFolder) -> _Recorded:
        found = cls()
        with RunReader(folder.store) as reader:
            for _, event in reader.events():
                found.timeline.apply(event)
                found.last = event
                if isinstance(event, CellsReplanned):
                    found.changed |= any(one["state"] != "planned" for one in event.coming or ())
        return found

    def broke_off(self) -> Iterator[int]:
        """The cells that have begun, and have no end that counts."""
        for number, cell in self.timeline.cells.items():
            if cell.end is None or cell.end.outcome == Outcome.ABORTED:
                yield number

    def ended(self) -> int:
        """How many cells have ended, and count."""
        return len(self.timeline.cells) - len(list(self.broke_off()))


def resume_run(folder: RunFolder) -> None:
    """Have a run go on that was stopped or killed, independent of this process; returns as soon as its launcher runs.

    What it left on this host is cleared first. Raises UsageError where there is nothing to go on with, RefusedError
    where it cannot go on here, HostBusy where another run measures, and CleanupIncomplete.
    """
    if not folder.is_own() or is_recording(folder.path) or not folder.request.is_file() or not folder.store.is_file():
        raise UsageError(f"run {folder.id} is none that began to measure here")
    try:
        lock = folder.take_lock()
    except BlockingIOError:
        raise UsageError(f"run {folder.id} is under way; `vmlab attach {folder.id}` follows it") from None
    try:
        plan = plan_of(folder)
        recorded = _Recorded.of(folder)
        _demand_cut_off(folder, plan, recorded)
        if left := sweep_run(folder):
            raise CleanupIncomplete(f"run {folder.id} left behind: {', '.join(left)}")
        check_ready()
        _check_plan(folder, plan)
        measuring = claim(folder)
        try:
            _make_folders(folder)
            _reopen(folder, plan, recorded)
            folder.note_processes(launcher_pid=spawn_launcher(folder, lock, measuring))
        finally:
            os.close(measuring)
    finally:
        os.close(lock)


def _demand_cut_off(folder: RunFolder, plan: Plan, recorded: _Recorded) -> None:
    """Raise UsageError unless cells of the plan are left that can be measured as planned."""
    known = recorded.timeline
    if RunRequest.of(folder).held is not None:
        raise UsageError(f"run {folder.id} is a part of a fleet's run, and goes on with that")
    if known.started is None:
        raise UsageError(f"run {folder.id} never began; start it anew")
    if recorded.changed:
        raise UsageError(f"run {folder.id}: its cells to come were changed while it ran; start it anew")
    if known.repeats_ended is not None or recorded.ended() == len(plan.cells):
        raise UsageError(f"run {folder.id} has ended; `vmlab show {folder.id}` shows it")


def _check_plan(folder: RunFolder, before: Plan) -> None:
    """Raise RefusedError where this program plans other cells by now, or this host lacks room for them."""
    plan, host = prepare_run(load(str(folder.scenario)), RunRequest.of(folder).overrides)
    cells, then = ([(cell.index, cell.axes, cell.repeat) for cell in one.cells] for one in (plan, before))
    if cells != then:
        raise RefusedError(f"run {folder.id} has other cells than would be planned now; start it anew")
    check_fit(plan, host, overcommit=True)


def _make_folders(folder: RunFolder) -> None:
    try:
        folder.disks.mkdir(exist_ok=True)
        RuntimeFolder(folder.runtime).make(folder.id, folder.path)
    except OSError as error:
        raise RefusedError(f"cannot write {in_one_line(error)}") from error


def _reopen(folder: RunFolder, plan: Plan, recorded: _Recorded) -> None:
    """Have the record go on. Killed between two of these steps, the run can be resumed once more."""
    assert recorded.last is not None
    writer = RunWriter(folder.store)
    try:
        writer.reopen(ahead_of(recorded.last, Event()))
        for number in recorded.broke_off():
            writer.withdraw(CellWithdrawn(cell=number, name="", reason="the run was cut off"))
        pause = about_seconds(max(0.0, time.time() - recorded.last.wall))
        text = f"the run was cut off after {recorded.ended()} of {len(plan.cells)} cells, and went on {pause} later"
        writer.append(Notice(level="warning", text=text))
    finally:
        writer.close()


def ahead_of(last: Event, now: Event) -> float:
    """Seconds to add to the monotonic clock of what was recorded up to `last`, so that `now` comes after it.

    Zero while the host has not booted in between. Otherwise the wall clock says how long ago it was, if that went on.
    """
    if now.mono >= last.mono and abs((now.wall - last.wall) - (now.mono - last.mono)) < _SAME_BOOT_SECONDS:
        return 0.0
    return now.mono - last.mono - max(0.0, now.wall - last.wall)


_SAME_BOOT_SECONDS = 60.0
"""By how much wall clock and monotonic clock may differ within one boot, as when the time is set."""
