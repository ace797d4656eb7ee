"""`vmlab run`, `attach`, `stop` and `resume`: they start, watch and stop a run, which is an independent process."""

from __future__ import annotations

import re
import sys
from functools import partial

import click
from click.core import ParameterSource

from vmlab.analysis.comparison.repeats_needed import repeats_needed
from vmlab.analysis.document import stored_document
from vmlab.analysis.figures.counted_cells import is_final
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.target_results import delivered
from vmlab.cli.commands.upkeep_commands import label
from vmlab.cli.diagnostics import parsed, say, with_options
from vmlab.cli.interrupts import InterruptedLater
from vmlab.cli.one_run import follow, print_id, print_measured, say_killed, started
from vmlab.cli.options import (
    Beside,
    beside_options,
    hosts_option,
    overrides_options,
    packages_option,
    quiet_option,
    verbose_option,
)
from vmlab.cli.output import OutputLost, write_text
from vmlab.cli.progress import Detail, WaitingLine
from vmlab.fleet.hosts_file import is_fleet
from vmlab.lab.commands.forced_end import end_run
from vmlab.lab.commands.stopping import run_meant
from vmlab.lab.process.removed_runs import demand_free
from vmlab.lab.process.resuming import More
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.host_support import with_repeats_here
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.names import HOST_PLACE
from vmlab.model.run import MOST_REPEATS, Outcome
from vmlab.plan.command_scenario import USUAL_GUEST, GuestSize, as_changed, command_scenario, guest_size
from vmlab.plan.planning import load_valid, validate_all
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import Overrides
from vmlab.report.run.target_text import missed_sentence
from vmlab.store.life import checked_note

_OF_THE_COMMAND = ("scenario", "command", "guest", "packages", "print_scenario")
_ALLOWED = ("allow_overcommit", "allow_unsafe", "allow_noise", "allow_equal_weight")
_CHANGED = ("tiles", "cache", "hosts", "repeats", "for_seconds", "again", "sets", "variables", "seed")
_detail_options = with_options((verbose_option, quiet_option), "detail", Detail.asked, ("verbose", "quiet"))
"""A command is called with them as ``detail``. Raises UsageError for both."""
_PRINTABLE = {*_OF_THE_COMMAND, *_ALLOWED, *_CHANGED, "steady", "hypervisor", "cold"}


@click.command()
@click.argument("scenario", required=False)
@click.option("--command", metavar="TEXT", help="Time a shell command in one guest instead of SCENARIO.")
@click.option(
    "--guest",
    metavar="CPUSxMEMORY",
    callback=parsed(guest_size),
    help="With --command: the size of its guest [default: 1x512MiB].",
)
@packages_option("With --command: Debian packages for its guest, such as redis-server,redis-tools; repeatable.")
@click.option("--print-scenario", is_flag=True, help="With --command: print the resulting scenario, and start nothing.")
@overrides_options()
@hosts_option
@click.option("--spread", is_flag=True, help="With --hosts: spread the repeats over the hosts.")
@click.option("--together", is_flag=True, help="With --hosts: start every cell on all hosts at once.")
@click.option(
    "--in-turn", is_flag=True, help="With --hosts: one cell at a time, for hosts that share a disk or a network."
)
@click.option("--unlike", is_flag=True, help="With --spread: allow hosts that differ.")
@click.option("--detach", is_flag=True, help="Run in the background; see `vmlab attach`.")
@beside_options
@click.option("--tag", "name", metavar="NAME", help="Tag the run; see `vmlab tag`.")
@click.option("--note", metavar="TEXT", help="Note what the run is; see `vmlab note`.")
@click.option("--targets", is_flag=True, help="Exit with 1 if a target is missed, 4 if that is unknown.")
@_detail_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, as `show --json` does.")
def run(
    scenario: str | None,
    command: str | None,
    guest: GuestSize | None,
    packages: tuple[str, ...],
    print_scenario: bool,
    overrides: Overrides,
    spread: bool,
    together: bool,
    in_turn: bool,
    unlike: bool,
    detach: bool,
    beside: Beside,
    name: str | None,
    note: str | None,
    detail: Detail,
    as_json: bool,
) -> None:
    """Run every cell of SCENARIO, a file or the name of a shipped scenario, and print the results side by side.

    With --hosts every cell runs on each of these hosts, and the hosts are compared; see `vmlab hosts check`.
    """
    if print_scenario:
        _demand_printable(click.get_current_context())
        write_text(_asked(scenario, command, guest, packages, overrides, printed=True).text)
        return
    if (spread and overrides.hosts is None) or (unlike and not spread):
        raise UsageError("--spread is for --hosts, and --unlike for --spread")
    if together and (spread or in_turn):
        raise UsageError("--together starts all hosts at once, and excludes --spread and --in-turn")
    with InterruptedLater() as interrupted:
        with interrupted.obeyed():
            file = _asked(scenario, command, guest, packages, overrides)
            overrides = with_repeats_here(file, overrides)
            if name is not None:
                demand_free(name)
            checked_note(note or "")
        if overrides.hosts is not None or HOST_PLACE in file.scenario.axes:
            if any(beside):
                raise UsageError("--wait and --concurrent are for a run on one host")
            how = {"spread": spread, "together": together, "unlike": unlike, "in_turn": in_turn}
            folder = _started_on_fleet(file, overrides, interrupted, **how)
        elif together or in_turn:
            words = "--together" if together else "--in-turn"
            raise UsageError(f"{words} is for --hosts, or a scenario with the axis host")
        else:
            folder = started(file, overrides, interrupted, beside)
        label(folder.id, name, note or "")
        if _is_left(folder, interrupted, detach=detach, as_json=as_json):
            return
        code = follow(folder, interrupted, detail, page_follows=not as_json)
    sys.exit(_printed(folder, as_json, code, detail))


