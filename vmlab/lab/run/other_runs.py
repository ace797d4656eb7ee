"""Each run records in its own store which other runs measure on this host at the same time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from vmlab.lab.process.measuring_runs import others_measuring
from vmlab.model.errors import StoreError
from vmlab.model.event import AnotherRunSeen, Event

LOOK_SECONDS = 1.0


@contextlib.asynccontextmanager
async def noted_others(place: int, own: str, emit: Callable[[Event], object]) -> AsyncIterator[None]:
    """While the context lasts, emit an event for each other run, once. `place` is from `measuring.measuring_place`."""
    seen: set[str] = set()

    def look() -> None:
        # If it could not be written, as on a full disk, it is tried again at the next poll.
        with contextlib.suppress(StoreError, OSError):
            for other in others_measuring(place, own):
                if other.run not in seen:
                    emit(AnotherRunSeen(run=other.run, user=other.user, launcher=other.launcher, folder=other.folder))
                    seen.add(other.run)

    async def watch() -> None:
        while True:
            look()
            await asyncio.sleep(LOOK_SECONDS)

    watching = asyncio.ensure_future(watch())
    try:
        yield
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        # A run that began in the last moment is recorded as well.
        look()
