"""How long requests of guests' disks take while a cell's workloads run: read every ten seconds, and where spans end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.protocols import DiskLatency, Hypervisor
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.model.cell_event import DiskLatencyRead
from vmlab.model.errors import DeadlineExceeded, HypervisorError, in_one_line
from vmlab.telemetry.latency_bins import BINS, Packed, packed

Ask = Callable[[DomainSpec], Awaitable[None]]


@dataclass(slots=True)
class _Counted:
    """What a guest's QEMU had counted when it was asked last, at `since` on the monotonic clock."""

    since: float
    counts: DiskLatency = field(default_factory=dict)
    is_asked: bool = False


class LatencyReadings:
    """Reads the latency of the disks of a cell's guests. What cannot be read costs this reading alone, and is said once
    for each guest: QEMU counts on, and the next reading has it.
    """

    def __init__(self, hypervisor: Hypervisor, guests: GuestSet, events: CellEvents, interval: float) -> None:
        self._hypervisor = hypervisor
        self._guests = guests
        self._events = events
        self._interval = interval
        self._counted: dict[str, _Counted] = {}
        self._doubted: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    async def begin(self, tile: int | None = None) -> None:
        """The workloads of all guests, or of those of a tile that is added, are about to start: count from now on."""
        await self._of_each(self._of_tile(tile), self._begin_guest)

    def start(self) -> None:
        """The workloads work: read again and again, until `stop`."""
        self._task = asyncio.ensure_future(self._read_on())

    async def read(self) -> None:
        """Read the latency of all guests now, as something is changed."""
        await self._of_each(self._guests.specs, self._read_guest)

    async def leave(self, tile: int) -> None:
        """The guests of a tile are about to end."""
        await self.read()
        for spec in self._of_tile(tile):
            self._counted.pop(spec.name, None)

    async def end(self) -> None:
        """The workloads have ended: read what came since the last reading."""
        await self.stop()
        await self.read()

    async def stop(self) -> None:
        """Read no more by itself. A reading that is under way is given up; nothing that was counted is lost with it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        for counted in self._counted.values():
            counted.is_asked = False

    async def _read_on(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self.read()

    def _of_tile(self, tile: int | None) -> list[DomainSpec]:
        return [spec for spec in self._guests.specs if tile in (None, spec.tile)]

    async def _of_each(self, specs: Iterable[DomainSpec], ask: Ask) -> None:
        await asyncio.gather(*(self._asked(spec, ask) for spec in list(specs)))

    async def _asked(self, spec: DomainSpec, ask: Ask) -> None:
        try:
            await ask(spec)
        except (HypervisorError, DeadlineExceeded) as error:
            if spec.name not in self._doubted:
                self._doubted.add(spec.name)
                self._events.doubt(f"how long requests of its disks take could not be read: {in_one_line(error)}")

    async def _begin_guest(self, spec: DomainSpec) -> None:
        await self._hypervisor.guest_disks.begin_latency(spec.name)
        self._counted[spec.name] = _Counted(time.monotonic())

    async def _read_guest(self, spec: DomainSpec) -> None:
        counted = self._counted.get(spec.name)
        if counted is None or counted.is_asked:
            return
        counted.is_asked = True
        try:
            now = await self._hypervisor.guest_disks.disk_latency(spec.name)
        finally:
            counted.is_asked = False
        self._events.emit(
            DiskLatencyRead(
                cell=self._events.cell,
                tile=spec.tile,
                guest=spec.guest,
                since=counted.since,
                scale=list(BINS.scale),
                counts=_added(counted.counts, now),
            )
        )
        counted.since, counted.counts = time.monotonic(), now


def _added(before: DiskLatency, now: DiskLatency) -> dict[str, dict[str, Packed]]:
    """What was counted between two readings, without what had no requests."""
    added: dict[str, dict[str, Packed]] = {}
    for disk, operations in now.items():
        for operation, counts in operations.items():
            old = before.get(disk, {}).get(operation) or [0] * len(counts)
            if new := packed([count - was for count, was in zip(counts, old, strict=True)]):
                added.setdefault(disk, {})[operation] = new
    return added
