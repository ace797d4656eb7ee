"""Starts one run from the command line and follows it to its end, for the commands that wait for runs."""

from __future__ import annotations

import math
import time

from vmlab.analysis.shape import RunDocument
from vmlab.cli.diagnostics import say
from vmlab.cli.interrupts import InterruptedLater
from vmlab.cli.options import Beside
from vmlab.cli.output import page_width, run_text, write_figures, write_json, write_text
from vmlab.cli.progress import Detail, RunProgress, WaitingLine
from vmlab.lab.commands.forced_end import kill_because, killed_because
from vmlab.lab.commands.stopping import STOP_SECONDS, is_over, stop_run
from vmlab.lab.process.event_feed import watch
from vmlab.lab.process.launch import check_ready, start_run
from vmlab.lab.process.measuring_runs import Turn, refuse_beside_others
from vmlab.lab.process.run_folder import RunFolder, RuntimeFolder
from vmlab.lab.process.waiting_runs import in_turn
from vmlab.lab.provision.host_support import prepare_run
from vmlab.model.errors import CommandFailed, ExitCode, StoreError, UsageError, VmlabError, in_one_line
from vmlab.model.event import RunEnded
from vmlab.model.jsonable import jsonable
from vmlab.model.visible import visible_line
from vmlab.plan.hosting import check_fit
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import Overrides
from vmlab.report.run.run_page import tables_alone
from vmlab.store.reader import RunReader
from vmlab.system.held_folder import suspect, why_lost

_LOOK_SECONDS = 0.1


def started(
    file: ScenarioFile, overrides: Overrides, interrupted: InterruptedLater, beside: Beside, *, overcommit: bool = True
) -> RunFolder:
    """Plan and start the run; where it waits, as soon as its turn on this host has come.

    Raises what `check_fit` and `start_run` raise.
    """

    def attempt(turn: Turn | None) -> RunFolder:
        with interrupted.obeyed():
            check_ready()
            if beside.wait:
                refuse_beside_others(turn)
            # Planned in its turn, because memory is free again when another run has ended.
            plan, host = prepare_run(file, overrides)
            check_fit(plan, host, overcommit=overcommit)
        return start_run(file, overrides, plan, host, concurrent=beside.concurrent, turn=turn)

    if not beside.wait:
        return attempt(None)
    with interrupted.obeyed():
        check_ready()
    with WaitingLine() as line:
        return in_turn(
            file.scenario.name,
            attempt,
            planned=lambda: prepare_run(file, overrides)[0].seconds,
            tell=line.show,
            heeding=interrupted.obeyed,
        )


def follow(
    folder: RunFolder,
    interrupted: InterruptedLater | None,
    detail: Detail = Detail.CELLS,
    *,
    page_follows: bool = False,
) -> ExitCode:
    """Show the run until it is over; returns its exit code. `page_follows` where the run's page is printed then.

    Raises CommandFailed where the system refuses to read of it: the run was started, and goes on; StoreError where its
    folder is gone.
    """
    try:
        # Unlike the path, this finds out what became of the folder.
        with folder.held():
            try:
                return _follow(folder, interrupted, RunProgress(detail=detail, page_follows=page_follows))
            except (VmlabError, OSError):
                # Whatever is at the place of its folder now.
                if why := why_lost():
                    raise _lost(folder, why) from None
                raise
    except OSError as error:
        words = f"run {folder.id} cannot be followed any more: {in_one_line(error)}"
        raise CommandFailed(f"{words}; it goes on, and `vmlab attach {folder.id}` tries again") from error


def _follow(folder: RunFolder, interrupted: InterruptedLater | None, progress: RunProgress) -> ExitCode:
    end = math.inf
    patience = STOP_SECONDS
    for event in watch(folder):
        if isinstance(event, RunEnded):
            _demand_whole(folder)
        progress.show(event)
        if interrupted is not None and interrupted.count > 0 and end == math.inf:
            say("stopping; the guests are cleared away first (once more to kill the run)")
            patience = _ask_to_stop(folder, interrupted)
            end = time.monotonic() + patience
        if interrupted is not None and progress.timeline.ended is None:
            if interrupted.count > 1:
                return kill(folder, interrupted.exit_code, "asked twice to stop")
            if time.monotonic() > end:
                return kill(folder, interrupted.exit_code, f"it did not stop within {patience:.0f} s")
    ended = progress.timeline.ended
    if ended is None:
        suspect(folder.store)
        if why := why_lost():
            raise _lost(folder, why)
        say(f"run {folder.id} was aborted: its processes are gone; `vmlab clean` clears what they left")
        return ExitCode.FAILED
    if not is_over(folder, STOP_SECONDS):
        kill(folder, ExitCode(ended.exit_code), f"its launcher did not end within {STOP_SECONDS:.0f} s")
    return ExitCode(ended.exit_code)


def _lost(folder: RunFolder, why: str) -> StoreError:
    """What to raise once the run has ended, which its own processes do when their folder is lost."""
    end, runtime = time.monotonic() + STOP_SECONDS, RuntimeFolder(folder.runtime)
    while runtime.alive() and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)
    goes_on = ", and has not ended yet; `vmlab clean` ends it" if runtime.alive() else ", and has ended"
    return StoreError(f"run {folder.id} has lost its record{goes_on}: {why}")


def _demand_whole(folder: RunFolder) -> None:
    """Raises StoreError where the record is damaged: no outcome is said of figures that nobody can read any more."""
    with RunReader(folder.store) as reader:
        if (damage := reader.damage()) is not None:
            raise StoreError(f"run {folder.id} has ended, and its record is damaged: {' '.join(damage.split())[:200]}")


def _ask_to_stop(folder: RunFolder, interrupted: InterruptedLater) -> float:
    """Ask the run to stop; returns how many seconds it may take from now on."""
    try:
        return stop_run(folder, origin=interrupted.number.name, number=interrupted.number)
    except UsageError as error:
        say(visible_line(str(error)))
    return STOP_SECONDS


def kill(folder: RunFolder, code: ExitCode, why: str) -> ExitCode:
    """Kill the run, clear up behind it and show how it ended. Raises CleanupIncomplete where something is left."""
    ended = kill_because(folder, code, why)
    if not say_killed(folder, ended):
        why = f", {visible_line(ended.reason)}" if ended.reason else ""
        say(f"run {folder.id} has ended: {ended.outcome}{why}")
    return ExitCode(ended.exit_code)


def say_killed(folder: RunFolder, ended: RunEnded | None) -> bool:
    """Say that the run was killed, if it was."""
    if why := killed_because(ended):
        say(f"run {folder.id} was killed ({why}); what it left is cleared away, what it measured is kept")
    return bool(why)


def print_id(run: str, *, as_json: bool) -> None:
    """Print the id of a run that goes on in the background."""
    if as_json:
        write_json({"run": {"id": run}})
    else:
        write_text(run)


def print_measured(document: RunDocument, *, as_json: bool, quiet: bool = False, name: str = "last") -> None:
    """Print what a run measured, as `vmlab show` does; `name` is how commands call the run."""
    if as_json:
        write_json(jsonable(document))
    elif quiet:
        write_figures(tables_alone(document, page_width()))
    else:
        write_figures(run_text(document, name))
