"""`vmlab gate`: runs a scenario, and says whether tonight lies outside of where the last nights lie."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from vmlab.analysis.compared_runs import judged_night
from vmlab.analysis.comparison.nights import USUAL_NIGHTS
from vmlab.analysis.document import stored_document
from vmlab.analysis.statistics.random_effects import FEWEST_RUNS
from vmlab.cli.commands.upkeep_commands import label
from vmlab.cli.diagnostics import say
from vmlab.cli.interrupts import InterruptedLater
from vmlab.cli.one_run import follow, print_measured, started
from vmlab.cli.options import Beside, beside_options, overrides_options
from vmlab.cli.output import write_found
from vmlab.lab.process.removed_runs import demand_free, keep_night
from vmlab.lab.provision.host_support import with_repeats_here
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.names import HOST_PLACE
from vmlab.plan.planning import load_valid
from vmlab.plan.terms import Overrides
from vmlab.report.night_text import night_text
from vmlab.store.life import checked_note
from vmlab.store.runs import MOST_RUNS, resolve_run
from vmlab.system.given_file import new_file


@click.command()
@click.argument("scenario", required=False)
@click.option(
    "--baseline", required=True, metavar="TAG", help="Tag of the nights; tonight's run is tagged unless it fails."
)
@click.option(
    "--nights",
    type=click.IntRange(FEWEST_RUNS, MOST_RUNS),
    default=USUAL_NIGHTS,
    metavar="N",
    help=f"Compare with the last N nights [default: {USUAL_NIGHTS}].",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="METRIC",
    help="Judge this metric, METRIC or WORKLOAD.METRIC, instead of the scenario's; can be repeated.",
)
@click.option("--run", "run", metavar="RUN", help="Judge this run, and start none.")
@click.option("--accept", is_flag=True, help="Add tonight's run to the baseline even if it fails, and exit with 0.")
@click.option(
    "--allow-change",
    "allowed",
    multiple=True,
    metavar="CONDITION",
    help="Count nights despite this difference, such as 'host qemu'; can be repeated.",
)
@overrides_options("--control", "--loop")
@beside_options
@click.option("--note", metavar="TEXT", help="Note what the run is; see `vmlab note`.")
@click.option("--strict", is_flag=True, help="Exit with 1 instead of 4 if a metric is undecided.")
@click.option("--lenient", is_flag=True, help="Exit with 0 instead of 4 if a metric is undecided, as on first nights.")
@click.option("--junit", type=click.Path(path_type=Path), help="Write the results of the metrics as JUnit XML.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def gate(
    scenario: str | None,
    baseline: str,
    nights: int,
    metrics: tuple[str, ...],
    run: str | None,
    accept: bool,
    allowed: tuple[str, ...],
    overrides: Overrides,
    beside: Beside,
    note: str | None,
    strict: bool,
    lenient: bool,
    junit: Path | None,
    as_json: bool,
) -> ExitCode:
    """Run SCENARIO, and fail if it is worse than on the latest nights tagged TAG.

    The first three nights form the baseline, and are undecided. Nights under other conditions do not count.
    """
    if strict and lenient:
        raise UsageError("--strict and --lenient exclude each other")
    demand_free(baseline)
    if (scenario is None) == (run is None):
        raise UsageError("name a scenario to run, or with --run a run to judge")
    if run is not None:
        if note or any(beside) or replace(overrides, variables=overrides.variables or None) != Overrides():
            raise UsageError("--run judges a run as it is; it takes no options that change a run")
        store = resolve_run(run)
    else:
        store, code = _measured(scenario or "", overrides, note or "", beside, as_json=as_json)
        if code not in (ExitCode.PASSED, ExitCode.INVALID):
            say(f"vmlab: run {store.parent.name} did not pass, and is no night of {baseline}")
            return code
    found = judged_night(store, baseline, nights, chosen=metrics, allowed=allowed)
    found = keep_night(found, store, accept=accept)
    if junit is not None:
        # Imported late: most gates write no XML.
        from vmlab.report.exports.junit import junit_night

        with new_file(junit) as file:
            file.write(junit_night(found, strict=strict))
    write_found(found, night_text, as_json=as_json)
    return ExitCode.PASSED if accept else found.exit_code(strict=strict, lenient=lenient)


def _measured(
    scenario: str, overrides: Overrides, note: str, beside: Beside, *, as_json: bool
) -> tuple[Path, ExitCode]:
    """Run the scenario to its end; its store and its exit code. Its figures are printed, unless `as_json`."""
    with InterruptedLater() as interrupted:
        with interrupted.obeyed():
            file = load_valid(scenario, overrides.variables)
            overrides = with_repeats_here(file, overrides)
            checked_note(note)
        if HOST_PLACE in file.scenario.axes:
            raise UsageError("a night is of one host, and this scenario has the axis host")
        folder = started(file, overrides, interrupted, beside)
        label(folder.id, None, note)
        code = follow(folder, interrupted)
    if not as_json and folder.store.exists():
        print_measured(stored_document(folder.store), as_json=False)
    return folder.store, code
