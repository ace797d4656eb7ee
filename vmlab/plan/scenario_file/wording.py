"""What pydantic and the YAML parser found, in the words of someone who wants to mend the scenario."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import ValidationError
from ruamel.yaml.error import MarkedYAMLError

from vmlab.model.quantities import format_bit_rate, format_bytes, format_seconds
from vmlab.plan.scenario_file.problems import Place, Problem, dotted, meant, shorten, unexpanded

_ONE_HOST = (
    "the guests of a cell are all on one host, so leave this out; `--hosts hv1,hv2` runs each cell on every host, and "
    "with --together on all of them at once"
)
"""What replaces guests of one cell on two hosts, which earlier versions had."""
KnownKeys = Callable[[Place], Iterable[str]]
"""The keys that a mapping at a place may have."""

_BRANCHES = (("bool",), ("int",), ("float",), ("str",))
"""What pydantic adds to a place for each type of a union that a value was tried as."""
_NEEDED = {
    "a word or a number": ("scalar_type",),
    "a whole number": ("int_type", "int_parsing", "int_from_float"),
    "a number": ("float_type", "float_parsing"),
    "a finite number": ("finite_number",),
    "true or false": ("bool_type", "bool_parsing"),
    "a word": ("string_type",),
    "a mapping": ("dict_type", "model_type", "model_attributes_type"),
    "a list": ("tuple_type", "list_type"),
}
_NEEDS = {kind: f"needs {what}" for what, kinds in _NEEDED.items() for kind in kinds}
_BOUNDS = {
    "greater_than_equal": ("must be at least", "ge"),
    "greater_than": ("must be more than", "gt"),
    "less_than_equal": ("must be at most", "le"),
    "less_than": ("must be less than", "lt"),
}


def problems_of(error: ValidationError, under: Place, known: KnownKeys) -> list[Problem]:
    """Every problem once, at its place below `under`; several for one place become its first.

    A mapping with an unknown key is not told what it lacks as well, nor a list with a wrong entry that it has too few:
    it is most likely the same slip.
    """
    details = _without_branches([dict(detail) for detail in error.errors(include_url=False)])
    above = {detail["loc"][:length] for detail in details for length in range(len(detail["loc"]))}
    misspelt = {detail["loc"][:-1] for detail in details if detail["type"] == "extra_forbidden"}
    found: dict[Place, Problem] = {}
    for detail in details:
        if detail["type"] == "missing" and detail["loc"][:-1] in misspelt:
            continue
        if detail["type"] == "too_short" and detail["loc"] in above:
            continue
        problem = _problem(detail, under, known)
        found.setdefault(problem.place, problem)
    return list(found.values())


def _without_branches(details: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A value that may be a word or a number is reported once, and not once for each type that it may have."""
    merged: dict[Place, dict[str, Any]] = {}
    for detail in details:
        is_branch = detail["loc"][-1:] in _BRANCHES and detail["type"] in _NEEDS
        place = detail["loc"][:-1] if is_branch else detail["loc"]
        merged.setdefault(place, {**detail, "loc": place, "type": "scalar_type"} if is_branch else detail)
    return list(merged.values())


def _problem(detail: dict[str, Any], under: Place, known: KnownKeys) -> Problem:
    place: Place = (*under, *detail["loc"])
    at_key = place[-1:] == ("[key]",)
    if at_key:
        place = place[:-1]
    kind = detail["type"]
    if kind == "extra_forbidden" and place == ("image",):
        return Problem(place, "image belongs to a guest, as in guests: {front: {image: NAME, …}}", True)
    if kind == "extra_forbidden" and len(place) == 3 and (place[0], place[2]) == ("guests", "host"):
        return Problem(place, f"{dotted(place)}: {_ONE_HOST}", True)
    if kind == "extra_forbidden" and (missing := _without_space(str(place[-1]), known(place[:-1]))):
        return Problem(place, f"{shorten(place[-1])!r} is no key: a space is missing after {missing}:", True)
    if kind == "extra_forbidden":
        near = meant(place[-1], known(place[:-1]))
        return Problem(place, f"unknown key {shorten(place[-1])!r} in {_inside(place)}; {near}", True)
    if kind == "missing":
        return Problem(place, f"{_inside(place)} needs {place[-1]!r}", True)
    if at_key:
        words = f"the name {shorten(place[-1])!r} {_reason(detail)}{unexpanded(str(place[-1]))}"
        return Problem(place, words, True)
    return Problem(place, f"{dotted(place) or 'a scenario'}: {_reason(detail)}{_given(detail)}")


def _without_space(word: str, known: Iterable[str]) -> str:
    """The key that a word such as ``vcpus:2`` begins with; empty for any other."""
    key, colon, _ = word.partition(":")
    return key if colon and key in known else ""


def _inside(place: Place) -> str:
    return dotted(place[:-1]) or "the scenario"


