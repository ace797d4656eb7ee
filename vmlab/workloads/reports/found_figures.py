"""Figures in what a user's command printed: each where the scenario says, by a pattern, a column or a path.

A figure that is not there, or there twice, is a fault of the command: of two nobody knows which is meant. So is a
group that has part of a number (see `whole_number`), or one in another unit (see `printed_units`). Colours of terminals
are no text.

Patterns are searched within a deadline. Python's expressions backtrack: ``(a+)+$`` takes for ever over forty letters.
Neither a thread nor a loop of events can end that, so a process of its own searches, `pattern_process`. `figures` of a
kind are made in the runner, by `reparse` and by programs that use the API.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from vmlab.model.errors import WorkloadError
from vmlab.model.quantities import format_bytes
from vmlab.model.visible import cut
from vmlab.workloads.metrics import Metric
from vmlab.workloads.reports.printed_units import base_unit, contradicted, other_unit
from vmlab.workloads.reports.whole_number import demand_no_comment, fault_of_group, sides
from vmlab.workloads.verification import OBJECT_OR_ARRAY, ONCE, TWICE, only_document
from vmlab.workloads.workload_steps import WorkloadParams

_LONGEST = 1000
_STEP = re.compile(r'\.(?:"(?P<quoted>[^"]+)"|(?P<plain>[^."\[\]]+))|\[(?P<index>[0-9]{1,6})\]')
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_BETTER: Mapping[str, Literal["more", "less"]] = {"higher": "more", "lower": "less"}


def _pattern(text: str) -> str:
    if not text:
        raise ValueError("is empty, and matches whatever is printed")
    if len(text) > _LONGEST:
        raise ValueError(f"is longer than {_LONGEST} characters")
    _compiled(text)
    return text


def _compiled(text: str) -> re.Pattern[str]:
    """Raises ValueError for what is no pattern. Python warns of `[[`, which may once mean something else."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(text, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is no regular expression: {error}") from error


def _one_group(text: str) -> str:
    groups = _compiled(_pattern(text)).groups
    demand_no_comment(text)
    if groups != 1:
        words = "has no group" if groups == 0 else f"has {groups} groups"
        raise ValueError(f"{words}; it needs one around the number, such as ([0-9.]+), and (?:…) for others")
    return text


def _path(text: str) -> str:
    if not text or len(text) > _LONGEST or "".join(one[0] for one in _STEP.finditer(text)) != text:
        raise ValueError('is no path into JSON, such as .qps.mean, .jobs[0].read.iops or ."99.9"')
    return text


def _unit(text: str) -> str:
    base_unit(text)
    return text


def _one(said: object) -> object:
    """YAML reads `unit: 1` as a number."""
    return "1" if type(said) is int and said == 1 else said


_AS_WORD = WithJsonSchema({"type": "string"})
_AS_UNIT = WithJsonSchema({"anyOf": [{"type": "string"}, {"const": 1}]})
Pattern = Annotated[str, AfterValidator(_pattern), _AS_WORD]
"""A regular expression of Python, in which ^ and $ are the ends of lines."""


class FoundMetric(WorkloadParams):
    """Where a figure stands in the output of a command, and what it is."""

    # `json` is a method of pydantic's models.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, populate_by_name=True)

    find: Annotated[str, AfterValidator(_one_group), _AS_WORD] | None = None
    """A regular expression that matches once, with one group, which is the number."""
    column: str | None = Field(default=None, alias="csv", min_length=1)
    """The head of a column, for output that has lines of CSV."""
    row: str | None = None
    """With `csv`: the first field of the line, where there are several below the heads."""
    path: Annotated[str, AfterValidator(_path), _AS_WORD] | None = Field(default=None, alias="json")
    """A path into the JSON document of the output, such as .qps.mean or .jobs[0].read.iops."""
    unit: Annotated[str, BeforeValidator(_one), AfterValidator(_unit), _AS_UNIT] = "1"
    """What the number counts: 1, 1/s, k/s, %, s, ms, us, B, MiB, MB/s, Mbit/s and the like."""
    better: Literal["higher", "lower"] | None = None
    """Which end is better; a figure without one only describes the work."""

    @model_validator(mode="after")
    def _one_place(self) -> FoundMetric:
        given = [one for one in (self.find, self.column, self.path) if one is not None]
        if len(given) != 1:
            raise ValueError("needs one of find, csv and json")
        if self.row is not None and self.column is None:
            raise ValueError("row is of csv, and needs it")
        return self

    def declared(self, name: str) -> Metric:
        """The metric as other kinds declare theirs."""
        better = None if self.better is None else _BETTER[self.better]
        return Metric(base_unit(self.unit).unit, better, name.replace("_", " "))


