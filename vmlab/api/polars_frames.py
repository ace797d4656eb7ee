"""Tables as frames of polars, which comes with the extra ``vmlab[frames]`` and is loaded with the first frame."""

from __future__ import annotations

import shlex
from itertools import islice
from typing import TYPE_CHECKING

from vmlab.model.errors import RefusedError
from vmlab.report.exports.tidy import Kind, Tidy
from vmlab.system.packages import extra_command

if TYPE_CHECKING:
    import polars

_ROWS = 50_000
"""Rows that are Python objects at a time."""


def frame_of(table: Tidy) -> polars.DataFrame:
    """All rows of a table; what was not measured is null. Raises RefusedError without polars."""
    try:
        import polars
    except ModuleNotFoundError as error:
        raise RefusedError("frames need polars", remedy=shlex.join(extra_command("frames"))) from error

    types: dict[Kind, polars.DataType] = {
        "text": polars.String(),
        "whole": polars.Int64(),
        "number": polars.Float64(),
        "flag": polars.Boolean(),
        "moment": polars.Datetime("ms", "UTC"),
    }
    schema = {name: types[kind] for name, kind in table.columns.items()}
    parts = [polars.DataFrame(schema=schema)]
    while rows := list(islice(table.rows, _ROWS)):
        # Bytes of a broken name are lone surrogates, which no frame can hold.
        valid = [
            tuple(one.encode("utf-8", "replace").decode() if isinstance(one, str) else one for one in row)
            for row in rows
        ]
        parts.append(polars.DataFrame(valid, schema=schema, orient="row"))
    return polars.concat(parts)
