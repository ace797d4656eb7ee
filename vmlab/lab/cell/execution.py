"""The execute phase of one cell: its clients from the common start until the last of them has ended."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vmlab.hypervisor.protocols import Hypervisor
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.cell.common_start import CommonStart, HostsStart, StartSkew, start_together
from vmlab.lab.cell.counter_proofs import LimitCheck, NetworkCheck, fault_of
from vmlab.lab.cell.disturbance import TOLD_SPEED_PERCENT, Disturbance, until_quiet, until_steady
from vmlab.lab.cell.latency_readings import LatencyReadings
from vmlab.lab.cell.live_switch import LiveSwitch
from vmlab.lab.cell.looped_cell import Loop
from vmlab.lab.cell.stops_inside import StopsInside
from vmlab.lab.cell.surroundings import CellSurroundings
from vmlab.lab.cell.undisturbed import Undisturbed
from vmlab.lab.cell.validity import broken_rules, proof_faults
from vmlab.lab.cell.workload_instance import Instances, WorkloadInstance
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.model.cell_event import CountersRead, NeighboursCounted, NetworkProved
from vmlab.model.concurrency import shielded
from vmlab.model.results import CacheProof, Measurement
from vmlab.model.run import Outcome, Part, Phase
from vmlab.plan.terms import CellPlan
from vmlab.telemetry.host_counters import Between, HostCounters
from vmlab.workloads.metrics import SHARES

_READ_AHEAD, _READ_AHEAD_A_GUEST = 0.02, 0.005
"""Seconds before the common start at which counters are read: all clients wait then, and QEMU answers within that."""


@dataclass(eq=False)
class Execution:
    """Starts the clients together, follows them, and judges how they ran.

    `skew` and `wall_seconds` are None until all clients have started and ended. Viewers may switch what `_live`
    has while they work.
    """

    _plan: CellPlan
    _around: CellSurroundings
    _events: CellEvents
    _guests: GuestSet
    _live: Mapping[str, LiveSwitch[Any]]
    loop: Loop
    _hosts_start: HostsStart | None
    skew: StartSkew | None = field(default=None, init=False)
    wall_seconds: float | None = field(default=None, init=False)
    running: bool = field(default=False, init=False)
    """Whether the clients work, so that a tile may be added."""
    _following: dict[asyncio.Task[None], int] = field(default_factory=dict, init=False)
    _contention: Contention | None = field(default=None, init=False)
    _executed: tuple[float, float] = field(default=(math.nan, math.nan), init=False)
    _between: Between = field(default_factory=Between, init=False)

    def __post_init__(self) -> None:
        self._network = NetworkCheck(self._around.hypervisor, self._guests.specs)
        self._limits = LimitCheck(self._around.hypervisor, self._guests, self._events)
        self.undisturbed = Undisturbed(self._around, self._guests)
        """For the cell, which begins and ends it, and for tiles that leave, as the next one."""
        self.inside = StopsInside(self._guests, self._around.timing)
        interval = self._around.timing.latency
        self.latency = LatencyReadings(self._around.hypervisor, self._guests, self._events, interval)
        """Of the guests' disks while the clients work."""

    async def run(self, instances: Instances, end_tiles: Callable[[], Awaitable[None]]) -> None:
        """Start all of `instances` together and follow each to its end; `end_tiles` ends changes of the tiles.

        In a loop, the instance of a workload's next round takes its place in `instances`.
        """
        first = tuple(instances)
        with self._events.step(Part.START, "watch the guests inside"):
            await self.inside.begin()
        await self._wait_for_steady_speed()
        await self._wait_for_quiet_host()
        moment = await self._hosts_moment(len(first))
        # A short client may have ended before this process hears of the common start.
        self.loop.begin()
        await self.undisturbed.begin(self._events.in_force)
        counters = await self._host_counters()
        await self._network.begin()
        await self._limits.begin()
        await self.latency.begin()
        await self.inside.start()
        with self._events.step(Part.START, "announce the start"):
            start = await start_together(instances, self._around.timing, moment)
        self._contention = Contention.of(self._plan, self._around.hypervisor)
        self._follow(first, start)
        opening = asyncio.ensure_future(self._counters_read("start", start.host_mono - self._ahead(start.lead)))
        self.undisturbed.start()
        try:
            await start.moment()
            began = time.monotonic()
            self.latency.start()
            with self._events.phase(Phase.EXECUTE):
                for one in self._live.values():
                    one.begin(self._end_span)
                self.running = True
                await self._contention.measure(list(self._following))
                await self._all_ended()
                await self._end_changes(end_tiles)
                # A tile may have joined while the changes were ended.
                await self._all_ended()
                # Nothing of the lab's own is read or written before that.
                closing = await self._counters_read("end", time.monotonic())
            self._executed = (await opening or began, closing or time.monotonic())
            await self._network.end(start.host_mono)
            await self._limits.end()
            await self.undisturbed.end()
            self._between = counters.until(await self._host_counters())
            self._events.emit(NeighboursCounted(cell=self._plan.index, neighbours=list(self._between.neighbours)))
            await self.latency.end()
            await self.inside.end()
        finally:
            opening.cancel()
            await shielded(self._end_changes(end_tiles))
            await self.latency.stop()
            await self.inside.stop()
            for task in self._following:
                task.cancel()
            await asyncio.gather(*self._following, return_exceptions=True)
        await self._compare_clocks(start, first, instances)

    async def _compare_clocks(
        self, start: CommonStart, first: Sequence[WorkloadInstance], instances: Sequence[WorkloadInstance]
    ) -> None:
        """Find the skew of the start, which the `first` took part in, and the wall clock of all."""
        for instance in instances:
            # One after another, so that they do not delay each other.
            await instance.compare_clocks()
        self.skew = start.skew(first)
        ends = [s.started.host_mono + s.finished.seconds for s in instances if s.started and s.finished]
        if ends and len(ends) == len(instances):
            self.wall_seconds = max(ends) - start.host_mono

    def _ahead(self, lead: float) -> float:
        """How many seconds before the common start, which is `lead` seconds ahead, the counters are read."""
        return min(lead / 2, _READ_AHEAD + _READ_AHEAD_A_GUEST * len(self._guests.specs))

    async def _counters_read(self, edge: str, mono: float) -> float | None:
        """Have all counters read at a moment; when those of the host were, None where they could not be."""
        read = await self._around.host.read_at(mono)
        if read is None:
            return None
        now = time.monotonic()
        self._events.emit(
            CountersRead(
                cell=self._plan.index,
                edge=edge,
                host_ago=now - read.host,
                guests_ago=now - read.guests,
                guests_disks_ago=now - read.guests_disks,
                sample_ago=now - read.sampled,
                mono=now,
            )
        )
        return read.host

    async def _end_span(self) -> None:
        """Something is about to be changed: what was counted until then is that of the span before."""
        await asyncio.gather(self.latency.read(), self._around.host.read_at(time.monotonic()))

    async def _hosts_moment(self, clients: int) -> float | None:
        """The moment at which hosts start together, by the monotonic clock; None for a cell of this host alone."""
        if self._hosts_start is None:
            return None
        with self._events.step(Part.START, "wait for the other hosts"):
            return await self._hosts_start.moment(self._around.timing.lead_of(clients))

    async def _wait_for_steady_speed(self) -> None:
        most = self._around.plan.scenario.steady_seconds
        if not most:
            return
        with self._events.step(Part.START, "wait for a steady speed of the CPUs"):
            lowest = await until_steady(self._around.host.extremes, most)
        if lowest < TOLD_SPEED_PERCENT:
            self._events.doubt(
                f"after {most:.0f} s of waiting for a steady speed a CPU ran at {lowest:.0f} % of its best when the "
                "workloads started"
            )

    async def _wait_for_quiet_host(self) -> None:
        """Wait for a second that would disturb no cell; hosts that start together are not waited for one by one."""
        plan, timing = self._around.plan, self._around.timing
        if not plan.waits or plan.scenario.allow.noise or self._hosts_start is not None:
            return
        with self._events.step(Part.START, "wait for a quiet host"):
            waited, why = await until_quiet(self._disturbing, timing.quiet)
        if why and waited < timing.quiet:
            self._events.note(f"cell {self._plan.index}: waited {waited:.0f} s for a quiet host: {why}")
        elif why:
            self._events.doubt(f"the host was not quiet within {timing.quiet:g} s: {why}")

    async def _disturbing(self) -> str:
        """What would make a cell of the last second invalid, or of the next one where the last tells no more."""
        tick = self._around.timing.tick
        if not self._broken_since(time.monotonic() - tick, Between()):
            return ""
        # The recorder's figure has the kernel's threads in it, which are told apart by counters alone.
        before, began = await self._host_counters(), time.monotonic()
        await asyncio.sleep(tick)
        return self._broken_since(began, before.until(await self._host_counters()))

    def _broken_since(self, mono: float, between: Between) -> str:
        host, scenario = self._around.host, self._around.plan.scenario
        found = Disturbance.of(host.mean, (mono, time.monotonic()), between, host.extremes)
        return next((one.text for one in found.findings(scenario.limits, scenario.allow, None) if one.breaks), "")

    def _follow(self, instances: Sequence[WorkloadInstance], start: CommonStart) -> None:
        for instance in instances:
            task = asyncio.ensure_future(self.loop.follow(instance, start.lead))
            self._following[task] = instance.plan.tile

    async def _all_ended(self, tile: int | None = None) -> None:
        """All clients of one tile, or of all, those that joined meanwhile too. Raises what following one raised."""
        while waiting := [one for one, of in self._following.items() if tile in (None, of) and not one.done()]:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in self._following:
            if task.done():
                task.result()

    async def _end_changes(self, end_tiles: Callable[[], Awaitable[None]]) -> None:
        self.running = False
        await asyncio.gather(*(one.end() for one in self._live.values()))
        await end_tiles()

    async def join(self, instances: Sequence[WorkloadInstance]) -> None:
        """Start the clients of a further tile together, and follow them as the others."""
        for tile in {instance.plan.tile for instance in instances}:
            await self.latency.begin(tile)
            await self.inside.begin(tile)
            await self.inside.start(tile)
        start = await start_together(instances, self._around.timing)
        for instance in instances:
            self.loop.join(instance.plan.tile)
        self._follow(instances, start)

    async def leave(self, tile: int) -> None:
        """No workload of a tile starts again; returns when those under way have ended."""
        self.loop.leave(tile)
        await self._all_ended(tile)

    async def _host_counters(self) -> HostCounters:
        return await asyncio.to_thread(self._around.host.counters)

    def contention(self, instances: Sequence[WorkloadInstance]) -> Iterator[Measurement]:
        """How guests with CPU shares shared the CPU; nothing where the clients never ran."""
        return iter(()) if self._contention is None else self._contention.measurements(instances)

    def judge(self, instances: Instances, proofs: Sequence[CacheProof]) -> None:
        """Hold the limits against what was measured of clients and host.

        Called late, because the tick in which the workloads ended comes up to a second after their end.
        """
        scenario = self._around.plan.scenario
        self._events.invalidate(proof_faults(proofs))
        self._events.invalidate(broken_rules(scenario.limits, instances, self.skew), outside=True)
        self._events.lever_proofs(list(self._limits.proofs()))
        for proof in self._network.proofs(instances):
            self._events.emit(NetworkProved(cell=self._plan.index, proof=proof))
            if (fault := fault_of(proof)) is not None:
                self._events.end_as(Outcome.INVALID, fault)
        disturbance = Disturbance.of(self._around.host.mean, self._executed, self._between, self._around.host.extremes)
        switched = [what for what, one in self._live.items() if one.was_asked]
        for finding in (
            *self.undisturbed.findings(scenario.limits, instances, switched),
            *self.inside.findings(),
            *disturbance.findings(scenario.limits, scenario.allow, self.wall_seconds),
        ):
            if finding.breaks:
                self._events.end_as(Outcome.INVALID, finding.text, outside=True)
            else:
                self._events.doubt(finding.text)
        self._judge_work(instances, disturbance)

    def _judge_work(self, instances: Sequence[WorkloadInstance], disturbance: Disturbance) -> None:
        if (floor := self._around.cpu_floor) is None or self.loop.on:
            return
        self._events.invalidate(floor.faults(self._plan, instances))
        if self._events.outcome is Outcome.PASSED:
            floor.learn(self._plan, instances, disturbance)


