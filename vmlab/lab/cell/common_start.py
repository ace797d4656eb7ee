"""The start line of a cell: clocks are measured, one moment is broadcast ahead, the skew is reported with its
uncertainty.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from vmlab.lab.cell.workload_instance import WorkloadInstance
from vmlab.lab.provision.timing import Timing
from vmlab.model.concurrency import run_all


@dataclass(frozen=True, slots=True)
class StartSkew:
    """Latest true start less the earliest, in seconds of host time; both ends are uncertain by their clocks."""

    seconds: float
    uncertainty: float


@dataclass(frozen=True, slots=True)
class CommonStart:
    """The moment that was broadcast, by the host's two clocks, and how far ahead of it the broadcast began."""

    host_wall: float
    host_mono: float
    lead: float

    async def moment(self) -> None:
        """Return at the common start."""
        await asyncio.sleep(max(0.0, self.host_mono - time.monotonic()))

    def skew(self, instances: Sequence[WorkloadInstance]) -> StartSkew | None:
        """The skew over all clients; None while any of them has not started."""
        starts = [instance.started for instance in instances]
        known = sorted((start for start in starts if start is not None), key=lambda start: start.host_wall)
        if not known or len(known) < len(instances):
            return None
        first, last = known[0], known[-1]
        if first is last:
            return StartSkew(0.0, 0.0)
        return StartSkew(last.host_wall - first.host_wall, first.uncertainty + last.uncertainty)


async def start_together(
    instances: Sequence[WorkloadInstance], timing: Timing, moment: float | None = None
) -> CommonStart:
    """Measure every client's clock, one after another so that they do not delay each other, then broadcast.

    The start is at `moment` of the host's monotonic clock, where one is given.
    """
    for instance in instances:
        await instance.measure_clock()
    lead = timing.lead_of(len(instances)) if moment is None else moment - time.monotonic()
    start = CommonStart(host_wall=time.time() + lead, host_mono=time.monotonic() + lead, lead=lead)
    await run_all(instance.start_at(start.host_wall) for instance in instances)
    return start
