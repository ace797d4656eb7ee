"""Makes dataclasses of JSON that was read from a file, and checks its values: JSON itself has no types."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from vmlab.model.visible import cut, visible_line

M = TypeVar("M")
Check = Callable[[Any], bool]
"""Whether a value is right."""

_LARGEST = 2**63
LARGEST_FIGURE = 1e100
"""Far beyond any figure of a host; its square is still a finite float."""
_MOST_NESTING = 20
MOST_VALUES = 20_000
"""Of an object whose keys are open; a guest or a cell has some hundred. Each takes far more memory than its text."""
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


def made(cls: type[M], body: Mapping[str, Any]) -> M:
    """The dataclass whose fields a JSON object has; fields that it does not know are left out.

    Where a field's type is a dataclass or a tuple, it is made of an object or a list. Raises ValueError, with one line,
    where a field without a default is missing, or a value has the wrong type.
    """
    return cls(**_known(cls, body, cls.__name__))


def _known(cls: type[Any], body: Mapping[str, Any], named: str) -> dict[str, Any]:
    known = {}
    for field in _fields(cls):
        if field.flat is not None:
            known[field.name] = field.flat(**_known(field.flat, body, named))
        elif field.name in body:
            value = body[field.name]
            if not field.holds(value):
                raise ValueError(f"{named}: {field.name} cannot be {_shown(value)}")
            known[field.name] = value if field.make is None else field.make(value)
        elif field.is_needed:
            raise ValueError(f"{named}: {field.name} is missing")
    return known


def _shown(value: object) -> str:
    return cut(visible_line(repr(value)[: _LONGEST_SHOWN + 1]), _LONGEST_SHOWN)


class _Field(NamedTuple):
    """A field of a dataclass: its check, what makes its value of JSON (None for the same), and its type if `FLAT`."""

    name: str
    holds: Check
    make: Callable[[Any], Any] | None
    is_needed: bool
    flat: type[Any] | None


_FIELDS: dict[type[Any], list[_Field]] = {}
"""What `_fields` found, by class."""


def _fields(cls: type[Any]) -> list[_Field]:
    if cls not in _FIELDS:
        _FIELDS[cls] = list(_found(cls))
    return _FIELDS[cls]


def _found(cls: type[Any]) -> Iterator[_Field]:
    hints = get_type_hints(cls, include_extras=True)
    for one in dataclasses.fields(cls):
        yield _Field(
            one.name,
            check_of(hints[one.name]),
            _maker(hints[one.name]),
            one.default is one.default_factory is dataclasses.MISSING,
            hints[one.name] if "flat" in one.metadata else None,
        )


def _maker(hint: Any) -> Callable[[Any], Any] | None:
    """Makes of a checked JSON value one of the type; None where it is one."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return functools.partial(made, hint)
    if origin is Annotated:
        return _maker(arguments[0])
    if origin in (Union, types.UnionType):
        make = next((make for make in map(_maker, arguments) if make is not None), None)
        return None if make is None else lambda value: None if value is None else make(value)
    if origin in (list, tuple):
        inner = _maker(arguments[0])
        if inner is not None or origin is tuple:
            return lambda value: origin(value if inner is None else map(inner, value))
    return None


def check_of(hint: Any) -> Check:
    """The check of a JSON value for a type: plain and literal ones, unions, lists, tuples, dictionaries by text,
    dataclasses, the above.

    Raises TypeError for a type that nothing here can check.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(arguments[0], arguments[1:])
    if origin in (Union, types.UnionType):
        checks = [check_of(one) for one in arguments]
        return lambda value: any(check(value) for check in checks)
    if origin is list or (origin is tuple and arguments[1:] == (...,)):
        inner = check_of(arguments[0])
        return lambda value: type(value) is list and all(map(inner, value))
    if origin is dict and arguments[0] is str:
        if arguments[1] is Any:
            return lambda value: type(value) is dict and _is_plain(value)
        inner = check_of(arguments[1])
        return lambda value: type(value) is dict and len(value) <= MOST_VALUES and all(map(inner, value.values()))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return functools.partial(_is_object, hint)
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


def _is_object(cls: type[Any], value: Any) -> bool:
    """Whether a JSON value has the fields of a dataclass."""
    return type(value) is dict and all(
        field.holds(value[field.name]) if field.name in value else not field.is_needed for field in _fields(cls)
    )


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
    return abs(value) <= LARGEST_FIGURE if type(value) is float else _is_int(value)


def _is_plain(value: Any) -> bool:
    """Any value that JSON can hold, nested no deeper than a document for people is, and with so many others in it."""
    level, count = [value], 0
    for _ in range(_MOST_NESTING + 2):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict | list):
                count += len(one)
                if count > MOST_VALUES:
                    return False
                inner += one.values() if isinstance(one, dict) else one
            elif isinstance(one, float | int) and not isinstance(one, bool) and not _is_float(one):
                return False
        level = inner
    return not level


_PLAIN: dict[Any, Check] = {
    str: lambda value: type(value) is str,
    bool: lambda value: type(value) is bool,
    int: _is_int,
    float: _is_float,
    type(None): lambda value: value is None,
}
