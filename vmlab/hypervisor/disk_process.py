"""The process of an emulated disk, from its start to its end: words in, the same words out, and why it died."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from vmlab.model.errors import DeadlineExceeded, HypervisorError

READY, LIFT, SET = "ready", "lift", "set"
"""What it says once, and what it is asked for."""
SERVED = "disk"
"""The name of the one file that it serves."""
SERVER = "vmlab.hypervisor.disk_server"
_START = 30.0
_ANSWER = 10.0


class DiskProcess:
    """One process; `start` makes it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        self._process = process
        self._words = asyncio.ensure_future(process.stderr.read())
        self._asking = asyncio.Lock()

    @classmethod
    async def start(cls, arguments: Sequence[str], kept: int, module: str = SERVER) -> DiskProcess:
        """Start the program `module` with `arguments`; it inherits the descriptor `kept`.

        Raises as `ask` does, and OSError.
        """
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(kept,),
        )
        started = cls(process)
        try:
            await started._hear(READY, _START)
        except BaseException:
            await started.end()
            raise
        return started

    @property
    def pid(self) -> int:
        """Its number in this PID namespace."""
        return self._process.pid

    @property
    def dead(self) -> bool:
        """Whether it has ended."""
        return self._process.returncode is not None

    async def ask(self, word: str) -> None:
        """Return when it has done what `word` says. Raises HypervisorError where it has died, DeadlineExceeded."""
        assert self._process.stdin is not None
        async with self._asking:
            with contextlib.suppress(ConnectionError):
                self._process.stdin.write(f"{word}\n".encode())
                await self._process.stdin.drain()
            await self._hear(word, _ANSWER)

    async def _hear(self, word: str, deadline: float) -> None:
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(deadline):
                answer = await self._process.stdout.readline()
        except TimeoutError as error:
            raise DeadlineExceeded(f"the emulated disk did not say {word!r} within {deadline:g} s") from error
        if answer.decode("utf-8", "replace").strip() != word:
            raise HypervisorError(await self._ending())

    async def until_dead(self) -> NoReturn:
        """Raise HypervisorError, with the cause, when it has ended; waits until then."""
        await self._process.wait()
        raise HypervisorError(await self._ending())

    async def _ending(self) -> str:
        try:
            async with asyncio.timeout(_ANSWER):
                status = await self._process.wait()
                said = (await asyncio.shield(self._words)).decode("utf-8", "replace").strip().splitlines()
        except TimeoutError:
            return "the process of the emulated disk said something else than it was asked for"
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        return f"the process of the emulated disk died ({how})" + (f": {said[-1]}" if said else "")

    async def end(self) -> None:
        """End it: it stops with its standard input, and is killed where it does not."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_ANSWER):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._words
