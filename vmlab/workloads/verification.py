"""Reads what a client printed: how it ended, the one report of a tool by its labels, and lines of JSON."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar

from vmlab.model.errors import WorkloadError
from vmlab.workloads.workload_steps import Finished

R = TypeVar("R")


def demand_success(finished: Finished, tool: str) -> None:
    """Raises WorkloadError with the last line that the tool printed when its status is not 0."""
    if finished.status != 0:
        raise WorkloadError(f"{tool} exited with {finished.status}{last_words(finished)}")


def last_words(finished: Finished) -> str:
    """The last line that a client printed for people, behind a colon; that of its account only where there is none."""
    lines = [line for line in (finished.stderr.strip() or finished.stdout.strip()).splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith("{")] or lines
    return f": {said[-1].strip()[:300]}" if said else ""


def demand_equal(what: str, found: float, asked: float) -> None:
    """Raises WorkloadError when a count is not what was asked for."""
    if found != asked:
        raise WorkloadError(f"{what}: {found:.0f}, but {asked:.0f} were asked for")


def demand_within(what: str, seconds: float, client_seconds: float) -> None:
    """Raises WorkloadError where a tool claims more time than its client ran, by the clock of the client's place.

    A clock that went wrong meanwhile makes rates that are too low or too high, and no count shows it.
    """
    if seconds > client_seconds:
        raise WorkloadError(f"{what} took {seconds:.3f} s together, but the client ran for {client_seconds:.3f} s")


UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What reading the output of a hostile guest may raise: a number beyond all bounds, say, or JSON a thousand deep."""


@contextlib.contextmanager
def read_from_a_guest(what: str) -> Iterator[None]:
    """A fault of what a guest printed is one of its workload, not of the run. Raises WorkloadError."""
    try:
        yield
    except UNREADABLE as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise WorkloadError(f"what {what} printed cannot be read: {why[:200]}") from error


def demand_one_report(text: str, *marks: str, tool: str) -> None:
    """Raises WorkloadError where a line that each report has once, by one of the patterns `marks`, stands twice.

    Every parser of a tool's text keeps this rule: it reads exactly one report, as of two nobody knows which is meant.
    """
    count = max(len(re.findall(mark, text, re.MULTILINE)) for mark in marks)
    if count > 1:
        raise WorkloadError(f"{tool} printed {count} reports, not one")


def only(found: Sequence[R], who: str, what: str) -> R:
    """The one that there is. Raises WorkloadError for none and for several, in words: `who`, how many, and `what`."""
    if len(found) != 1:
        raise WorkloadError(f"{who} {len(found)} {what}, not one")
    return found[0]


def labelled(text: str, label: str, pattern: str, tool: str) -> re.Match[str]:
    """The part of the line that starts with ``label:`` behind the colon, matched as a whole by `pattern`.

    Raises WorkloadError: with the line where it does not match, where two lines do, and with the last line of `text`
    where there is none.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    said = [line for line in lines if line.startswith(f"{label}:")]
    found = [match for line in said if (match := re.fullmatch(pattern, line[len(label) + 1 :].strip()))]
    if len(found) == 1:
        return found[0]
    if found:
        raise WorkloadError(f"{tool} printed {label!r} {len(found)} times, not once")
    if said:
        raise WorkloadError(f"{tool} printed a line that cannot be read: {said[0][:200]!r}")
    last = lines[-1][:200] if lines else ""
    raise WorkloadError(f"{tool} printed no {label!r}; its last line is {last!r}")


def said(label: str, pattern: str = "([0-9]+)", *, divisor: float = 1.0, default: float | None = None) -> Any:
    """A field of a report's dataclass: what stands behind ``label:``, see `labelled`, of which `pattern` has a group.

    A number is divided by `divisor`. Without a `default` the report must have the line.
    """
    return dataclasses.field(metadata={"label": label, "pattern": pattern, "divisor": divisor, "default": default})


def read_labelled(kind: type[R], text: str, tool: str) -> R:
    """A report of `kind`, a dataclass whose fields are all made by `said`. Raises WorkloadError as `labelled` does."""
    assert dataclasses.is_dataclass(kind)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        label, pattern, divisor, default = (field.metadata[key] for key in ("label", "pattern", "divisor", "default"))
        if default is not None and f"\n{label}:" not in text:
            values[field.name] = default
            continue
        found = labelled(text, label, pattern, tool)[1]
        match field.type:
            case "str":
                values[field.name] = found
            case "int":
                values[field.name] = int(found.partition(".")[0])
            case _:
                values[field.name] = float(found) / divisor
    return kind(**values)


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


_OBJECT = re.compile(r"^\{", re.MULTILINE)
_NUMBERS = r"[0-9.eE+-]++\s*+(?:,|\]?+[ \t\r]*+$)"
OBJECT_OR_ARRAY = re.compile(rf'^(?:\{{|\[(?:[ \t\r]*+$|\s*+(?:[\[{{"\]]|{_NUMBERS})))', re.MULTILINE)
"""The beginning of a JSON document, and not of a line such as ``[INFO] ready``. Nothing of it is tried twice: what a
command printed may have a million blanks behind a bracket."""


TWICE = object()
"""Stands for the value of a key that an object of JSON has twice: of two nobody knows which is meant."""


def _of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        found |= {key: TWICE for key, count in Counter(key for key, _ in pairs).items() if count > 1}
    return found


def only_document(
    text: str, origin: str, begins: re.Pattern[str] = _OBJECT, reader: json.JSONDecoder | None = None
) -> tuple[Any, str]:
    """The one JSON document that begins a line of `text`, usually an object, and what was printed before it, such as a
    warning. Of a key that stands twice the last value counts, as fio and iperf3 print some, unless the `reader` is
    `ONCE`.

    Raises WorkloadError for none and for several, for NaN, and for one that is nested too deeply to be read.
    """
    begun = begins.search(text)
    start = None if begun is None else begun.start()
    try:
        if start is None:
            raise ValueError
        document, end = (reader or _READER).raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        last = text.strip().split("\n")[-1].strip()[:200]
        why = " nested too deeply" if isinstance(error, RecursionError) else ""
        raise WorkloadError(f"{origin} should print a JSON document, but printed {last or 'nothing'}{why}") from error
    if begins.search(text, end):
        raise WorkloadError(f"{origin} printed several JSON documents, not one")
    return document, text[:start].strip()


def _finite(text: str) -> float:
    """A number of JSON. Raises ValueError for one that no float holds, and for NaN."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number")
    return value


_READER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
ONCE = json.JSONDecoder(parse_float=_finite, parse_constant=_finite, object_pairs_hook=_of_pairs)
"""Reads a key that an object has twice as `TWICE`."""


def figures_by_name(text: str, program: str, name: str, mark: str) -> dict[str, dict[str, Any]]:
    """The objects in `text` that have the key `mark`, by what their key `name` says, in order.

    Raises WorkloadError where `program` printed one twice.
    """
    found: dict[str, dict[str, Any]] = {}
    for said in objects(text):
        if mark in said:
            called = str(said.get(name))
            if called in found:
                raise WorkloadError(f"{program} printed values of {called} twice")
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
