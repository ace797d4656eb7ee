"""Small programs that workloads run inside guests; they lie in ``payload/`` and need nothing but Python itself."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib import resources
from typing import Any, TypeGuard

from vmlab.model.errors import WorkloadError
from vmlab.model.names import WORKLOADS_FOLDER
from vmlab.workloads.contract import Shell

_PYTHON = ("/usr/bin/python3", "-I", "-S")


def command(name: str, options: dict[str, Any]) -> tuple[str, ...]:
    """The argv of the installed program `name`; its options travel as one JSON argument."""
    return (*_PYTHON, f"{WORKLOADS_FOLDER}/{name}.py", json.dumps(options, separators=(",", ":")))


async def install(shell: Shell, *names: str) -> None:
    """Write programs into a guest. Raises GuestError."""
    for name in names:
        source = resources.files("vmlab.workloads").joinpath("payload", f"{name}.py")
        await shell.write(f"{WORKLOADS_FOLDER}/{name}.py", source.read_bytes())


async def ask(shell: Shell, name: str, options: dict[str, Any], *, deadline: float) -> dict[str, Any]:
    """Run an installed program to its end and return the JSON object on its last line.

    Raises GuestError when it fails, DeadlineExceeded, and WorkloadError where it printed something else.
    """
    completed = await shell.run(command(name, options), deadline=deadline)
    return last_object(completed.stdout, f"{name} on {shell.name}")


def last_object(text: str, origin: str) -> dict[str, Any]:
    """The JSON object on the last line of `text`. Raises WorkloadError that quotes the line otherwise."""
    *before, line = text.strip().split("\n")
    answer = line_object(line)
    if answer is None:
        raise WorkloadError(f"{origin} should end with a JSON object, not {line[:200]!r}")
    alike = sum(one.keys() == answer.keys() for one in map(line_object, before) if one is not None)
    if alike and len(answer) > 1:
        raise WorkloadError(f"{origin} printed {alike + 1} accounts, not one")
    return answer


def objects(text: str) -> list[dict[str, Any]]:
    """Every line of `text` that is a JSON object, in order; other lines are passed over."""
    return [found for line in text.split("\n") if (found := line_object(line)) is not None]


def line_object(line: str) -> dict[str, Any] | None:
    """The JSON object on one line, or None."""
    if not line.startswith("{"):
        return None
    try:
        found = _READER.decode(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def only_document(text: str, origin: str) -> tuple[dict[str, Any], str]:
    """The one JSON object that begins a line of `text`, and what was printed before it, such as a warning.

    Raises WorkloadError for none and for several, for NaN, and for one that is nested too deeply to be read.
    """
    starts = [0, *(place + 1 for place, one in enumerate(text) if one == "\n")]
    start = next((place for place in starts if text.startswith("{", place)), None)
    try:
        if start is None:
            raise ValueError
        document, end = _READER.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        last = text.strip().split("\n")[-1].strip()[:200]
        why = " nested too deeply" if isinstance(error, RecursionError) else ""
        raise WorkloadError(f"{origin} should print a JSON document, but printed {last or 'nothing'}{why}") from error
    if "\n{" in text[end:]:
        raise WorkloadError(f"{origin} printed several JSON documents, not one")
    return document, text[:start].strip()


def _finite(text: str) -> float:
    """A number of JSON. Raises ValueError for one that no float holds, and for NaN."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number")
    return value


_READER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def figures_by_name(text: str, program: str, name: str, mark: str) -> dict[str, dict[str, Any]]:
    """The objects in `text` that have the key `mark`, by what their key `name` says, in order.

    Raises WorkloadError where `program` printed one twice.
    """
    found: dict[str, dict[str, Any]] = {}
    for said in objects(text):
        if mark in said:
            called = str(said.get(name))
            if called in found:
                raise WorkloadError(f"{program} printed figures of {called} twice")
            found[called] = said
    return found


def number_of(said: Mapping[str, Any], key: str, program: str, of: object) -> float:
    """A number in what `program` said of one part. Raises WorkloadError where there is none."""
    value = said.get(key)
    if not is_amount(value):
        raise WorkloadError(f"{program} printed no {key} of {of}")
    return float(value)


def is_amount(value: object) -> TypeGuard[int | float]:
    """Whether a value of JSON is a number of 0 or above; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
