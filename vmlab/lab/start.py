"""The start line of a cell: clocks measured, one moment broadcast ahead, the skew told with its uncertainty."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from vmlab.lab.slot import Slot
from vmlab.model.together import together

_LEAD_SECONDS = 0.3
_LEAD_SECONDS_A_CLIENT = 0.05


@dataclass(frozen=True, slots=True)
class StartSkew:
    """Latest true start less the earliest, in seconds of host time; both ends are uncertain by their clocks."""

    seconds: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class CommonStart:
    """The moment that was broadcast, by the host's wall clock, and how far ahead of it the broadcast began."""

    host_wall: float
    lead: float

    async def moment(self) -> None:
        """Return at the common start."""
        await asyncio.sleep(max(0.0, self.host_wall - time.time()))

    def skew(self, slots: Sequence[Slot]) -> StartSkew | None:
        """The skew over all clients; None while any of them has not started."""
        starts = [slot.started for slot in slots]
        known = sorted((start for start in starts if start is not None), key=lambda start: start.host_wall)
        if not known or len(known) < len(slots):
            return None
        first, last = known[0], known[-1]
        if first is last:
            return StartSkew(0.0, 0.0)
        return StartSkew(last.host_wall - first.host_wall, first.uncertainty + last.uncertainty)


async def start_together(slots: Sequence[Slot]) -> CommonStart:
    """Measure every client's clock, one after another so that they do not delay each other, then broadcast."""
    for slot in slots:
        await slot.measure_clock()
    lead = _LEAD_SECONDS + _LEAD_SECONDS_A_CLIENT * len(slots)
    start = CommonStart(host_wall=time.time() + lead, lead=lead)
    await together(slot.start_at(start.host_wall) for slot in slots)
    return start
