"""What was asked for of the cells to come and is not told by the run yet."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vmlab.model.run import AxisValue
    from vmlab.tui.commands import RunCommands

Change = Callable[["RunCommands"], str]
"""Asks a run for something, and returns what came of it as a sentence."""


class AskedChanges:
    """Changes in the order of the keys, each from what the one before asks for: the run needs a moment to answer."""

    def __init__(self) -> None:
        self._changes: deque[Change] = deque()
        self._values: dict[str, AxisValue] = {}
        self._turn = threading.Lock()

    def add(self, change: Change, values: Mapping[str, AxisValue]) -> None:
        """One more change, after which the next cell has these `values` of its axes."""
        self._changes.append(change)
        self._values.update(values)

    def make_next(self, run: RunCommands) -> str:
        """Ask `run` for the oldest change; waits for its answer, and for those of earlier ones: call from a thread."""
        with self._turn:
            return self._changes.popleft()(run)

    @property
    def is_open(self) -> bool:
        """Whether the run has not told everything yet."""
        return bool(self._values)

    def value(self, axis: str) -> AxisValue | None:
        """The value that was asked for last and that the run has not told; None where there is none."""
        return self._values.get(axis)

    def told(self, axes: Mapping[str, AxisValue]) -> None:
        """The run tells the next cell's `axes`."""
        self._values = {axis: value for axis, value in self._values.items() if axes.get(axis) != value}

    def forget(self) -> None:
        """Something was refused, or put back: what is to come is as the run tells it."""
        self._values = {}
