"""An event of every kind with a value in every field, since no run has all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from vmlab.model.checked import Keys, check_of, made
from vmlab.model.event import Event
from vmlab.model.event_json import to_json

EVENTS = "events.jsonl"
_VALUES = (1.5, 1, 0, True, "a", None, [1, 2], [1000, 10, 70])
"""One of them is right for each plain type, and for each list with a condition."""


def event_lines() -> str:
    """A line of JSON for each kind, as a store has it."""
    return "".join(f"{to_json(made(cls, example(cls)))}\n" for _, cls in sorted(Event.registry.items()))


def example(cls: type[Any]) -> dict[str, Any]:
    """A value for each field of a kind as a store has it, with every key that its type names."""
    hints = get_type_hints(cls, include_extras=True)
    body: dict[str, Any] = {}
    for field in fields(cls):
        value = _example(hints[field.name])
        body |= value if "flat" in field.metadata else {field.name: value}
    return body


def _example(hint: Any) -> Any:
    """A value of a field's type that has every key which the type names."""
    return next(value for value in _examples(hint) if check_of(hint)(value))


def _examples(hint: Any) -> Iterator[Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        keys = [extra.types for extra in arguments[1:] if isinstance(extra, Keys)]
        yield from [{name: _example(one) for name, one in types.items()} for types in keys]
        yield from _examples(arguments[0])
    elif is_dataclass(hint):
        yield example(cast(type[Any], hint))
    elif origin in (Union, UnionType):
        yield from [_example(one) for one in arguments]
    elif origin in (list, tuple):
        yield [_example(arguments[0])]
    elif origin is dict:
        yield {"a": _example(arguments[1])}
    yield from _VALUES
