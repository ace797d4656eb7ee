"""vmlab's own export formats. The library of a format is loaded when it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from vmlab.report.exports.export_format import ExportFormat, Write
from vmlab.report.exports.tidy import Exported, Tidy, measurements, sampled
from vmlab.store.archive import pack


def _late(module: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(f"vmlab.report.exports.{module}"), name)
    return found


def _by_runs(module: str, name: str) -> Write:
    def write(runs: Sequence[Exported], file: BinaryIO, **options: bool) -> None:
        _late(module, name)(runs, file, **options)

    return write


def _by_table(table: Callable[..., Tidy], module: str, name: str) -> Write:
    def write(runs: Sequence[Exported], file: BinaryIO, **options: bool) -> None:
        _late(module, name)(table(*runs), file, **options)

    return write


def _pack(runs: Sequence[Exported], file: BinaryIO) -> None:
    (run,) = runs
    pack(run.reader, run.document()["run"]["id"], file)


def _fio(run: Exported, folder: Path) -> int:
    files: int = _late("fio_folder", "write_fio")(run.reader, folder)
    return files


CSV = ExportFormat(
    (".csv",),
    _by_table(measurements, "tidy_tables", "write_csv"),
    _by_table(sampled, "tidy_tables", "write_csv"),
    options=frozenset({"guarded"}),
)
PARQUET = ExportFormat(
    (".parquet",),
    _by_table(measurements, "parquet", "write_parquet"),
    _by_table(sampled, "parquet", "write_parquet"),
)
PERFKIT = ExportFormat((".jsonl", ".ndjson"), _by_runs("perfkit", "write_perfkit"))
OPENMETRICS = ExportFormat(
    (".prom",),
    _by_runs("openmetrics", "write_measurements"),
    _by_runs("openmetrics", "write_samples"),
    options=frozenset({"run_label"}),
)
JUNIT = ExportFormat((".xml",), _by_runs("junit", "write_junit"))
FIO = ExportFormat((), write_folder=_fio, one_run=True)
"""A folder for fio-plot."""
ARCHIVE = ExportFormat((".vmlab",), _pack, one_run=True)
"""A whole run, for `vmlab import`."""
