"""`vmlab export` and `import`: a run in the formats of other programs, or carried to another machine."""

from __future__ import annotations

from pathlib import Path

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.output import write_text
from vmlab.cli.shown_work import shown_work
from vmlab.report.exports.export_format import format_names
from vmlab.report.exports.exporting import export_runs
from vmlab.report.words import plural
from vmlab.store.archive import unpack


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
    help="OpenMetrics: give every series the run as a label; usual with --samples and with several runs.",
)
def export(
    runs: tuple[str, ...], output: Path, name: str | None, samples: bool, plain: bool, run_label: bool | None
) -> None:
    """Write RUNS to a file: as CSV, Parquet, PerfKitBenchmarker's JSON lines, OpenMetrics or JUnit XML.

    Without RUNS it is the newest; A,B C,D are two sides of two runs each, as `vmlab compare` takes them, and RUN:2 is
    one cell. --format fio writes what fio printed into a folder for fio-plot; FILE.vmlab holds the whole run, for
    `vmlab import`.
    """
    with shown_work():
        name, files = export_runs(runs or ("last",), output, name, samples=samples, plain=plain, run_label=run_label)
    if files is not None:
        say(f"{plural(files, 'report')} of {name} in {output}")


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
def import_run(file: Path) -> None:
    """Add the run in FILE, which `vmlab export` wrote on another machine, to the runs here, and print its id."""
    with shown_work():
        run = unpack(file)
    write_text(run)
