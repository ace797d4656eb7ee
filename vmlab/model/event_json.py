"""Events as JSON objects, with a ``kind`` that names the class."""

from __future__ import annotations

import json

from vmlab.model import cell_event  # noqa: F401 - its classes are known once it is loaded
from vmlab.model.checked import made
from vmlab.model.event import Event
from vmlab.model.jsonable import fields_of

_MOST_BYTES = 2**22
"""Of an event. A scenario of 256 KiB makes less, and what a stored run says is drawn in lines on a screen."""


def to_json(event: Event) -> str:
    """One line of JSON with the class's name under ``kind``."""
    body = {"kind": type(event).__name__, **fields_of(event)}
    # ASCII only: bytes of a tool's output that are not UTF-8 become lone surrogates, which SQLite cannot store as text.
    return json.dumps(body, separators=(",", ":"), default=fields_of)


def from_json(text: str | bytes) -> Event | None:
    """The event that `to_json` wrote; None for a kind that this version does not know, or knows no more.

    Fields that this version does not know are left out, so that an older viewer reads a newer store. Raises ValueError
    where the text is not such an object, or a field has the wrong type.
    """
    if len(text) > _MOST_BYTES:
        raise ValueError(f"is larger than {_MOST_BYTES >> 20} MiB")
    try:
        body = json.loads(text)
    except RecursionError:
        raise ValueError("is nested too deep") from None
    if not isinstance(body, dict) or not isinstance(body.get("kind"), str):
        raise ValueError("is not an event")
    cls = Event.registry.get(body["kind"])
    return None if cls is None else made(cls, body)
