"""The execute phase of one cell: its clients from the common start until the last of them has ended."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator, Sequence

from vmlab.lab.cell_events import CellEvents
from vmlab.lab.contention import Contention
from vmlab.lab.disturbance import Disturbance
from vmlab.lab.guest_set import GuestSet
from vmlab.lab.live_cache import LiveCache
from vmlab.lab.loop import Loop
from vmlab.lab.start import StartSkew, start_together
from vmlab.lab.surroundings import CellSurroundings
from vmlab.lab.validity import broken_rules
from vmlab.lab.workload_instance import WorkloadInstance
from vmlab.model.concurrency import shielded
from vmlab.model.results import CacheProof, Measurement
from vmlab.model.run import Outcome, Part, Phase
from vmlab.plan.terms import CellPlan
from vmlab.telemetry.host_counters import Between, HostCounters


class Execution:
    """Starts the clients together, follows them, and judges how they ran.

    `skew` and `wall_seconds` are None until all clients have started and ended. Viewers may switch the cache mode while
    they work.
    """

    def __init__(
        self,
        plan: CellPlan,
        around: CellSurroundings,
        events: CellEvents,
        guests: GuestSet,
        live_cache: LiveCache,
        loop: Loop,
    ) -> None:
        self.skew: StartSkew | None = None
        self.wall_seconds: float | None = None
        self._plan = plan
        self._around = around
        self._events = events
        self._guests = guests
        self._live_cache = live_cache
        self._loop = loop
        self._contention: Contention | None = None
        self._executed = (math.nan, math.nan)
        self._stood: dict[str, float] = {}
        self._between = Between()

    async def run(self, instances: Sequence[WorkloadInstance]) -> None:
        """Start all of `instances` together and follow each to its end.

        In a loop, the instance of a workload's next round takes its place in `instances`.
        """
        first = tuple(instances)
        # A short client may have ended before this process hears of the common start.
        self._loop.begin()
        stood_before = await self._standstill()
        counters = await self._host_counters()
        with self._events.step(Part.START, "announce the start"):
            start = await start_together(instances, self._around.timing)
        self._contention = Contention.of(self._plan, self._around.hypervisor)
        following = [asyncio.ensure_future(self._loop.follow(instance, start.lead)) for instance in first]
        try:
            await start.moment()
            began = time.monotonic()
            with self._events.phase(Phase.EXECUTE):
                self._live_cache.begin()
                await self._contention.measure(following)
                await asyncio.gather(*following)
                await self._live_cache.end()
            self._executed = (began, time.monotonic())
            self._stood = {name: all - stood_before[name] for name, all in (await self._standstill()).items()}
            self._between = counters.until(await self._host_counters())
        finally:
            await shielded(self._live_cache.end())
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
        for instance in instances:
            # One after another, so that they do not delay each other.
            await instance.compare_clocks()
        self.skew = start.skew(first)
        ends = [s.started.host_wall + s.finished.seconds for s in instances if s.started and s.finished]
        if ends and len(ends) == len(instances):
            self.wall_seconds = max(ends) - start.host_wall

    async def _standstill(self) -> dict[str, float]:
        return await self._around.hypervisor.standstill(self._guests.names)

    async def _host_counters(self) -> HostCounters:
        return await asyncio.to_thread(self._around.host_counters)

    def contention(self, instances: Sequence[WorkloadInstance]) -> Iterator[Measurement]:
        """How guests with CPU shares shared the CPU; nothing where the clients never ran."""
        return iter(()) if self._contention is None else self._contention.measurements(instances)

    def judge(self, instances: Sequence[WorkloadInstance], proofs: Sequence[CacheProof]) -> None:
        """Hold the limits against what was measured of clients and host.

        Called late, because the tick in which the workloads ended comes up to a second after their end.
        """
        scenario = self._around.plan.scenario
        for reason in broken_rules(scenario.limits, instances, proofs, self.skew, self._stood):
            self._events.end_as(Outcome.INVALID, reason)
        disturbance = Disturbance.of(self._around.host_mean, self._executed, self._between)
        for finding in disturbance.findings(scenario.limits, scenario.allow, self.wall_seconds):
            if finding.breaks:
                self._events.end_as(Outcome.INVALID, finding.text)
            else:
                self._events.doubt(finding.text)