def _in_own_unit(metric: FoundMetric) -> FoundMetric:
    other = None if metric.find is None else contradicted(sides(metric.find)[1], metric.unit)
    if other is not None:
        raise ValueError(f"find names {other!r} behind its group, and the unit is {metric.unit}")
    return metric


AskedMetric = Annotated[FoundMetric, AfterValidator(_in_own_unit)]
"""A metric of a scenario. Those of records may be older than this rule."""


def found_metrics(said: Any) -> dict[str, FoundMetric]:
    """The metrics of a scenario or a record, which may be anybody's; what is none is left out."""
    found = {}
    for name, one in said.items() if isinstance(said, Mapping) else ():
        try:
            found[str(name)] = one if isinstance(one, FoundMetric) else FoundMetric.model_validate(one)
        except ValidationError:
            continue
    return found


class Printed(NamedTuple):
    """The output of one round, and its error output."""

    out: str
    err: str


def figures_in(
    rounds: Sequence[Printed], metrics: Mapping[str, FoundMetric], expect: str | None = None
) -> dict[str, float]:
    """The mean of each metric over the rounds, in the lab's unit.

    Raises WorkloadError where a round lacks what is expected, or a metric, with its name; and as `search` does.
    """
    rounds = [Printed(*(_COLOURS.sub("", text).replace("\r\n", "\n") for text in one)) for one in rounds]
    sought = [] if expect is None else [Sought(expect, 1)]
    sought += [Sought(one.find) for one in metrics.values() if one.find is not None]
    texts = [text for one in rounds for text in one] if sought else []
    found = dict(zip(sought, search(sought, texts), strict=True))
    values: dict[str, list[float]] = {}
    for number, printed in enumerate(rounds):
        streams = slice(2 * number, 2 * number + 2)
        if expect is not None and not any(one.times for one in found[Sought(expect, 1)][streams]):
            raise WorkloadError(f"the output has nothing that {shown(expect)} matches{last_lines(*printed)}")
        for name, metric in metrics.items():
            matches = found[Sought(metric.find)][streams] if metric.find is not None else []
            values.setdefault(name, []).append(_value_of(name, metric, matches, printed))
    return {name: sum(own) / len(own) for name, own in values.items()}


def _value_of(name: str, metric: FoundMetric, matches: Sequence[Searched], printed: Printed) -> float:
    """The figure of one round in the lab's unit. Raises WorkloadError with the metric's name."""
    try:
        if metric.find is not None:
            said: object = _matched(metric.find, metric.unit, matches)
        elif metric.column is not None:
            said = _in_csv(metric.column, metric.row, printed.out)
        else:
            said = _in_json(str(metric.path), printed.out)
        return _number(said, base_unit(metric.unit).factor)
    except ValueError as error:
        raise WorkloadError(f"metric {name}: {error}{last_lines(*printed)}") from error


def last_lines(out: str, err: str) -> str:
    """The last lines of the error output, or where there are none of the output, behind a colon."""
    lines = [line.strip() for line in (err if err.strip() else out).splitlines() if line.strip()]
    return said_lines(lines[-3:])


def said_lines(lines: list[str]) -> str:
    """Lines of a command in one, behind a colon; empty for none."""
    return f"; its last output: {' | '.join(line[:200] for line in lines)}" if lines else ""


def _matched(pattern: str, unit: str, matches: Sequence[Searched]) -> str:
    """The group of the only match, in the error output where the output has none. Raises ValueError."""
    found = next((one for one in matches if one.times), None)
    if found is None:
        raise ValueError(f"nothing in the output matches {shown(pattern)}")
    if found.times > 1:
        raise ValueError(f"{shown(pattern)} matches {found.times} times, not once")
    if found.group is None:
        raise ValueError(f"the group of {shown(pattern)} matched nothing")
    whole = fault_of_group(pattern, found.group, found.before, found.after)
    if whole is not None:
        raise ValueError(f"the group of {shown(pattern)} has {found.group[:40]!r}, a part of {whole[:60]!r}")
    other = other_unit(sides(pattern)[1], found.before, found.after, unit)
    if other is not None:
        beside = f"{other!r} is printed beside {found.group[:40]!r}, the group of {shown(pattern)}"
        raise ValueError(f"{beside}, and its unit is {unit}")
    return found.group


