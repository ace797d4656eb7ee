"""How the planned cells of a run ended, and which of them are measured again.

A cell that is invalid for causes outside of it is measured again, up to a number of times: first when its block has
ended, and after that at the end of the run. It is chosen by its validity, which no figure has a part in; what that
means for results is in docs/explanation/statistics.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.lab.process.run_ending import run_outcome
from vmlab.model.run import WARM_UP, Outcome
from vmlab.plan.terms import CellPlan, Place, Plan, place_of


class Further(NamedTuple):
    """A further attempt at a cell, still without a number: at the end of its block, or of the run."""

    cell: CellPlan
    at_end: bool


class Attempts:
    """The newest attempt at each planned cell."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._granted = 0
        self._asked: frozenset[int] = frozenset()
        self._ended: dict[Place, tuple[CellPlan, Outcome]] = {}

    def take(self, known: RunTimeline) -> list[Further]:
        """Take what is recorded; the attempts that it calls for and that have not been made."""
        cells = {place_of(cell.axes, cell.repeat): cell for cell in self._plan.cells}
        self._asked = frozenset(known.asked_again)
        due: dict[int, Further] = {}
        for number, one in known.cells.items():
            planned = cells.get(place_of(one.told.axes, one.told.repeat))
            if planned is None or one.ended is None:
                continue
            cell = replace(planned, index=number, again_of=known.again.get(number, 0))
            due.pop(cell.again_of, None)
            if (further := self.ended(cell, Outcome(one.told.outcome), disturbed=one.disturbed)) is not None:
                due[number] = further
        return list(due.values())

    def begun(self, planned: Iterable[CellPlan]) -> Iterator[CellPlan]:
        """Those of the planned cells of which an attempt has ended."""
        return (cell for cell in planned if place_of(cell.axes, cell.repeat) in self._ended)

    def ended(self, cell: CellPlan, outcome: Outcome, *, disturbed: bool) -> Further | None:
        """Take the end of an attempt; the next attempt at the same cell, None where there is none."""
        self._ended[place_of(cell.axes, cell.repeat)] = cell, outcome
        wanted = disturbed or (outcome is Outcome.FAILED and self._plan.again_failed)
        allowed = cell.repeat != WARM_UP and self._granted < self._plan.again
        if cell.index not in self._asked:
            if not (wanted and allowed):
                return None
            self._granted += 1
        # A run that looks at its figures after each block has all attempts of a block before that.
        at_end = bool(cell.again_of) and self._plan.scenario.until is None
        return Further(replace(cell, again_of=cell.index), at_end)

    def verdict(self) -> tuple[Outcome, str]:
        """How the run ends by its cells, and the reason."""
        outcome, reason = run_outcome(self._ended.values())
        made = f" after {self._granted} further attempt{'s' if self._granted > 1 else ''}"
        return outcome, reason + made if reason and self._granted else reason
