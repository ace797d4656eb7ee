"""How far a guest's wall clock is from the host's, read through its agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from vmlab.guests.agent import AgentCall

CLOSE_ENOUGH = 30_000_000
"""Nanoseconds by which a guest's clock may be off when its work begins."""

_READINGS = 6
_QUICK = 10_000_000
_ANSWER = 30.0
_TRIES = 8
_PAUSE = 0.1


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The guest's clock minus the host's, in nanoseconds, give or take `uncertainty`: half of the round trip."""

    offset: int
    uncertainty: int

    @property
    def close(self) -> bool:
        """Whether the clock is certainly within CLOSE_ENOUGH."""
        return abs(self.offset) + self.uncertainty <= CLOSE_ENOUGH

    @property
    def certainly_off(self) -> bool:
        """Whether the clock is certainly not within CLOSE_ENOUGH."""
        return abs(self.offset) - self.uncertainty > CLOSE_ENOUGH


async def read_clock(call: AgentCall) -> ClockReading:
    """The most certain of a few readings. Raises HypervisorError where the agent does not answer.

    The guest read its clock at some moment between question and answer, as in Cristian's algorithm: the middle is
    wrong by half of the time between them at most.
    """
    best: ClockReading | None = None
    for _ in range(_READINGS):
        asked = time.time_ns()
        guest = int(await call("guest-get-time", None, deadline=_ANSWER))
        answered = time.time_ns()
        reading = ClockReading(guest - (asked + answered) // 2, (answered - asked + 1) // 2)
        if best is None or reading.uncertainty < best.uncertainty:
            best = reading
        if best.uncertainty <= _QUICK:
            break
    assert best is not None
    return best


async def settle_clock(call: AgentCall, step: Callable[[int], Awaitable[None]]) -> ClockReading:
    """The last reading, after `step` was given the nanoseconds to step by, in a few tries at most.

    A step lands within the uncertainty of the reading before it, so a second one is needed on a busy host only.
    """
    reading = await read_clock(call)
    for _ in range(_TRIES):
        if reading.close:
            break
        if reading.certainly_off:
            await step(-reading.offset)
        else:
            await asyncio.sleep(_PAUSE)
        reading = await read_clock(call)
    return reading
