"""Values as JSON has them, by the fields of their dataclasses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, TypeVar

V = TypeVar("V")
FLAT: Final[Mapping[str, bool]] = {"flat": True}
"""Metadata of a field: its value, a dataclass, has no key of its own in JSON; its fields stand in the key's place."""
INNER: Final[Mapping[str, bool]] = {"inner": True}
"""Metadata of a field that JSON does not have."""


def key(name: str) -> Mapping[str, str]:
    """Metadata of a field that has another name in JSON."""
    return {"key": name}


_FIELDS: dict[type[Any], list[tuple[str, str, bool]]] = {}
"""The names of a dataclass's fields, their keys, and whether they are flat."""


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by their keys, as they are."""
    cls = type(value)
    if cls not in _FIELDS:
        known = [one for one in fields(cls) if "inner" not in one.metadata]
        _FIELDS[cls] = [(one.name, one.metadata.get("key", one.name), "flat" in one.metadata) for one in known]
    found: dict[str, Any] = {}
    for name, named, is_flat in _FIELDS[cls]:
        own = getattr(value, name)
        if is_flat:
            found |= fields_of(own)
        else:
            found[named] = own
    return found


def picked(value: Any, *names: str) -> dict[str, Any]:
    """These attributes of a value by their names."""
    return {name: getattr(value, name) for name in names}


def common_fields(cls: type[Any], value: Any) -> dict[str, Any]:
    """Those fields of a dataclass `value` that the dataclass `cls` has by the same names.

    A figure that is not finite is None there, also in a mapping.
    """
    names = {one.name for one in fields(cls)}
    return {name: _finite(own) for name, own in fields_of(value).items() if name in names}


def carried(cls: type[V], value: Any, /, **more: Any) -> V:
    """A `cls` with its `common_fields` of `value`, and with `more`."""
    return cls(**common_fields(cls, value) | more)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def jsonable(value: Any) -> Any:
    """`value` as a document has it: an object for each dataclass and mapping, a list for every other collection.

    A figure that is not finite is None, and an enumeration its value. A dataclass whose object is another than its
    fields says so by a method `json_fields`.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(one) for one in value]
    if isinstance(value, Mapping):
        inner = value
    else:
        inner = value.json_fields() if hasattr(value, "json_fields") else fields_of(value)
    return {name: jsonable(one) for name, one in inner.items()}


def time_of_day(wall: float | None) -> str | None:
    """Seconds since the epoch as the documents have them: ISO 8601 in UTC, to the millisecond; None stays None."""
    return None if wall is None else datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds")
