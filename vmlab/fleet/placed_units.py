"""What is placed on hosts, and what has become of it: cells that belong to one host each, or blocks of cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.model.axes import without
from vmlab.model.grouping import grouped
from vmlab.model.names import HOST_PLACE
from vmlab.model.run import WARM_UP, Outcome
from vmlab.plan.terms import CellPlan

MOST_ATTEMPTS = 2
"""How often a cell is begun: once, and once more after it broke off."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Cells that one host runs, in order. Where `host` is given, no other one may."""

    number: int
    cells: tuple[CellPlan, ...]
    host: str | None = None


def units_of(cells: Sequence[CellPlan], *, spread: bool) -> tuple[Unit, ...]:
    """Each cell for the host that its axes name, or whole blocks for any host. A warm-up belongs to the first block."""
    if not spread:
        return tuple(Unit(number, (cell,), str(cell.axes[HOST_PLACE])) for number, cell in enumerate(cells, start=1))
    blocks = grouped((max(cell.repeat, WARM_UP + 1), cell) for cell in cells)
    return tuple(Unit(number, tuple(block)) for number, block in enumerate(blocks.values(), start=1))


def groups_of(cells: Sequence[CellPlan]) -> tuple[Unit, ...]:
    """Cells that differ in their host alone, which hosts run together, in the order of the first of each."""
    groups = grouped(((cell.repeat, *sorted(without(cell.axes, HOST_PLACE).items())), cell) for cell in cells)
    return tuple(Unit(number, tuple(group)) for number, group in enumerate(groups.values(), start=1))


class CellBook:
    """Which cells have ended, on which host, how, and how often each was begun."""

    def __init__(self) -> None:
        self.ended: dict[int, str] = {}
        """The host of each cell that has ended; empty where it ended without one."""
        self.outcomes: dict[int, Outcome] = {}
        self.placed: dict[int, str] = {}
        """The host of each cell that was begun and has not ended."""
        self._begun: Counter[int] = Counter()

    @classmethod
    def of(cls, timeline: RunTimeline, withdrawn: Iterable[int]) -> CellBook:
        """As a record has it; `withdrawn` has the number of each cell as often as it broke off."""
        book = cls()
        book._begun.update(withdrawn)
        for number, host in timeline.placed.items():
            cell = timeline.cells.get(number)
            if cell is not None and cell.ended is not None:
                book.end(number, host, Outcome(cell.told.outcome))
            elif cell is not None or number not in book._begun:
                book.place(number, host)
        return book

    def place(self, cell: int, host: str) -> None:
        """Note that a host begins a cell."""
        self.placed[cell] = host
        self._begun[cell] += 1

    def end(self, cell: int, host: str, outcome: Outcome) -> None:
        """Note that a cell has ended."""
        self.placed.pop(cell, None)
        self.ended[cell], self.outcomes[cell] = host, outcome

    def withdraw(self, cell: int) -> None:
        """Note that a cell, ended or not, is to be begun anew."""
        self.placed.pop(cell, None)
        self.ended.pop(cell, None)
        self.outcomes.pop(cell, None)

    def may_begin(self, cell: int) -> bool:
        """Whether a cell was not begun too often yet."""
        return self._begun[cell] < MOST_ATTEMPTS

    def apart(self, unit: Unit, host: str) -> list[int]:
        """The cells of a unit that another host than `host` has ended: a block is not split."""
        return [cell.index for cell in unit.cells if self.ended.get(cell.index, host) not in ("", host)]
