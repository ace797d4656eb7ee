"""The process of an emulated disk, from its start to its end: words in, the same words out, and why it died."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from vmlab.model.concurrency import within
from vmlab.model.errors import DeadlineExceeded, HypervisorError
from vmlab.system.processes import signal_process, state_of

READY, LIFT, SET = "ready", "lift", "set"
"""What it says once, and what it is asked for."""
SERVED = "disk"
"""The name of the one file that it serves."""
SERVER = "vmlab.hypervisor.emulated_disk.disk_server"
PATIENCE = 30.0
"""Seconds without a completed request, or without an answer, after which the disk is given up."""
_END = 10.0
_STOPPED = {"T": ": its process is stopped", "t": ": a debugger has stopped its process"}
"""What of a process's state explains why it does nothing."""


class DiskProcess:
    """One process; `start` makes it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        self._process = process
        self._words = asyncio.ensure_future(process.stderr.read())
        self._asking = asyncio.Lock()
        self._given_up = ""

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
            await started._hear(READY, PATIENCE)
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

    def give_up(self, why: str) -> None:
        """Kill it, so that whoever waits for it gets an error; `why` is the cause. Any thread may call it."""
        self._given_up = self._given_up or f"{why}{_STOPPED.get(state_of(self.pid) or '', '')}"
        signal_process(self.pid, signal.SIGKILL, lambda words: SERVER.encode() in words.split(b"\0"))

    async def ask(self, word: str) -> None:
        """Return when it has done what `word` says. Raises HypervisorError where it has died or does not answer."""
        assert self._process.stdin is not None
        async with self._asking:
            with contextlib.suppress(ConnectionError):
                self._process.stdin.write(f"{word}\n".encode())
                await self._process.stdin.drain()
            try:
                await self._hear(word, PATIENCE)
            except DeadlineExceeded as error:
                self.give_up(str(error))
                raise HypervisorError(await self._ending()) from error

    async def _hear(self, word: str, deadline: float) -> None:
        assert self._process.stdout is not None
        async with within(deadline, f"the emulated disk did not say {word!r} within {deadline:g} s"):
            answer = await self._process.stdout.readline()
        if answer.decode("utf-8", "replace").strip() != word:
            raise HypervisorError(await self._ending())

    async def until_dead(self) -> NoReturn:
        """Raise HypervisorError, with the cause, when it has ended; waits until then."""
        await self._process.wait()
        raise HypervisorError(await self._ending())

    async def _ending(self) -> str:
        try:
            async with asyncio.timeout(_END):
                status = await self._process.wait()
                said = (await asyncio.shield(self._words)).decode("utf-8", "replace").strip().splitlines()
        except TimeoutError:
            return "the process of the emulated disk said something else than it was asked for"
        if self._given_up:
            return self._given_up
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        return f"the process of the emulated disk died ({how})" + (f": {said[-1]}" if said else "")

    async def end(self) -> None:
        """End it: it stops with its standard input, and is killed where it does not."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_END):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._words


class StallWatch:
    """Gives the disk up where requests to its device wait and none has been completed for `patience` seconds.

    In a thread of its own, from the start to `end`: whoever waits for the disk may be the process's event loop.
    `device` is the device's folder in /sys.
    """

    def __init__(self, process: DiskProcess, device: Path, patience: float = PATIENCE) -> None:
        self._process = process
        self._stat = device / "stat"
        self._patience = patience
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="emulated disk", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Watch no longer."""
        self._ending.set()
        self._thread.join()

    def _watch(self) -> None:
        completed, since = -1, time.monotonic()
        while not self._ending.wait(min(1.0, self._patience / 4)):
            try:
                # Linux's block/stat.rst: reads, writes, discards and flushes that were completed; requests in flight.
                figures = [int(word) for word in self._stat.read_text().split()]
            except OSError:
                return
            before, completed = completed, sum(figures[place] for place in (0, 4, 11, 15) if place < len(figures))
            now = time.monotonic()
            if completed != before or figures[8] == 0:
                since = now
            elif now - since >= self._patience:
                waiting = "1 waits" if figures[8] == 1 else f"{figures[8]} wait"
                self._process.give_up(
                    f"the emulated disk has completed no request for {now - since:.0f} s while {waiting}"
                )
                return