def _asked(
    scenario: str | None,
    command: str | None,
    guest: GuestSize | None,
    packages: tuple[str, ...],
    overrides: Overrides,
    *,
    printed: bool = False,
) -> ScenarioFile:
    """The scenario that is named, or that a command makes. Raises UsageError for neither and for both."""
    if command is None and (guest is not None or packages or printed):
        raise UsageError("--guest, --with and --print-scenario are for --command")
    if (command is None) == (scenario is None):
        raise UsageError("name a scenario, or give a command with --command, and not both")
    if command is None:
        return load_valid(scenario or "", overrides.variables)
    made = partial(command_scenario, command, guest or USUAL_GUEST, packages, overrides)
    file = made(repeats_needed(made(1).scenario).difference)
    if printed:
        file = as_changed(file, overrides)
    validate_all(file)
    return file


def _demand_printable(asked: click.Context) -> None:
    """Raises UsageError for an option that is no part of a scenario, with --print-scenario."""
    for option in asked.command.params:
        name = option.name or ""
        if name not in _PRINTABLE and asked.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"--print-scenario starts nothing, and a scenario does not say {option.opts[0]}")


def _started_on_fleet(
    file: ScenarioFile, overrides: Overrides, interrupted: InterruptedLater, **how: bool
) -> RunFolder:
    # Imported late: it loads SSH, which most runs are started without.
    from vmlab.cli.commands.hosts_commands import started_on_fleet

    with interrupted.obeyed():
        return started_on_fleet(file, overrides, **how)


@click.command()
@click.argument("run", required=False)
@_detail_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, as `show --json` does.")
def attach(run: str | None, detail: Detail, as_json: bool) -> None:
    """Follow RUN, or the run in progress, else show how the newest ended. Ctrl-C leaves; the run continues."""
    folder = run_meant(run, or_newest=True)
    try:
        code = follow(folder, None, detail, page_follows=not as_json)
    except KeyboardInterrupt:
        say(f"left run {folder.id}; `vmlab attach {folder.id}` finds it again")
        sys.exit(ExitCode.PASSED)
    sys.exit(_printed(folder, as_json, code, detail, name=run or "last"))


@click.command()
@click.argument("run", required=False)
def stop(run: str | None) -> None:
    """Stop RUN, or the run in progress; returns after its clean-up. Its measurements are kept, marked aborted."""
    folder = run_meant(run)
    if not say_killed(folder, end_run(folder, origin="vmlab stop")):
        say(f"run {folder.id} has stopped")


