"""What a size and the command line change in a scenario, before its axes do."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from vmlab.model.errors import ScenarioError, UsageError
from vmlab.model.names import HOST_PLACE
from vmlab.model.visible import visible_line
from vmlab.plan.scenario_file.paths import ASSIGNMENT_ROOTS, expand, path_length
from vmlab.plan.scenario_file.problems import Origin, Place, Problem, meant, shorten
from vmlab.plan.scenario_file.scenario_document import Document
from vmlab.plan.scenario_file.yaml_text import Tree, parse, read_text, without_kept
from vmlab.plan.terms import FOR_CLAIMS, Overrides

NO_AXES: Mapping[str, str] = MappingProxyType({})
CHANGEABLE_SIZES = ("smoke", "demo", "published")
_COUNTS = ("repeats", "until")
"""Keys that exclude each other: the one that is set takes the other's place."""
PLAIN = (*_COUNTS, "order", "warm_up", "warm")
"""Keys of the scenario that a size sets as they are."""
_MAPPINGS = ("host", "allow")
"""Mappings of the scenario of which a size sets keys."""
_PARTS = ("guests", *_MAPPINGS, "axes", *PLAIN)


def check_sizes(document: Document) -> None:
    """Check that every size changes only what exists. Raises ScenarioError with every problem."""
    problems: list[Problem] = []
    sizes: dict[str, dict[str, Any]] = document.value.get("sizes") or {}
    workloads = list(document.value.get("workloads") or {})
    for size, parts in sizes.items():
        if size not in CHANGEABLE_SIZES:
            why = "is what the scenario itself says" if size == "full" else "is no size"
            problems.append(
                Problem(("sizes", size), f"{shorten(size)!r} {why}; sizes here are smoke, demo and published", True)
            )
            continue
        for name, part in parts.items():
            place: Place = ("sizes", size, name)
            if name not in (*workloads, *_PARTS):
                message = f"there is no workload {shorten(name)!r}; {meant(name, [*workloads, *_PARTS])}"
                problems.append(Problem(place, message, True))
            elif name not in PLAIN and not isinstance(part, dict):
                problems.append(Problem(place, f"sizes.{size}.{name} needs a mapping"))
            elif name == "guests":
                problems.extend(_guest_problems(document, place, part))
    document.raise_problems(problems)


def _guest_problems(document: Document, place: Place, part: dict[str, Any]) -> list[Problem]:
    guests = list(document.value.get("guests") or {})
    unknown = [name for name in part if name not in guests]
    broken = [name for name in part if name in guests and not isinstance(part[name], dict)]
    return [
        *(Problem((*place, n), f"there is no guest {shorten(n)!r}; {meant(n, guests)}", True) for n in unknown),
        *(Problem((*place, n), f"guest {n} needs a mapping") for n in broken),
    ]


def apply_size(
    document: Document, size: str, axes_of: Mapping[str, str] = NO_AXES, without: Collection[str] = ()
) -> Document:
    """The scenario at a size; as it is written where it has no such size.

    `axes_of` names axes that are those of another size, and the keys `without` stay as they are written.
    """
    parts = {name: part for name, part in _parts_of(document, size).items() if name not in without}
    for name, part in parts.items():
        place: Place = ("sizes", size, name)
        if name in PLAIN:
            document = _set_plain(document, name, part, place)
        elif name == "axes":
            for axis, values in part.items():
                if axis not in axes_of:
                    document = _apply_axis(document, axis, values, (*place, axis))
        elif name == "guests":
            for guest, attributes in part.items():
                document = _apply_keys(document, ("guests", guest), attributes, (*place, guest))
        else:
            to: Place = (name,) if name in _MAPPINGS else ("workloads", name)
            document = _apply_keys(document, to, part, place)
    for axis, other in axes_of.items():
        values = (_parts_of(document, other).get("axes") or {}).get(axis)
        if values is not None:
            document = _apply_axis(document, axis, values, ("sizes", other, "axes", axis))
    return document


def _parts_of(document: Document, size: str) -> dict[str, Any]:
    """What a size changes."""
    return (document.value.get("sizes") or {}).get(size) or {}


def _set_plain(document: Document, name: str, value: Any, source: Place | Origin) -> Document:
    if name in _COUNTS:
        document = document.without(*_COUNTS)
    return document.assigned([(name,)], value, source)


def _apply_keys(document: Document, to: Place, part: dict[str, Any], source: Place) -> Document:
    for key, value in part.items():
        document = document.assigned([(*to, key)], value, (*source, key))
    return document


def _apply_axis(document: Document, axis: str, values: Any, source: Place | Origin) -> Document:
    """New values for an axis that keeps where it applies; a mapping changes any part of it."""
    place: Place = ("axes", axis)
    if isinstance(values, dict) and isinstance(document.at(place), dict) and not isinstance(source, Origin):
        return _apply_keys(document, place, values, source)
    if isinstance(document.at(place), dict) and not isinstance(values, dict):
        place = (*place, "values")
    return document.assigned([place], values, source)


