"""Checks that values read from a file have the types of a dataclass's fields; JSON itself does not ensure it."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from vmlab.model.visible import visible_line

Check = Callable[[Any], bool]
"""Whether a value is right."""

_LARGEST = 2**63
_LARGEST_FLOAT = 1e100
"""Far beyond any figure of a host; its square is still a finite float."""
_MOST_NESTING = 20
_LONGEST_SHOWN = 40


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """Stands in ``Annotated``: the value must be of the type, and `holds` must be true of it."""

    holds: Check


@dataclasses.dataclass(frozen=True, slots=True)
class Within:
    """Stands in ``Annotated``: the number is from `least` to `most`, both included."""

    least: float
    most: float


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Stands in ``Annotated[dict, …]``: where one of these keys is there, its value has this type."""

    types: Mapping[str, Any]


class NotFinite:
    """Stands in ``Annotated[float, …]``: NaN and infinity are allowed too, for what could not be measured."""


Reading = Annotated[float, NotFinite]
"""A figure that may be NaN."""


def checked(cls: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """Those of `values` that are fields of the dataclass `cls`; fields that it does not know are left out.

    Raises ValueError, with one line, where a field without a default is missing, or a value has the wrong type.
    """
    if cls not in _FIELDS:
        _FIELDS[cls] = _fields(cls)
    checks, needed = _FIELDS[cls]
    known = {}
    for name, holds in checks.items():
        if name in values:
            value = known[name] = values[name]
            if not holds(value):
                raise ValueError(f"{cls.__name__}: {name} cannot be {_shown(value)}")
        elif name in needed:
            raise ValueError(f"{cls.__name__}: {name} is missing")
    return known


def _shown(value: object) -> str:
    text = visible_line(repr(value)[: _LONGEST_SHOWN + 1])
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def _fields(cls: type[Any]) -> tuple[dict[str, Check], tuple[str, ...]]:
    """A check for each field, and the fields without a default."""
    hints = get_type_hints(cls, include_extras=True)
    fields = dataclasses.fields(cls)
    needed = (f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING)
    return {field.name: check_of(hints[field.name]) for field in fields}, tuple(needed)


_FIELDS: dict[type[Any], tuple[dict[str, Check], tuple[str, ...]]] = {}
"""What `_fields` found, by class."""


def check_of(hint: Any) -> Check:
    """The check for a type: plain and literal ones, unions, lists, tuples, dictionaries by text, the above.

    Raises TypeError for a type that nothing here can check.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(arguments[0], arguments[1:])
    if origin in (Union, types.UnionType):
        checks = [check_of(one) for one in arguments]
        return lambda value: any(check(value) for check in checks)
    if origin is list:
        inner = check_of(arguments[0])
        return lambda value: type(value) is list and all(map(inner, value))
    if origin is dict and arguments[0] is str:
        inner = check_of(arguments[1])
        return lambda value: type(value) is dict and all(map(inner, value.values()))
    if origin is tuple and arguments[1:] == (...,):
        inner = check_of(arguments[0])
        return lambda value: type(value) is tuple and all(map(inner, value))
    if dataclasses.is_dataclass(hint):
        return lambda value: type(value) is hint
    if origin is Literal:
        return lambda value: type(value) is str and value in arguments
    if hint is Any:
        return _is_plain
    if hint not in _PLAIN:
        raise TypeError(f"no check for {hint}")
    return _PLAIN[hint]


def _annotated(hint: Any, extras: tuple[Any, ...]) -> Check:
    if NotFinite in extras:
        return lambda value: _is_float(value) or (type(value) is float and not math.isfinite(value))
    check = check_of(hint)
    for extra in extras:
        if isinstance(extra, Condition):
            check = _both(check, extra.holds)
        elif isinstance(extra, Within):
            check = _both(check, _within(extra))
        elif isinstance(extra, Keys):
            check = _both(check, _keys({name: check_of(one) for name, one in extra.types.items()}))
    return check


def _within(bounds: Within) -> Check:
    least, most = bounds.least, bounds.most
    return lambda value: least <= value <= most


def _both(first: Check, second: Check) -> Check:
    return lambda value: first(value) and second(value)


def _keys(checks: Mapping[str, Check]) -> Check:
    return lambda value: all(name not in checks or checks[name](inner) for name, inner in value.items())


def _is_int(value: Any) -> bool:
    return type(value) is int and -_LARGEST < value < _LARGEST


def _is_float(value: Any) -> bool:
    return abs(value) <= _LARGEST_FLOAT if type(value) is float else _is_int(value)


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Any value that JSON can hold, nested no deeper than a document for people is."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return depth < _MOST_NESTING and all(_is_plain(one, depth + 1) for one in inner)
    return not isinstance(value, float | int) or isinstance(value, bool) or _PLAIN[float](value)


_PLAIN: dict[Any, Check] = {
    str: lambda value: type(value) is str,
    bool: lambda value: type(value) is bool,
    int: _is_int,
    float: _is_float,
    type(None): lambda value: value is None,
}
