"""The common start of a cell that runs on several hosts at once: it waits here for the moment, or is called off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

from vmlab.lab.cell.cell_events import Emit
from vmlab.model.errors import CommandFailed, UsageError
from vmlab.model.event import StartAwaited

Patiently = Callable[[Awaitable[float]], Awaitable[float | None]]
"""Waits as long as whoever gives the moment is heard of; None where nobody is any more."""


class HostsStart:
    """Of the cell with the number `cell`, which may be called off as it failed on another host."""

    def __init__(self, cell: int, emit: Emit, patiently: Patiently) -> None:
        self.cell = cell
        self._emit = emit
        self._patiently = patiently
        self._moment: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._called_off: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def call_off(self, cell: int, reason: str) -> None:
        """End the cell as failed, wherever it is. Raises UsageError for another cell."""
        self._demand(cell)
        if not self._called_off.done():
            self._called_off.set_result(reason)

    def _demand(self, cell: int) -> None:
        if cell != self.cell:
            raise UsageError(f"cell {cell} does not run; cell {self.cell} does")

    async def until_called_off(self) -> NoReturn:
        """Raises CommandFailed with the reason, once there is one."""
        raise CommandFailed(await self._called_off)

    async def moment(self, lead: float) -> float:
        """Say that all is ready, and wait for the moment, by this host's monotonic clock; `lead` is what it takes from
        then to the start, in seconds. Raises CommandFailed where nobody gives one.
        """
        self._emit(StartAwaited(cell=self.cell, lead_seconds=lead))
        moment = await self._patiently(self._moment)
        if moment is None:
            raise CommandFailed("nobody gave the moment of the common start")
        return moment

    def start_at(self, cell: int, mono: float) -> None:
        """Take the moment; a second one changes nothing. Raises UsageError for another cell."""
        self._demand(cell)
        if not self._moment.done():
            self._moment.set_result(mono)
