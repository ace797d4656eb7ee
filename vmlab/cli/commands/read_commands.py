"""`vmlab show` and `compare`: they read stores and start nothing."""

from __future__ import annotations

from collections.abc import Sequence

import click

from vmlab.analysis.compared_runs import (
    beside_published,
    named_recordings,
    noise_of_run,
    pooled_runs,
    sides_to_compare,
)
from vmlab.analysis.comparison.compare import compare as compare_sides
from vmlab.analysis.comparison.comparison import Comparison
from vmlab.analysis.document import laid_out, only_cell, raw_document, run_document
from vmlab.analysis.tiles.knee import SHARE_PERCENT
from vmlab.cli.gate_options import GateOptions, gate_options
from vmlab.cli.output import page_width, run_text, write_figures, write_found, write_json, write_text
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.jsonable import jsonable
from vmlab.model.visible import visible_line, visible_values
from vmlab.report.comparison_screen import comparison_screen
from vmlab.report.comparison_text import compared_alone, comparison_table
from vmlab.report.gate_text import gate_text
from vmlab.report.headline import explanation
from vmlab.report.run.cell_text import cell_text, raw_text
from vmlab.report.run.recording_text import compared_recordings
from vmlab.report.run.run_page import run_table, tables_alone
from vmlab.report.writers.text import paragraph
from vmlab.store.reader import RunReader
from vmlab.store.runs import resolve_run, split_cell

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_reference_option = click.option(
    "--reference",
    is_flag=True,
    help="Show published values beside the run's, and answer the publication's claims. With a scenario instead of a "
    "run, show the published values alone.",
)
# Not of `cli.options`, whose models of scenarios would be a sixth of what `compare` loads.
_table_option = click.option("--quiet", is_flag=True, help="Print only the table.")
_cell_option = click.option("--cell", "cell", type=click.IntRange(min=1), metavar="N", help="Only this cell.")


