"""`vmlab export`, `import`, `report` and `reparse`: a recorded run for other programs and machines, or anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from vmlab.analysis.record.remade import changes_of
from vmlab.cli.diagnostics import say
from vmlab.cli.output import write_json, write_text
from vmlab.cli.progress import shown_work
from vmlab.lab.process.reparse import Reparsed
from vmlab.lab.process.reparse import reparse as make_again
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.visible import visible_line
from vmlab.report.exports.export_format import format_names
from vmlab.report.exports.exporting import export_runs
from vmlab.report.page.report_file import FORMATS, write_chart, write_report
from vmlab.report.words import plural
from vmlab.store.archive import unpack
from vmlab.store.runs import resolve_run


@click.command()
@click.argument("runs", nargs=-1)
@click.option("-o", "--output", "output", type=click.Path(path_type=Path), required=True, help="Output file.")
@click.option(
    "--format", "name", type=click.Choice(format_names()), help="Output format [default: by the file's suffix]."
)
@click.option("--samples", is_flag=True, help="Export the host samples instead of the measurements.")
@click.option("--plain", is_flag=True, help="CSV without the apostrophe that protects spreadsheets from formulas.")
@click.option(
    "--run-label/--no-run-label",
    default=None,
    help="OpenMetrics: label every series with its run [default: with --samples, or several runs].",
)
def export(runs: tuple[str, ...], output: Path, name: str | None, **how: Any) -> None:
    """Write RUNS to a file: CSV, Parquet, JSON lines of PerfKitBenchmarker, OpenMetrics, JUnit XML, or for benchstat.

    Without RUNS it writes the newest run. As for `vmlab compare`, A,B C,D are two sides of two runs each, and RUN:2
    is one cell. --format fio writes what fio printed into a folder for fio-plot; FILE.vmlab holds the whole run, for
    `vmlab import`.
    """
    with shown_work():
        name, files = export_runs(runs or ("last",), output, name, **how)
    if files is not None:
        say(f"{plural(files, 'report')} of {name} in {output}")


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
def import_run(file: Path) -> None:
    """Add the run in FILE, which `vmlab export` wrote on another machine, to the runs here, and print its id."""
    with shown_work():
        run = unpack(file)
    write_text(run)


@click.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("-o", "--output", "output", type=click.Path(path_type=Path), help="Output file.")
@click.option("--format", "name", type=click.Choice(FORMATS), help="HTML, or Markdown for an issue or a wiki.")
@click.option("--chart", "chart", type=click.Path(path_type=Path), help="Write one chart, to FILE.svg or FILE.png.")
@click.option("--figure", "figure", help="What --chart shows: WORKLOAD, METRIC or WORKLOAD.METRIC.")
def report(
    runs: tuple[str, ...], output: Path | None, name: str | None, chart: Path | None, figure: str | None
) -> None:
    """Write RUNS to one file that needs no network: the answer, charts, tables, cells, configuration, raw output.

    The first of several is the baseline. As for `vmlab compare`, A,B C,D are two sides of two runs each, and RUN:2 is
    one cell.
    """
    if output is None and chart is None:
        raise click.MissingParameter(param_hint="'-o' / '--output'", param_type="option")
    if figure is not None and chart is None:
        raise UsageError("--figure is for --chart")
    with shown_work():
        if output is not None:
            write_report(runs, output, name)
        if chart is not None:
            write_chart(runs, chart, figure)


@click.command()
@click.argument("run")
@click.option("--dry-run", is_flag=True, help="Show what would change, without changing it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def reparse(run: str, dry_run: bool, as_json: bool) -> int:
    """Compute the metrics of RUN again from the raw output of its tools, for example after a parser was fixed.

    The old values are kept, and the new ones are marked wherever they are shown.
    """
    found = make_again(resolve_run(run), dry_run=dry_run)
    if as_json:
        write_json(found.to_json(dry_run=dry_run))
    else:
        for line in _lines(found, dry_run=dry_run):
            write_text(visible_line(line))
        for line in (*found.problems, *found.beyond):
            say(visible_line(line))
    return int(ExitCode.FAILED if found.problems else ExitCode.PASSED)


def _lines(found: Reparsed, *, dry_run: bool) -> Iterator[str]:
    changes = [(event.cell, change) for event in found.changed for change in changes_of(event)]
    for cell, one in changes:
        was, value = ("none" if figure is None else f"{figure:.6g}" for figure in (one.was, one.value))
        place = f"cell {cell}, {one.workload} of tile {one.tile}, {one.metric}"
        yield visible_line(f"{place}: {was} -> {value} (unit {one.unit})")
    done = "would change" if dry_run else "changed"
    yield f"{plural(found.read, 'workload')} read again, {plural(len(changes), 'value')} {done}"
