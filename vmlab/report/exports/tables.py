"""Tidy tables as CSV (RFC 4180, UTF-8, an empty field for what was not measured)."""

from __future__ import annotations

import csv
import io
from typing import BinaryIO

from vmlab.report.exports.tidy import Cell, Tidy


def write_csv(table: Tidy, file: BinaryIO) -> None:
    """Write a heading and all rows. Text that is no Unicode, such as bytes of a broken name, becomes ``?``."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow([_field(value) for value in row])
    text.flush()
    text.detach()


def _field(value: Cell) -> str | int | float | None:
    return str(value).lower() if isinstance(value, bool) else value
