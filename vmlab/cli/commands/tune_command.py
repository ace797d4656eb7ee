"""`vmlab tune`: finds out which settings of a guest's data disk are better than the default on this host.

It plans two ordinary runs, a screening of all levers and a confirmation of the best settings, and analyses their
records, which can be analysed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from vmlab.analysis.comparison.tuned import LEAST_REPEATS, USUAL_REPEATS, Tuned, tuned
from vmlab.analysis.document import stored_document
from vmlab.analysis.figures.intent import files_of
from vmlab.analysis.shape import RunDocument
from vmlab.cli.diagnostics import parsed, say
from vmlab.cli.interrupts import InterruptedLater
from vmlab.cli.one_run import follow, started
from vmlab.cli.options import Beside, beside_options, names_in, overrides_options
from vmlab.cli.output import page_width, write_figures, write_json, write_text
from vmlab.lab.provision.host_support import prepare_run
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.places import runs_folder
from vmlab.plan.estimate import freezing_seconds
from vmlab.plan.hosting import misfit, read_host_facts
from vmlab.plan.planning import load_valid
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import Overrides
from vmlab.plan.tuning.fio_options import FioOptions, fio_bytes, fio_seconds
from vmlab.plan.tuning.tuning_scenarios import ScreeningPlan, TuningRequest, confirmation_file, plan_screening
from vmlab.report.tune_text import (
    TOO_FEW,
    TuneTime,
    screening_text,
    tune_document,
    tune_plan_document,
    tune_plan_text,
    tune_text,
    winner_text,
)
from vmlab.store.reader import RunReader
from vmlab.store.runs import resolve_run
from vmlab.system.given_file import new_file

_GOES_ON = (ExitCode.PASSED, ExitCode.INVALID)
"""The exit codes of a screening after which its settings are confirmed."""
_ENGINES = ("libaio", "io_uring", "posixaio", "psync", "sync", "pvsync2", "mmap")


@click.command()
@click.argument("scenario", required=False)
@click.option(
    "--rw",
    type=click.Choice(["read", "write", "randread", "randwrite", "rw", "randrw"]),
    help="Instead of SCENARIO: what fio does on the data disk; this and the next seven options are fio's own.",
)
@click.option("--bs", metavar="SIZE", callback=parsed(fio_bytes), help="Block size [default: 4k].")
@click.option("--filesize", metavar="SIZE", callback=parsed(fio_bytes), help="Size of each job's file [default: 64m].")
@click.option("--iodepth", type=click.IntRange(1, 4096), metavar="N", help="Blocks in flight [default: 1].")
@click.option("--numjobs", type=click.IntRange(1, 256), metavar="N", help="Processes [default: 1].")
@click.option("--runtime", metavar="TIME", callback=parsed(fio_seconds), help="How long, such as 3s [default: 2s].")
@click.option("--ioengine", type=click.Choice(_ENGINES), help="fio's engine [default: libaio].")
@click.option("--direct", type=click.BOOL, metavar="0|1", help="Whether to bypass the guest's page cache [default: 1].")
@click.option(
    "--levers", metavar="NAMES", callback=parsed(names_in), help="Levers, such as cache,queues [default: all]."
)
@click.option("--guest", metavar="GUEST", help="Guest whose data disk is tuned, if several have one.")
@click.option("--metric", metavar="METRIC", help="Metric to tune, METRIC or WORKLOAD.METRIC.")
@click.option("--blocks", type=click.IntRange(2, 100), metavar="N", help="Repeats of the screening.")
@click.option(
    "--repeats",
    "times",
    type=click.IntRange(1, 1000),
    metavar="N",
    help=f"Repeats of the confirmation [default: {USUAL_REPEATS}].",
)
@click.option("--plan", "only_plan", is_flag=True, help="Show what would be measured, and how long; start nothing.")
@click.option(
    "--of", "of", metavar="RUN", help="Analyse this screening, and the confirmation RUN if given; start no run."
)
@click.option("--confirm", metavar="RUN", help="Confirm what this screening proposes.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the winning scenario to this file.")
@overrides_options("--tiles", "--cache", "--repeats", "--for", "--control", "--loop")
@beside_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def tune(
    scenario: str | None,
    levers: tuple[str, ...] | None,
    guest: str | None,
    metric: str | None,
    blocks: int | None,
    times: int | None,
    only_plan: bool,
    of: str | None,
    confirm: str | None,
    output: Path | None,
    overrides: Overrides,
    beside: Beside,
    as_json: bool,
    **fio: Any,
) -> ExitCode:
    """Find out what each setting of a guest's data disk is worth on this host, and which are better than the default.

    A screening run measures all settings (levers) together, each at two levels, as a guide. A confirmation run compares
    the best two settings with the default and gives the verdict. `vmlab tune --of RUN [RUN]` analyses both runs again.
    """
    given = {name: value for name, value in fio.items() if value is not None}
    _demand_one_kind(scenario, given, of, confirm)
    if of is not None:
        if only_plan or any(beside):
            raise UsageError("--of analyses runs as they are, and starts none")
        return _shown(
            tuned(*(stored_document(resolve_run(name)) for name in (of, scenario) if name)), output, as_json=as_json
        )
    how = _How(_of_runs(overrides), times or USUAL_REPEATS, beside, as_json)
    request = TuningRequest(levers, guest, metric, blocks)
    if confirm is not None and (only_plan or overrides.sets or request != TuningRequest()):
        raise UsageError("--confirm takes the scenario and the levers of the screening as they are")
    with InterruptedLater() as interrupted:
        with interrupted.obeyed():
            if confirm is not None:
                document, files = stored_document(resolve_run(confirm)), _kept_files(confirm)
                if how.repeats < LEAST_REPEATS:
                    say(TOO_FEW)
            else:
                file = FioOptions(**given).scenario() if given else load_valid(scenario or "", overrides.variables)
                plan = plan_screening(file, overrides, read_host_facts(runs_folder()).cpus, request)
                _show_plan(plan, how, only=only_plan)
                if only_plan:
                    return ExitCode.PASSED
        if confirm is None:
            measured, code = _measured(plan.file, how, interrupted)
            if measured is None:
                return code
            document, files = measured, plan.file.files
        return _confirmed(document, files, how, interrupted, output)


def _confirmed(
    screening: RunDocument, files: Mapping[str, str], how: _How, interrupted: InterruptedLater, output: Path | None
) -> ExitCode:
    """Print what a screening found, and confirm what it proposes, with the files that were kept with it."""
    found = tuned(screening)
    if not how.as_json:
        write_figures(screening_text(found, page_width()))
    if found.proposed:
        file = confirmation_file(found.text, found.screening.id, found.proposed, how.repeats, files)
        measured, code = _measured(file, how, interrupted, screening=found.screening.id)
        if measured is None:
            return code
        found = tuned(screening, measured)
    return _shown(found, output, as_json=how.as_json, whole=False)


def _demand_one_kind(scenario: str | None, fio: dict[str, Any], of: str | None, confirm: str | None) -> None:
    """Raises UsageError unless exactly one thing is asked for."""
    if fio and "rw" not in fio:
        raise UsageError(f"--{next(iter(fio))} is an option of fio, and needs --rw, such as --rw randwrite")
    asked = [of is not None, confirm is not None, bool(fio), scenario is not None and of is None]
    if sum(asked) != 1:
        raise UsageError("name a scenario, or fio's work with --rw, or with --confirm or --of a run of `vmlab tune`")


@dataclass(frozen=True, slots=True)
class _How:
    """How runs are made and shown: the options of both runs, and the repeats of the confirmation."""

    overrides: Overrides
    repeats: int
    beside: Beside
    as_json: bool


def _of_runs(overrides: Overrides) -> Overrides:
    """The options that are no part of the generated scenarios, or change nothing in them."""
    return replace(overrides, size=Overrides().size, sets=(), variables=None)


def _show_plan(plan: ScreeningPlan, how: _How, *, only: bool) -> None:
    """Print what would be measured; with `only`, raise RefusedError where the host cannot hold it."""
    planned, host = prepare_run(plan.file, how.overrides)
    workloads = [one for cell in planned.cells for one in cell.workloads]
    freezing = 0.0 if planned.cold else freezing_seconds(workloads, host.accelerator_guess)
    time = TuneTime(planned.seconds, len(planned.cells), how.repeats, freezing)
    refusal = misfit(planned, host)
    if only and how.as_json:
        write_json(tune_plan_document(plan, time, str(refusal) if refusal else None))
    elif not how.as_json:
        write_text(tune_plan_text(plan, time, page_width()))
    if refusal is not None:
        raise refusal


def _measured(
    file: ScenarioFile, how: _How, interrupted: InterruptedLater, screening: str = ""
) -> tuple[RunDocument | None, ExitCode]:
    """Run the scenario to its end; its document, None where it did not pass, and its exit code."""
    folder = started(file, how.overrides, interrupted, how.beside)
    code = follow(folder, interrupted)
    if interrupted.count:
        code = interrupted.exit_code
    if code not in _GOES_ON:
        goes_on = f"--of {screening} {folder.id}` analyses it" if screening else f"--confirm {folder.id}` confirms it"
        say(f"run {folder.id} has not passed; `vmlab resume {folder.id}` continues it, and `vmlab tune {goes_on}")
        return None, code
    return stored_document(folder.store), code


def _kept_files(reference: str) -> dict[str, str]:
    with RunReader(resolve_run(reference)) as reader:
        return files_of(reader.documents())


def _shown(found: Tuned, output: Path | None, *, as_json: bool, whole: bool = True) -> ExitCode:
    """Print the verdict, as a `whole` with what the screening found, and write the scenario that won."""
    if as_json:
        write_json(tune_document(found))
    else:
        before = screening_text(found, page_width()) if whole else ""
        write_figures(before + tune_text(found, page_width()))
    text = winner_text(found)
    if output is not None and text is not None:
        with new_file(output) as file:
            file.write(text.encode())
        say(f"the winning scenario is in {output}")
    elif output is not None:
        say(f"nothing is written to {output}: no setting has won")
    return found.exit_code
