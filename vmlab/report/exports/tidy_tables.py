"""Tidy tables as CSV (RFC 4180, UTF-8, an empty field for what was not measured; moments by ISO 8601)."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime
from functools import cache
from typing import BinaryIO

from vmlab.model.axes import axis_word
from vmlab.model.visible import visible_line
from vmlab.report.exports.tidy import Cell, Tidy

_UNIT = "unit"
_TYPED = re.compile(
    r"(?=[^0-9]*+[0-9])[-+\s.,:/_%$€£TZ()0-9]++"
    r"|[-+.\s0-9]*[0-9]\.?e[-+]?[0-9]+\s*|[-+]?0[xob][0-9a-f]+"
    r"|(?=.*[0-9])[-\s.,:/0-9]*(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-\s.,:/0-9]*"
    r"|[-+]?(?:nan|inf|infinity)|true|false|yes|no|[tfyn]|null|<?na>?|n/a|#n/?a|(?-i:None)",
    re.IGNORECASE,
)
"""Text that a reader takes for a number, a date, a time, a truth value or nothing.

DuckDB, pandas, Polars, Arrow and spreadsheets guess the type of a column by its values, in quotes or not: 7.2.22 is a
date to DuckDB, 007 a number to pandas, 1/2 a date to spreadsheets.
"""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
"""What a cell begins with that a spreadsheet takes for a formula (OWASP, CSV injection), or for the mark of a text."""


def write_csv(table: Tidy, file: BinaryIO, *, guarded: bool = True) -> None:
    """Write a heading and all rows. Text that is no Unicode, such as bytes of a broken name, becomes ``?``.

    When `guarded`, an apostrophe stands before text that a spreadsheet would take for a formula, or a reader for
    something else than text, whatever else is in its column: so the type of a column depends on no value. The units, a
    few known words, are left as they are.
    """
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    fields = [_field if not guarded or name == _UNIT else _guarded for name in table.columns]
    writer.writerow([(_guarded if guarded else _field)(visible_line(name)) for name in table.columns])
    for row in table.rows:
        writer.writerow([field(value) for field, value in zip(fields, row, strict=True)])
    text.flush()
    text.detach()


def _guarded(value: Cell) -> str | int | float | None:
    if isinstance(value, str) and (value.startswith(_FORMULA) or _is_typed(value)):
        return f"'{value}"
    return _field(value)


@cache
def _is_typed(text: str) -> bool:
    return _TYPED.fullmatch(text) is not None


def _field(value: Cell) -> str | int | float | None:
    if isinstance(value, datetime):
        return moment_text(value)
    return str(value).lower() if isinstance(value, bool) else value


def moment_text(moment: datetime) -> str:
    """A moment by ISO 8601 with milliseconds, in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def cell_text(value: Cell) -> str:
    """A value as a word of a format that knows text alone; empty for none."""
    return moment_text(value) if isinstance(value, datetime) else axis_word(value) if value is not None else ""
