"""What the columns of a store may hold: SQLite itself accepts any type. All functions here raise ValueError."""

from __future__ import annotations

import json
import zlib
from typing import Any

from vmlab.model.quantities import format_bytes
from vmlab.model.results import MOST_PRINTED, RawOutput

_LARGEST = 1e100


def whole(value: Any) -> int:
    """A whole number."""
    if type(value) is not int:
        raise ValueError(f"a {_kind(value)} stands where a whole number should")
    return value


def number(value: Any) -> float:
    """A number that a clock may show: finite, and below a generous limit."""
    if not isinstance(value, float | int) or not abs(value) < _LARGEST:
        raise ValueError(f"a {_kind(value)} stands where a number should")
    return value


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ValueError(f"a {_kind(value)} stands where a text should")
    return value


def packed(value: Any, size: int | None = None) -> bytes:
    """Bytes, `size` of them when given."""
    if not isinstance(value, bytes):
        raise ValueError(f"a {_kind(value)} stands where bytes should")
    if size is not None and len(value) != size:
        raise ValueError(f"{len(value)} bytes stand where {size} should")
    return value


def raw_output(workload: Any, tile: Any, guest: Any, name: Any, body: Any) -> RawOutput:
    """What a tool printed; bytes that are not UTF-8 become lone surrogates. Also raises zlib.error."""
    unpacking = zlib.decompressobj()
    printed = unpacking.decompress(packed(body), MOST_PRINTED + 1)
    if len(printed) > MOST_PRINTED:
        raise ValueError(f"what a tool printed is larger than {format_bytes(MOST_PRINTED)}")
    if not unpacking.eof:
        raise ValueError("what a tool printed is not whole")
    return RawOutput(text(workload), whole(tile), text(guest), text(name), printed.decode("utf-8", "surrogateescape"))


def names_of(body: Any) -> tuple[str, ...]:
    """A JSON list of names, none of them empty."""
    try:
        names = json.loads(text(body))
    except RecursionError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError("a layout of samples is no list of names")
    return tuple(names)


def _kind(value: object) -> str:
    return {str: "text", bytes: "blob", type(None): "null", int: "whole number"}.get(type(value), "figure")
