"""The sides of a comparison, and where their cells meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.figures.counted_cells import is_final, was_switched
from vmlab.analysis.figures.figure import RunCells
from vmlab.analysis.figures.table_layout import in_written_order, varied_axis
from vmlab.analysis.shape import RunDocument, RunPart
from vmlab.analysis.tiles.over_hosts import cells_of_all_hosts
from vmlab.analysis.tiles.throughput import TILES
from vmlab.model.axes import axes_words, axis_word, without
from vmlab.model.errors import UsageError
from vmlab.model.grouping import grouped
from vmlab.model.run import WARM_UP, AxisValue, Outcome
from vmlab.model.visible import quoted

Place = tuple[tuple[str, AxisValue], ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a run, or one cell of it, under the label that the user gave it.

    A side of several runs has each of them in `runs`, each of which counts once; `run` and `cells` are the first one's.
    One value of the axis that a run varies has that in `values`, also as AXIS=VALUE.
    """

    label: str
    run: RunPart
    cells: tuple[CellDocument, ...]
    runs: tuple[Side, ...] = ()
    values: tuple[str, ...] = ()

    @property
    def names(self) -> set[str]:
        """What a user may call it: by its label, one of its `values`, or else the id of its only run."""
        return {self.label, *(self.values or (() if self.runs else (self.run.id,)))}

    @property
    def parts(self) -> tuple[Side, ...]:
        """Each run of the side by itself."""
        return self.runs or (self,)

    @classmethod
    def of_runs(cls, label: str, parts: Sequence[Side]) -> Side:
        """One side of several runs."""
        return cls(label, parts[0].run, parts[0].cells, tuple(parts)) if len(parts) > 1 else parts[0]

    @classmethod
    def of(cls, label: str, document: RunDocument, cell: int | None = None) -> Side:
        """All cells of a run that count, or the one numbered `cell`. Raises UsageError where there is no such cell."""
        cells = [c for c in in_written_order(document) if cell is None or c.cell == cell]
        if cell is None:
            cells = [*cells_of_all_hosts(document), *cells]
        elif cells:
            _demand_counted(f"{label}: cell {cell}", cells[0])
        cells = [c for c in cells if is_final(c) and not c.looped]
        if not cells:
            raise UsageError(f"{label}: has no cell" + (f" {cell}" if cell is not None else " yet"))
        return cls(label, document.run, tuple(cells))

    def at(self, place: Place) -> tuple[CellDocument, ...]:
        """The cells at a place, of one run."""
        return tuple(cell for cell in self.cells if place_of(cell) == place)


def _demand_counted(named: str, cell: CellDocument) -> None:
    """Raises UsageError for a cell whose figures count nowhere."""
    if cell.repeat == WARM_UP:
        raise UsageError(f"{named} is the warm-up, which is never counted")
    if cell.replaced_by is not None:
        raise UsageError(f"{named} was measured again as cell {cell.replaced_by}, which counts instead")
    if cell.looped:
        raise UsageError(f"{named} is a loop, whose values do not count")
    if was_switched(cell):
        raise UsageError(f"{named} was switched mid-run, which invalidates it")


def demand_distinct(sides: Sequence[Side]) -> None:
    """Raises UsageError where a cell stands on two sides, or twice on one: it would be compared with itself."""
    known: dict[tuple[str, int], Side] = {}
    for side in sides:
        for part in side.parts:
            own = sorted({(part.run.id, cell.cell) for cell in part.cells})
            again = next((one for one in own if one in known), None)
            if again is not None:
                which = f"cell {again[1]} of run {again[0]}" if len(own) == 1 else f"run {again[0]}"
                if known[again] is side:
                    raise UsageError(f"{quoted(side.label)} names {which} twice; each counts once")
                raise UsageError(
                    f"{quoted(known[again].label)} and {quoted(side.label)} both have {which}, and nothing is compared "
                    "with itself; name another run, or one run alone to compare the values of its axis"
                )
            known |= dict.fromkeys(own, side)


