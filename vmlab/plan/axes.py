"""Axes: what is varied, where each value goes, and the points that they span."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from vmlab.model.run import CACHE_MODES, AxisValue
from vmlab.model.scenario import BUILT_IN_AXES, GUEST_ATTRIBUTES, MOST_TILES, Axis, Scenario
from vmlab.plan.document import Document
from vmlab.plan.paths import AXIS_ROOTS, expand
from vmlab.plan.problems import Place, Problem, meant, shorten

MOST_POINTS = 500


@dataclass(frozen=True, slots=True)
class PlacedAxis:
    """An axis with the places that each value is put at; none for ``tiles`` and ``cache``, which the planner reads.

    `sources` tells for each value where it is written.
    """

    name: str
    values: tuple[AxisValue, ...]
    places: tuple[Place, ...]
    sources: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of values, and the scenario with them put in their places."""

    values: dict[str, AxisValue]
    document: Document


def place_axes(document: Document, scenario: Scenario) -> list[PlacedAxis]:
    """Check every axis and find its places. Raises ScenarioError with every problem."""
    problems: list[Problem] = []
    axes: list[PlacedAxis] = []
    for name, axis in scenario.axes.items():
        sources = _sources(document, name, axis)
        problems.extend(_value_problems(scenario, name, axis, sources))
        try:
            axes.append(PlacedAxis(name, axis.values, tuple(_places(document, name, axis)), sources))
        except ValueError as error:
            where: Place = ("axes", name, "sets") if axis.sets else ("axes", name)
            problems.append(Problem(where, f"axis {name}: {error}", not axis.sets))
    document.raise_problems(problems)
    document.raise_problems(list(_clashes(document, axes)))
    count = math.prod(len(axis.values) for axis in axes)
    if count > MOST_POINTS:
        raise document.error(
            Problem(("axes",), f"the axes span {count} cells; at most {MOST_POINTS} are allowed", True)
        )
    return axes


def points(document: Document, axes: list[PlacedAxis]) -> Iterator[Point]:
    """Every combination, the first axis outermost."""
    document = document.without("axes", "reference", "sizes", "table")
    for chosen in itertools.product(*(range(len(axis.values)) for axis in axes)):
        point = document
        for axis, index in zip(axes, chosen, strict=True):
            if axis.places:
                point = point.assigned(list(axis.places), axis.values[index], axis.sources[index])
        yield Point({axis.name: axis.values[index] for axis, index in zip(axes, chosen, strict=True)}, point)


def _sources(document: Document, name: str, axis: Axis) -> tuple[Place, ...]:
    raw = document.at(("axes", name))
    base: Place = ("axes", name, "values") if isinstance(raw, dict) else ("axes", name)
    return tuple((*base, index) for index in range(len(axis.values)))


def _places(document: Document, name: str, axis: Axis) -> list[Place]:
    if name in ("tiles", "cache"):
        if axis.sets:
            raise ValueError("has its place already; leave `sets` out")
        return []
    paths = axis.sets or ((f"guests.*.{name}",) if name in GUEST_ATTRIBUTES else ())
    if not paths:
        known = ", ".join(BUILT_IN_AXES)
        raise ValueError(f"needs `sets`, such as sets: workloads.NAME.KEY (axes without `sets` are {known})")
    found = [place for path in paths for place in expand(document, path, AXIS_ROOTS)]
    return list(dict.fromkeys(found))


def _value_problems(scenario: Scenario, name: str, axis: Axis, sources: tuple[Place, ...]) -> Iterator[Problem]:
    seen: set[tuple[type, AxisValue]] = set()
    for value, source in zip(axis.values, sources, strict=True):
        key = (type(value), value)
        if key in seen:
            yield Problem(source, f"axis {name} has {shorten(value)} twice")
        seen.add(key)
        if name == "tiles" and not (type(value) is int and 1 <= value <= MOST_TILES):
            yield Problem(source, f"axis tiles needs whole numbers from 1 to {MOST_TILES}, not {shorten(value)}")
        if name == "cache" and value not in CACHE_MODES:
            yield Problem(source, f"there is no cache mode {shorten(value)!r}; {meant(value, CACHE_MODES)}")
        if name == "cache" and value == "unsafe" and not scenario.allow.unsafe_cache:
            yield Problem(
                source,
                "cache mode unsafe may lose guests' data; say so with --allow-unsafe or allow: {unsafe_cache: true}",
            )


def _clashes(document: Document, axes: list[PlacedAxis]) -> Iterator[Problem]:
    """Two axes for one place, and changes that an axis would silently undo."""
    owner: dict[Place, str] = {}
    for axis in axes:
        for place in axis.places:
            if place in owner:
                yield Problem(("axes", axis.name), f"axes {owner[place]} and {axis.name} both set {_dots(place)}", True)
            owner[place] = axis.name
    for place in document.changed:
        if place in owner:
            yield Problem(place, f"axis {owner[place]} sets {_dots(place)}; change axes.{owner[place]} instead")


def _dots(place: Place) -> str:
    return ".".join(str(part) for part in place)
