"""`vmlab scale`: runs a scenario with one tile, then two, then three, until its tiles no longer deliver.

One tile more at a time, and not doubled and then halved: a climb to n tiles so costs as many tiles as doubling does up
to about n = 8, each number below the knee is measured, so that the curve is whole, and the host never holds more than
one tile beyond what it carries, while a doubled step would take twice as much memory as ever delivered. Each step is a
run of its own, recorded as any other, so that what was measured outlives this command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import click

from vmlab.analysis.document import stored_document
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.throughput import TILES
from vmlab.analysis.tiles.tiles_carried import carried_of, place_label
from vmlab.cli.diagnostics import say
from vmlab.cli.interrupts import InterruptedLater
from vmlab.cli.one_run import follow, started
from vmlab.cli.options import Beside, beside_options, hosts_option, overrides_options
from vmlab.cli.output import OutputLost, page_width, write_json, write_text
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.host_support import prepare_run
from vmlab.model.axes import without
from vmlab.model.errors import ExitCode, RefusedError, UsageError
from vmlab.model.jsonable import jsonable
from vmlab.model.names import HOST_PLACE
from vmlab.model.run import CACHE_MODES, MOST_TILES, Outcome
from vmlab.model.visible import visible_line
from vmlab.plan.checking import plan_targets
from vmlab.plan.hosting import DoesNotFit
from vmlab.plan.planning import load_valid
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import Overrides
from vmlab.report.run.tiles_text import Ascent, Stop, behind_runs, heading_lines, scale_document, sentence, step_lines
from vmlab.report.writers.text import paragraph

_BY_SEVERITY = (ExitCode.PASSED, ExitCode.INVALID, ExitCode.FAILED)
"""The exit codes of runs after which the next step may still be run."""


@click.command()
@click.argument("scenario")
@click.option("--until-knee", is_flag=True, help="Stop at the first tile count that misses a target.")
@click.option("--max-tiles", type=click.IntRange(1, MOST_TILES), metavar="N", help="Maximum number of tiles.")
@overrides_options("--tiles", "--control", "--loop")
@hosts_option
@click.option("--together", is_flag=True, help="With --hosts: the same number of tiles on every host, started at once.")
@beside_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON (`vmlab.scale/1`) at the end instead of the curve.")
def scale(
    scenario: str,
    until_knee: bool,
    max_tiles: int | None,
    overrides: Overrides,
    together: bool,
    beside: Beside,
    as_json: bool,
) -> None:
    """Run SCENARIO with 1, 2, 3, ... tiles, and report how many this host carries, for each cache mode.

    A host carries N tiles if each meets the scenario's `targets`. Each tile count is an ordinary run. With --hosts,
    every host listed runs each tile count.
    """
    if not until_knee and max_tiles is None:
        raise UsageError("say --until-knee, or --max-tiles for a curve up to a number of tiles")
    with InterruptedLater() as interrupted:

        def start(step: Overrides) -> RunFolder:
            if step.hosts is None:
                return started(file, step, interrupted, beside, overcommit=False)
            from vmlab.cli.commands.hosts_commands import started_on_fleet

            with interrupted.obeyed():
                return started_on_fleet(file, step, together=together)

        with interrupted.obeyed():
            file = load_valid(scenario, overrides.variables)
            overrides = _on_hosts(file, overrides, together=together, one_host=any(beside))
            ascent = _planned(file, overrides, until_knee, max_tiles or MOST_TILES)
        if not as_json:
            write_text("\n".join(heading_lines(ascent)))
        ascent, code = _climb(ascent, overrides, interrupted, start, quiet=as_json)
    try:
        if as_json:
            write_json(jsonable(scale_document(ascent)))
        else:
            told = [*behind_runs(ascent), sentence(ascent)]
            write_text("\n".join(["", *(line for text in told for line in paragraph(text, page_width()))]))
    except OutputLost:
        say(f"the runs are over and kept: {', '.join(one.run.id for one in ascent.documents)}")
        if code == ExitCode.PASSED:
            raise
    sys.exit(code)


def _on_hosts(file: ScenarioFile, overrides: Overrides, *, together: bool, one_host: bool) -> Overrides:
    """With the names of all hosts that run the steps. Raises UsageError."""
    if overrides.hosts is None and HOST_PLACE in file.scenario.axes:
        raise UsageError("name the hosts with --hosts instead of the scenario's axis host")
    if overrides.hosts is None:
        if together:
            raise UsageError("--together is for --hosts")
        return overrides
    if one_host:
        raise UsageError("--wait and --concurrent are for a run on one host")
    from vmlab.fleet.hosts_file import chosen_hosts

    return replace(overrides, hosts=tuple(chosen_hosts(overrides.hosts)))


def _planned(file: ScenarioFile, overrides: Overrides, until_knee: bool, max_tiles: int) -> Ascent:
    """The beginning. Raises UsageError for a scenario that defines no targets."""
    plan, _ = prepare_run(file, replace(overrides, tiles=(1,)))
    targets = plan_targets(plan)
    if not targets:
        raise UsageError(
            f"{plan.scenario.name} defines no targets: give its workloads a `pace`, and it `targets`, such as "
            "targets: {web: {latency_p95: 500 ms}}"
        )
    labels = dict.fromkeys(place_label(without(cell.axes, TILES), cell.cache) for cell in plan.cells)
    return Ascent(plan.scenario.name, plan.size, until_knee, max_tiles, targets, labels=tuple(labels))


def _climb(
    ascent: Ascent,
    overrides: Overrides,
    interrupted: InterruptedLater,
    start: Callable[[Overrides], RunFolder],
    *,
    quiet: bool,
) -> tuple[Ascent, ExitCode]:
    """One run after the other, each with one tile more, begun by `start`; what they found, and the exit code of the
    worst of them.
    """
    worst = ExitCode.PASSED
    for tiles in range(1, ascent.max_tiles + 1):
        try:
            folder = start(_step(overrides, ascent, tiles))
        except DoesNotFit as error:
            if tiles == 1:
                raise
            because = f"with {tiles} tiles {error.shortage}"
            return replace(ascent, stop=Stop.GUARD, because=because, resource=error.resource), worst
        except RefusedError as error:
            if tiles == 1:
                raise
            say(f"vmlab: {visible_line(str(error))}")
            return replace(ascent, stop=Stop.RUN, because=str(error)), error.exit_code
        code = follow(folder, interrupted)
        ascent = _with(ascent, stored_document(folder.store) if folder.store.exists() else None)
        if not quiet:
            write_text("\n".join(step_lines(ascent, tiles, page_width())))
        if code not in _BY_SEVERITY or interrupted.count or not ascent.places:
            ended = interrupted.exit_code if interrupted.count else max(worst, code)
            return replace(ascent, stop=Stop.RUN, because=_why(folder, ascent)), ended
        worst = max(worst, code, key=_BY_SEVERITY.index)
        if ascent.until_knee and not any(place.climbing for place in ascent.places):
            return replace(ascent, stop=Stop.KNEE), worst
    return replace(ascent, stop=Stop.MOST_TILES), worst


def _step(overrides: Overrides, ascent: Ascent, tiles: int) -> Overrides:
    """With so many tiles, and only the cache modes that still climb, where these are all that the scenario varies."""
    step = replace(overrides, tiles=(tiles,))
    alone = [place for place in ascent.places if place.axes.keys() - {HOST_PLACE} == {"cache"}]
    modes = dict.fromkeys(place.axes["cache"] for place in alone)
    if not ascent.until_knee or len(modes) < 2 or not all(mode in CACHE_MODES for mode in modes):
        return step
    climbing = {place.axes["cache"] for place in ascent.places if place.climbing}
    return replace(step, cache=tuple(mode for mode in CACHE_MODES if mode in climbing))


def _with(ascent: Ascent, document: RunDocument | None) -> Ascent:
    if document is None:
        return ascent
    documents = (*ascent.documents, document)
    return replace(ascent, documents=documents, places=tuple(carried_of(documents)))


def _why(folder: RunFolder, ascent: Ascent) -> str:
    """Why a run ended the climb."""
    own = [one.run for one in ascent.documents if one.run.id == folder.id]
    outcome = own[0].outcome if own else str(Outcome.ABORTED)
    reason = own[0].reason if own else ""
    return f"run {folder.id} was {outcome}" + (f", {reason}" if reason else "")
