"""`vmlab export` and `import`: a run in the formats of other programs, or carried to another machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import click

from vmlab.cli.diagnostics import say
from vmlab.cli.named_runs import NamedRun, NamedSide, named_sides
from vmlab.cli.output import write_text
from vmlab.model.errors import RefusedError, UsageError
from vmlab.report.exports.fio_folder import write_fio
from vmlab.report.exports.tidy import Exported
from vmlab.report.words import plural
from vmlab.store.archive import pack, unpack
from vmlab.store.reader import RunReader
from vmlab.system.new_file import new_file

Writer = Callable[[Sequence[Exported], BinaryIO, bool], None]
"""Writes runs to a file; the last argument says whether each series has its run as a label."""


def _csv(runs: Sequence[Exported], file: BinaryIO, _: bool, *, guarded: bool = True) -> None:
    from vmlab.report.exports.tidy import measurements
    from vmlab.report.exports.tidy_tables import write_csv

    write_csv(measurements(*runs), file, guarded=guarded)


def _csv_samples(runs: Sequence[Exported], file: BinaryIO, _: bool, *, guarded: bool = True) -> None:
    from vmlab.report.exports.tidy import sampled
    from vmlab.report.exports.tidy_tables import write_csv

    write_csv(sampled(*runs), file, guarded=guarded)


def _parquet(runs: Sequence[Exported], file: BinaryIO, _: bool) -> None:
    from vmlab.report.exports.parquet import write_parquet
    from vmlab.report.exports.tidy import measurements

    write_parquet(measurements(*runs), file)


def _parquet_samples(runs: Sequence[Exported], file: BinaryIO, _: bool) -> None:
    from vmlab.report.exports.parquet import write_parquet
    from vmlab.report.exports.tidy import sampled

    write_parquet(sampled(*runs), file)


def _perfkit(runs: Sequence[Exported], file: BinaryIO, _: bool) -> None:
    from vmlab.report.exports.perfkit import write_perfkit

    write_perfkit(runs, file)


def _openmetrics(runs: Sequence[Exported], file: BinaryIO, run_label: bool) -> None:
    from vmlab.report.exports.openmetrics import write_measurements

    write_measurements(runs, file, run_label=run_label)


def _openmetrics_samples(runs: Sequence[Exported], file: BinaryIO, run_label: bool) -> None:
    from vmlab.report.exports.openmetrics import write_samples

    write_samples(runs, file, run_label=run_label)


def _junit(runs: Sequence[Exported], file: BinaryIO, _: bool) -> None:
    from vmlab.report.exports.junit import write_junit

    write_junit(runs, file)


def _archive(runs: Sequence[Exported], file: BinaryIO, _: bool) -> None:
    (run,) = runs
    pack(run.reader, run.document()["run"]["id"], file)


@dataclass(frozen=True, slots=True)
class Format:
    """What writes the measurements, what writes the samples (None for nothing), and the endings of its files."""

    write: Writer
    write_samples: Writer | None
    endings: tuple[str, ...]


FORMATS = {
    "csv": Format(_csv, _csv_samples, (".csv",)),
    "parquet": Format(_parquet, _parquet_samples, (".parquet",)),
    "perfkit": Format(_perfkit, None, (".jsonl", ".ndjson")),
    "openmetrics": Format(_openmetrics, _openmetrics_samples, (".prom",)),
    "junit": Format(_junit, None, (".xml",)),
    "vmlab": Format(_archive, None, (".vmlab",)),
}
"""Formats of one file, by name. The library of a format is loaded when it is written."""
FIO = "fio"
"""The format that is a folder."""
_EXTRAS = {"pyarrow": "parquet"}
"""Packages that come with an extra of this one."""
_NAMES = (*FORMATS, FIO)


_OF_ONE_RUN = (FIO, "vmlab")
"""Formats that hold one whole run."""


@click.command()
@click.argument("runs", nargs=-1)
@click.option("-o", "--output", "output", type=click.Path(path_type=Path), required=True, help="Output file.")
@click.option("--format", "name", type=click.Choice(_NAMES), help="Output format [default: by the file's suffix].")
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
    chosen = FORMATS.get(name)
    writer = None if chosen is None else chosen.write_samples if samples else chosen.write
    if samples and writer is None:
        raise UsageError(f"--samples does not go with the format {name}")
    if plain and name != "csv":
        raise UsageError("--plain is for CSV; no other format guards formulas")
    if plain:
        writer = partial(_csv_samples if samples else _csv, guarded=False)
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
        if writer is None:
            say(f"{plural(write_fio(opened[0].reader, output), 'report')} of fio in {output}")
            return
        label = run_label if run_label is not None else samples or len(named) > 1
        try:
            with new_file(output) as file:
                writer(opened, file, label)
        except ModuleNotFoundError as error:
            if (extra := _EXTRAS.get(error.name or "")) is None:
                raise
            remedy = f"pip install 'vmlab[{extra}]'"
            raise RefusedError(f"this format needs {error.name}", remedy=remedy) from error


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
        raise UsageError(f"cannot infer the format from {output}; use --format {', '.join(_NAMES)}") from None


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
def import_run(file: Path) -> None:
    """Add the run in FILE, which `vmlab export` wrote on another machine, to the runs here, and print its id."""
    write_text(unpack(file))
