"""vmlab's own export formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO

from vmlab.report.exports.benchstat import write_benchstat
from vmlab.report.exports.export_format import ExportFormat, Write
from vmlab.report.exports.fio_folder import write_fio
from vmlab.report.exports.junit import write_junit
from vmlab.report.exports.openmetrics import write_measurements, write_samples
from vmlab.report.exports.perfkit import write_perfkit
from vmlab.report.exports.tidy import Exported, Tidy, measurements, sampled
from vmlab.report.exports.tidy_tables import write_csv
from vmlab.store.archive import pack


def _of_table(table: Callable[..., Tidy], write_table: Callable[..., None]) -> Write:
    def write(runs: Sequence[Exported], file: BinaryIO, **options: bool) -> None:
        write_table(table(*runs), file, **options)

    return write


def _write_parquet(table: Tidy, file: BinaryIO) -> None:
    # Its library is large, and may be missing.
    from vmlab.report.exports.parquet import write_parquet

    write_parquet(table, file)


def _pack(runs: Sequence[Exported], file: BinaryIO) -> None:
    (run,) = runs
    pack(run.reader, run.document().run.id, file)


CSV = ExportFormat(
    (".csv",), _of_table(measurements, write_csv), _of_table(sampled, write_csv), options=frozenset({"guarded"})
)
PARQUET = ExportFormat((".parquet",), _of_table(measurements, _write_parquet), _of_table(sampled, _write_parquet))
BENCHSTAT = ExportFormat((".bench",), write_benchstat)
PERFKIT = ExportFormat((".jsonl", ".ndjson"), write_perfkit)
OPENMETRICS = ExportFormat((".prom",), write_measurements, write_samples, options=frozenset({"run_label"}))
JUNIT = ExportFormat((".xml",), write_junit)
FIO = ExportFormat((), write_folder=write_fio, one_run=True)
"""A folder for fio-plot."""
ARCHIVE = ExportFormat((".vmlab",), _pack, one_run=True)
"""A whole run, for `vmlab import`."""