def _in_csv(column: str, row: str | None, out: str) -> str:
    """The only field below a head, of the lines that begin with `row` where that is given. Raises ValueError."""
    try:
        unmarked = (line.removeprefix("\ufeff") for line in out.splitlines())
        lines = list(csv.reader(unmarked, skipinitialspace=True))
    except csv.Error as error:
        raise ValueError(f"the output is no CSV: {error}") from error
    at = next((number for number, line in enumerate(lines) if column in line), None)
    if at is None:
        raise ValueError(f"no line of the output has the head {column[:60]!r}")
    heads = lines[at]
    if heads.count(column) > 1:
        raise ValueError(f"the head {column[:60]!r} is {heads.count(column)} times in its line, not once")
    # An empty line ends a table, but not before it has begun.
    table = takewhile(bool, dropwhile(lambda line: not line, lines[at + 1 :]))
    of_row = [line for line in table if row in (None, line[0])]
    # A line of prose, which has no comma, ends the table.
    for line in takewhile(lambda line: len(line) > 1, of_row):
        if len(line) != len(heads):
            raise ValueError(f"{','.join(line)[:60]!r} has {len(line)} fields, and the heads are {len(heads)}")
    below = [line for line in of_row if len(line) == len(heads)]
    if len(below) != 1:
        where = "below the heads" if row is None else f"that begin with {row[:60]!r}"
        hint = "; row names one by its first field" if below and row is None else ""
        raise ValueError(f"there are {len(below)} lines of CSV {where}, not one{hint}")
    return below[0][heads.index(column)]


def _in_json(path: str, out: str) -> object:
    """What stands at a path of the only document. Raises ValueError."""
    try:
        found: object = only_document(out.removeprefix("\ufeff"), "the command", OBJECT_OR_ARRAY, ONCE)[0]
    except WorkloadError as error:
        raise ValueError(str(error)) from error
    for step in _STEP.finditer(path):
        key = step["quoted"] or step["plain"]
        if key is None and isinstance(found, list) and int(step["index"]) < len(found):
            found = found[int(step["index"])]
        elif key is not None and isinstance(found, dict) and key in found:
            found = found[key]
        else:
            raise ValueError(f"the JSON document has no {path[: step.end()][:80]}")
        if found is TWICE:
            raise ValueError(f"the JSON document has {path[: step.end()][:80]} twice, not once")
    return found


def _number(said: object, factor: float) -> float:
    """The product of both. Raises ValueError for what is no number of 0 or above, and for one that no float holds."""
    if isinstance(said, str) and _NUMBER.fullmatch(said.strip()):
        said = float(said)
    try:
        value = said * factor if isinstance(said, int | float) and not isinstance(said, bool) else math.nan
    except OverflowError:
        value = math.inf
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{str(said)[:60]!r} is no number of 0 or above")
    return value


SECONDS = 30
"""For all patterns of one workload over all of its output; usual ones take less than one for 4 MiB."""
_BEHIND = 5
"""Seconds of CPU time behind that, after which a search ends that nobody could end."""
_PROGRAM = Path(__file__).with_name("pattern_process.py")


class Sought(NamedTuple):
    """A pattern, and after how many matches in one text its search may end; None for all of them."""

    pattern: str
    most: int | None = None


class Searched(NamedTuple):
    """How often a pattern matches in a text, and the first group of the first match, None where it has none.

    The letters `before` and `after` that are some of the text's.
    """

    times: int
    group: str | None
    before: str = ""
    after: str = ""


def search(every: Sequence[Sought], texts: Sequence[str]) -> list[list[Searched]]:
    """For each pattern what is found in each of the texts.

    Raises WorkloadError, with the pattern, where that takes longer than `SECONDS`, and where it cannot be done.
    """
    # Imported late: who reads records loads the kinds, and searches nothing.
    import subprocess

    if not every or not texts:
        return [[] for _ in every]
    asked = json.dumps({"texts": texts, "patterns": every, "seconds": SECONDS + _BEHIND}).encode()
    argv = [sys.executable, "-I", "-S", str(_PROGRAM)]
    try:
        done = subprocess.run(argv, input=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS)
        printed, why = done.stdout, f"ended with {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired as error:
        printed, why = error.stdout or b"", f"took longer than {SECONDS} s, and was ended; a simpler pattern is needed"
    except OSError as error:
        printed, why = b"", f"could not be started: {error.strerror or error}"
    if why:
        pattern = every[min(printed.count(b"\n"), len(every) - 1)].pattern
        size = format_bytes(sum(map(len, texts)))
        raise WorkloadError(f"the search for {shown(pattern)} in {size} of output {why}")
    return [[Searched(*one) for one in json.loads(answer)] for answer in printed.splitlines()]


def shown(pattern: str) -> str:
    """A pattern in a message."""
    return f"'{cut(pattern, 60)}'"
