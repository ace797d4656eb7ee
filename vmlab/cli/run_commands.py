"""`vmlab run`, `attach` and `stop`: they start, watch and stop a run, which is an independent process."""

from __future__ import annotations

import math
import sys
import time

import click

from vmlab.analysis.control import with_enough_repeats
from vmlab.analysis.document import run_document
from vmlab.cli.diagnostics import say
from vmlab.cli.interrupts import InterruptedLater
from vmlab.cli.options import overrides_options
from vmlab.cli.output import OutputLost, page_width, write_figures, write_json, write_text
from vmlab.cli.progress import RunProgress
from vmlab.lab.folder import RunFolder
from vmlab.lab.force import kill_run
from vmlab.lab.launch import start_run
from vmlab.lab.measuring import HostBusy, refuse_beside_others, wait_for_end
from vmlab.lab.ready import check_ready
from vmlab.lab.run_ending import ended as last_word_of
from vmlab.lab.stopping import STOP_SECONDS, is_over, living_run, stop_run
from vmlab.lab.watch import watch
from vmlab.model.errors import CleanupIncomplete, ExitCode, UsageError
from vmlab.model.places import runs_folder
from vmlab.plan.loading import ScenarioFile
from vmlab.plan.planning import Overrides, check_fit, make_plan, read_host_facts
from vmlab.plan.validating import load_valid
from vmlab.report.tables import run_table
from vmlab.store.reader import RunReader
from vmlab.store.runs import resolve_run


@click.command()
@click.argument("scenario")
@overrides_options
@click.option("--detach", is_flag=True, help="Return at once; `vmlab attach` finds the run again.")
@click.option("--wait", is_flag=True, help="Wait while another run measures on this host.")
@click.option("--concurrent", is_flag=True, help="Measure beside another run; it is noted on both.")
@click.option("--json", "as_json", is_flag=True, help="Print the document of `show --json` when the run ends.")
def run(scenario: str, overrides: Overrides, detach: bool, wait: bool, concurrent: bool, as_json: bool) -> None:
    """Run every cell of SCENARIO, a path or the name of a shipped one, and print the figures side by side."""
    if wait and concurrent:
        raise UsageError("--wait and --concurrent exclude each other: a run waits for others or measures beside them")
    with InterruptedLater() as interrupted:
        with interrupted.obeyed():
            file = load_valid(scenario)
            overrides = with_enough_repeats(overrides, file.scenario)
        folder = _started(file, overrides, wait, concurrent, interrupted)
        if detach and not interrupted.count:
            if as_json:
                write_json({"run": {"id": folder.id}})
            else:
                write_text(folder.id)
            return
        code = _follow(folder, interrupted)
    sys.exit(_printed(folder, as_json, code))


def _started(
    file: ScenarioFile, overrides: Overrides, wait: bool, concurrent: bool, interrupted: InterruptedLater
) -> RunFolder:
    """Plan and start the run; with `wait`, as soon as no other one measures on this host."""
    while True:
        try:
            with interrupted.obeyed():
                check_ready()
                if wait:
                    refuse_beside_others()
                # Planned again each time, because memory is free again when another run has ended.
                host = read_host_facts(runs_folder())
                plan = make_plan(file, overrides, host)
                check_fit(plan, host)
            return start_run(file, overrides, plan, host, concurrent=concurrent)
        except HostBusy as busy:
            if not wait:
                raise
            other = busy.others[0]
        say(f"waiting for the end of {other}; Ctrl-C gives up, and nothing was started")
        with interrupted.obeyed():
            wait_for_end(other)


@click.command()
@click.argument("run", default="last")
@click.option("--json", "as_json", is_flag=True, help="Print the document of `show --json` when the run ends.")
def attach(run: str, as_json: bool) -> None:
    """Watch a run that is under way, or read again how a past one went. Ctrl-C leaves; the run goes on."""
    folder = _folder(run)
    try:
        code = _follow(folder, None)
    except KeyboardInterrupt:
        say(f"left run {folder.id}; `vmlab attach {folder.id}` finds it again")
        sys.exit(ExitCode.PASSED)
    sys.exit(_printed(folder, as_json, code))


