"""The yardstick around the cells of a run: recorded, and compared with the others."""

from __future__ import annotations

from statistics import median

from vmlab.analysis.notices import MOVED_FROM_OTHERS, MOVED_OVER_CELL
from vmlab.analysis.record.yardstick_spread import moved_percent
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.cell.yardstick import Measure, WrongResult, YardstickError
from vmlab.model.errors import in_one_line
from vmlab.model.run import Outcome

MOVED_PERCENT = 10.0
"""A yardstick that moves by more than this gives a notice."""


class Yardsticks:
    """The yardstick over all cells of a run."""

    def __init__(self, measure: Measure, deadline: float) -> None:
        self._measure = measure
        self._deadline = deadline
        self._of_cells: list[float] = []

    async def take(self, when: str, events: CellEvents) -> float | None:
        """Measure ``before`` or ``after`` a cell and record it; its seconds, None where it was not measured."""
        try:
            taken = await self._measure(self._deadline)
        except WrongResult as error:
            events.end_as(Outcome.INVALID, f"the yardstick {when} the cell: {error}")
        except (YardstickError, OSError) as error:
            events.doubt(f"the yardstick {when} the cell was not measured: {in_one_line(error)}")
        else:
            events.yardstick(when, taken)
            return taken.seconds
        return None

    def compare(self, before: float | None, after: float | None, events: CellEvents) -> None:
        """A notice where the two readings of a cell are apart, or both from the other cells of the run."""
        if before is None or after is None:
            return
        if (moved := moved_percent(before, after) or 0.0) > MOVED_PERCENT:
            events.doubt(MOVED_OVER_CELL.write(before=before, after=after, percent=moved, limit=MOVED_PERCENT))
        both = (before + after) / 2
        if self._of_cells:
            usual = median(self._of_cells)
            if (moved := moved_percent(usual, both) or 0.0) > MOVED_PERCENT:
                events.doubt(MOVED_FROM_OTHERS.write(around=both, usual=usual, percent=moved, limit=MOVED_PERCENT))
        self._of_cells.append(both)
