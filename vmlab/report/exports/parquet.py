"""Tidy tables as Parquet, by pyarrow, which comes with the extra ``vmlab[parquet]``."""

from __future__ import annotations

from itertools import islice
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from vmlab.report.exports.tidy import Cell, Kind, Tidy

_ROWS = 50_000
"""Rows that are in memory at a time; each becomes a row group."""
_TYPES: dict[Kind, pa.DataType] = {
    "text": pa.string(),
    "whole": pa.int64(),
    "number": pa.float64(),
    "flag": pa.bool_(),
    "moment": pa.timestamp("ms", tz="UTC"),
}


def write_parquet(table: Tidy, file: BinaryIO) -> None:
    """Write all rows; what was not measured is null."""
    schema = pa.schema([pa.field(name, _TYPES[kind]) for name, kind in table.columns.items()])
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while rows := list(islice(table.rows, _ROWS)):
            columns = [
                pa.array(map(_valid, column), field.type)
                for column, field in zip(zip(*rows, strict=True), schema, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def _valid(value: Cell) -> Cell:
    """Text as Unicode: bytes of a broken name are lone surrogates, which Parquet cannot hold."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
