"""Axes: what is varied, where each value goes, and the points that they span."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vmlab.model.run import AxisValue
from vmlab.plan.scenario_file.paths import TILES
from vmlab.plan.scenario_file.problems import Place
from vmlab.plan.scenario_file.scenario_document import Document


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
            yield _point(document, values)
        seen.add(key)


def _point(document: Document, values: dict[str, PlacedValue]) -> Point:
    tiles = 1
    for setting in (setting for value in values.values() for setting in value.settings):
        if setting.places == (TILES,):
            tiles = setting.value
        else:
            document = document.assigned(list(setting.places), setting.value, setting.source)
    return Point({name: value.value for name, value in values.items()}, document, tiles)


def absent_values(axes: list[PlacedAxis]) -> Iterator[tuple[str, AxisValue, str]]:
    """Axis, value and reason of every value that has no cell, in the scenario's order."""
    for axis in axes:
        for value in axis.values:
            if value.absent is not None:
                yield axis.name, value.value, value.absent


def count_of(axes: list[PlacedAxis]) -> int:
    """How many combinations the axes span, before any is left out."""
    return math.prod(len(axis.values) for axis in axes)
