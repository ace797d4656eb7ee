"""The disk below the guests' files: the host's own, or an emulated one that the scenario orders."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NoReturn, Protocol

from vmlab.model.ordered import EMULATED_DISK


class OrderedDisk(Protocol):
    """What is asked of an emulated disk; see `hypervisor.emulated_disk.EmulatedDisk` for the errors."""

    @property
    def pid(self) -> int | None:
        """Its process; None while it is not open."""
        ...

    @property
    def dead(self) -> bool:
        """Whether its process has ended before `close`."""
        ...

    async def open(self) -> list[str]:
        """Make it and put the run's disks on it; a line for each figure of its proof."""
        ...

    async def cover(self, file: Path) -> None:
        """Put a file on it, until it is closed."""
        ...

    def covering(self, files: Iterable[Path]) -> AbstractAsyncContextManager[None]:
        """Put files on it while the block runs."""
        ...

    async def set_limits(self) -> None:
        """Be as slow as the scenario asks."""
        ...

    async def lift_limits(self) -> None:
        """Be as fast as possible."""
        ...

    async def until_dead(self) -> NoReturn:
        """Raise HypervisorError, with the cause, when it has died."""
        ...

    async def close(self) -> None:
        """Take it away."""
        ...


class GuestDisk:
    """Does nothing where the guests' files lie on the host's own disk, that is, without an `ordered` one."""

    def __init__(self, ordered: OrderedDisk | None = None) -> None:
        self._ordered = ordered

    @property
    def pid(self) -> int | None:
        """The process that is the disk, if there is one."""
        return None if self._ordered is None else self._ordered.pid

    @property
    def dead(self) -> bool:
        """Whether the disk has died, so that no guest can run on it any more."""
        return self._ordered is not None and self._ordered.dead

    async def open(self, image: Path, tell: Callable[[str], None]) -> None:
        """Put the run's disks and `image` on it; `tell` takes a line for each figure of its proof."""
        if self._ordered is not None:
            for figure in await self._ordered.open():
                tell(f"{EMULATED_DISK}, {figure}")
            await self._ordered.cover(image)

    def covering(self, files: Iterable[Path]) -> AbstractAsyncContextManager[None]:
        """The files lie on it while the block runs."""
        return contextlib.nullcontext() if self._ordered is None else self._ordered.covering(set(files))

    @contextlib.asynccontextmanager
    async def limited(self) -> AsyncIterator[None]:
        """It is slow while the block runs: what prepares and compares outside of it is not measured."""
        if self._ordered is None:
            yield
            return
        await self._ordered.set_limits()
        try:
            yield
        finally:
            await self._ordered.lift_limits()

    @contextlib.asynccontextmanager
    async def unlimited(self) -> AsyncIterator[None]:
        """Within `limited`: an emulated disk ends at once what is under way while the block runs."""
        if self._ordered is None:
            yield
            return
        await self._ordered.lift_limits()
        try:
            yield
        finally:
            await self._ordered.set_limits()

    async def until_dead(self) -> NoReturn:
        """Raise HypervisorError, with the cause, when it has died; the host's own never does."""
        if self._ordered is not None:
            await self._ordered.until_dead()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    async def close(self) -> None:
        """Take it away."""
        if self._ordered is not None:
            await self._ordered.close()
