"""`vmlab run`, `attach` and `stop`: they ask, watch and command; the run itself lives on its own."""

from __future__ import annotations

import math
import signal
import sys
import time
from types import FrameType

import click

from vmlab.analysis.document import run_document
from vmlab.cli.diagnostics import say
from vmlab.cli.options import overrides_options
from vmlab.cli.output import write_json, write_text
from vmlab.cli.progress import RunProgress
from vmlab.lab.folder import RunFolder
from vmlab.lab.launch import STOP_SECONDS, start_run, stop_run, wait_until_over
from vmlab.lab.watch import watch
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.event import RunEnded
from vmlab.model.places import runs_folder
from vmlab.plan.planning import Overrides, check_fit, make_plan, read_host_facts
from vmlab.plan.validating import load_valid
from vmlab.report.tables import run_table
from vmlab.store.reader import RunReader
from vmlab.store.runs import resolve_run


@click.command()
@click.argument("scenario")
@overrides_options
@click.option("--detach", is_flag=True, help="Return at once; `vmlab attach` finds the run again.")
@click.option("--json", "as_json", is_flag=True, help="Print the document of `show --json` when the run ends.")
def run(scenario: str, overrides: Overrides, detach: bool, as_json: bool) -> None:
    """Run every cell of SCENARIO, a path or the name of a shipped one, and print the figures side by side."""
    file = load_valid(scenario)
    runs_folder().mkdir(parents=True, exist_ok=True)
    host = read_host_facts(runs_folder())
    plan = make_plan(file, overrides, host)
    check_fit(plan, host)
    with _InterruptedLater() as interrupted:
        folder = start_run(file, overrides, plan, host)
        if detach:
            if as_json:
                write_json({"run": {"id": folder.id}})
            else:
                write_text(folder.id)
            return
        code = _follow(folder, interrupted)
    _print_result(folder, as_json)
    sys.exit(code)


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
    _print_result(folder, as_json)
    sys.exit(code)


@click.command()
@click.argument("run", default="last")
def stop(run: str) -> None:
    """Stop a run; returns after its clean-up. What was measured is kept, marked aborted."""
    folder = _folder(run)
    stop_run(folder, origin="vmlab stop")
    wait_until_over(folder)
    say(f"run {folder.id} has stopped")


class _InterruptedLater:
    """Remembers SIGINT and SIGTERM instead of obeying them: the run is asked to stop, and cleans up first."""

    def __init__(self) -> None:
        self.number = signal.SIGINT
        self.count = 0

    def __enter__(self) -> _InterruptedLater:
        self._before = {n: signal.signal(n, self._note) for n in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *failure: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = signal.Signals(number)
        self.count += 1


def _follow(folder: RunFolder, interrupted: _InterruptedLater | None) -> ExitCode:
    """Show the run until it is over; the exit code that it asks for."""
    progress = RunProgress()
    ended: RunEnded | None = None
    patience = math.inf
    for event in watch(folder):
        progress.show(event)
        if isinstance(event, RunEnded):
            ended = event
        if interrupted is not None and interrupted.count > 0 and patience == math.inf:
            say("stopping; the guests are cleared away first (once more to kill the run)")
            _ask_to_stop(folder, interrupted.number)
            patience = time.monotonic() + STOP_SECONDS
        if time.monotonic() > patience or (interrupted is not None and interrupted.count > 1):
            break
    wait_until_over(folder, STOP_SECONDS if patience == math.inf else 1.0)
    if ended is None:
        say(f"run {folder.id} was aborted: its processes are gone; `vmlab clean` clears what they left")
        return ExitCode.FAILED
    return ExitCode(ended.exit_code)


def _ask_to_stop(folder: RunFolder, number: signal.Signals) -> None:
    try:
        stop_run(folder, origin=number.name, number=number)
    except UsageError as error:
        say(str(error))


def _folder(reference: str) -> RunFolder:
    path = resolve_run(reference).parent
    return RunFolder(path.name, path)


def _print_result(folder: RunFolder, as_json: bool) -> None:
    reader = RunReader(folder.store)
    try:
        if as_json:
            write_json(run_document(reader))
        else:
            write_text(run_table(run_document(reader)))
    finally:
        reader.close()
