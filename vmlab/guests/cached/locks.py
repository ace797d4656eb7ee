"""Locks that are released when the process that holds them ends, also by a kill."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from vmlab.model.errors import RefusedError
from vmlab.system.file_system import NoLocksError, demand_usable, flock
from vmlab.system.removal import remove_file

USE_LOCK = "use.lock"
"""In each entry: shared while it is used, exclusive while it is made or removed; its time is that of the last use."""


def _nothing() -> None:
    """The default action while waiting: none."""


class Lock:
    """An flock on a file, given up by `release` or by the end of the process. Its children do not inherit it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock up. The file stays: taking it away would let two processes lock two files of one name."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @classmethod
    def try_exclusive(cls, path: Path) -> Lock | None:
        """The exclusive lock, or None while another process has it."""
        return cls._take(path, fcntl.LOCK_EX)

    @classmethod
    def shared(cls, path: Path) -> Lock | None:
        """The shared lock; None where the folder does not exist, or another process has it exclusively for a second.

        A process that checks whether an entry is in use has it exclusively for a moment.
        """
        deadline = time.monotonic() + 1
        while (lock := cls._take(path, fcntl.LOCK_SH)) is None and path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        return lock

    @classmethod
    def _take(cls, path: Path, kind: int) -> Lock | None:
        made = not path.exists()
        try:
            with contextlib.suppress(BlockingIOError, FileNotFoundError), contextlib.ExitStack() as closing:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                closing.callback(os.close, descriptor)
                flock(descriptor, kind | fcntl.LOCK_NB, path)
                # Between the two calls the file may have been moved away together with its folder.
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    closing.pop_all()
                    return cls(descriptor)
        except NoLocksError:
            if made:
                remove_file(path)
            raise
        return None


def wait_for(
    path: Path,
    *,
    every: float,
    seconds: float | None = None,
    busy: Callable[[], object] = _nothing,
    each: Callable[[], object] = _nothing,
) -> Lock:
    """The exclusive lock, tried `every` so many seconds; blocks.

    Several get it in no order: what they wait for is made once, and the others go on at once when it is there.
    `busy` is called once when another process has it, `each` before every further attempt; its errors end the waiting.
    Raises RefusedError after `seconds`, where another process has hung.
    """
    for lock in _attempts(path, seconds, busy):
        if lock is not None:
            return lock
        time.sleep(every)
        each()
    raise AssertionError("attempts end with a lock or an error")


async def wait_for_async(
    path: Path, *, every: float, seconds: float | None = None, busy: Callable[[], object] = _nothing
) -> Lock:
    """As `wait_for`, without blocking the event loop."""
    for lock in _attempts(path, seconds, busy):
        if lock is not None:
            return lock
        await asyncio.sleep(every)
    raise AssertionError("attempts end with a lock or an error")


def _attempts(path: Path, seconds: float | None, busy: Callable[[], object]) -> Iterator[Lock | None]:
    """None for each attempt that failed, and then the lock."""
    if not path.parent.is_dir():
        demand_usable(path.parent)
    began = time.monotonic()
    waiting = False
    while (lock := Lock.try_exclusive(path)) is None:
        if seconds is not None and time.monotonic() > began + seconds:
            raise RefusedError(
                f"another process has held {path} for longer than {seconds:g} s", remedy=f"fuser {path} tells which"
            )
        if not waiting:
            busy()
            waiting = True
        yield None
    yield lock
