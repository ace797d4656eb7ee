"""Checks the axes of a scenario and finds the places of their values: two axes must not set the same place, nor
undo a change. The points that they span are combined here too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vmlab.model.names import HOST_PLACE, is_host_name
from vmlab.model.run import MOST_POINTS, MOST_TILES, AxisValue
from vmlab.model.scenarios.axis import BUILT_IN_AXES, HOST_AXES, Axis, AxisPoint
from vmlab.model.scenarios.guest import GUEST_ATTRIBUTES
from vmlab.model.scenarios.scenario import Scenario
from vmlab.plan.scenario_file.paths import AXIS_ROOTS, TILES, expand, point_places
from vmlab.plan.scenario_file.problems import Place, Problem, meant, shorten
from vmlab.plan.scenario_file.scenario_document import Document
from vmlab.plan.terms import AbsentPoint


def place_axes(document: Document, scenario: Scenario) -> list[PlacedAxis]:
    """Check every axis and find its places. Raises ScenarioError with every problem."""
    problems: list[Problem] = []
    axes: list[PlacedAxis] = []
    for name, axis in scenario.axes.items():
        sources = _sources(document, name, axis)
        problems.extend(_value_problems(name, axis, sources))
        try:
            placed = _points(document, scenario, name, axis, problems) if axis.points else None
            axes.append(placed or PlacedAxis(name, tuple(_values(document, name, axis, sources))))
        except ValueError as error:
            where: Place = ("axes", name, "sets") if axis.sets else ("axes", name)
            problems.append(Problem(where, f"axis {name}: {error}", not axis.sets))
    document.raise_problems(problems)
    document.raise_problems(list(clashes(document, axes)))
    if (count := math.prod(len(axis.values) for axis in axes)) > MOST_POINTS:
        raise document.error(
            Problem(("axes",), f"the axes span {count} cells; at most {MOST_POINTS} are allowed", True)
        )
    return axes


def _sources(document: Document, name: str, axis: Axis) -> tuple[Place, ...]:
    raw = document.at(("axes", name))
    base: Place = ("axes", name, "values") if isinstance(raw, dict) else ("axes", name)
    return tuple((*base, index) for index in range(len(axis.values)))


def _values(document: Document, name: str, axis: Axis, sources: tuple[Place, ...]) -> Iterator[PlacedValue]:
    places = tuple(_places(document, name, axis))
    for value, source in zip(axis.values, sources, strict=True):
        yield PlacedValue(value, (Setting(places, value, source),))


def _places(document: Document, name: str, axis: Axis) -> list[Place]:
    if name == "tiles":
        if axis.sets:
            raise ValueError("has its place already; leave `sets` out")
        return [TILES]
    if name == HOST_PLACE:
        if axis.sets:
            raise ValueError("names hosts of a fleet, and sets nothing; leave `sets` out")
        return []
    of_its_own = (f"guests.*.{name}",) if name in GUEST_ATTRIBUTES else (name,) if name in HOST_AXES else ()
    paths = axis.sets or of_its_own
    if not paths:
        known, path = ", ".join(BUILT_IN_AXES), _path_of(document, name)
        written = f"{name}: {{values: […], sets: {path}}}"
        raise ValueError(f"needs `values` and `sets`, as in {written} (axes without `sets` are {known})")
    found = [place for path in paths for place in expand(document, path, AXIS_ROOTS)]
    return list(dict.fromkeys(found))


def _path_of(document: Document, name: str) -> str:
    """The first path that ends in `name`, for an example; one in capitals where there is none."""
    for workload in document.value.get("workloads") or {}:
        try:
            expand(document, path := f"workloads.{workload}.{name}", AXIS_ROOTS)
        except ValueError:
            continue
        return path
    return "workloads.NAME.KEY"


def _value_problems(name: str, axis: Axis, sources: tuple[Place, ...]) -> Iterator[Problem]:
    seen: set[tuple[type, AxisValue]] = set()
    for value, source in zip(axis.values, sources, strict=True):
        key = (type(value), value)
        if key in seen:
            yield Problem(source, f"axis {name} has {shorten(value)} twice")
        seen.add(key)
        if axis.points and value not in axis.points:
            yield Problem(source, f"axis {name} has no point {shorten(value)!r}; {meant(value, axis.points)}")
        elif name == "tiles" and not axis.points:
            yield from _tiles_problems(f"axis {name}", value, source)
        elif name == HOST_PLACE and not axis.points and not is_host_name(value):
            yield Problem(source, f"axis {name} needs names of hosts, not {shorten(value)}")


def _tiles_problems(who: str, value: object, source: Place) -> Iterator[Problem]:
    if not (type(value) is int and 1 <= value <= MOST_TILES):
        yield Problem(source, f"{who} needs whole numbers from 1 to {MOST_TILES}, not {shorten(value)}")


def _points(
    document: Document, scenario: Scenario, name: str, axis: Axis, problems: list[Problem]
) -> PlacedAxis | None:
    """The axis with its points; what is wrong with any of them, chosen or not, is added to `problems`.

    Raises ValueError for an axis that cannot have points.
    """
    if name in BUILT_IN_AXES:
        raise ValueError("has its place already; an axis with points needs a name of its own")
    if axis.sets:
        raise ValueError("has points, which say themselves what they set; leave `sets` out")
    placed = {
        point: _point(document, point, written, ("axes", name, "points", point), problems)
        for point, written in axis.points.items()
    }
    for point, written in axis.points.items():
        problems.extend(_without_problems(scenario, name, point, written))
    problems.extend(_twins(name, placed))
    return PlacedAxis(name, tuple(placed[str(value)] for value in axis.values if value in placed))


def _point(document: Document, point: str, written: AxisPoint, here: Place, problems: list[Problem]) -> PlacedValue:
    settings: list[Setting] = []
    owner: dict[Place, str] = {}
    if written.absent is not None and (written.sets or written.without):
        problems.append(Problem((*here, "absent"), f"point {point} is absent and can set nothing", True))
    for path, value in written.sets.items():
        source = (*here, path)
        try:
            places = point_places(document, path)
        except ValueError as error:
            problems.append(Problem(source, f"point {point}: {error}", True))
            continue
        if TILES in places:
            problems.extend(_tiles_problems(f"tiles of point {point}", value, source))
        if (twice := next((place for place in places if place in owner), None)) is not None:
            message = f"point {point} sets {dots(twice)} twice, as {owner[twice]} and as {path}"
            problems.append(Problem(source, message, True))
        owner.update(dict.fromkeys(places, path))
        settings.append(Setting(tuple(places), value, source))
    return PlacedValue(point, tuple(settings), written.without, written.absent, named=True)


def _without_problems(scenario: Scenario, name: str, point: str, written: AxisPoint) -> Iterator[Problem]:
    """`without` must name other axes, and none that leave out axes themselves: the result would depend on the order."""
    where: Place = ("axes", name, "points", point, "without")
    others = [other for other in scenario.axes if other != name]
    for other in written.without:
        if other not in others:
            yield Problem(where, f"point {point}: there is no other axis {shorten(other)!r}; {meant(other, others)}")
        elif any(each.without for each in scenario.axes[other].points.values()):
            yield Problem(where, f"point {point} leaves out axis {other}, whose points leave out axes themselves")


def _twins(name: str, placed: dict[str, PlacedValue]) -> Iterator[Problem]:
    """Finds two points that set the same."""
    seen: dict[str, str] = {}
    for point, value in placed.items():
        if value.absent is not None:
            continue
        what = {place: setting.value for place, setting in value.places.items()}
        key = repr((sorted(what.items(), key=repr), sorted(value.without)))
        if key in seen:
            same = "the same" if what else "nothing"
            yield Problem(("axes", name, "points", point), f"points {seen[key]} and {point} both set {same}", True)
        seen.setdefault(key, point)


def clashes(document: Document, axes: list[PlacedAxis]) -> Iterator[Problem]:
    """Conflicts between axes, and between an axis and a change of a size or an option."""
    for first, second in itertools.combinations(axes, 2):
        yield from _between(document, first, second)
    told: set[Place] = set()
    for axis in axes:
        for value in axis.values:
            for place, setting in value.places.items():
                if place in document.changed and place not in told and setting.value != document.at(place):
                    told.add(place)
                    change = "change it there" if value.named else f"change axes.{axis.name} instead"
                    yield Problem(place, f"{_who(axis, value)} sets {dots(place)}; {change}")


def _between(document: Document, first: PlacedAxis, second: PlacedAxis) -> Iterator[Problem]:
    """The first conflict of two axes: one that is the same for all their values is reported once."""
    meeting = (
        (one, other)
        for other in second.values
        for one in first.values
        if second.name not in one.without and first.name not in other.without
    )
    for one, other in meeting:
        both = [place for place in one.places if place in other.places]
        if not both:
            continue
        if one.named and document.is_option(("axes", second.name)):
            message = f"{_setters(first, both[0])} {dots(both[0])}; choose points with --set axes.{first.name}="
            yield Problem(("axes", second.name), message)
        elif one.named or other.named:
            where = other.places[both[0]].source if other.named else one.places[both[0]].source
            message = f"{_who(first, one)} and {_who(second, other)} both set {dots(both[0])}"
            yield Problem(where, message, True)
        else:
            message = f"axes {first.name} and {second.name} both set {dots(both[0])}"
            yield Problem(("axes", second.name), message, True)
        return


def _who(axis: PlacedAxis, value: PlacedValue) -> str:
    return f"point {value.value} of axis {axis.name}" if value.named else f"axis {axis.name}"


def _setters(axis: PlacedAxis, place: Place) -> str:
    names = [str(value.value) for value in axis.values if place in value.places]
    who, verb = ("point", "sets") if len(names) == 1 else ("points", "set")
    return f"{who} {', '.join(names)} of axis {axis.name} {verb}"


def dots(place: Place) -> str:
    """A place as a scenario writes it in a path."""
    return ".".join(str(part) for part in place)


@dataclass(frozen=True, slots=True)
class Setting:
    """One value with the places that it is assigned to; `source` is where it is written."""

    places: tuple[Place, ...]
    value: Any
    source: Place


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """A value of an axis with all that it sets. `without` names axes that have no meaning together with it.

    Where `absent` is not None, it is the reason why there is no cell for the value. `named` tells a point from a plain
    value.
    """

    value: AxisValue
    settings: tuple[Setting, ...]
    without: tuple[str, ...] = ()
    absent: str | None = None
    named: bool = False

    @property
    def places(self) -> dict[Place, Setting]:
        """Every place that is set, with what sets it."""
        return {place: setting for setting in self.settings for place in setting.places}


@dataclass(frozen=True, slots=True)
class PlacedAxis:
    """An axis with its values in order."""

    name: str
    values: tuple[PlacedValue, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of values, the scenario with them put in their places, and the number of tiles."""

    values: dict[str, AxisValue]
    document: Document
    tiles: int = 1


