"""`vmlab export` and `import`: a run in the formats of other programs, or carried to another machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import click

from vmlab.analysis.document import run_document
from vmlab.cli.diagnostics import say
from vmlab.cli.output import write_text
from vmlab.model.errors import RefusedError, UsageError
from vmlab.report.exports.fio_folder import write_fio
from vmlab.report.words import plural
from vmlab.store.archive import pack, unpack
from vmlab.store.reader import RunReader
from vmlab.store.runs import resolve_run
from vmlab.system.new_file import new_file

Writer = Callable[[RunReader, BinaryIO], None]


def _csv(reader: RunReader, file: BinaryIO, *, guarded: bool = True) -> None:
    from vmlab.report.exports.tables import write_csv
    from vmlab.report.exports.tidy import measurements

    write_csv(measurements(reader), file, guarded=guarded)


def _csv_samples(reader: RunReader, file: BinaryIO, *, guarded: bool = True) -> None:
    from vmlab.report.exports.tables import write_csv
    from vmlab.report.exports.tidy import sampled

    write_csv(sampled(reader), file, guarded=guarded)


def _parquet(reader: RunReader, file: BinaryIO) -> None:
    from vmlab.report.exports.parquet import write_parquet
    from vmlab.report.exports.tidy import measurements

    write_parquet(measurements(reader), file)


def _parquet_samples(reader: RunReader, file: BinaryIO) -> None:
    from vmlab.report.exports.parquet import write_parquet
    from vmlab.report.exports.tidy import sampled

    write_parquet(sampled(reader), file)


def _perfkit(reader: RunReader, file: BinaryIO) -> None:
    from vmlab.report.exports.perfkit import write_perfkit

    write_perfkit(reader, file)


def _openmetrics(reader: RunReader, file: BinaryIO) -> None:
    from vmlab.report.exports.openmetrics import write_measurements

    write_measurements(reader, file)


def _openmetrics_samples(reader: RunReader, file: BinaryIO) -> None:
    from vmlab.report.exports.openmetrics import write_samples

    write_samples(reader, file)


def _junit(reader: RunReader, file: BinaryIO) -> None:
    from vmlab.report.exports.junit import write_junit

    write_junit(reader, file)


def _archive(reader: RunReader, file: BinaryIO) -> None:
    pack(reader, run_document(reader)["run"]["id"], file)


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


@click.command()
@click.argument("run", default="last")
@click.option("-o", "--output", "output", type=click.Path(path_type=Path), required=True, help="The file to write.")
@click.option("--format", "name", type=click.Choice(_NAMES), help="The format, where the file's ending does not tell.")
@click.option("--samples", is_flag=True, help="What the recorder read in each tick, instead of the measurements.")
@click.option("--plain", is_flag=True, help="CSV for programs: no apostrophe before text that looks like a formula.")
def export(run: str, output: Path, name: str | None, samples: bool, plain: bool) -> None:
    """Write RUN to a file: as CSV, Parquet, PerfKitBenchmarker's JSON lines, OpenMetrics or JUnit XML.

    --format fio writes what fio printed into a folder for fio-plot; FILE.vmlab holds the whole run, for `vmlab import`.
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
    with RunReader(resolve_run(run)) as reader:
        if writer is None:
            say(f"{plural(write_fio(reader, output), 'report')} of fio in {output}")
            return
        try:
            with new_file(output) as file:
                writer(reader, file)
        except ModuleNotFoundError as error:
            if (extra := _EXTRAS.get(error.name or "")) is None:
                raise
            remedy = f"pip install 'vmlab[{extra}]'"
            raise RefusedError(f"this format needs {error.name}", remedy=remedy) from error


def _by_ending(output: Path) -> str:
    endings = {ending: name for name, one in FORMATS.items() for ending in one.endings}
    try:
        return endings[output.suffix.lower()]
    except KeyError:
        raise UsageError(f"the name of {output} tells no format; use --format {', '.join(_NAMES)}") from None


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
def import_run(file: Path) -> None:
    """Add the run in FILE, which `vmlab export` wrote on another machine, to the runs here, and print its id."""
    write_text(unpack(file))
