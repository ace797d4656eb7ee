"""What viewers may switch under the guests of a cell while its workloads run."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, Generic, TypeVar

from vmlab.lab.cell.cell_events import CellEvents
from vmlab.model.errors import (
    CommandFailed,
    DeadlineExceeded,
    GuestError,
    HypervisorError,
    UsageError,
    in_one_line,
)
from vmlab.model.event import Switched
from vmlab.plan.terms import CellPlan

State = TypeVar("State", bound=str)
EndSpan = Callable[[], Awaitable[None]]
"""Reads what is to be known of the time before a switch."""
LONGEST_PAUSE = 0.3
"""Seconds for which a guest may stand still at a switch; a longer pause is reported."""


async def _nothing() -> None:
    """There is nothing to read."""


class LiveSwitch(ABC, Generic[State]):
    """Switches one thing, from `begin` to `end`. A cell that was switched is invalid."""

    what: ClassVar[str]
    """The scenario's word for it."""

    def __init__(self, plan: CellPlan, events: CellEvents) -> None:
        self._plan = plan
        self._events = events
        self._open = False
        self._task: asyncio.Task[Switched] | None = None
        self._can_be_called_off = False
        self.was_asked = False
        """Whether somebody had it switched."""
        self._end_span: EndSpan = _nothing

    @property
    def busy(self) -> bool:
        """Whether it is being switched."""
        return self._task is not None and not self._task.done()

    def begin(self, end_span: EndSpan = _nothing) -> None:
        """The workloads run now; `end_span` is called at each switch."""
        self._open, self._end_span = True, end_span

    async def end(self) -> None:
        """They do not any more: a switch that has changed nothing yet is called off, any other is waited for."""
        self._open = False
        if self._task is None:
            return
        if self._can_be_called_off:
            self._task.cancel()
        await asyncio.wait([self._task])

    async def switch(self, state: str, origin: str) -> Switched:
        """Switch to `state`, as `origin` asked; returns the event that says what came of it.

        Raises UsageError for what cannot be asked for now, and RefusedError for what cannot be had on this host;
        CommandFailed when it did not work, and nothing is changed then unless the message says so.
        """
        target = self._checked(state)
        if not self._open:
            raise UsageError(f"the workloads of {self._cell} do not run now; it can be switched while they do")
        if self.busy:
            raise UsageError(f"{self._cell} is being switched already")
        self.was_asked = True
        self._events.asked(f"set {self.what} {target} now", origin)
        self._task = asyncio.ensure_future(self._switched(target, origin))
        try:
            await asyncio.wait([self._task])
            if self._task.cancelled():
                raise CommandFailed(f"the workloads of {self._cell} ended before; nothing was changed")
            return self._task.result()
        except (HypervisorError, GuestError, DeadlineExceeded, OSError) as error:
            raise CommandFailed(f"{self._cell}: {in_one_line(error)}") from error

    def _doubt_pauses(self, pauses: Mapping[str, float]) -> None:
        """One line on the guests that may have stood still, with its seconds for each, where any did for long."""
        long = {guest: seconds for guest, seconds in pauses.items() if seconds > LONGEST_PAUSE}
        if long:
            told = ", ".join(f"{guest} for {seconds * 1e3:.0f} ms" for guest, seconds in long.items())
            self._events.doubt(f"guests that may have stood still at the switch: {told}")

    @property
    def _cell(self) -> str:
        return f"cell {self._plan.index}"

    @abstractmethod
    def _checked(self, state: str) -> State:
        """The state, if it can be switched to now. Raises UsageError and RefusedError."""

    @abstractmethod
    async def _switched(self, state: State, origin: str) -> Switched:
        """Switch to it, call `_end_span`, and emit the event that is returned."""
