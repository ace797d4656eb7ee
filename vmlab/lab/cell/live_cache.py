"""The cache mode of a cell's guests, switched while its workloads run."""

from __future__ import annotations

from vmlab.hypervisor.disks.cache_switch import DrainTooLong, SwitchBrokenOff
from vmlab.lab.cell.caches import emptied, host_files
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.cell.live_switch import LiveSwitch
from vmlab.lab.provision.guest_disk import GuestDisk
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.model.cache import CACHE_FLAGS
from vmlab.model.concurrency import shielded
from vmlab.model.errors import CommandFailed, UsageError
from vmlab.model.event import CacheSwitched
from vmlab.model.run import CACHE_MODES, SWITCHABLE, CacheMode, Outcome
from vmlab.plan.terms import CellPlan


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

    @property
    def mode(self) -> CacheMode | None:
        """The cache mode of all guests now; None where they differ."""
        return next(iter(self._modes)) if len(self._modes) == 1 else None

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
        return mode

    async def _switched(self, mode: CacheMode, origin: str) -> CacheSwitched:
        self._can_be_called_off = True
        try:
            drained = await self._guests.drain_disks(self._deadline)
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
