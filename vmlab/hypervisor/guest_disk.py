"""The disk below the guests' files: the host's own, or an emulated one that the scenario orders."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NoReturn

from vmlab.model.ordered import EMULATED_DISK


class GuestDisk:
    """The host's own disk, which is as it is: nothing is done to it. An ordered one, `EmulatedDisk`, is a subclass."""

    @property
    def pid(self) -> int | None:
        """The process that is the disk; None for the host's own, and while it is not open."""
        return None

    @property
    def dead(self) -> bool:
        """Whether the disk has died, so that no guest can run on it any more."""
        return False

    async def begin(self, image: Path, tell: Callable[[str], None]) -> None:
        """Put the run's disks and `image` on it; `tell` takes a line for each figure of its proof."""
        for figure in await self.open():
            tell(f"{EMULATED_DISK}, {figure}")
        await self.cover(image)

    async def open(self) -> list[str]:
        """Make it and put the run's disks on it; a line for each figure of its proof."""
        return []

    async def cover(self, file: Path) -> None:
        """Put a file on it, until it is closed."""

    def covering(self, files: Iterable[Path]) -> AbstractAsyncContextManager[None]:
        """The files lie on it while the block runs."""
        return contextlib.nullcontext()

    async def set_limits(self) -> None:
        """Be as slow as the scenario asks."""

    async def lift_limits(self) -> None:
        """Be as fast as possible."""

    @contextlib.asynccontextmanager
    async def limited(self) -> AsyncIterator[None]:
        """It is slow while the block runs: what prepares and compares outside of it is not measured."""
        await self.set_limits()
        try:
            yield
        finally:
            await self.lift_limits()

    @contextlib.asynccontextmanager
    async def unlimited(self) -> AsyncIterator[None]:
        """Within `limited`: an emulated disk ends at once what is under way while the block runs."""
        await self.lift_limits()
        try:
            yield
        finally:
            await self.set_limits()

    async def until_dead(self) -> NoReturn:
        """Raise HypervisorError, with the cause, when it has died; the host's own never does."""
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    async def close(self) -> None:
        """Take it away."""
