"""`vmlab export` and `import`: a run in the formats of other programs, or carried to another machine."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.output import write_text
from vmlab.model.errors import RefusedError, UsageError
from vmlab.report.exports.fio_folder import write_fio
from vmlab.report.exports.tidy import Exported
from vmlab.report.words import plural
from vmlab.store.archive import pack, unpack
from vmlab.store.named_runs import NamedRun, NamedSide, named_sides
from vmlab.store.reader import RunReader
from vmlab.system.new_file import new_file
from vmlab.system.packages import extra_command

Place = tuple[str, str]
"""What makes a table of runs, or an empty text, and what writes it, or else the runs; both are in `report.exports`."""


@dataclass(frozen=True, slots=True)
class Format:
    """What writes the measurements, what writes the samples (None for nothing), and the endings of its files."""

    write: Place | None
    write_samples: Place | None
    endings: tuple[str, ...]


FIO = "fio"
"""The format that is a folder."""
ARCHIVE = "vmlab"
FORMATS = {
    "csv": Format(("tidy.measurements", "tidy_tables.write_csv"), ("tidy.sampled", "tidy_tables.write_csv"), (".csv",)),
    "parquet": Format(
        ("tidy.measurements", "parquet.write_parquet"), ("tidy.sampled", "parquet.write_parquet"), (".parquet",)
    ),
    "perfkit": Format(("", "perfkit.write_perfkit"), None, (".jsonl", ".ndjson")),
    "openmetrics": Format(("", "openmetrics.write_measurements"), ("", "openmetrics.write_samples"), (".prom",)),
    "junit": Format(("", "junit.write_junit"), None, (".xml",)),
    ARCHIVE: Format(None, None, (".vmlab",)),
    FIO: Format(None, None, ()),
}
"""All formats by name. The library of a format is loaded when it is written."""
_EXTRAS = {"pyarrow": "parquet"}
"""Packages that come with an extra of this one."""


def loaded(place: str) -> Callable[..., Any]:
    """The function ``MODULE.NAME`` of `report.exports`. Raises ModuleNotFoundError where a library is missing."""
    module, _, name = place.partition(".")
    found: Callable[..., Any] = getattr(import_module(f"vmlab.report.exports.{module}"), name)
    return found


_OF_ONE_RUN = (FIO, ARCHIVE)
"""Formats that hold one whole run."""


@click.command()
@click.argument("runs", nargs=-1)
@click.option("-o", "--output", "output", type=click.Path(path_type=Path), required=True, help="Output file.")
@click.option(
    "--format", "name", type=click.Choice(tuple(FORMATS)), help="Output format [default: by the file's suffix]."
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
    place = FORMATS[name].write_samples if samples else FORMATS[name].write
    if samples and place is None:
        raise UsageError(f"--samples does not go with the format {name}")
    if plain and name != "csv":
        raise UsageError("--plain is for CSV; no other format guards formulas")
    sides = named_sides(runs or ("last",))
    named = [(side, run) for side in sides for run in side.runs]
    _demand_sense(named, name, run_label)
    with ExitStack() as stack:
        opened = [
            Exported(stack.enter_context(RunReader(run.store)), side.label if len(named) > 1 else "", run.cell)
            for side, run in named
        ]
        for one, (_, run) in zip(opened, named, strict=True):
            if run.cell is not None and not one.document()["cells"]:
                raise UsageError(f"{run.name}: has no cell {run.cell}")
        if name == FIO:
            say(f"{plural(write_fio(opened[0].reader, output), 'report')} of fio in {output}")
            return
        options = {"guarded": False} if plain else {}
        if name == "openmetrics":
            options["run_label"] = run_label if run_label is not None else samples or len(named) > 1
        with new_file(output) as file:
            if place is None:
                pack(opened[0].reader, opened[0].document()["run"]["id"], file)
            else:
                _write(place, opened, file, options)


def _write(place: Place, runs: Sequence[Exported], file: BinaryIO, options: Mapping[str, bool]) -> None:
    table, writer = place
    try:
        loaded(writer)(loaded(table)(*runs) if table else runs, file, **options)
    except ModuleNotFoundError as error:
        if (extra := _EXTRAS.get(error.name or "")) is None:
            raise
        raise RefusedError(f"this format needs {error.name}", remedy=shlex.join(extra_command(extra))) from error


def _demand_sense(named: Sequence[tuple[NamedSide, NamedRun]], name: str, run_label: bool | None) -> None:
    """Raises UsageError for runs or options that do not go with the format, and for a run that is named twice."""
    if name in _OF_ONE_RUN and (len(named) > 1 or named[0][1].cell is not None):
        raise UsageError(f"the format {name} holds one whole run")
    if run_label is not None and name != "openmetrics":
        raise UsageError("--run-label is for the format openmetrics")
    if run_label is False and len(named) > 1:
        raise UsageError("several runs need their label: two of them would be one series")
    seen = Counter((run.store.resolve(), run.cell) for _, run in named)
    for _, run in named:
        if seen[run.store.resolve(), run.cell] > 1 or (run.cell is not None and seen[run.store.resolve(), None]):
            raise UsageError(f"{run.name} is named twice: its figures would count twice")


def _by_ending(output: Path) -> str:
    endings = {ending: name for name, one in FORMATS.items() for ending in one.endings}
    try:
        return endings[output.suffix.lower()]
    except KeyError:
        raise UsageError(f"cannot infer the format from {output}; use --format {', '.join(FORMATS)}") from None


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
def import_run(file: Path) -> None:
    """Add the run in FILE, which `vmlab export` wrote on another machine, to the runs here, and print its id."""
    write_text(unpack(file))
