"""Quantities with units, as scenarios write them and people read them, and the types of models' fields for them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from vmlab.model.quantities import format_bytes, format_seconds, parse_bytes, parse_seconds

__all__ = ["Bytes", "Seconds", "format_bytes", "format_seconds", "parse_bytes", "parse_seconds"]

_AS_TEXT = WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*[A-Za-z]+$"})

Bytes = Annotated[int, BeforeValidator(parse_bytes), _AS_TEXT]
"""A field of a model that a scenario writes as a size, such as ``670 MB``; an int of bytes in the program."""

Seconds = Annotated[float, BeforeValidator(parse_seconds), _AS_TEXT]
"""A field of a model that a scenario writes as a duration, such as ``1.5 s``; a float of seconds in the program."""