@dataclass(frozen=True, slots=True)
class Meeting:
    """A place of the axes at which every side has cells: for each side its runs, each with its cells there.

    The baseline has `of_baseline` here with any number of tiles. Single cells meet at the place without any axis.
    """

    axes: dict[str, AxisValue]
    sides: list[list[RunCells]]
    of_baseline: list[CellDocument]

    @property
    def of_runs(self) -> list[Sequence[CellDocument]]:
        """The cells of each run of each side."""
        return [cells for side in self.sides for _, cells in side]

    @property
    def cells(self) -> list[CellDocument]:
        """Those of all sides."""
        return list(chain.from_iterable(self.of_runs))

    @property
    def passed(self) -> list[CellDocument]:
        """The cells whose figures are compared."""
        return [cell for cell in self.cells if cell.outcome == Outcome.PASSED]


def meetings_of(sides: Sequence[Side]) -> list[Meeting]:
    """Where the sides meet: at places that all have; single cells in any case."""
    parts = [part for side in sides for part in side.parts]
    of_baseline = [cell for part in sides[0].parts for cell in part.cells]
    if all(len(part.cells) == 1 for part in parts):
        whole: list[list[RunCells]] = [[(part.run.id, part.cells) for part in side.parts] for side in sides]
        return [Meeting({}, whole, of_baseline)]
    return [
        Meeting(
            dict(place),
            [[(part.run.id, part.at(place)) for part in side.parts] for side in sides],
            [cell for cell in of_baseline if without(cell.axes, TILES) == without(dict(place), TILES)],
        )
        for place in _common_places(parts)
    ]


def place_of(cell: CellDocument) -> Place:
    """The values of a cell's axes, whatever the order in which they are written."""
    return tuple(sorted(cell.axes.items()))


def _common_places(sides: Sequence[Side]) -> list[Place]:
    places = dict.fromkeys(place_of(cell) for cell in sides[0].cells)
    return [place for place in places if all(side.at(place) for side in sides[1:])]


def cells_alike(sides: Sequence[Side]) -> list[tuple[CellDocument, ...]]:
    """For each side its cells that passed, where every side has one with the same axes; all that passed where none is.

    Sides of one cell each need no axes in common.
    """
    passed = [
        replace(side, cells=tuple(cell for cell in side.cells if cell.outcome == Outcome.PASSED)) for side in sides
    ]
    places = [] if all(len(side.cells) == 1 for side in sides) else _common_places(passed)
    return [tuple(cell for cell in side.cells if not places or place_of(cell) in places) for side in passed]


def sides_by_axis(document: RunDocument) -> list[Side]:
    """A side for each value of the first axis that a run varies, which is then no part of their cells' places.

    They are in the order in which the scenario has them, whatever ran first, and without the warm-up. Empty where the
    run varies no axis.
    """
    axis = varied_axis(document)
    if axis is None:
        return []
    found: list[Side] = []
    counted = grouped((cell.axes.get(axis), cell) for cell in in_written_order(document) if is_final(cell))
    for value, cells in counted.items():
        rest = tuple(replace(cell, axes=without(cell.axes, axis)) for cell in cells)
        label = f"no {axis}" if value is None else axes_words({axis: value})
        word = label if value is None else axis_word(value)
        found.append(Side(label, document.run, rest, values=(word, f"{axis}={word}")))
    return found


def with_baseline(sides: Sequence[Side], baseline: str | None) -> list[Side]:
    """The sides with that of this name first, or as they are. Raises UsageError unless it names one of them."""
    if baseline is None:
        return list(sides)
    named = [side for side in sides if baseline in side.names and len(sides) > 1]
    if len(named) != 1:
        what = "names several of the sides" if named else "is none of the sides"
        there = ", ".join(side.label for side in sides) if len(sides) > 1 else "none: the run varies no axis"
        raise UsageError(f"--baseline {quoted(baseline)} {what}; there are {there}")
    return [*named, *(side for side in sides if side not in named)]
