"""One cell of a run: provision, prepare, execute, collect, clean up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from vmlab.guests.snapshots import Snapshot
from vmlab.hypervisor.levers.guest_lever import levers_among
from vmlab.lab.cell.caches import Caches, host_files
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.cell.cell_losses import Losses, SilentDisks
from vmlab.lab.cell.common_start import HostsStart
from vmlab.lab.cell.execution import Execution
from vmlab.lab.cell.live_switch import LiveCache, LiveKsm, LiveSwitch
from vmlab.lab.cell.live_tiles import LiveTiles
from vmlab.lab.cell.looped_cell import Loop
from vmlab.lab.cell.surroundings import CellSurroundings
from vmlab.lab.cell.validity import proof_faults
from vmlab.lab.cell.workload_instance import Instances, WorkloadInstance
from vmlab.lab.provision.added_guests import AddedGuests
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.lab.provision.host_side import BareGuests, HostSide
from vmlab.lab.provision.snapshot_provider import SnapshotProvider
from vmlab.model.concurrency import run_all, run_with_alarm, shielded
from vmlab.model.errors import (
    DeadlineExceeded,
    GuestError,
    GuestLost,
    SnapshotError,
    UsageError,
    VmlabError,
    in_one_line,
)
from vmlab.model.names import DISK, HOST_PLACE
from vmlab.model.results import CacheProof, LeverProof, Provision
from vmlab.model.run import Outcome, Part, Phase
from vmlab.plan.terms import CellPlan, GuestPlan, WorkloadPlan
from vmlab.workloads.registry import kinds
from vmlab.workloads.shell import Shell
from vmlab.workloads.workload_steps import WorkloadContext


class CellRun:
    """Runs one cell once. `run` always cleans up and always emits CellEnded."""

    def __init__(self, plan: CellPlan, around: CellSurroundings, hosts_start: HostsStart | None = None) -> None:
        """With `hosts_start` its workloads start when those on other hosts do."""
        self.plan = plan
        self._hosts_start = hosts_start
        self._around = around
        self._events = CellEvents(plan, around.emit, around.raw)
        self._timing = around.timing
        self._guests = GuestSet(
            around.run,
            plan,
            around.hypervisor,
            around.guests.image,
            self._events.guest,
            around.guests.connect,
            self._timing,
            self._events.seen_inside,
            self._events.warn,
            helper=around.plan.scenario.helper,
            levers=levers_among(around.plan.guest_keys),
            added=AddedGuests(plan, around.guests.added, around.guests.log_in, self._timing),
            layers=around.guests.layers,
        )
        self._caches = Caches(self._guests, warm=plan.warm)
        cache = LiveCache(plan, self._guests, self._events, self._timing.drain, around.host.disk)
        ksm = LiveKsm(plan, self._guests, self._events, around.host.ksm)
        self.live: dict[str, LiveSwitch[Any]] = {cache.what: cache, ksm.what: ksm}
        """What viewers may switch while the workloads run, by the scenario's word for it."""
        self._host = HostSide(plan, around.host.tiles)
        self._bare = BareGuests(plan, around.host.bare, self._timing, self._events.note)
        self._silent_disks = SilentDisks(around.hypervisor, self._guests, self._events, self._timing)
        self._losses = Losses(around.hypervisor, self._guests, around.host.disk, self._silent_disks, hosts_start)
        self._proofs: list[CacheProof] = []
        self._lever_proofs: list[LeverProof] = []
        self._instances = Instances(self._instance)
        self.loop = Loop(plan, self._events, around.plan.loop, self._instances.next_round)
        """For viewers, who may end it."""
        self._execution = Execution(plan, around, self._events, self._guests, self.live, self.loop, hosts_start)
        self.live_tiles = LiveTiles(
            plan, around, self._events, self._guests, self._caches, self._execution, self._instances
        )
        """For viewers, who may add a tile and retire it while a loop goes on."""
        self._provision = Provision("cold", guests=len(plan.guests))
        self._began = time.monotonic()
        self._snapshots: dict[str, Snapshot] = {}

    @property
    def disturbed(self) -> bool:
        """Whether the cell has ended as invalid for causes outside of it alone."""
        return self._events.disturbed

    async def run(self) -> Outcome:
        """The cell's outcome. Raises CancelledError, after clean-up, when the run is stopped."""
        self._events.started(self._around.host.settings(), looped=self.loop.on)
        try:
            self._began = time.monotonic()
            await run_with_alarm(self._losses.until_any(), self._measure(), grace=self._timing.cause)
        except asyncio.CancelledError:
            await self._break_off(Outcome.ABORTED, self._around.why_called_off())
            raise
        except (VmlabError, OSError) as error:
            await self._break_off(Outcome.FAILED, in_one_line(error))
        except Exception as error:
            # A fault of vmlab's own ends the run; what has not been judged has not passed.
            await self._break_off(Outcome.FAILED, f"{type(error).__name__}: {in_one_line(error)}")
            raise
        finally:
            if self._events.outcome == Outcome.FAILED:
                for reason in self._silent_disks.reasons():
                    self._events.end_as(Outcome.FAILED, reason)
            try:
                await shielded(self._clean_up())
            finally:
                self._events.ended(self._execution.wall_seconds, self._execution.skew, self._provision)
        return self._events.outcome

    def refused(self, reason: str) -> Outcome:
        """Record that it has failed before it could begin."""
        self._events.started(self._around.host.settings(), looped=self.loop.on)
        self._events.end_as(Outcome.FAILED, reason)
        self._events.ended(None, None, self._provision)
        return self._events.outcome

    async def _break_off(self, outcome: Outcome, reason: str) -> None:
        """Record why the cell was cancelled, and what is known. The clients in the guests are not closed one by one."""
        self._events.end_as(outcome, reason)
        for instance in self._instances:
            if not instance.said_ended and (instance.started or outcome is Outcome.ABORTED):
                instance.say_ended(Outcome.ABORTED)
        self._events.raw(self._instances)
        await self._guests.disconnect()

    async def _measure(self) -> None:
        frozen = self.plan.guests and not self.plan.added_images
        snapshot_provider = self._around.guests.snapshot_provider if frozen else None
        if snapshot_provider is None:
            if self.plan.guests:
                await self._disown(self._around.guests.disks)
            with self._events.phase(Phase.PROVISION):
                await self._guests.boot()
            await self._prepare_and_execute(staged=False)
            return
        self._provision = replace(self._provision, how="restored")
        try:
            await self._from_frozen(snapshot_provider)
        except SnapshotError as error:
            await snapshot_provider.discard(self._snapshots, error)
            await self._from_frozen(snapshot_provider)

    async def _from_frozen(self, snapshot_provider: SnapshotProvider) -> None:
        async with AsyncExitStack() as holding:
            with self._events.step(Part.BEFORE, "look for snapshots"):
                frozen = snapshot_provider.frozen(self.plan, self._guests.specs)
                self._snapshots = await holding.enter_async_context(frozen)
            files = [one.folder / DISK for one in self._snapshots.values()]
            await holding.enter_async_context(self._around.host.disk.covering(files))
            digests = {key: one.sha256 for key, one in self._snapshots.items()}
            self._provision = replace(self._provision, snapshots=digests)
            await self._disown([*self._around.guests.disks, *files])
            self._began = time.monotonic()
            with self._events.phase(Phase.PROVISION):
                await self._restore()
            await self._prepare_and_execute(staged=True)

    async def _restore(self) -> None:
        """Restore the guests; once more where one of them lives and does not answer, which seldom happens under TCG."""
        try:
            await self._guests.restore(self._snapshots)
        except GuestLost:
            raise
        except (GuestError, DeadlineExceeded) as error:
            # Where its death is the cause, the alarm ends this wait: who died must not be forgotten.
            await asyncio.sleep(self._timing.cause)
            self._events.doubt(f"its guests are restored once more: {in_one_line(error)}")
            await self._guests.destroy()
            await self._guests.restore(self._snapshots)

    async def _disown(self, files: list[Path]) -> None:
        if self._around.plan.scenario.host.size is not None:
            await self._caches.disown(files)

    async def _prepare_and_execute(self, *, staged: bool) -> None:
        try:
            with self._events.phase(Phase.PREPARE):
                await self._prepare(staged=staged)
            self._provision = replace(self._provision, seconds=time.monotonic() - self._began)
            await self._silent_disks.begin()
            async with self._around.host.disk.limited():
                await self._execution.run(self._instances, self.live_tiles.end)
        finally:
            await self._execution.undisturbed.stop()
        with self._events.phase(Phase.COLLECT):
            await self._collect()

    async def _prepare(self, *, staged: bool) -> None:
        self._host.make()
        await self._bare.start()
        self._instances.add(self._instances.made(self.plan.workloads))
        # Places on the host have no links yet.
        await self._execution.undisturbed.prepare(links=not self.plan.works_on_host)
        # What is frozen was staged and rehearsed before; the host never is.
        await run_all(instance.stage(host_alone=staged) for instance in self._instances)
        if self._around.guests.snapshot_provider is not None:
            await run_all(instance.rehearse_on_host() for instance in self._instances)
        await run_all(
            [
                *(instance.make_ready() for instance in self._instances),
                *(self._drop_caches(guest) for guest in self.plan.guests),
                self._prove(),
            ]
        )
        with self._events.step(Part.PREPARE, "empty the host's caches"):
            files = [*await self._host.files(), *await self._bare.files()]
            await self._caches.empty_host([*host_files(self._proofs), *files])
        on_host = [one for one in self.plan.workloads if one.source == HOST_PLACE or one.source in self._bare]
        shells = {one.source: self._shell(one.source, one.tile) for one in on_host}
        await run_all(self._caches.load(shell, on_host, place) for place, shell in shells.items())

    async def _drop_caches(self, guest: GuestPlan) -> None:
        """Empty one guest's caches as soon as nothing more is asked of it."""
        for instance in self._instances:
            if guest.key in (instance.plan.source, instance.plan.target):
                await instance.ready.wait()
        with self._events.step(Part.PREPARE, "empty the caches", guest.tile, guest.guest):
            await self._caches.empty_guest(guest, self.plan.workloads)

    async def _prove(self) -> None:
        with self._events.step(Part.PREPARE, "prove the cache modes"):
            self._proofs = await self._guests.prove_cache()
        self._events.proofs(self._proofs)
        if self._guests.levers:
            with self._events.step(Part.PREPARE, "prove the guests' settings"):
                self._lever_proofs = await self._guests.prove_levers()
            self._events.lever_proofs(self._lever_proofs)

    async def _prove_again(self) -> None:
        """What was changed of the guests' settings meanwhile, and stays so, is a fault."""
        with self._events.step(Part.COLLECT, "prove the guests' settings again"):
            known = [*proof_faults(self._proofs)]
            found = proof_faults(await self._guests.prove_cache())
            self._events.invalidate(f"{one}, after the workloads" for one in found if one not in known)
            self._events.lever_proofs(await self._guests.levers_changed(self._lever_proofs))

    def _instance(self, plan: WorkloadPlan, position: int, number: int) -> WorkloadInstance:
        context = WorkloadContext(
            workload=plan.name,
            tile=plan.tile,
            cell=self.plan.index,
            seed=self._around.plan.seed,
            source=self._shell(plan.source, plan.tile),
            target=None if plan.target is None else self._target(plan),
            reached=self._reached(plan.target),
            position=position,
            round=number,
            repeat=self.plan.repeat,
        )
        workload, emit = kinds()[plan.kind](plan.params), self._around.emit
        return WorkloadInstance(
            self.plan.index,
            plan,
            workload,
            context,
            emit,
            self._timing,
            looped=self.loop.on and number > 1,
            hypervisor=self._around.hypervisor,
            virtual=[key for key in (plan.source, plan.target) if key and key != HOST_PLACE and key not in self._bare],
        )

    def _shell(self, key: str, tile: int) -> Shell:
        if key in self._bare:
            return self._bare.shell(key)
        return self._host.shell(tile) if key == HOST_PLACE else self._guests.shells[key]

    def _reached(self, target: str | None) -> str | None:
        """The address that others reach a virtual machine by; None for all else, which is reached by its own."""
        on_host = target is None or target == HOST_PLACE or target in self._bare
        return None if on_host else self._guests.reached_at(str(target))

    def _target(self, plan: WorkloadPlan) -> Shell:
        if plan.source == HOST_PLACE and plan.target == HOST_PLACE:
            return self._around.host.far(self._host.shell(plan.tile))
        return self._shell(str(plan.target), plan.tile)

    async def _collect(self) -> None:
        await self._prove_again()
        # Where one fails, none of the others goes on beside the clean-up and the next cell.
        lost = self._execution.undisturbed.lost_seconds
        collecting = [instance.collect(lost) for instance in self._instances]
        await run_all([self._compare_disks(), self._look_at_boots(), *collecting])
        for instance in self._instances:
            instance.say_ended()
            if not self.loop.on:
                self._events.figures(instance)
            if instance.error is not None:
                self._events.end_as(Outcome.FAILED, f"{instance.label}: {instance.error}")
        if not self.loop.on and all(instance.error is None for instance in self._instances):
            for measurement in self._execution.contention(self._instances):
                self._events.measurement(measurement)
        self._events.raw(self._instances)
        self._events.invalidate(self._caches.faults)
        self._execution.judge(self._instances, self._proofs)

    async def _compare_disks(self) -> None:
        """Fail the cell if its guests may have read other bytes than were saved and built."""
        if self._around.guests.integrity is not None:
            with self._events.step(Part.COLLECT, "compare the disks"):
                faults = await self._around.guests.integrity.faults_after(self._snapshots.values())
            self._events.invalidate(faults)

    async def _look_at_boots(self) -> None:
        with self._events.step(Part.COLLECT, "look at the guests' boots"):
            faults = await self._guests.boot_faults()
        self._events.invalidate(faults)

    async def _clean_up(self) -> None:
        with self._events.phase(Phase.CLEAN_UP):
            await self._cleared("closing the clients", self._close_instances())
            # Even if closing the clients failed, no guest keeps running in the next cell.
            await self._cleared("destroying the guests", self._guests.destroy())
            await self._cleared("letting go of the snapshots of added tiles", self.live_tiles.close())
            await self._cleared("ending the guests on the host", self._bare.close())
            await self._cleared("removing the files on the host", self._host.remove())

    async def _close_instances(self) -> None:
        try:
            await run_all(instance.close() for instance in self._instances)
        finally:
            for note in (note for instance in self._instances for note in instance.notes):
                self._events.warn(note)

    async def _cleared(self, what: str, step: Coroutine[Any, Any, None]) -> None:
        """One step of the clean-up within its own deadline; an error makes the cell failed."""
        try:
            async with asyncio.timeout(self._timing.clean_up):
                with self._events.step(Part.CLEAN_UP, what):
                    await step
        except TimeoutError:
            self._events.end_as(Outcome.FAILED, f"clean-up: {what} took longer than {self._timing.clean_up:g} s")
        except (VmlabError, OSError) as error:
            self._events.end_as(Outcome.FAILED, f"clean-up: {in_one_line(error)}")

    async def change(self, what: str, value: str | int, origin: str) -> Mapping[str, Any]:
        """Change its ``cache`` mode, the host's ``ksm``, or of a loop the ``tiles``; or ``end`` the loop.

        Raises UsageError, RefusedError and CommandFailed.
        """
        if what == "end":
            return self.loop.end(origin)
        if self.live_tiles.busy:
            raise UsageError(f"a tile of cell {self.plan.index} is being added or retired; wait until that is done")
        if what == "tiles":
            if busy := [other for other, one in self.live.items() if one.busy]:
                raise UsageError(f"{busy[0]} of cell {self.plan.index} is being switched; wait until that is done")
            return self.live_tiles.change(int(value), origin)
        switched = await self.live[what].switch(str(value), origin)
        return {"what": switched.what, **asdict(switched)}
