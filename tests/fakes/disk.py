"""An emulated disk that only notes what is asked of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import NoReturn

from vmlab.hypervisor.protocols import GuestDisk
from vmlab.model.errors import HypervisorError, VmlabError

DIED = "the process of the emulated disk died (killed by signal 9)"


class FakeDisk(GuestDisk):
    """`asked` has what was asked of it, in that order; `die` lets it die. It cannot be opened with an `unwilling`."""

    def __init__(self, unwilling: VmlabError | None = None) -> None:
        self.asked: list[str] = []
        self._unwilling = unwilling
        self._died = asyncio.Event()

    @property
    def pid(self) -> int | None:
        return None

    @property
    def dead(self) -> bool:
        return self._died.is_set()

    def die(self) -> None:
        self._died.set()

    async def open(self) -> list[str]:
        self._asked("open")
        if self._unwilling is not None:
            raise self._unwilling
        return ["64 MiB in sequence: 139 MB/s, where the profile gives 140"]

    async def cover(self, file: Path) -> None:
        self._asked(f"cover {file.name}")

    @contextlib.asynccontextmanager
    async def covering(self, files: Iterable[Path]) -> AsyncIterator[None]:
        names = " ".join(sorted(file.name for file in files))
        self._asked(f"cover {names}")
        yield
        self.asked.append(f"uncover {names}")

    async def set_limits(self) -> None:
        self._asked("set")

    async def lift_limits(self) -> None:
        self._asked("lift")

    async def until_dead(self) -> NoReturn:
        await self._died.wait()
        raise HypervisorError(DIED)

    async def close(self) -> None:
        self.asked.append("close")

    def _asked(self, what: str) -> None:
        self.asked.append(what)
        if self.dead:
            raise HypervisorError(DIED)
