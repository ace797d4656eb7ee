"""A tile is added to a looped cell while its others work, and the newest one is retired again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from vmlab.lab.cell.caches import Caches
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.cell.execution import Execution
from vmlab.lab.cell.surroundings import CellSurroundings
from vmlab.lab.cell.workload_instance import Instances, WorkloadInstance
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.model.concurrency import run_all, shielded
from vmlab.model.errors import UsageError, VmlabError, in_one_line
from vmlab.model.names import DISK
from vmlab.plan.terms import CellPlan, GuestPlan


@dataclass(eq=False)
class LiveTiles:
    """Adds and retires one tile at a time, while the workloads of a looped cell work.

    What is asked for is checked at once; the rest takes its
    time in a task, and is reported by events. A tile that cannot be added is cleared away, and what ran goes on.
    """

    _plan: CellPlan
    _around: CellSurroundings
    _events: CellEvents
    _guests: GuestSet
    _caches: Caches
    _execution: Execution
    _instances: Instances
    _task: asyncio.Task[None] | None = field(default=None, init=False)
    _holding: AsyncExitStack = field(default_factory=AsyncExitStack, init=False)

    def __post_init__(self) -> None:
        self._tiles = self._plan.tiles

    @property
    def busy(self) -> bool:
        """Whether a tile is being added or retired."""
        return self._task is not None and not self._task.done()

    def change(self, count: int, origin: str) -> Mapping[str, Any]:
        """Begin to have `count` tiles, one more or fewer, whose guests have the cache mode of those that run.

        Returns what is being done. Raises UsageError and RefusedError, with nothing changed, for what
        cannot be.
        """
        self._check(count)
        if count > self._tiles:
            plan = self._tile(self._around.widened(self._plan, count), count)
            work = self._add(plan, origin)
        else:
            work = self._retire(self._tiles, origin)
        self._events.asked(f"set tiles {count} now", origin)
        self._task = asyncio.ensure_future(self._told(work, count))
        return {"cell": self._plan.index, "before": self._tiles, "after": count}

    def _check(self, count: int) -> None:
        cell = f"cell {self._plan.index}"
        if count < 1:
            raise UsageError(f"a cell has at least one tile, and cannot have {count}")
        if not self._execution.loop.on:
            raise UsageError(f"{cell} is no loop; tiles are added and retired in one alone (run --loop)")
        if not self._execution.running or not self._execution.loop.goes_on:
            raise UsageError(f"the loop of {cell} does not go on now")
        if abs(count - self._tiles) != 1:
            raise UsageError(f"{cell} has {self._tiles} now; one tile at a time is added or retired")
        if self._plan.works_on_host:
            raise UsageError(f"{cell} has workloads on the host, whose tiles stay as they are")
        if self._around.guests.snapshot_provider is None or self._plan.added_images:
            raise UsageError(f"the guests of {cell} were booted; a tile is added from snapshots alone")

    def _tile(self, wider: CellPlan, tile: int) -> CellPlan:
        """The last tile of a plan as a cell of its own; positions of its workloads are kept by the wider plan."""

        modes = {mode for spec in self._guests.specs for mode in spec.resources.cache_modes}

        def own(guest: GuestPlan) -> GuestPlan:
            # A switch changes all guests; where they differ, none was switched.
            alike = len(modes) == 1
            return replace(guest, resources=guest.resources.with_cache(*modes)) if alike else guest

        return replace(
            wider,
            index=self._plan.index,
            guests=tuple(own(guest) for guest in wider.guests if guest.tile == tile),
            workloads=tuple(one for one in wider.workloads if one.tile == tile),
        )

    async def _told(self, work: Any, count: int) -> None:
        try:
            await work
        except (VmlabError, OSError) as error:
            done = "added" if count > self._tiles else "retired"
            tile = max(count, self._tiles)
            self._events.doubt(f"tile {tile} was not {done}: {in_one_line(error)}; what ran goes on")

    async def _add(self, plan: CellPlan, origin: str) -> None:
        instances: list[WorkloadInstance] = []
        try:
            await self._made_ready(plan, instances)
            self._instances.add(instances)
            await self._execution.join(instances)
        except BaseException:
            self._instances.remove(instances)
            await shielded(self._taken_away(plan.guests, instances))
            raise
        await self._execution.latency.read()
        self._events.tiles_changed(self._tiles, plan.tiles, origin)
        self._tiles = plan.tiles

    async def _made_ready(self, plan: CellPlan, instances: list[WorkloadInstance]) -> None:
        """Restore the guests, and hold the clients of all workloads."""
        provider = self._around.guests.snapshot_provider
        assert provider is not None
        specs = self._guests.announce(plan.guests)
        snapshots = await self._holding.enter_async_context(provider.frozen(plan, specs))
        await self._holding.enter_async_context(
            self._around.host.disk.covering([one.folder / DISK for one in snapshots.values()])
        )
        await self._guests.add(plan.guests, snapshots)
        instances += self._instances.made(plan.workloads, first=len(plan.workloads) * (plan.tiles - 1))
        await run_all(instance.make_ready() for instance in instances)
        await run_all(self._caches.empty_guest(guest, plan.workloads) for guest in plan.guests)
        self._events.proofs(await self._guests.prove_cache(specs))
        if self._guests.levers:
            self._events.lever_proofs(await self._guests.prove_levers(specs))

    async def _retire(self, tile: int, origin: str) -> None:
        """Once the rounds of the tile that are under way have ended, and were verified, end its guests."""
        await self._execution.leave(tile)
        leaving = [one for one in self._instances if one.plan.tile == tile]
        if any(one.error is not None for one in leaving):
            # They stay, so that the cell fails with their reason.
            return
        await self._execution.latency.leave(tile)
        await self._execution.inside.leave(tile)
        self._events.tiles_changed(self._tiles, tile - 1, origin)
        self._tiles = tile - 1
        guests = [guest for guest in self._guests.guests if guest.tile == tile]
        for instance in leaving:
            instance.say_ended()
        self._events.raw(leaving)
        self._instances.remove(leaving)
        await shielded(self._taken_away(guests, leaving))

    async def _taken_away(self, guests: Sequence[GuestPlan], instances: Sequence[WorkloadInstance]) -> None:
        self._execution.undisturbed.leave(guest.key for guest in guests)
        try:
            await run_all(instance.close() for instance in instances)
        finally:
            await self._guests.retire(guests)

    async def end(self) -> None:
        """The workloads do not run any more: a tile that is being added is cleared away, one being retired stays."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Let go of the snapshots of the tiles that were added, when no guest runs any more."""
        await self._holding.aclose()
