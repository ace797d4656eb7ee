"""The cache mode of a cell's guests, switched while its workloads run."""

from __future__ import annotations

import asyncio
from typing import Any

from vmlab.hypervisor.cache_switch import DrainTooLong, SwitchBrokenOff
from vmlab.lab.caches import emptied, host_files
from vmlab.lab.cell_events import CellEvents
from vmlab.lab.guest_set import GuestSet
from vmlab.model.cache import CACHE_FLAGS, SWITCHABLE
from vmlab.model.concurrency import shielded
from vmlab.model.errors import (
    CommandFailed,
    DeadlineExceeded,
    GuestError,
    HypervisorError,
    UsageError,
    in_one_line,
)
from vmlab.model.run import CACHE_MODES, CacheMode, Outcome
from vmlab.plan.terms import CellPlan

LONGEST_PAUSE = 0.3
"""Seconds for which a guest may stand still at a switch; a longer pause is told."""


class LiveCache:
    """Switches all disks of one cell's guests between the modes of `SWITCHABLE`, from `begin` to `end`.

    `deadline` is how many seconds the host may take to write dirty pages. A cell that was switched is a reading of
    neither mode, and ends as invalid.
    """

    def __init__(self, plan: CellPlan, guests: GuestSet, events: CellEvents, deadline: float) -> None:
        self._plan = plan
        self._guests = guests
        self._events = events
        self._deadline = deadline
        self._modes = {mode for guest in plan.guests for mode in guest.resources.cache_modes}
        self._open = False
        self._task: asyncio.Task[dict[str, Any]] | None = None
        self._can_be_called_off = False

    @property
    def mode(self) -> CacheMode | None:
        """The cache mode of all guests now; None where they differ."""
        return next(iter(self._modes)) if len(self._modes) == 1 else None

    @property
    def busy(self) -> bool:
        """Whether they are being switched."""
        return self._task is not None and not self._task.done()

    def begin(self) -> None:
        """The workloads run now."""
        self._open = True

    async def end(self) -> None:
        """They do not any more: a switch that still writes dirty pages is called off, any other is waited for."""
        self._open = False
        if self._task is None:
            return
        if self._can_be_called_off:
            self._task.cancel()
        await asyncio.wait([self._task])

    async def switch(self, mode: Any, origin: str) -> dict[str, Any]:
        """Switch to `mode`, as `origin` asked; returns what came of it as JSON values.

        Raises UsageError for what cannot be asked for now; CommandFailed when it did not work, and nothing is changed
        then unless the message says so.
        """
        target = self._checked(mode)
        self._events.asked(f"set cache {target} now", origin)
        self._task = asyncio.ensure_future(self._switched(target, origin))
        try:
            await asyncio.wait([self._task])
            if self._task.cancelled():
                raise CommandFailed(f"the workloads of cell {self._plan.index} ended before; nothing was changed")
            return self._task.result()
        except (HypervisorError, GuestError, DeadlineExceeded, OSError) as error:
            raise CommandFailed(f"cell {self._plan.index}: {in_one_line(error)}") from error

    def _checked(self, mode: Any) -> CacheMode:
        """The mode, if all disks can be switched to it now. Raises UsageError."""
        cell = f"cell {self._plan.index}"
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
        if not self._open:
            raise UsageError(f"the workloads of {cell} do not run now; it can be switched while they do")
        if self.busy:
            raise UsageError(f"{cell} is being switched already")
        return mode  # type: ignore[no-any-return]  # one of CACHE_MODES

    async def _switched(self, mode: CacheMode, origin: str) -> dict[str, Any]:
        self._can_be_called_off = True
        try:
            drained = await self._guests.drain_disks(self._deadline)
        except DrainTooLong as late:
            text = f"cell {self._plan.index} was not switched to cache {mode}: {late}; the cells to come can have it"
            self._events.warn(text)
            raise CommandFailed(text) from late
        finally:
            self._can_be_called_off = False
        (before,) = self._modes
        try:
            pauses = await shielded(self._guests.switch_cache(mode))
        except SwitchBrokenOff as broken:
            self._events.end_as(Outcome.INVALID, f"switching its cache mode to {mode} while it ran failed: {broken}")
            raise
        self._modes = {mode}
        self._events.cache_switched(before, mode, pauses, drained, origin)
        for guest, seconds in pauses.items():
            if seconds > LONGEST_PAUSE:
                self._events.doubt(f"{guest} may have stood still for {seconds * 1e3:.0f} ms at the switch")
        await self._prove_and_empty(mode)
        return {
            "cell": self._plan.index,
            "before": before,
            "after": mode,
            "pauses_ms": {guest: seconds * 1e3 for guest, seconds in pauses.items()},
            "drained_seconds": drained.seconds,
            "drained_bytes": drained.written_bytes,
        }

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