def apply_overrides(document: Document, overrides: Overrides) -> Document:
    """What the command line changes, size aside. Raises UsageError that names the option."""
    for assignment in overrides.sets:
        document = _assign(document, assignment)
    for axis, values, option in (
        ("tiles", overrides.tiles, "--tiles"),
        ("cache", overrides.cache, "--cache"),
        (HOST_PLACE, overrides.hosts, "--hosts"),
    ):
        if values is not None:
            typed = f"{option} {','.join(map(str, values))}"
            document = _apply_axis(document, axis, list(values), Origin(option=typed))
    if overrides.looks is not None:
        word = FOR_CLAIMS[len(overrides.looks) == 1]
        until = {"looks": list(overrides.looks), "looks_at": "claims"}
        document = _set_plain(document, "until", until, Origin(option=f"--repeats {word}"))
    if overrides.repeats in FOR_CLAIMS:
        raise UsageError(f"--repeats {overrides.repeats} is for `vmlab run` and `vmlab plan`")
    if overrides.repeats is not None:
        document = _set_plain(document, "repeats", overrides.repeats, Origin(option="--repeats"))
    if overrides.for_seconds is not None:
        document = _limited(document, overrides)
    if overrides.loop is not None:
        # A loop is not measured, and lasts as long as is asked: one repeat of each cell, and no warm-up.
        document = _set_plain(document, "repeats", 1, Origin(option="--loop")).without("warm_up")
    for key, value, option in (
        (("seed",), overrides.seed, "--seed"),
        (("again",), overrides.again, "--again"),
        (("allow", "memory_overcommit"), overrides.allow_overcommit or None, "--allow-overcommit"),
        (("allow", "unsafe_cache"), overrides.allow_unsafe or None, "--allow-unsafe"),
        (("allow", "noise"), overrides.allow_noise or None, "--allow-noise"),
        (("allow", "equal_weight"), overrides.allow_equal_weight or None, "--allow-equal-weight"),
        (("steady",), None if overrides.steady is None else f"{overrides.steady:g} s", "--steady"),
        (("hypervisor",), overrides.hypervisor, "--hypervisor"),
        (("provision",), "cold" if overrides.cold else None, "--cold"),
    ):
        if value is not None:
            document = document.assigned([key], value, Origin(option=option))
    return document


def _limited(document: Document, overrides: Overrides) -> Document:
    """The time that a run may take, beside what its scenario or the command line says of its repeats."""
    time, origin = f"{overrides.for_seconds:g} s", Origin(option="--for")
    if overrides.loop is not None or overrides.control:
        raise UsageError("--for is for repeats, and excludes --loop and --control")
    if overrides.repeats is not None:
        return _set_plain(document, "until", {"time": time, "at_most": overrides.repeats}, origin)
    until = document.value.get("until")
    if until is None:
        return _set_plain(document, "until", {"time": time}, origin)
    if isinstance(until, dict):
        return document.assigned([("until", "time")], time, origin)
    return _set_plain(document, "until", {"spread": until, "time": time}, origin)


def assignments_of(file: Path) -> list[str]:
    """What a file's mapping sets, as assignments that name their place: ``@FILE:3:5: workloads.web.requests=500``.

    They hold all that the file says, so that whoever makes the plan again needs no file. Raises UsageError.
    """
    tree = parse(read_text(file), file)
    value = without_kept(tree.value)
    if not isinstance(value, dict):
        words = "needs a mapping, such as workloads: {web: {requests: 500}}"
        raise ScenarioError(words, file=file, line=tree.values[()].line, column=tree.values[()].column)
    return [_as_assignment(file, tree, place) for key in value for place in _ends(value, (key,))]


def _ends(value: dict[str, Any], place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The places below a place that are assigned as a whole: a key of a guest, all values of an axis."""
    found: Any = value
    for part in place:
        found = found[part]
    parts = ".".join(place).split(".")
    if isinstance(found, dict) and found and len(parts) < path_length(parts[0]):
        for key in found:
            yield from _ends(value, (*place, key))
    else:
        yield place


def _as_assignment(file: Path, tree: Tree, place: tuple[str, ...]) -> str:
    at, path, value = tree.keys[place], ".".join(place), tree.value
    if "=" in path:
        raise ScenarioError(f"{shorten(path)!r} is no path", file=file, line=at.line, column=at.column)
    for part in place:
        value = value[part]
    # YAML reads JSON, but knows an escaped character of any plane by one number.
    text = re.sub("[^ -~]", lambda sign: f"\\U{ord(sign[0]):08x}", json.dumps(value, ensure_ascii=False))
    return f"@{visible_line(str(file))}:{at.line}:{at.column}: {path}={text}"


_FROM_FILE = re.compile(r"@(?P<place>.*?:\d+:\d+): (?P<assignment>.*)", re.ASCII)


def without_place(assignment: str) -> str:
    """``PATH=VALUE`` of an assignment that was typed, or that names its place in a file."""
    written = _FROM_FILE.fullmatch(assignment)
    return assignment if written is None else written["assignment"]


def _assign(document: Document, assignment: str) -> Document:
    option = f"--set {shorten(assignment, 80)}"
    if (written := _FROM_FILE.fullmatch(assignment)) is not None:
        option, assignment = written["place"], written["assignment"]
    path, sign, text = assignment.partition("=")
    if not sign:
        raise UsageError(f"{option}: needs PATH=VALUE, such as workloads.web.requests=500")
    try:
        value = parse(text, option).value if text.strip() else None
    except ScenarioError as error:
        raise UsageError(f"{option}: the value {error.message}") from None
    try:
        places = expand(document, path.strip(), ASSIGNMENT_ROOTS)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
    if places[0][0] == "axes":
        values = value if isinstance(value, list | dict) else [value]
        return _apply_axis(document, str(places[0][1]), values, Origin(option=option))
    if places[0][0] in PLAIN:
        return _set_plain(document, str(places[0][0]), value, Origin(option=option))
    return document.assigned(places, value, Origin(option=option))
