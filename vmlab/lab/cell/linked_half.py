"""A cell whose guests are on two hosts, as one of these runs it: the stages at which the two wait for each other.

One host drives the workloads in the guests of both, over the link; the other one has its guests ready, keeps them, and
judges its own part. Each stage is said by one of them, and waited for by the other.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

from vmlab.lab.cell.cell_events import Emit
from vmlab.lab.cell.hosts_start import CalledOff
from vmlab.model.errors import CommandFailed, GuestError
from vmlab.model.event import HalfReached, LinkMeasured
from vmlab.model.run import HalfStage
from vmlab.plan.terms import Half

Patiently = Callable[[Awaitable[bool]], Awaitable[bool | None]]
_ROUNDS = 10
_ROUND_SECONDS = 10.0
_CLOSED_PORT = 9
"""Nobody listens there in any guest: its kernel answers at once, and no program takes part."""


class LinkedHalf(CalledOff):
    """Of the cell with the number `cell`. Both hosts make the keys of its guests of the same `secret`."""

    def __init__(self, cell: int, half: Half, secret: bytes, emit: Emit, patiently: Patiently) -> None:
        super().__init__(cell)
        self.half: Half = half
        self.drives = half == "here"
        """Whether this host drives the workloads."""
        self.secret = secret
        self._emit = emit
        self._patiently = patiently
        self._reached: dict[HalfStage, asyncio.Future[bool]] = {}

    def reach(self, stage: HalfStage) -> None:
        """Say that this host has come to a stage."""
        self._emit(HalfReached(cell=self.cell, stage=stage))

    def proceed(self, cell: int, stage: HalfStage) -> None:
        """The other host has come to a stage. Raises UsageError for another cell."""
        self._demand(cell)
        if not (reached := self._of(stage)).done():
            reached.set_result(True)

    async def until(self, stage: HalfStage) -> None:
        """Wait until the other host has come to a stage. Raises CommandFailed where nobody says so any more."""
        if await self._patiently(asyncio.shield(self._of(stage))) is None:
            raise CommandFailed(f"nobody said that the other host is {stage}")

    def _of(self, stage: HalfStage) -> asyncio.Future[bool]:
        return self._reached.setdefault(stage, asyncio.get_running_loop().create_future())

    async def measure(self, address: str) -> None:
        """Measure how long a round over the link takes, to the guest at `address`. Raises GuestError."""
        # The first one finds the guest's card.
        rounds = [1e3 * await _round(address) for _ in range(_ROUNDS + 1)][1:]
        least, median, most = min(rounds), statistics.median(rounds), max(rounds)
        self._emit(LinkMeasured(cell=self.cell, rounds=_ROUNDS, least_ms=least, median_ms=median, most_ms=most))


async def _round(address: str) -> float:
    """Seconds until the guest's kernel has refused a connection."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(_ROUND_SECONDS):
            _, writer = await asyncio.open_connection(address, _CLOSED_PORT)
        writer.close()
    except ConnectionRefusedError:
        pass
    except (OSError, TimeoutError) as error:
        raise GuestError(f"no answer over the link from {address}: {error or 'nothing came'}") from error
    return time.monotonic() - began
