"""The start line of a cell: clocks are measured, one moment is broadcast ahead, the skew is reported with its
uncertainty.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from vmlab.lab.cell.workload_instance import WorkloadInstance
from vmlab.lab.provision.timing import Timing
from vmlab.model.concurrency import run_all
from vmlab.model.errors import CommandFailed, UsageError
from vmlab.model.event import Event, StartAwaited


@dataclass(frozen=True, slots=True)
class StartSkew:
    """Latest true start less the earliest, in seconds of host time; both ends are uncertain by their clocks."""

    seconds: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class CommonStart:
    """The moment that was broadcast, by the host's monotonic clock, and how far ahead of it the broadcast began."""

    host_mono: float
    lead: float

    async def moment(self) -> None:
        """Return at the common start."""
        await asyncio.sleep(max(0.0, self.host_mono - time.monotonic()))

    def skew(self, instances: Sequence[WorkloadInstance]) -> StartSkew | None:
        """The skew over all clients; None while any of them has not started."""
        starts = [instance.started for instance in instances]
        known = sorted((start for start in starts if start is not None), key=lambda start: start.host_mono)
        if not known or len(known) < len(instances):
            return None
        first, last = known[0], known[-1]
        if first is last:
            return StartSkew(0.0, 0.0)
        return StartSkew(last.host_mono - first.host_mono, first.uncertainty + last.uncertainty)


async def start_together(
    instances: Sequence[WorkloadInstance], timing: Timing, moment: float | None = None
) -> CommonStart:
    """Measure every client's clock, one after another so that they do not delay each other, then broadcast.

    The start is at `moment` of the host's monotonic clock, where one is given.
    """
    for instance in instances:
        await instance.measure_clock()
    lead = timing.lead_of(len(instances)) if moment is None else moment - time.monotonic()
    start = CommonStart(host_mono=time.monotonic() + lead, lead=lead)
    await run_all(instance.start_at(start.host_mono) for instance in instances)
    return start


Patiently = Callable[[Awaitable[float]], Awaitable[float | None]]
"""Waits as long as whoever gives the moment is heard of; None where nobody is any more."""


class HostsStart:
    """Of the cell with the number `cell`, which may be called off as it failed on another host."""

    def __init__(self, cell: int, emit: Callable[[Event], object], patiently: Patiently) -> None:
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
