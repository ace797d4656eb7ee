"""Quantities with units, as scenarios write them and people read them, and the types of models' fields for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema

from vmlab.model.quantities import parse_bit_rate, parse_bytes, parse_pace, parse_percent, parse_seconds

_PERCENT_PATTERN = r"^[0-9.]+\s*%$"
_AS_PERCENT = WithJsonSchema({"type": "string", "pattern": _PERCENT_PATTERN})
_AS_PACE = WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*/\s*(s|min)$"})
_AS_RATE = WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*[kMG]?bit/s$"})
_AS_BYTE_RATE = WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*[A-Za-z]+/s$"})
_AS_TEXT = WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*[A-Za-z]+$"})


def _of_text(parse: Callable[[object], int]) -> BeforeValidator:
    """A value from a scenario is text that `parse` reads; a value from the program itself is an int already."""

    def read(value: object, validation: ValidationInfo) -> object:
        return value if validation.mode == "python" and type(value) is int else parse(value)

    return BeforeValidator(read)


def _byte_rate(value: object) -> int:
    if not isinstance(value, str) or not value.endswith("/s"):
        raise ValueError("needs bytes a second, such as 100 MB/s")
    return parse_bytes(value.removesuffix("/s").rstrip())


def _whole_seconds(value: object) -> int:
    seconds = parse_seconds(value)
    if seconds != int(seconds):
        raise ValueError("needs whole seconds, such as 5 s")
    return int(seconds)


Bytes = Annotated[int, _of_text(parse_bytes), _AS_TEXT]
"""A field of a model that a scenario writes as a size, such as ``670 MB``; an int of bytes in the program."""

ByteRate = Annotated[int, _of_text(_byte_rate), _AS_BYTE_RATE]
"""A field of a model that a scenario writes as a rate, such as ``100 MB/s``; an int of bytes in a second."""

Seconds = Annotated[float, BeforeValidator(parse_seconds), _AS_TEXT]
"""A field of a model that a scenario writes as a duration, such as ``1.5 s``; a float of seconds in the program."""

WholeSeconds = Annotated[int, _of_text(_whole_seconds), _AS_TEXT]
"""The same of whole seconds; an int in the program."""

BitRate = Annotated[int, _of_text(parse_bit_rate), _AS_RATE]
"""A field of a model that a scenario writes as a rate, such as ``100 Mbit/s``; an int of bits in a second."""

Pace = Annotated[float, BeforeValidator(parse_pace), _AS_PACE]
"""A field of a model that a scenario writes as a pace, such as ``5/s``; a float of operations in a second."""

Percent = Annotated[float, BeforeValidator(parse_percent), _AS_PERCENT]
"""A field of a model that a scenario writes as a share, such as ``2 %``; a float of percent in the program."""


def _number_or_percent(value: object) -> object:
    return parse_percent(value) if isinstance(value, str) else value


def number_or_percent(lowest: float, *, optional: bool = False) -> tuple[object, ...]:
    """What makes a field of a model take ``40`` and ``40 %`` alike, from `lowest` to 100; `optional` takes null."""
    number = {"type": "number", "minimum": lowest, "maximum": 100}
    forms = [number, {"type": "string", "pattern": _PERCENT_PATTERN}, *[{"type": "null"}] * optional]
    return (Field(ge=lowest, le=100), BeforeValidator(_number_or_percent), WithJsonSchema({"anyOf": forms}))
