"""What pydantic found, in the words of someone who wants to mend the scenario."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import ValidationError

from vmlab.model.units import format_bit_rate, format_bytes, format_seconds
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
_NEEDS = {
    "scalar_type": "needs a word or a number",
    "int_type": "needs a whole number",
    "int_parsing": "needs a whole number",
    "int_from_float": "needs a whole number",
    "float_type": "needs a number",
    "float_parsing": "needs a number",
    "finite_number": "needs a finite number",
    "bool_type": "needs true or false",
    "bool_parsing": "needs true or false",
    "string_type": "needs a word",
    "dict_type": "needs a mapping",
    "model_type": "needs a mapping",
    "model_attributes_type": "needs a mapping",
    "tuple_type": "needs a list",
    "list_type": "needs a list",
}
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
        return Problem(place, f"unknown key {shorten(place[-1])!r} in {_inside(place)}; {_meant(place, known)}", True)
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


def _meant(place: Place, known: KnownKeys) -> str:
    return meant(place[-1], known(place[:-1]))


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
