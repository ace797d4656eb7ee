"""What ends a cell from outside: a guest or a disk that is lost, or another host that has called it off.

A disk is silent that answers nothing while requests are under way.

An idle disk answers nothing either, so an answer is missed only where a request waits for one: QEMU says how many it
has taken and not answered. It does not know of a request that it never saw, nor of an answer that the guest never heard
of, as where an interrupt was lost. So where QEMU has answered all, the guest is asked what is under way; and it alone
tells reads and writes from flushes. A slow disk does answer: one answer to anything ends the silence.

A flush may take as long as the host needs to write what was written before, and ends no cell by itself. A read or a
write that waits for `Timing.lost_disk` seconds does: a guest's kernel complains of a hung task after as long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.protocols import DiskRequests, GuestDisk, Hypervisor
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.cell.common_start import HostsStart
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.lab.provision.timing import Timing
from vmlab.model.cell_event import DiskSilent
from vmlab.model.concurrency import run_all
from vmlab.model.errors import DeadlineExceeded, GuestLost, HypervisorError
from vmlab.model.scenarios.disk_levers import DATA_TARGETS
from vmlab.workloads.verification import UNREADABLE

_ANSWER = 5.0
_MOST = 2**16
"""More requests than all queues of a disk have room for: a guest's word is no more than that."""
_IN_GUEST = {"vda": "root"} | dict.fromkeys(DATA_TARGETS.values(), "data")
"""What guests call their disks. The data disk is plugged in when the other one is there."""


@dataclass(slots=True)
class Silence:
    """A disk, which has `answered` so many requests. Since `since`, on the monotonic clock, some were under way and
    none was answered; None where it answers, or has nothing to.

    `waiting` is how many were under way when it was looked at last, `transfers` whether some of them are reads or
    writes, `unheard` whether QEMU has answered all of them, and `said` whether the silence was reported.
    """

    answered: int
    since: float | None = None
    waiting: int = 0
    transfers: bool = False
    unheard: bool = False
    said: bool = False

    def look(self, now: float, requests: DiskRequests, in_guest: int | None) -> None:
        """Take in what QEMU counts `now`, and what reads and writes the guest has under way; None where it is not
        known.
        """
        known = [count for count in (requests.taken, in_guest) if count is not None]
        if requests.answered != self.answered:
            self.answered, self.since = requests.answered, None
        elif known:
            self.waiting = max(known)
            self.transfers = bool(self.waiting if in_guest is None else in_guest)
            self.unheard = requests.taken == 0
            self.since = None if not self.waiting else now if self.since is None else self.since

    def seconds(self, now: float) -> float:
        """How long it has been silent; 0 where it is not."""
        return 0.0 if self.since is None else now - self.since


