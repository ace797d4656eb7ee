"""What ends a cell from outside: a guest or its disk that is lost, or another host that has called it off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, NoReturn

from vmlab.hypervisor.contract import Hypervisor
from vmlab.hypervisor.guest_disk import GuestDisk
from vmlab.lab.cell.hosts_start import HostsStart
from vmlab.lab.cell.silent_disks import SilentDisks
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.model.concurrency import run_all
from vmlab.model.errors import GuestLost, HypervisorError


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