def points(document: Document, axes: list[PlacedAxis]) -> Iterator[Point]:
    """Every combination that is not absent, once, the first axis outermost.

    Axes that one of the values leaves out are not in the combination; combinations that become equal in this way are
    one point, in the place of the first.
    """
    document = document.without("axes", "reference", "sizes", "table")
    seen: set[tuple[tuple[str, int], ...]] = set()
    for chosen in itertools.product(*(range(len(axis.values)) for axis in axes)):
        left_out = {name for axis, index in zip(axes, chosen, strict=True) for name in axis.values[index].without}
        pairs = [(axis, index) for axis, index in zip(axes, chosen, strict=True) if axis.name not in left_out]
        key = tuple((axis.name, index) for axis, index in pairs)
        values = {axis.name: axis.values[index] for axis, index in pairs}
        if key not in seen and all(value.absent is None for value in values.values()):
            yield _set_at(document, values)
        seen.add(key)


def _set_at(document: Document, values: dict[str, PlacedValue]) -> Point:
    tiles = 1
    for setting in (setting for value in values.values() for setting in value.settings):
        if setting.places == (TILES,):
            tiles = setting.value
        else:
            document = document.assigned(list(setting.places), setting.value, setting.source)
    return Point({name: value.value for name, value in values.items()}, document, tiles)


def absent_points(axes: list[PlacedAxis]) -> tuple[AbsentPoint, ...]:
    """Every value that has no cell, in the scenario's order."""
    every = ((axis.name, one) for axis in axes for one in axis.values)
    return tuple(AbsentPoint(name, one.value, one.absent) for name, one in every if one.absent is not None)