def _reason(detail: dict[str, Any]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        return f"{words} {_bound(context[key], detail.get('input'))}"
    if kind == "multiple_of":
        return f"must be a multiple of {_bound(context['multiple_of'], detail.get('input'))}"
    if kind == "literal_error":
        return f"must be {_choices(str(context['expected']))}"
    if kind in ("too_short", "too_long"):
        bound = context["min_length"] if kind == "too_short" else context["max_length"]
        count = "one entry" if bound == 1 else f"{bound} entries"
        return f"needs at {'least' if kind == 'too_short' else 'most'} {count}"
    if "number" in _NEEDS.get(kind, "") and str(detail.get("input")).rstrip().endswith("%"):
        return f"{_NEEDS[kind]} without the sign %"
    return _NEEDS.get(kind, str(detail["msg"]))


def _choices(expected: str) -> str:
    """pydantic's list of choices as YAML has them; quotation marks tell words apart where there are only words."""
    choices = expected.replace("True", "true").replace("False", "false").replace("None", "null")
    return choices if choices == expected else choices.replace("'", "")


def _bound(bound: float, given: object) -> str:
    """A bound in the kind of unit that was given with it."""
    if not isinstance(given, str):
        return f"{bound:.15g}"
    if given.rstrip().endswith("%"):
        return f"{bound:g} %"
    if given.rstrip().endswith("bit/s"):
        return format_bit_rate(round(bound))
    if given.rstrip().endswith("B/s"):
        return f"{format_bytes(bound)}/s"
    return format_bytes(bound) if given.rstrip().endswith("B") else format_seconds(bound)


def _given(detail: dict[str, Any]) -> str:
    given = detail.get("input")
    if detail["type"] in ("too_short", "too_long"):
        return ""
    if isinstance(given, dict | list | tuple):
        if detail["type"] == "value_error":
            return ""
        return ", not a mapping" if isinstance(given, dict) else ", not a list"
    if given is None:
        return ", not nothing"
    if isinstance(given, float) and detail["type"] in _BOUNDS:
        return f", not {given:.15g}"
    if isinstance(given, str):
        return f", not {shorten(given)!r}{_remark(detail['type'], given)}"
    quoted = f" (in quotation marks it is a word: '{shorten(given)}')" if detail["type"] == "string_type" else ""
    return f", not {shorten(given)}{quoted}"


def _remark(kind: str, given: str) -> str:
    """What is most likely meant by a text where something else is due; empty where that is not known."""
    if "number" in _NEEDS.get(kind, "") and given.strip().isdecimal():
        return " (a number has no quotation marks)"
    if "number" in _NEEDS.get(kind, "") and (digits := re.sub(r"(?<=\d)[_, ](?=\d{3})", "", given.strip())).isdecimal():
        return f" (write {digits})"
    if kind.startswith("bool") and given.lower() in ("true", "false"):
        return " (without quotation marks)"
    return unexpanded(given)


def plainly(error: MarkedYAMLError, text: str) -> str:
    """What is wrong in `text`, which the parser refused with `error`."""
    problem = str(error.problem or error.context or "cannot be read")
    here = "" if error.problem_mark is None else [*text.splitlines(), ""][error.problem_mark.line]
    if "'\\t'" in problem:
        return _of_tab(here, error.problem_mark.column) if error.problem_mark else "a tab cannot indent YAML"
    if error.problem_mark is not None and here[: error.problem_mark.column + 1].endswith("${"):
        return "a variable between { and }, or [ and ], needs quotation marks"
    began = error.context_mark
    if began is not None and "expected <block end>" in problem:
        what = "list" if "sequence" in str(error.context) else "mapping"
        column = "" if error.problem_mark is None else f" has column {error.problem_mark.column + 1}"
        if error.problem_mark is not None and error.problem_mark.column == began.column:
            return (
                f"wrong indentation: this is in the column of the {what} from line {began.line + 1}, and no part of it"
            )
        nearest = f"the one from line {began.line + 1} has column {began.column + 1}"
        return f"wrong indentation: no {what} above{column}; {nearest}"
    for kind, signs in (("mapping", "{}"), ("sequence", "[]")):
        if began is not None and f"flow {kind}" in str(error.context):
            opened = f"'{signs[0]}' on line {began.line + 1}, column {began.column + 1}"
            return f"is not YAML: a ',' or the '{signs[1]}' that closes {opened} is missing before this"
    if (plain := _of_scalar(error, problem, text)) is not None:
        return plain
    context = f" {error.context}" if error.context and error.problem else ""
    return shorten(f"is not YAML: {problem}{context}", 160)


def _of_tab(line: str, column: int) -> str:
    """What is wrong with the tab that is at `column` of a line, or before it."""
    if not line.strip():
        return "a tab on a line of its own; remove it"
    if line[column:].lstrip().startswith("#"):
        return "a tab cannot come before a comment; use a space"
    if not line[:column].strip():
        return "a tab cannot indent YAML; use spaces"
    return "a tab cannot separate words on one line; use a space"


def _of_scalar(error: MarkedYAMLError, problem: str, text: str) -> str | None:
    """What is wrong with one key or value, where that can be said in other words than the parser's."""
    began, here = error.context_mark, error.problem_mark
    if began is not None and "quoted scalar" in str(error.context):
        return f"the quotation mark on line {began.line + 1}, column {began.column + 1} is not closed"
    if began is not None and "expected ':'" in problem:
        return f"line {began.line + 1} has no colon: a key needs one, and a space or a new line after it"
    if (sign := re.search(r"character '(.)' that cannot start", problem)) is not None:
        return f"a value cannot begin with {sign[1]}; put it in quotation marks"
    if here is None or "mapping values are not allowed" not in problem:
        return None
    lines = text.splitlines()
    if re.search(r":\s", lines[here.line][: here.column]):
        return "a value that contains a colon and a space needs quotation marks"
    above = next((place for place in range(here.line - 1, -1, -1) if lines[place].strip()), None)
    if above is None:
        return None
    if re.search(r":\s", lines[above]):
        return f"wrong indentation: the key of line {above + 1} has its value there already, and this is deeper"
    return f"line {above + 1} is no key with a value: a space is missing after its colon, or the colon itself"