def _further(ctx: click.Context, param: click.Parameter, value: str | None) -> int:
    """The number of ``+4``."""
    if value is None:
        return 0
    if not re.fullmatch(r"\+[1-9][0-9]{0,3}", value) or int(value) > MOST_REPEATS:
        raise click.BadParameter(f"{value!r} is no number of further repeats, such as +4", ctx, param)
    return int(value)


@click.command()
@click.argument("run")
@click.option("--invalid", is_flag=True, help="Measure invalid and failed cells of an ended run again.")
@click.option("--repeats", metavar="+N", callback=_further, help="Add N repeats of every cell to a run that has ended.")
@click.option("--detach", is_flag=True, help="Run in the background; see `vmlab attach`.")
@beside_options
@_detail_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, as `show --json` does.")
def resume(run: str, invalid: bool, repeats: int, detach: bool, beside: Beside, detail: Detail, as_json: bool) -> None:
    """Continue RUN, which was stopped or killed, or whose host was lost. Cells that have ended are kept.

    With --invalid or --repeats, a run that has ended continues in the same record.
    """
    folder = run_meant(run)
    with InterruptedLater() as interrupted:
        with interrupted.obeyed(), WaitingLine() as line:
            # Imported late: it loads SSH, which a fleet's run needs.
            from vmlab.fleet.starting import resume as resume_any

            tell = line.show if beside.wait else None
            resume_any(folder, More(invalid, repeats), concurrent=beside.concurrent, tell=tell)
        if _is_left(folder, interrupted, detach=detach, as_json=as_json):
            return
        code = follow(folder, interrupted, detail, page_follows=not as_json)
    sys.exit(_printed(folder, as_json, code, detail, name=run))


def _is_left(folder: RunFolder, interrupted: InterruptedLater, *, detach: bool, as_json: bool) -> bool:
    """Whether the run goes on in the background, as `--detach` asks; its id is printed then."""
    if not detach or interrupted.count:
        return False
    print_id(folder.id, as_json=as_json)
    return True


def _printed(
    folder: RunFolder, as_json: bool, code: ExitCode, detail: Detail = Detail.CELLS, name: str = "last"
) -> int:
    """Print what the run measured; the exit code to end with.

    A run that passed, and whose figures could not be printed, ends with the code of lost output; any other keeps its
    own exit code.
    """
    # Read once: a run of many cells takes a while.
    document = stored_document(folder.store) if code == ExitCode.PASSED or folder.store.exists() else None
    invalid = code == ExitCode.INVALID
    if document is not None and code == ExitCode.PASSED:
        code = _by_targets(document)
    try:
        if document is not None:
            print_measured(document, as_json=as_json, quiet=detail == Detail.QUIET, name=name)
    except OutputLost:
        say(f"run {folder.id} is over and cleared away; `vmlab show {folder.id}` prints its results")
        if code == ExitCode.PASSED:
            raise
    if code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED) and not is_fleet(folder.path):
        say(f"`vmlab resume {folder.id}` measures the cells that are left")
    if invalid and document is not None and _has_invalid_cells(document):
        again = "" if is_fleet(folder.path) else f"`vmlab resume {folder.id} --invalid` measures them once more, and "
        say(f"vmlab: invalid cells are not compared; {again}--allow-noise accepts other load")
    return code


def _has_invalid_cells(document: RunDocument) -> bool:
    """Whether the last attempt at some cell is invalid; a run that lacks repeats for want of time has none."""
    return any(is_final(cell) and cell.outcome == Outcome.INVALID for cell in document.cells)


def _by_targets(document: RunDocument) -> ExitCode:
    """Of a run that passed, the exit code by its targets: PASSED unless the run was started with `--targets`."""
    cells = [cell for cell in document.cells if is_final(cell)]
    if not document.run.targets_decide:
        return ExitCode.PASSED
    if missed := missed_sentence(cells):
        say(f"vmlab: {missed}")
        return ExitCode.FAILED
    asked = [cell for cell in cells if any(one.applicable for one in cell.targets)]
    unknown = [cell for cell in asked if delivered(cell) is None]
    if asked and not unknown:
        return ExitCode.PASSED
    say(f"vmlab: targets are unknown in {len(unknown)} of {len(asked)} cells that have one")
    return ExitCode.INVALID