class Contention:
    """CPU seconds of each guest in the span in which all of them worked."""

    def __init__(self, hypervisor: Hypervisor, shares: dict[str, int]) -> None:
        self._hypervisor = hypervisor
        self._shares = shares
        self._used: dict[str, float] = {}

    @classmethod
    def of(cls, plan: CellPlan, hypervisor: Hypervisor) -> Contention:
        """For the guests of `plan` that have CPU shares and run a client; empty where fewer than two do."""
        sources = {workload.source for workload in plan.workloads}
        shares = {g.key: g.resources.cpu_shares for g in plan.guests if g.key in sources}
        sharing = {key: own for key, own in shares.items() if own is not None}
        return cls(hypervisor, sharing if len(sharing) >= 2 else {})

    async def measure(self, following: Sequence[asyncio.Future[None]]) -> None:
        """Read all domains' CPU time now and when the first client has ended."""
        names = list(self._shares)
        if not names:
            return
        before = await self._hypervisor.statistics.cpu_seconds(names)
        await asyncio.wait(following, return_when=asyncio.FIRST_COMPLETED)
        after = await self._hypervisor.statistics.cpu_seconds(names)
        self._used = {name: after[name] - before[name] for name in names}

    def measurements(self, instances: Sequence[WorkloadInstance]) -> Iterator[Measurement]:
        """For each client: the share configured, the share got (fractions of their sum), the CPU seconds."""
        total_used, total_shares = sum(self._used.values()), sum(self._shares.values())
        for instance in instances:
            key = instance.plan.source
            if key not in self._used or total_used <= 0:
                continue
            place = (instance.plan.name, instance.plan.tile, instance.context.source.name)
            configured, got, seconds = SHARES
            yield Measurement(*place, configured, self._shares[key] / total_shares, "1")
            yield Measurement(*place, got, self._used[key] / total_used, "1")
            yield Measurement(*place, seconds, self._used[key], "s")
