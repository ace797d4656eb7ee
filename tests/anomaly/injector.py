"""Counts the calls of a run by the name of the point where they are made, and spoils one of them.

A point is named by what is called there, such as ``hypervisor.create``, ``channel.receive`` or ``file.mkdir``.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

Mode = Literal["fail", "full", "hang", "stop"]
"""What becomes of the call: it fails once; it finds the disk full, which stays so for all calls that need room; it
hangs, a blocking call for a moment and an awaited one until it is cancelled; or the run is stopped while it is made."""

NEED_ROOM = frozenset(
    {"file.mkdir", "file.rename", "file.socket", "file.write"}
    | {"store.document", "store.event", "store.raw", "store.sample", "store.tables"}
)

AWAITED = ("hypervisor", "shell", "channel")
"""The families of calls that are awaited."""
BLOCKED_SECONDS = 0.05
"""For how long a blocking call hangs: a disk that stalls comes back."""

_quiet: ContextVar[bool] = ContextVar("_quiet", default=False)


@contextmanager
def unspoilt() -> Iterator[None]:
    """What runs in the block is neither counted nor spoilt: the fakes' own doings."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


@dataclass(frozen=True, slots=True)
class Fault:
    """The nth call at `point` is spoilt; written as ``POINT:N:MODE``."""

    point: str
    n: int
    mode: Mode

    def __str__(self) -> str:
        return f"{self.point}:{self.n}:{self.mode}"

    @property
    def family(self) -> str:
        """The part of the point's name before its dot."""
        return self.point.partition(".")[0]

    @property
    def is_waited_for(self) -> bool:
        """Whether the call hangs until a deadline of the lab; one that blocks hangs for a moment."""
        return self.mode == "hang" and self.family in AWAITED


@dataclass
class Injector:
    """One run's faults: one at most. `at_fault` is called just before it is made."""

    fault: Fault | None = None
    at_fault: Callable[[], None] = lambda: None
    counts: Counter[str] = field(default_factory=Counter)
    fired: bool = False
    stopped: bool = False
    where: str = ""
    """More of the call that was spoilt, such as the file."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def _mode(self, point: str, where: str = "") -> Mode | None:
        """What is to become of this call; None where it is left alone."""
        if _quiet.get():
            return None
        with self._lock:
            self.counts[point] += 1
            fault = self.fault
            if fault is None:
                return None
            if self.fired:
                return "full" if fault.mode == "full" and point in NEED_ROOM else None
            if fault.point != point or self.counts[point] != fault.n:
                return None
            self.fired, self.where = True, where
        with unspoilt():
            self.at_fault()
        return fault.mode

    def blocking(self, point: str, error: Callable[[], Exception], where: str = "") -> None:
        """To be called before a call that blocks; raises `error` where it fails."""
        mode = self._mode(point, where)
        if mode in ("fail", "full"):
            raise error()
        if mode == "hang":
            time.sleep(BLOCKED_SECONDS)
        elif mode == "stop":
            self._stop()

    async def awaited(self, point: str, error: Callable[[], Exception], hung: Callable[[], Exception] | None) -> None:
        """To be awaited before a call that is awaited.

        Where it hangs, it ends with `hung` after a moment, if the call has a deadline of its own, and else never.
        """
        mode = self._mode(point)
        if mode in ("fail", "full"):
            await asyncio.sleep(0)
            raise error()
        if mode == "hang":
            if hung is None:
                await asyncio.Event().wait()
            else:
                await asyncio.sleep(BLOCKED_SECONDS)
                raise hung()
        elif mode == "stop":
            self._stop()
            # The signal reaches the loop in one of its next turns, and finds the run in this call.
            for _ in range(5):
                await asyncio.sleep(0)

    def _stop(self) -> None:
        """As Ctrl-C does, wherever the run is: through the handler that is in force, if there is one."""
        if signal.getsignal(signal.SIGINT) not in (signal.SIG_DFL, signal.default_int_handler):
            self.stopped = True
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
