"""`vmlab export` and `import`: a run in the formats of other programs, or carried to another machine."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.output import write_text
from vmlab.model.errors import CommandFailed, RefusedError, UsageError, VmlabError
from vmlab.report.exports.export_format import ExportFormat, export_formats, format_names, of_ending
from vmlab.report.exports.tidy import Exported
from vmlab.report.words import plural
from vmlab.store.archive import unpack
from vmlab.store.named_runs import NamedRun, NamedSide, named_sides
from vmlab.store.reader import RunReader
from vmlab.system.entry_points import EXPORTS, broken, entries, said
from vmlab.system.new_file import new_file
from vmlab.system.packages import extra_command

_EXTRAS = {"pyarrow": "parquet"}
"""Packages that come with an extra of this one."""


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
    name = name or _by_ending(output)
    one = _format(name)
    write = one.write_samples if samples else one.write
    if samples and write is None:
        raise UsageError(f"--samples does not go with the format {name}")
    if plain and "guarded" not in one.options:
        raise UsageError("--plain is for CSV; no other format guards formulas")
    sides = named_sides(runs or ("last",))
    named = [(side, run) for side in sides for run in side.runs]
    _demand_sense(named, name, run_label)
    with ExitStack() as stack:
        opened = [
            Exported(stack.enter_context(RunReader(run.store)), side.label if len(named) > 1 else "", run.cell)
            for side, run in named
        ]
        for exported, (_, run) in zip(opened, named, strict=True):
            if run.cell is not None and not exported.document()["cells"]:
                raise UsageError(f"{run.name}: has no cell {run.cell}")
        if one.write_folder is not None:
            with _naming_what_lacks(name):
                say(f"{plural(one.write_folder(opened[0], output), 'report')} of {name} in {output}")
            return
        options = {"guarded": False} if plain else {}
        if "run_label" in one.options:
            options["run_label"] = run_label if run_label is not None else samples or len(named) > 1
        with new_file(output) as file, _naming_what_lacks(name):
            assert write is not None
            write(opened, file, **options)


def _format(name: str) -> ExportFormat:
    """Raises UsageError for a format of another package that is left out."""
    if (found := export_formats().get(name)) is None:
        entry = next(one.entry for one in broken() if (one.entry.group, one.entry.name) == (EXPORTS, name))
        raise UsageError(f"the {entry.words} is left out, as it cannot be used")
    return found


@contextmanager
def _naming_what_lacks(name: str) -> Iterator[None]:
    """Raises RefusedError where a package of an extra is missing, CommandFailed where one of another package fails."""
    try:
        yield
    except (VmlabError, OSError):
        raise
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (extra := _EXTRAS.get(error.name or "")) is not None:
            raise RefusedError(f"this format needs {error.name}", remedy=shlex.join(extra_command(extra))) from error
        entry = next(one for one in entries(EXPORTS) if one.name == name)
        if entry.is_own:
            raise
        raise CommandFailed(f"{entry.words} failed: {said(error)}") from error


def _demand_sense(named: Sequence[tuple[NamedSide, NamedRun]], name: str, run_label: bool | None) -> None:
    """Raises UsageError for runs or options that do not go with the format, and for a run that is named twice."""
    one = export_formats()[name]
    if one.one_run and (len(named) > 1 or named[0][1].cell is not None):
        raise UsageError(f"the format {name} holds one whole run")
    if run_label is not None and "run_label" not in one.options:
        raise UsageError("--run-label is for the format openmetrics")
    if run_label is False and len(named) > 1:
        raise UsageError("several runs need their label: two of them would be one series")
    seen = Counter((run.store.resolve(), run.cell) for _, run in named)
    for _, run in named:
        if seen[run.store.resolve(), run.cell] > 1 or (run.cell is not None and seen[run.store.resolve(), None]):
            raise UsageError(f"{run.name} is named twice: its figures would count twice")


def _by_ending(output: Path) -> str:
    if (name := of_ending(output.suffix)) is None:
        raise UsageError(f"cannot infer the format from {output}; use --format {', '.join(format_names())}")
    return name


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
def import_run(file: Path) -> None:
    """Add the run in FILE, which `vmlab export` wrote on another machine, to the runs here, and print its id."""
    write_text(unpack(file))