class SilentDisks:
    """Watches the disks of a cell's guests from `begin` on, and says which is silent for `timing.silent_disk`."""

    def __init__(self, hypervisor: Hypervisor, guests: GuestSet, events: CellEvents, timing: Timing) -> None:
        self._hypervisor = hypervisor
        self._guests = guests
        self._events = events
        self._timing = timing
        self._disks: dict[tuple[str, str], Silence] = {}
        self._mute: set[str] = set()
        """Guests whose agent does not know what their disks do."""
        self._begun = asyncio.Event()

    async def begin(self) -> None:
        """The guests are ready, and their disks answer: watch them from now on.

        Each is asked once: what an agent needs to answer is then in the guest's memory, and no disk is needed for it.
        """
        await asyncio.gather(*(self._in_guest(spec.name) for spec in self._guests.specs))
        self._begun.set()

    async def until_lost(self) -> NoReturn:
        """Raise GuestLost for the first guest with a disk that no read and no write comes back from; else wait."""
        await self._begun.wait()
        while True:
            await asyncio.gather(*(self._look(spec) for spec in list(self._guests.specs)))
            await asyncio.sleep(self._timing.disk_look)

    def reasons(self) -> Iterator[str]:
        """A sentence for each disk that is silent now and was reported."""
        now, there = time.monotonic(), set(self._guests.names)
        for (guest, disk), silence in self._disks.items():
            if silence.said and guest in there:
                yield f"{guest}: {_words(disk, silence, now)}"

    async def _look(self, spec: DomainSpec) -> None:
        try:
            requests = await self._hypervisor.guest_disks.disk_requests(spec.name)
        except (HypervisorError, DeadlineExceeded):
            # A guest that is being ended, or whose QEMU stands still: others say so.
            return
        now = time.monotonic()
        watched = {
            disk: self._disks.setdefault((spec.name, disk), Silence(one.answered)) for disk, one in requests.items()
        }
        still = [disk for disk, one in requests.items() if one.answered == watched[disk].answered]
        asked = any(not requests[disk].taken or watched[disk].since is not None for disk in still)
        in_guest = await self._in_guest(spec.name) if asked else {}
        for disk, silence in watched.items():
            seconds = silence.seconds(now)
            silence.look(now, requests[disk], in_guest.get(disk))
            self._report(spec, disk, silence, now, seconds)

    def _report(self, spec: DomainSpec, disk: str, silence: Silence, now: float, before: float) -> None:
        seconds = silence.seconds(now)
        if silence.said and silence.since is None:
            silence.said = False
            self._said(spec, disk, before, 0)
            self._events.doubt(f"{spec.name}: its {disk} disk answers again, after {before:.0f} s")
        elif silence.since is not None and not silence.said and seconds >= self._timing.silent_disk:
            silence.said = True
            self._said(spec, disk, seconds, silence.waiting)
            self._events.doubt(f"{spec.name}: {_words(disk, silence, now)}")
        if silence.since is not None and seconds >= self._timing.lost_disk and silence.transfers:
            silence.said = False
            raise GuestLost(spec.name, _words(disk, silence, now))

    def _said(self, spec: DomainSpec, disk: str, seconds: float, requests: int) -> None:
        cell, tile, guest = self._events.cell, spec.tile, spec.guest
        self._events.emit(DiskSilent(cell=cell, tile=tile, guest=guest, disk=disk, seconds=seconds, requests=requests))

    async def _in_guest(self, name: str) -> dict[str, int]:
        """The reads and writes that a guest has under way, by disk; {} where it does not say."""
        if name in self._mute:
            return {}
        try:
            answer = await self._hypervisor.agent(name, "guest-get-diskstats", deadline=_ANSWER)
            under_way = {one["name"]: int(one["stats"]["ios-pgr"]) for one in answer if one["name"] in _IN_GUEST}
            return {_IN_GUEST[name]: min(max(0, count), _MOST) for name, count in under_way.items()}
        except DeadlineExceeded:
            return {}
        except (HypervisorError, *UNREADABLE):
            if not self._begun.is_set():
                self._mute.add(name)
            return {}


def _words(disk: str, silence: Silence, now: float) -> str:
    requests = "a request is" if silence.waiting == 1 else f"{silence.waiting} requests are"
    heard = ", which QEMU has answered and the guest has not heard of" if silence.unheard else ""
    return f"its {disk} disk has answered nothing for {silence.seconds(now):.0f} s, and {requests} under way{heard}"


@dataclass(frozen=True, slots=True)
class Losses:
    """Watches the guests of a cell and the disk below them. `_others` may call off a cell that they run too."""

    _hypervisor: Hypervisor
    _guests: GuestSet
    _disk: GuestDisk
    _silent_disks: SilentDisks
    _others: HostsStart | None

    async def until_any(self) -> NoReturn:
        """Raise the first one: GuestLost, HypervisorError or CommandFailed."""
        watches: list[Coroutine[Any, Any, NoReturn]] = [
            self._until_guest_lost(self._until_guests_changed),
            self._until_guest_lost(self._silent_disks.until_lost),
            self._until_disk_lost(),
        ]
        if self._others is not None:
            watches.append(self._others.until_called_off())
        await run_all(watches)
        raise AssertionError("none of them returns")

    async def _until_disk_lost(self) -> NoReturn:
        try:
            await self._disk.until_dead()
        except HypervisorError:
            # No guest gets an answer from its disk any more.
            await self._guests.disconnect()
            raise

    async def _until_guest_lost(self, watch: Callable[[], Awaitable[None]]) -> NoReturn:
        try:
            while True:
                await watch()
        except GuestLost as lost:
            # Calls that wait for the lost guest would go on waiting while they are cancelled.
            await self._guests.disconnect([lost.guest])
            raise

    async def _until_guests_changed(self) -> None:
        """Watch the guests there are, until there are others. Raises GuestLost."""
        self._guests.changed.clear()
        waiting = asyncio.ensure_future(self._guests.changed.wait())
        lost = asyncio.ensure_future(self._hypervisor.watch.until_lost(self._guests.names))
        try:
            await asyncio.wait([waiting, lost], return_when=asyncio.FIRST_COMPLETED)
            if lost.done():
                lost.result()
        finally:
            for task in (waiting, lost):
                task.cancel()
            await asyncio.gather(waiting, lost, return_exceptions=True)
