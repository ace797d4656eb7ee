"""The host as a place for the workloads of one cell: a folder of its own for each tile, seen there as /data."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from vmlab.model.names import HOST_PLACE
from vmlab.plan.terms import CellPlan
from vmlab.workloads.contract import Shell


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
