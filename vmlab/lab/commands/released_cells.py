"""The cells of a held run, which begin one by one as another program releases them: the controller of a fleet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from vmlab.model.quantities import format_seconds

_T = TypeVar("_T")


class ReleasedCells:
    """Waits for the next number that is released, at most `patience` seconds after it last heard of the program."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.overdue = ""
        """Why no cell is waited for any longer, in words; empty while there is no such reason."""
        self._known: set[int] = set()
        self._together: set[int] = set()
        self._waiting: asyncio.Queue[tuple[int | None]] = asyncio.Queue()
        self._heard = 0.0

    def release(self, cell: int | None, *, together: bool = False) -> None:
        """Let the cell of this number begin, or with None let the run end; a second release of a cell does nothing.

        With `together` its workloads start when those on other hosts do.
        """
        if cell is None or cell not in self._known:
            self._waiting.put_nowait((cell,))
        if cell is not None:
            self._known.add(cell)
            if together:
                self._together.add(cell)

    def is_together(self, cell: int) -> bool:
        """Whether a cell was released to start when other hosts do."""
        return cell in self._together

    def keep(self) -> None:
        """Note that the program is still there."""
        self._heard = asyncio.get_running_loop().time()

    async def next(self) -> int | None:
        """The next cell's number; None where none follows."""
        found = await self.patiently(self._waiting.get())
        if found is None:
            self.overdue = f"nobody asked for a further cell for {format_seconds(self.patience)}"
            return None
        return found[0]

    async def patiently(self, awaited: Awaitable[_T]) -> _T | None:
        """What is `awaited`; None where nothing was heard of the program for too long."""
        loop = asyncio.get_running_loop()
        self._heard = loop.time()
        waiting = asyncio.ensure_future(awaited)
        try:
            while (left := self._heard + self.patience - loop.time()) > 0:
                if (await asyncio.wait([waiting], timeout=left))[0]:
                    return waiting.result()
            return None
        finally:
            waiting.cancel()
