"""Tidy tables as Parquet, by pyarrow, which comes with the extra ``vmlab[parquet]``."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from vmlab.report.exports.tidy import Kind, Tidy, unicode_rows

_TYPES: dict[Kind, pa.DataType] = {
    "text": pa.string(),
    "whole": pa.int64(),
    "number": pa.float64(),
    "flag": pa.bool_(),
    "moment": pa.timestamp("ms", tz="UTC"),
}


def write_parquet(table: Tidy, file: BinaryIO) -> None:
    """Write all rows, those that are in memory at a time as a row group; what was not measured is null."""
    schema = pa.schema([pa.field(name, _TYPES[kind]) for name, kind in table.columns.items()])
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in unicode_rows(table):
            columns = zip(zip(*rows, strict=True), schema, strict=True)
            arrays = [pa.array(column, field.type) for column, field in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
