"""The host as a place for the workloads of one cell: a folder for each tile, seen there as /data, and guests on it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from vmlab.lab.provision.guest_set import positions
from vmlab.lab.provision.timing import Timing
from vmlab.model.names import HOST_PLACE
from vmlab.plan.terms import CellPlan, GuestPlan
from vmlab.workloads.shell import Shell


@dataclass(frozen=True, slots=True)
class HostTiles:
    """The host's shell for each tile, and the folders that their files lie in, as this process sees them."""

    shells: Mapping[int, Shell]
    folders: tuple[Path, ...]


OpenTiles = Callable[[Sequence[int]], AbstractContextManager[HostTiles]]
"""Gives the host to these tiles for as long as the block runs; takes their folders away after it."""


class HostSide:
    """The host's places from their making to their removal; nothing is made for a cell without a workload there."""

    def __init__(self, plan: CellPlan, open_tiles: OpenTiles) -> None:
        self._wanted = sorted({one.tile for one in plan.workloads if HOST_PLACE in (one.source, one.target)})
        self._open_tiles = open_tiles
        self._closing = contextlib.ExitStack()
        self._tiles = HostTiles({}, ())

    def make(self) -> None:
        """Make the places. Raises HypervisorError, GuestError, StoreError and OSError."""
        if self._wanted:
            self._tiles = self._closing.enter_context(self._open_tiles(self._wanted))

    def shell(self, tile: int) -> Shell:
        """The host for a tile that has a workload there, once they were made."""
        return self._tiles.shells[tile]

    async def files(self) -> list[Path]:
        """All files that the workloads have on the host now. Raises OSError."""
        return await asyncio.to_thread(lambda: [file for folder in self._tiles.folders for file in files_below(folder)])

    async def remove(self) -> None:
        """Take the places away with all their files. Raises OSError and StoreError for what is left."""
        await asyncio.to_thread(self._closing.close)


def files_below(folder: Path) -> Iterator[Path]:
    """All plain files in a folder and below it. Raises OSError."""

    def fail(error: OSError) -> None:
        raise error

    for place, _, names in os.walk(folder, onerror=fail):
        files = (Path(place, name) for name in names)
        yield from (file for file in files if file.is_file() and not file.is_symlink())


@dataclass(frozen=True, slots=True)
class BareGuest:
    """One that is there: its shell, the folder of its files as this process sees it, and its CPUs in words."""

    shell: Shell
    folder: Path
    cpus: tuple[int, ...]
    words: str


OpenBare = Callable[[GuestPlan, tuple[int, int], Collection[int], float], AbstractAsyncContextManager[BareGuest]]
"""Makes a guest on the host, with its servers running within so many seconds, and takes it away after the block.

It is given its tile and its place in that, and the CPUs that are taken, once for each time in there: of these it gets
those that are least so. Raises VmlabError and OSError.
"""


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
