"""The cells of a held run, which begin one by one as another program releases them: the controller of a fleet."""

from __future__ import annotations

import asyncio

from vmlab.model.quantities import format_seconds


class ReleasedCells:
    """Waits for the next number that is released, at most `patience` seconds after it last heard of the program."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.overdue = ""
        """Why nothing is waited for any longer, in words; empty while there is no such reason."""
        self._known: set[int] = set()
        self._waiting: asyncio.Queue[int | None] = asyncio.Queue()
        self._heard = 0.0

    def release(self, cell: int | None) -> None:
        """Let the cell of this number begin, or with None let the run end; a second release of a cell does nothing."""
        if cell is None or cell not in self._known:
            self._waiting.put_nowait(cell)
        if cell is not None:
            self._known.add(cell)

    def keep(self) -> None:
        """Note that the program is still there."""
        self._heard = asyncio.get_running_loop().time()

    async def next(self) -> int | None:
        """The next cell's number; None where none follows."""
        loop = asyncio.get_running_loop()
        self._heard = loop.time()
        while (left := self._heard + self.patience - loop.time()) > 0:
            try:
                async with asyncio.timeout(left):
                    return await self._waiting.get()
            except TimeoutError:
                continue
        self.overdue = f"nobody asked for a further cell for {format_seconds(self.patience)}"
        return None
