"""Locks that end with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class Lock:
    """An flock on a file, given up by `release` or by the end of the process. Programs that it starts do not get it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock up. The file stays: taking it away would let two processes lock two files of one name."""
        os.close(self._descriptor)

    @classmethod
    def try_exclusive(cls, path: Path) -> Lock | None:
        """The lock for this process alone, or None while somebody else has it."""
        return cls._take(path, fcntl.LOCK_EX)

    @classmethod
    def shared(cls, path: Path) -> Lock | None:
        """The lock together with others; None where the folder has gone, or somebody has it alone for a second.

        Whoever only looks whether an image is in use has it alone for a moment.
        """
        deadline = time.monotonic() + 1
        while (lock := cls._take(path, fcntl.LOCK_SH)) is None and path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        return lock

    @classmethod
    def _take(cls, path: Path, kind: int) -> Lock | None:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            # Between the two calls the file may have been moved away together with its folder.
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return cls(descriptor)
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(descriptor)
        return None
