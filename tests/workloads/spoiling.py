"""Spoils single figures in what a program printed, to see that its reader notices."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Change = Callable[[dict[str, Any]], object]


def put(name: str, value: object) -> Change:
    """A change of one figure."""
    return lambda said: said.update({name: value})


def spoil(text: str, key: str, name: str, mark: str, change: Change) -> str:
    """`text` with the object changed whose `key` is `name` and that has `mark`."""
    lines = [json.loads(line) for line in text.splitlines()]
    for said in lines:
        if said[key] == name and mark in said:
            change(said)
    return "".join(json.dumps(said) + "\n" for said in lines)
