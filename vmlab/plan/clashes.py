"""Finds two axes that set the same place, and changes that an axis would silently undo."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from vmlab.plan.placed_axes import PlacedAxis, PlacedValue
from vmlab.plan.scenario_file.problems import Place, Problem
from vmlab.plan.scenario_file.scenario_document import Document


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
    meeting = ((one, other) for other in second.values for one in first.values if _meet(first, one, second, other))
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


def _meet(first: PlacedAxis, one: PlacedValue, second: PlacedAxis, other: PlacedValue) -> bool:
    """Whether both are varied in the same cell."""
    return second.name not in one.without and first.name not in other.without


def _who(axis: PlacedAxis, value: PlacedValue) -> str:
    return f"point {value.value} of axis {axis.name}" if value.named else f"axis {axis.name}"


def _setters(axis: PlacedAxis, place: Place) -> str:
    names = [str(value.value) for value in axis.values if place in value.places]
    who, verb = ("point", "sets") if len(names) == 1 else ("points", "set")
    return f"{who} {', '.join(names)} of axis {axis.name} {verb}"


def dots(place: Place) -> str:
    """A place as a scenario writes it in a path."""
    return ".".join(str(part) for part in place)
