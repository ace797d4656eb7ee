"""Tidy tables as CSV (RFC 4180, UTF-8, an empty field for what was not measured; moments by ISO 8601)."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import BinaryIO

from vmlab.model.visible import visible_line
from vmlab.report.exports.tidy import Cell, Tidy

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
"""What a cell begins with that a spreadsheet takes for a formula (OWASP, CSV injection), or for the mark of a text."""


def write_csv(table: Tidy, file: BinaryIO, *, guarded: bool = True) -> None:
    """Write a heading and all rows. Text that is no Unicode, such as bytes of a broken name, becomes ``?``.

    When `guarded`, an apostrophe stands before text that a spreadsheet would take for a formula.
    """
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    field = _guarded if guarded else _field
    writer.writerow([field(visible_line(name)) for name in table.columns])
    for row in table.rows:
        writer.writerow([field(value) for value in row])
    text.flush()
    text.detach()


def _guarded(value: Cell) -> str | int | float | None:
    if isinstance(value, str) and value.startswith(_FORMULA) and not _is_number(value):
        return f"'{value}"
    return _field(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _field(value: Cell) -> str | int | float | None:
    if isinstance(value, datetime):
        return moment_text(value)
    return str(value).lower() if isinstance(value, bool) else value


def moment_text(moment: datetime) -> str:
    """A moment by ISO 8601 with milliseconds, in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")
