"""One figure of a table: from the cells that share its place, over their repeats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from vmlab.analysis.shape import CellDocument
from vmlab.analysis.statistics import Spread, spread
from vmlab.model.run import Outcome

RUN_TIME = "run_time"
"""The metric that every workload has, in seconds."""
MISSING = "missing"
"""The state of a figure that no cell was there for, or that its cells did not measure."""

Value = Callable[[CellDocument], float | None]
"""What a figure takes from each of its cells; None where the cell did not measure it."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure over repeats, and how far it is to be believed.

    `state` is ``passed`` when at least one repeat passed, and then only those that passed are counted; ``invalid``
    when there are only invalid ones, which are counted then; else ``failed``, ``aborted``, ``running`` or
    ``missing``, and there is no `spread`. `left_out` is how many cells are not counted.
    """

    state: str
    spread: Spread | None = None
    left_out: int = 0

    @property
    def comparable(self) -> Spread | None:
        """The figure where it may stand against another one; None unless it passed."""
        return self.spread if self.state == Outcome.PASSED else None


def figure_of(cells: Sequence[CellDocument], value: Value) -> Figure:
    """The figure that `value` takes from `cells`, which are repeats of one another."""
    for state in (Outcome.PASSED, Outcome.INVALID):
        chosen = [cell for cell in cells if cell["outcome"] == state]
        values = [taken for cell in chosen if (taken := value(cell)) is not None]
        if values:
            return Figure(str(state), spread(values), len(cells) - len(values))
    outcomes = {cell["outcome"] for cell in cells} - {Outcome.PASSED, Outcome.INVALID}
    return Figure(max(outcomes, default=MISSING, key=_gravity), None, len(cells))


def _gravity(outcome: str) -> int:
    order = ("running", Outcome.ABORTED, Outcome.FAILED)
    return order.index(outcome) if outcome in order else -1


def over_tiles(workload: str, metric: str = RUN_TIME, part: Literal["mean", "worst"] = "mean") -> Value:
    """The mean, or the worst, of a workload's metric over the tiles of a cell."""

    def value(cell: CellDocument) -> float | None:
        found = (o for o in cell["over_tiles"] if o["workload"] == workload and o["metric"] == metric)
        return next((over[part] for over in found), None)

    return value


def wall_seconds(cell: CellDocument) -> float | None:
    """The total wall clock of a cell."""
    return cell["wall_seconds"]


def workloads_of(cells: Sequence[CellDocument]) -> list[str]:
    """The workloads of `cells`, in the order in which their tiles' first ones are met."""
    names: dict[str, None] = {}
    for cell in cells:
        names.update((workload["workload"], None) for workload in cell["workloads"])
        names.update((taken["workload"], None) for taken in cell["measurements"])
    return list(names)


def difference_percent(baseline: Figure, candidate: Figure) -> float | None:
    """How much larger the candidate is than the baseline, in percent of it; None unless both sides passed."""
    before, after = baseline.comparable, candidate.comparable
    if before is None or after is None or before.mean == 0:
        return None
    return (after.mean - before.mean) / before.mean * 100


def ratio(baseline: Figure, candidate: Figure) -> float | None:
    """Time of the baseline over time of the candidate: 1 is as fast, less is slower. None unless both passed."""
    before, after = baseline.comparable, candidate.comparable
    return before.mean / after.mean if before is not None and after is not None and after.mean != 0 else None
