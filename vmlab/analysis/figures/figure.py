"""One figure of a table: from the cells that share its place, over their repeats."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vmlab.analysis.cell_shape import CellDocument, LeverDocument
from vmlab.analysis.figures.counted_cells import counts, is_final
from vmlab.analysis.figures.undelivered import undelivered_of
from vmlab.analysis.statistics.descriptive import Spread, far_out, finite, mean, spread
from vmlab.model.run import RUN_TIME, Outcome

if TYPE_CHECKING:
    # It brings pydantic, which would delay the console's first picture.
    from vmlab.model.scenarios.table_words import Statistic

MISSING = "missing"
"""The state of a figure without a cell, or that its cells did not measure."""

WALL_SECONDS = "wall_seconds"
"""The metric that a cell has as a whole: its total wall clock, in seconds."""
WALL_CLOCK = "total wall clock"
"""What stands in place of a workload in rows of it."""
HOST = "host."
"""What metrics begin with that are means of the host while the workloads ran."""

Value = Callable[[CellDocument], float | None]
"""Reads the figure from one cell; None, or no finite number, where the cell did not measure it."""
RunCells = tuple[str, Sequence[CellDocument]]
"""The id of a run, with cells of it."""
Reduced = Callable[[Sequence[float]], float | None]
"""One figure of several repeats."""


@dataclass(frozen=True, slots=True)
class OneReading:
    """One reading of a figure: of which repeat of which run; `snapshots` are what its guests began from, by guest."""

    value: float
    repeat: int = 1
    run: str = ""
    snapshots: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    level_divisor: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure over repeats, and its state.

    `state` is ``passed`` when at least one repeat passed, and then only those that passed are counted; ``invalid``
    when there are only invalid ones, which are counted then; else ``failed``, ``aborted``, ``running`` or
    ``missing``, and there is no `spread`. `left_out` is how many cells are not counted. `readings` are those that are
    counted, each; empty where the figure is something else than their mean. `undelivered` are the levers that were set
    and not delivered in the cells that are counted.
    """

    state: str
    spread: Spread | None = None
    left_out: int = 0
    readings: tuple[OneReading, ...] = ()
    undelivered: tuple[LeverDocument, ...] = field(default=(), compare=False, repr=False)

    @property
    def mean(self) -> float | None:
        """The mean; None where nothing was measured."""
        return self.spread.mean if self.spread else None

    @property
    def measured(self) -> Spread | None:
        """The spread; None unless it passed."""
        return self.spread if self.state == Outcome.PASSED else None

    @property
    def comparable(self) -> Spread | None:
        """The spread, if the figure may be compared with another one; None unless it passed, with all that was set."""
        return None if self.undelivered else self.measured

    @property
    def level_divisor(self) -> int:
        """What divides the level of a test of its repeats; 1 for several runs, of which each is one reading."""
        several = len({one.run for one in self.readings}) > 1
        return 1 if several else max((one.level_divisor for one in self.readings), default=1)

    @property
    def outliers(self) -> tuple[OneReading, ...]:
        """The readings that lie far from all others; they count as the others do."""
        far = far_out([reading.value for reading in self.readings])
        return tuple(itertools.compress(self.readings, far))

    def json_fields(self) -> dict[str, Any]:
        """The figure as all documents have it."""
        far, own = far_out([reading.value for reading in self.readings]), self.spread
        return {
            "state": self.state,
            "mean": self.mean,
            "half_width_95": own.half_width if own else None,
            "count": own.count if own else 0,
            "left_out": self.left_out,
            "readings": [
                {**({"run": one.run} if one.run else {}), "repeat": one.repeat, "value": one.value, "outlier": is_far}
                for one, is_far in zip(self.readings, far, strict=True)
            ],
            **({"undelivered": self.undelivered} if self.undelivered else {}),
        }


def figure_of(cells: Sequence[CellDocument], value: Value, reduced: Reduced | None = None) -> Figure:
    """The figure that `value` takes from `cells`, which are repeats of one another; a warm-up among them never counts.

    Their mean with its spread, or what `reduced` makes of them, of which no spread is known.
    """
    return figure_of_runs([("", cells)], value, reduced)


def figure_of_runs(all_cells: Sequence[RunCells], value: Value, reduced: Reduced | None = None) -> Figure:
    """The figure that `value` takes from the repeats of one run, or of several, of which each counts once."""
    all_cells = [(run, [cell for cell in cells if is_final(cell)]) for run, cells in all_cells]
    count = sum(len(cells) for _, cells in all_cells)
    for state in (Outcome.PASSED, Outcome.INVALID):
        runs = [those for run, cells in all_cells if (those := _readings(run, cells, value, state))]
        readings = tuple(reading for those in runs for _, reading in those)
        values = [reading.value for reading in readings]
        if not readings:
            continue
        levers = undelivered_of(cell for those in runs for cell, _ in those)
        if reduced is None:
            means = [mean([reading.value for _, reading in those]) for those in runs]
            found = spread(means if len(runs) > 1 else values)
            return Figure(str(state), found, count - len(values), readings, levers)
        made = finite(reduced(values))
        if made is None:
            return Figure(MISSING)
        return Figure(str(state), Spread(made, None, len(values)), count - len(values), undelivered=levers)
    outcomes = {cell.outcome for _, cells in all_cells for cell in cells} - {Outcome.PASSED, Outcome.INVALID}
    return Figure(max(outcomes, default=MISSING, key=_gravity), None, count)


def _readings(
    run: str, cells: Sequence[CellDocument], value: Value, state: Outcome
) -> list[tuple[CellDocument, OneReading]]:
    return [
        (cell, OneReading(taken, cell.repeat, run, cell.provision.snapshots, cell.level_divisor))
        for cell in cells
        if counts(cell) and cell.outcome == state and (taken := finite(value(cell))) is not None
    ]


def _gravity(outcome: str) -> int:
    order = ("running", Outcome.ABORTED, Outcome.FAILED)
    return order.index(outcome) if outcome in order else -1


def over_tiles(workload: str, metric: str = RUN_TIME, part: Statistic = "mean") -> Value:
    """A statistic of a workload's metric over the tiles of a cell."""

    def value(cell: CellDocument) -> float | None:
        found = (o for o in cell.over_tiles if o.workload == workload and o.metric == metric)
        return next((getattr(over, part) for over in found), None)

    return value


def of_tile(workload: str, metric: str, tile: int) -> Value:
    """A workload's metric in one tile of a cell; the mean where the tile has several readings of it."""

    def value(cell: CellDocument) -> float | None:
        found = [
            taken.value
            for taken in cell.measurements
            if (taken.workload, taken.metric, taken.tile) == (workload, metric, tile) and taken.value is not None
        ]
        return mean(found) if found else None

    return value


def wall_seconds(cell: CellDocument) -> float | None:
    """The total wall clock of a cell."""
    return cell.wall_seconds


def host_mean(name: str) -> Value:
    """A host figure's mean, from a cell's document; None where the cell has none."""

    def value(cell: CellDocument) -> float | None:
        aggregate = cell.host.get(name)
        return aggregate.mean if aggregate else None

    return value


def workloads_of(cells: Sequence[CellDocument]) -> list[str]:
    """The workloads of `cells`, in the order in which their tiles' first ones are met."""
    names: dict[str, None] = {}
    for cell in cells:
        names.update((workload.workload, None) for workload in cell.workloads)
        names.update((taken.workload, None) for taken in cell.measurements)
    return list(names)