@click.command()
@click.argument("run", default="last")
@_cell_option
@click.option("--raw", is_flag=True, help="Print the raw output of the benchmark tools.")
@click.option("--phases", is_flag=True, help="Print the time of each phase, and with --cell of each step.")
@_reference_option
@click.option(
    "--knee",
    "share",
    type=click.IntRange(0, 100),
    metavar="PERCENT",
    help="Find the number of tiles after which one more adds less than this share of one tile's throughput "
    f"[default: {SHARE_PERCENT:g}].",
)
@click.option("--explain", is_flag=True, help="Print every value and note, and what is not proven.")
@_table_option
@_json_option
def show(
    run: str,
    cell: int | None,
    raw: bool,
    phases: bool,
    reference: bool,
    share: int | None,
    explain: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Show what RUN measured: an id, the beginning of one, a name, `last`, or a path. RUN:2 is its second cell."""
    name, named = split_cell(run)
    cell = named if cell is None else cell
    if phases and (reference or raw or share is not None):
        raise UsageError("--phases is about time alone: it goes with none of --raw, --reference and --knee")
    if share is not None and (reference or raw):
        raise UsageError("--knee is about scores, which neither --reference nor --raw shows")
    if (quiet or explain) and (reference or raw or phases or cell is not None):
        raise UsageError("--quiet and --explain are about the results of a run, which the other options do not show")
    if quiet and (explain or share is not None):
        raise UsageError("--quiet prints the table alone, without what --explain and --knee show")
    if reference:
        _show_reference(name, cell, raw=raw, as_json=as_json)
        return
    with RunReader(resolve_run(name)) as reader:
        if raw:
            _show_raw(reader, cell, as_json)
            return
        if phases:
            _show_phases(reader, cell, as_json)
            return
        document = run_document(reader)
    if share is not None:
        document = laid_out(document, share)
    chosen = document if cell is None else only_cell(document, cell)
    if as_json:
        write_json(jsonable(chosen))
    elif quiet:
        write_figures(tables_alone(document, page_width()))
    elif cell is None and (explain or share is not None):
        write_figures(run_table(document, page_width()))
    elif cell is None:
        write_figures(run_text(document, visible_line(name)))
    else:
        write_figures(cell_text(document, chosen.cells[0], page_width()))


def _show_phases(reader: RunReader, cell: int | None, as_json: bool) -> None:
    # Imported late: no other command reads it.
    from vmlab.analysis.record.phases import run_time
    from vmlab.report.run.phase_text import phases_text

    write_found(run_time(reader, cell), phases_text, as_json=as_json)


def _show_reference(run: str, cell: int | None, *, raw: bool, as_json: bool) -> None:
    """A run beside what was published, which is about all of its cells."""
    if cell is not None or raw:
        raise UsageError("--reference is about a whole run: it goes with neither a cell nor --raw")
    # Imported late: it loads the planner and the reader of YAML, which double the time of a comparison.
    from vmlab.report.reference_text import reference_text

    write_found(beside_published(run), reference_text, as_json=as_json)


def _show_raw(reader: RunReader, cell: int | None, as_json: bool) -> None:
    if as_json:
        write_json(raw_document(reader, cell))
    else:
        write_text(raw_text(reader.raw_outputs(cell)))


@click.command()
@click.argument("runs", nargs=-1, required=True)
@_cell_option
@_reference_option
@click.option("--control", metavar="RUN", help="Ignore differences within the noise of the control run RUN.")
@click.option(
    "--baseline",
    metavar="SIDE",
    help="Compare with this side instead of the first: one of RUNS or, within one run, an axis value, such as "
    "'writeback'.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="METRIC",
    help="Compare this metric, METRIC or WORKLOAD.METRIC, instead of the scenario's; can be repeated. All metrics "
    "named are tested as one family.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Explain what differs, what does not, how many repeats are needed, and what the host was short of.",
)
@click.option(
    "--pooled",
    is_flag=True,
    help="Pool three or more RUNS, or all runs with a tag, into one answer that also predicts another run like them.",
)
@gate_options
@_table_option
@_json_option
def compare(
    runs: tuple[str, ...],
    cell: int | None,
    reference: bool,
    control: str | None,
    baseline: str | None,
    metrics: tuple[str, ...],
    explain: bool,
    pooled: bool,
    gate: GateOptions,
    quiet: bool,
    as_json: bool,
) -> ExitCode:
    """Compare RUNS; the first is the baseline, unless --baseline names another.

    A single run is compared along its first axis, such as cache modes; last:1 last:2 compares two cells. A,B,C are
    several runs on one side; each counts once.
    """
    gate.demand_sense(reference=reference)
    chosen = baseline is not None or bool(metrics)
    if pooled:
        if reference or explain or quiet or gate.conditions or control is not None or cell is not None:
            raise UsageError("--pooled goes with --baseline, --metric and --json alone")
        return _pooled(runs, baseline, metrics, as_json=as_json)
    if quiet and (explain or reference):
        raise UsageError("--quiet prints the table alone, without what --explain and --reference show")
    if reference and chosen:
        raise UsageError("--baseline and --metric compare what was measured; they do not go with --reference")
    if reference:
        if len(runs) > 1:
            raise UsageError("--reference sets one run beside what was published")
        name, named = split_cell(runs[0])
        _show_reference(name, named if cell is None else cell, raw=False, as_json=as_json)
        return ExitCode.PASSED
    plain = not (as_json or gate.conditions or control is not None or cell is not None or chosen)
    if len(runs) > 1 and plain and (recordings := named_recordings(runs)):
        write_figures("\n".join(compared_recordings(recordings, page_width())) + "\n")
        return ExitCode.PASSED
    noise = noise_of_run(control)
    whole = explain or not (as_json or quiet or gate.conditions)
    sides = sides_to_compare(runs, cell, whole=whole, baseline=baseline)
    comparison = gate.judged(compare_sides(sides, noise, metrics, gate.conditions))
    if as_json:
        write_json(jsonable(comparison))
    elif quiet:
        write_figures(compared_alone(comparison, page_width()))
    elif explain:
        text = comparison_table(comparison, page_width()) + _explained(comparison)
        write_figures(text + gate_text(comparison, page_width()))
    else:
        words = visible_line(" ".join(runs))
        write_figures(
            comparison_screen(comparison, sides if whole else (), words) + gate_text(comparison, page_width())
        )
    return gate.told(comparison, alone=as_json or quiet)


def _pooled(runs: Sequence[str], baseline: str | None, metrics: Sequence[str], *, as_json: bool) -> ExitCode:
    # Imported late: no other command prints it.
    from vmlab.report.pooled_text import pooled_text

    found = pooled_runs(runs, baseline=baseline, chosen=metrics)
    write_found(found, pooled_text, as_json=as_json)
    return found.exit_code


def _explained(comparison: Comparison) -> str:
    paragraphs = explanation(visible_values(comparison))
    return "".join("\n" + "\n".join(paragraph(text, page_width())) + "\n" for text in paragraphs)