@click.command()
@click.argument("run", required=False)
def stop(run: str | None) -> None:
    """Stop RUN, or the one that is under way; returns after its clean-up. What was measured is kept, marked aborted."""
    folder = living_run() if run is None else _folder(run)
    patience = stop_run(folder, origin="vmlab stop")
    if is_over(folder, patience):
        end = last_word_of(folder)
        if end is not None and end.exit_code == ExitCode.CLEANUP_INCOMPLETE:
            raise CleanupIncomplete(f"run {folder.id} has stopped: {end.reason}; `vmlab clean` finishes")
        say(f"run {folder.id} has stopped")
    else:
        _kill(folder, ExitCode.INTERRUPTED, f"it did not stop within {patience:.0f} s of `vmlab stop`")


def _follow(folder: RunFolder, interrupted: InterruptedLater | None) -> ExitCode:
    """Show the run until it is over; returns its exit code."""
    progress = RunProgress()
    end = math.inf
    patience = STOP_SECONDS
    for event in watch(folder):
        progress.show(event)
        if interrupted is not None and interrupted.count > 0 and end == math.inf:
            say("stopping; the guests are cleared away first (once more to kill the run)")
            patience = _ask_to_stop(folder, interrupted)
            end = time.monotonic() + patience
        if interrupted is not None and progress.timeline.ended is None:
            if interrupted.count > 1:
                return _kill(folder, interrupted.exit_code, "asked twice to stop")
            if time.monotonic() > end:
                return _kill(folder, interrupted.exit_code, f"it did not stop within {patience:.0f} s")
    ended = progress.timeline.ended
    if ended is None:
        say(f"run {folder.id} was aborted: its processes are gone; `vmlab clean` clears what they left")
        return ExitCode.FAILED
    if not is_over(folder, STOP_SECONDS):
        _kill(folder, ExitCode(ended.exit_code), f"its launcher did not end within {STOP_SECONDS:.0f} s")
    return ExitCode(ended.exit_code)


def _ask_to_stop(folder: RunFolder, interrupted: InterruptedLater) -> float:
    """Ask the run to stop; returns how many seconds it may take from now on."""
    try:
        return stop_run(folder, origin=interrupted.number.name, number=interrupted.number)
    except UsageError as error:
        say(str(error))
    return STOP_SECONDS


def _kill(folder: RunFolder, code: ExitCode, why: str) -> ExitCode:
    """Kill the run, clear up behind it and show how it ended. Raises CleanupIncomplete where something is left."""
    ended = kill_run(folder, code, f"killed: {why}")
    if ended.exit_code == ExitCode.CLEANUP_INCOMPLETE:
        raise CleanupIncomplete(f"run {folder.id} is {ended.outcome}, {ended.reason}; `vmlab clean` finishes")
    if ended.reason.startswith("killed: "):
        say(f"run {folder.id} was killed ({why}); what it left is cleared away, what it measured is kept")
    else:
        say(f"run {folder.id} has ended: {ended.outcome}" + (f", {ended.reason}" if ended.reason else ""))
    return ExitCode(ended.exit_code)


def _folder(reference: str) -> RunFolder:
    path = resolve_run(reference).parent
    return RunFolder(path.name, path)


def _printed(folder: RunFolder, as_json: bool, code: ExitCode) -> int:
    """Print what the run measured; the exit code to end with.

    A run that passed, and whose figures could not be printed, ends with the code of lost output; any other keeps its
    own exit code.
    """
    try:
        _print_result(folder, as_json)
    except OutputLost:
        say(f"run {folder.id} is over and cleared away; `vmlab show {folder.id}` prints its figures")
        if code == ExitCode.PASSED:
            raise
    return code


def _print_result(folder: RunFolder, as_json: bool) -> None:
    if not folder.store.exists():
        return
    reader = RunReader(folder.store)
    try:
        if as_json:
            write_json(run_document(reader))
        else:
            write_figures(run_table(run_document(reader), page_width()))
    finally:
        reader.close()
