"""The guests of one cell that run on the host itself: opened, their servers started, closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from vmlab.lab.provision.addresses import positions
from vmlab.lab.provision.host_side import files_below
from vmlab.lab.provision.timing import Timing
from vmlab.plan.terms import CellPlan, GuestPlan
from vmlab.workloads.contract import Shell


@dataclass(frozen=True, slots=True)
class BareGuest:
    """One that is there: its shell, the folder of its files as this process sees it, and its CPUs in words."""

    shell: Shell
    folder: Path
    cpus: tuple[int, ...]
    words: str


class OpenBare(Protocol):
    """Makes a place on the host and takes it away after the block."""

    def __call__(
        self, guest: GuestPlan, position: tuple[int, int], taken: Collection[int], deadline: float
    ) -> AbstractAsyncContextManager[BareGuest]:
        """The guest with its servers running within `deadline` seconds; `position` is its tile and its place in that.

        Of CPUs that are `taken`, once for each time in there, it is given those that are least so. Raises VmlabError
        and OSError.
        """
        ...


class BareGuests:
    """Those of one cell; nothing is made for a cell without any."""

    def __init__(self, plan: CellPlan, open_bare: OpenBare, timing: Timing, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._open = open_bare
        self._timing = timing
        self._say = say
        self._closing = AsyncExitStack()
        self._there: dict[str, BareGuest] = {}

    async def start(self) -> None:
        """Open them one after another, as each takes CPUs that the next one leaves alone.

        Raises HypervisorError, GuestError, DeadlineExceeded, StoreError and OSError.
        """
        places = positions([*self._plan.guests, *self._plan.bare])
        for guest in self._plan.bare:
            taken = [cpu for one in self._there.values() for cpu in one.cpus]
            deadline = self._timing.services_of(1, 1)
            opened = self._open(guest, places[guest.key], taken, deadline)
            self._there[guest.key] = one = await self._closing.enter_async_context(opened)
            self._say(f"cell {self._plan.index}: {guest.key} on the host has {one.words}")

    def __contains__(self, key: str) -> bool:
        """Whether the guest with this key is one of them."""
        return key in self._there

    def shell(self, key: str) -> Shell:
        """One that was opened."""
        return self._there[key].shell

    async def files(self) -> list[Path]:
        """All files that they have on the host's disk now. Raises OSError."""
        return await asyncio.to_thread(
            lambda: [file for one in self._there.values() for file in files_below(one.folder)]
        )

    async def close(self) -> None:
        """End all that runs in them, and take their files away. Raises HypervisorError, OSError and StoreError."""
        await self._closing.aclose()
