"""Guests that were lost, and the callers that wait for such a loss."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import NoReturn

from vmlab.model.errors import GuestLost


class Losses:
    """A loss is reported to all who wait for it, now or later, until a guest of that name starts again.

    Belongs to one event loop; may be called only from its thread.
    """

    def __init__(self) -> None:
        self._lost: dict[str, tuple[str, bool]] = {}
        self._waiting: list[tuple[frozenset[str], asyncio.Future[NoReturn]]] = []

    def forget(self, name: str) -> None:
        """Guest `name` starts again, or was ended by the lab: forget an earlier report."""
        self._lost.pop(name, None)

    def report(self, name: str, cause: str, *, crashed: bool = False) -> None:
        """Guest `name` is lost, see `GuestLost`; of several causes the first one is kept."""
        if name in self._lost:
            return
        self._lost[name] = cause, crashed
        for names, waiting in self._waiting:
            if name in names and not waiting.done():
                waiting.set_exception(self._loss(name))

    def cause(self, name: str) -> str | None:
        """Why guest `name` was lost; None where it was not."""
        return self._lost[name][0] if name in self._lost else None

    def _loss(self, name: str) -> GuestLost:
        cause, crashed = self._lost[name]
        return GuestLost(name, cause, crashed=crashed)

    async def until_lost(self, names: Collection[str]) -> NoReturn:
        """Raise GuestLost for the first of `names` that is lost, or was lost before; wait for ever otherwise."""
        for name in names:
            if name in self._lost:
                raise self._loss(name)
        waiting: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()
        entry = (frozenset(names), waiting)
        self._waiting.append(entry)
        try:
            await waiting
        finally:
            self._waiting.remove(entry)
        raise AssertionError("a loss has no result")
