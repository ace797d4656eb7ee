"""Changes that a viewer asked for and that the run has not reported yet."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from vmlab.model.cell_event import SWITCHED
from vmlab.model.errors import VmlabError
from vmlab.model.event import CellsReplanned, Event

if TYPE_CHECKING:
    from vmlab.model.run import AxisValue
    from vmlab.tui.commands import RunCommands

Change = Mapping[str, Any]
"""What a run is asked for, as fields of `ChangeComing` or of `ChangeRunning`."""
EVERY_CELL = 0
"""In place of a cell's number: all that are to come."""


class AskedChanges:
    """Changes in the order of the keys, each from what the one before asks for: the run needs a moment to answer.

    These are of the cells to come, or with `now` of the guests that run. A run reports each change that it makes with
    one event. Until it has reported as many as were asked for, keys go on from what was asked; after that, from what
    the run reports.
    """

    def __init__(self, *, now: bool = False) -> None:
        self._now = now
        self._reports = SWITCHED if now else (CellsReplanned,)
        self._changes: deque[Change] = deque()
        self._values: dict[tuple[int, str], AxisValue] = {}
        self._untold = 0
        self._turn = threading.Lock()

    def add(self, change: Change) -> None:
        """A key was pressed: the next change to ask for. A cell that is skipped, or as planned, has no values of its
        own any more.
        """
        cell = change.get("cell", EVERY_CELL)
        self._untold += 1
        if change.keys() & {"skip", "as_planned"}:
            self._values = {key: value for key, value in self._values.items() if cell not in (key[0], EVERY_CELL)}
        else:
            self._values |= {(cell, axis): value for axis, value in change.items() if axis != "cell"}
        self._changes.append(change)

    def value(self, axis: str, cell: int = EVERY_CELL) -> AxisValue | None:
        """The value that was asked for last and that the run has not told; None where there is none."""
        return self._values.get((cell, axis))

    def make_next(self, run: RunCommands) -> str:
        """Ask `run` for the oldest change; waits for its answer, and for those of earlier ones: call from a thread.

        Raises what the change raises; later ones went on from it, and are not asked for. Empty where that is so.
        """
        with self._turn:
            if not self._changes:
                return ""
            change = dict(self._changes.popleft())
            try:
                return run.change_now(change) if self._now else run.change_coming(change)
            except VmlabError:
                self._changes.clear()
                raise

    def forget(self) -> None:
        """A change was refused: what is to come is as the run tells it."""
        self._values, self._untold = {}, 0

    def see(self, events: Iterable[Event]) -> None:
        """The run reports what it changed."""
        told = sum(isinstance(event, self._reports) for event in events)
        self._untold = max(0, self._untold - told)
        if told and not self._untold:
            self._values = {}
