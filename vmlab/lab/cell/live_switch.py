"""What viewers may switch under the guests of a cell while its workloads run: their cache mode, and the host's KSM."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar, get_args

from vmlab.hypervisor.disks.cache_switch import DrainTooLong, SwitchBrokenOff
from vmlab.hypervisor.protocols import GuestDisk
from vmlab.hypervisor.settings_keeper import SettingsKeeper
from vmlab.lab.cell.caches import emptied, host_files
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.model.cell_event import (
    CacheSwitched,
    KsmSwitched,
    Switched,
)
from vmlab.model.concurrency import shielded
from vmlab.model.errors import (
    CommandFailed,
    DeadlineExceeded,
    GuestError,
    HypervisorError,
    RefusedError,
    UsageError,
    in_one_line,
)
from vmlab.model.quantities import format_bytes
from vmlab.model.run import CACHE_FLAGS, CACHE_MODES, SWITCHABLE, CacheMode, Outcome
from vmlab.model.scenarios.host_settings import HostSettings, Ksm
from vmlab.plan.terms import CellPlan
from vmlab.system.host_size import host_memory
from vmlab.telemetry.setting_files import full_scans, merged_bytes, why_not

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


_POLL_SECONDS = 0.1
STATES: tuple[Ksm, ...] = get_args(Ksm)


@dataclass(frozen=True, slots=True)
class HostKsm:
    """The host's KSM, which the `keeper` of its settings changes and puts back.

    `others` gives the runs that measure on the host at the same time. With `ordered_memory` the guests have a limit on
    the memory that they take together. For `recount_seconds` at most KSM goes on to count what was unmerged.
    """

    keeper: SettingsKeeper
    others: Callable[[], Collection[object]] = tuple
    ordered_memory: bool = False
    recount_seconds: float = 15.0

    def why_none_is_unmerged(self) -> str:
        """Why merged pages must stay so, as each of them needs memory of its own then; empty where there is enough."""
        saved = merged_bytes(self.keeper.roots)
        if self.ordered_memory:
            return "the limited memory may be too small for them"
        if 2 * saved > (available := host_memory().available):
            return f"{format_bytes(saved)} is too much for the {format_bytes(available)} that the host has left"
        return ""


class LiveKsm(LiveSwitch[Ksm]):
    """Switches the host's KSM, and has the guests' memory unmerged where it goes off; without a `host` it refuses.

    What is switched lasts until the next cell, or the end of the run: the keeper puts back what that does not ask for.
    """

    what = "ksm"

    def __init__(self, plan: CellPlan, guests: GuestSet, events: CellEvents, host: HostKsm | None) -> None:
        super().__init__(plan, events)
        self._guests = guests
        self._host = host
        self._unmerged = False

    def _checked(self, state: str) -> Ksm:
        if state not in STATES:
            raise UsageError(f"KSM cannot be {state}; while guests run it is {' or '.join(STATES)}")
        if not self._plan.guests:
            raise UsageError(f"{self._cell} has no guests, whose memory could be merged")
        if self._host is None:
            raise RefusedError("the settings of this host are not changed here")
        keeper = self._host.keeper
        if why := why_not(HostSettings(ksm=state), keeper.folder, keeper.roots):
            raise RefusedError(f"KSM cannot be switched: {why}")
        if self._host.others():
            raise RefusedError("another run measures on this host at the same time, and KSM is one for all")
        if keeper.in_force()["ksm"] == state:
            raise UsageError(f"{self._cell} has ksm {state} already")
        return state

    async def _switched(self, state: Ksm, origin: str) -> KsmSwitched:
        assert self._host is not None, "it is checked before"
        await self._end_span()
        before = "off" if state == "on" else "on"
        switched = KsmSwitched(cell=self._plan.index, origin=origin, before=before, after=state)
        if self._unmerged:
            # Before KSM begins to look for pages again.
            await shielded(self._guests.hypervisor.make_mergeable(self._mergeable, True))
            self._unmerged = False
        wanted = self._plan.host.model_copy(update={"ksm": state})
        if state == "on":
            self._host.keeper.apply(wanted)
            self._events.switched(switched)
        else:
            self._events.switched(switched)
            await self._unmerge(self._host)
            self._host.keeper.apply(wanted)
        return switched

    @property
    def _mergeable(self) -> list[str]:
        """The guests whose memory KSM may merge."""
        return [spec.name for spec in self._guests.specs if spec.resources.ksm is not False]

    async def _unmerge(self, host: HostKsm) -> None:
        """KSM that stops leaves merged what is merged. The guests take theirs back; other programs keep theirs.

        What is unmerged is counted as merged until KSM comes by, so it goes on for two looks at all memory.
        """
        why_not = host.why_none_is_unmerged()
        if not why_not:
            try:
                self._unmerged = True
                self._doubt_pauses(await shielded(self._guests.hypervisor.make_mergeable(self._mergeable, False)))
                await self._recounted(host)
                return
            except (HypervisorError, DeadlineExceeded) as error:
                why_not = in_one_line(error)
        self._events.warn(f"{self._cell}: KSM is off, and what it merged stays merged until it is written: {why_not}")

    async def _recounted(self, host: HostKsm) -> None:
        """Wait until KSM has counted anew, but not for long, and not beyond the end of the workloads."""
        began = full_scans(host.keeper.roots)
        end = time.monotonic() + host.recount_seconds
        while self._open and began is not None and time.monotonic() < end:
            await asyncio.sleep(_POLL_SECONDS)
            if (full_scans(host.keeper.roots) or 0) >= began + 2:
                return


class LiveCache(LiveSwitch[CacheMode]):
    """Switches all disks of one cell's guests between the modes of `SWITCHABLE`.

    `deadline` is how many seconds the host may take to write dirty pages. Until they are written, it can be called off.
    QEMU waits for what is under way on the disk, and its guest with it; an emulated disk ends that at once.
    """

    what = "cache"

    def __init__(
        self, plan: CellPlan, guests: GuestSet, events: CellEvents, deadline: float, disk: GuestDisk | None = None
    ) -> None:
        super().__init__(plan, events)
        self._guests = guests
        self._disk = disk or GuestDisk()
        self._deadline = deadline
        self._modes = {mode for guest in plan.guests for mode in guest.resources.cache_modes}

    def _checked(self, mode: str) -> CacheMode:
        """The mode, if all disks can be switched to it now. Raises UsageError."""
        cell = self._cell
        if mode not in CACHE_MODES:
            raise UsageError(f"there is no cache mode {mode}; while guests run it is {' or '.join(SWITCHABLE)}")
        if not self._plan.guests:
            raise UsageError(f"{cell} has no guests, and so no disk to switch")
        for one in (mode, *sorted(self._modes)):
            if one not in SWITCHABLE:
                only = f"only {' and '.join(SWITCHABLE)} can be switched while guests run"
                raise UsageError(f"cache {one} promises the guests another write cache or other flushes; {only}")
        if in_pools := [guest.key for guest in self._plan.guests if guest.resources.pool is not None]:
            raise UsageError(f"the data disk of {in_pools[0]} is in a Ceph pool, and keeps the mode it was opened with")
        if len(self._modes) > 1:
            raise UsageError(f"the disks of {cell} differ in cache mode and keep theirs")
        if self._modes == {mode}:
            raise UsageError(f"{cell} has cache {mode} already")
        for guest in self._plan.guests:
            for _, why in guest.resources.with_cache(mode).conflicts():
                raise UsageError(f"guest {guest.guest}: {why}")
        return mode

    async def _switched(self, mode: CacheMode, origin: str) -> CacheSwitched:
        self._can_be_called_off = True
        try:
            drained = await self._guests.hypervisor.guest_disks.drain_disks(self._guests.specs, self._deadline)
        except DrainTooLong as late:
            text = f"{self._cell} was not switched to cache {mode}: {late}; the cells to come can have it"
            self._events.warn(text)
            raise CommandFailed(text) from late
        finally:
            self._can_be_called_off = False
        (before,) = self._modes
        try:
            pauses = await shielded(self._reopened(mode))
        except SwitchBrokenOff as broken:
            self._events.end_as(Outcome.INVALID, f"switching its cache mode to {mode} while it ran failed: {broken}")
            raise
        self._modes = {mode}
        await self._end_span()
        switched = CacheSwitched(
            cell=self._plan.index,
            origin=origin,
            before=before,
            after=mode,
            pauses_ms={guest: seconds * 1e3 for guest, seconds in pauses.items()},
            drained_seconds=drained.seconds,
            drained_bytes=drained.written_bytes,
        )
        self._events.switched(switched)
        self._doubt_pauses(pauses)
        await self._prove_and_empty(mode)
        return switched

    async def _reopened(self, mode: CacheMode) -> dict[str, float]:
        async with self._disk.unlimited():
            return await self._guests.switch_cache(mode)

    async def _prove_and_empty(self, mode: CacheMode) -> None:
        proofs = await self._guests.prove_cache()
        self._events.proofs(proofs)
        for proof in proofs:
            if not proof.agrees:
                raise CommandFailed(f"{proof.guest}: {proof.file} was switched, and is not in cache mode {mode}")
        if CACHE_FLAGS[mode].direct:
            # Clean pages stay in the host's cache, where nobody reads them any more.
            for fault in await emptied(host_files(proofs)):
                self._events.warn(fault)
