"""The cells of a run that are still to come, which viewers may change while one runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from vmlab.lab.folder import RunFolder
from vmlab.lab.replan import replanned
from vmlab.model.axes import axes_words
from vmlab.model.errors import UsageError
from vmlab.model.event import CellsReplanned, CommandReceived, Event
from vmlab.model.run import AxisValue
from vmlab.plan.terms import CellPlan

_CHANGEABLE = ("cache", "tiles")


class ComingCells:
    """The cells in order, until they are taken or changed; changes are emitted as events."""

    def __init__(self, folder: RunFolder, cells: Iterable[CellPlan], emit: Callable[[Event], object]) -> None:
        self._folder = folder
        self._cells = list(cells)
        self._planned = tuple(self._cells)
        self._begun: list[tuple[dict[str, AxisValue], int]] = []
        self._emit = emit
        self._taken = 0

    def take(self) -> CellPlan | None:
        """Remove and return the next cell; None after the last."""
        if not self._cells:
            return None
        cell = self._cells.pop(0)
        self._taken = cell.index
        self._begun.append((dict(cell.axes), cell.repeat))
        return cell

    def has(self, repeat: int) -> bool:
        """Whether a cell of this repeat is still to come."""
        return any(cell.repeat == repeat for cell in self._cells)

    def change(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Carry out the command ``set`` with ``cache`` or ``tiles`` in `arguments`; the answer has the new cells.

        With ``as_planned`` they are again what the run was started with, without those that have begun.

        Raises UsageError and RefusedError, and then changes nothing and emits no event; see `replanned`.
        """
        change: dict[str, Any] = {name: arguments[name] for name in _CHANGEABLE if name in arguments}
        if arguments.get("as_planned") and not change:
            self._cells, words = self._as_planned(), "as planned"
        else:
            self._cells, words = replanned(self._folder, self._cells, change), axes_words(change)
        self._emit(CommandReceived(command=f"set {words}", origin=str(arguments.get("origin", "vmlab"))))
        self._emit(
            CellsReplanned(
                cells=self._taken + len(self._cells),
                next_axes=dict(self._cells[0].axes),
                expected_seconds=sum(cell.seconds for cell in self._cells),
            )
        )
        return {"cells": [{"index": cell.index, "axes": cell.axes, "repeat": cell.repeat} for cell in self._cells]}

    def _as_planned(self) -> list[CellPlan]:
        """The planned cells that have not begun, numbered after those that have. Raises UsageError for none."""
        left = [cell for cell in self._planned if (dict(cell.axes), cell.repeat) not in self._begun]
        if not left:
            raise UsageError("all planned cells have begun; none is to come")
        return [replace(cell, index=self._taken + place) for place, cell in enumerate(left, start=1)]
