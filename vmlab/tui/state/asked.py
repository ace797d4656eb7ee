"""Changes that a viewer asked for and that the run has not reported yet."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from vmlab.model.cell_event import CacheSwitched, KsmSwitched
from vmlab.model.errors import VmlabError
from vmlab.model.event import CellsReplanned, Event

if TYPE_CHECKING:
    from vmlab.model.run import AxisValue
    from vmlab.tui.commands import RunCommands

Change = Callable[["RunCommands"], str]
"""Asks a run for something, and returns what came of it as a sentence."""
EVERY_CELL = 0
"""In place of a cell's number: all that are to come."""
OF_COMING_CELLS = (CellsReplanned,)
OF_RUNNING_GUESTS = (CacheSwitched, KsmSwitched)
"""The events by which a run reports such changes, one event for each."""


class AskedChanges:
    """Changes in the order of the keys, each from what the one before asks for: the run needs a moment to answer.

    A run reports each change that it makes with one event, of the types `reports`. Until it has reported as many as
    were asked for, keys go on from what was asked; after that, from what the run reports.
    """

    def __init__(self, reports: tuple[type[Event], ...] = OF_COMING_CELLS) -> None:
        self._reports = reports
        self._changes: deque[Change] = deque()
        self._values: dict[tuple[int, str], AxisValue] = {}
        self._untold = 0
        self._turn = threading.Lock()

    def note(self, values: Mapping[str, AxisValue], cell: int = EVERY_CELL) -> None:
        """A key was pressed: this cell, or `EVERY_CELL`, is to have these values of its axes."""
        self._untold += 1
        self._values.update({(cell, axis): value for axis, value in values.items()})

    def drop(self, cell: int = EVERY_CELL) -> None:
        """A key was pressed: this cell, or `EVERY_CELL`, is to be as it was planned, or left out."""
        self._untold += 1
        self._values = {key: value for key, value in self._values.items() if cell not in (key[0], EVERY_CELL)}

    def value(self, axis: str, cell: int = EVERY_CELL) -> AxisValue | None:
        """The value that was asked for last and that the run has not told; None where there is none."""
        return self._values.get((cell, axis))

    def add(self, change: Change) -> None:
        """The next change to ask for, of a key that was noted."""
        self._changes.append(change)

    def make_next(self, run: RunCommands) -> str:
        """Ask `run` for the oldest change; waits for its answer, and for those of earlier ones: call from a thread.

        Raises what the change raises; later ones went on from it, and are not asked for. Empty where that is so.
        """
        with self._turn:
            if not self._changes:
                return ""
            change = self._changes.popleft()
            try:
                return change(run)
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
