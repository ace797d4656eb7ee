"""Measurements in InfluxDB's line protocol: one line each, without a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from vmlab.plugin.v1.export import Exported, ExportFormat, measurements

_NO_TAGS = frozenset({"value", "started"})
_ESCAPES = str.maketrans({" ": r"\ ", ",": r"\,", "=": r"\=", "\\": "\\\\"})


def write_lines(runs: Sequence[Exported], file: BinaryIO) -> None:
    """A line for each figure that has a value; everything else of its row is a tag."""
    table = measurements(*runs)
    for row in table.rows:
        named = dict(zip(table.columns, row, strict=True))
        if named["value"] is None:
            continue
        words = {name: str(value).translate(_ESCAPES) for name, value in named.items() if name not in _NO_TAGS}
        tags = "".join(f",{name}={word}" for name, word in words.items() if word not in ("", "None"))
        file.write(f"vmlab{tags} value={named['value']!r}\n".encode())


INFLUX = ExportFormat((".lp",), write_lines)
