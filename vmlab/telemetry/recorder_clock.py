"""The recorder's clocks: absolute deadlines on the monotonic clock, and steps of the other clocks in between."""

from __future__ import annotations

import math
import threading
import time
from typing import NamedTuple, Protocol

_SMALLEST_STEP = 0.001
_SHORT_WAIT = 0.2


class Moment(NamedTuple):
    """The three clocks at one moment, in seconds; `boot` goes on while the host is suspended, `mono` does not."""

    mono: float
    wall: float
    boot: float


class Clocks(Protocol):
    """The source of the time; tests replace it."""

    def now(self) -> Moment:
        """All clocks, read one after the other."""
        ...

    def sleep(self, seconds: float) -> bool:
        """Wait `seconds`; True when `stop` ended the wait."""
        ...

    def stop(self) -> None:
        """End the current wait, and every later one at once."""
        ...


class HostClocks:
    """The host's clocks. A short wait is a plain sleep; a long one is a lock's timeout, so that `stop` can end it."""

    def __init__(self) -> None:
        self._stop = threading.Lock()
        self._stop.acquire()

    def now(self) -> Moment:
        """See `Clocks.now`."""
        return Moment(time.monotonic(), time.time(), time.clock_gettime(time.CLOCK_BOOTTIME))

    def sleep(self, seconds: float) -> bool:
        """See `Clocks.sleep`."""
        if seconds <= _SHORT_WAIT:
            time.sleep(max(0.0, seconds))  # A third cheaper, which matters at ten ticks a second.
            return not self._stop.locked()
        if not self._stop.acquire(timeout=seconds):
            return False
        self._stop.release()
        return True

    def stop(self) -> None:
        """See `Clocks.stop`."""
        if self._stop.locked():
            self._stop.release()


class Tick(NamedTuple):
    """One tick: when it began, the seconds since the one before, how late it was, and how many were skipped.

    `clock_step` is how far the wall clock was set in between, `suspended` how long the host slept, both in seconds.
    """

    moment: Moment
    length: float
    lateness: float
    missed: int
    clock_step: float
    suspended: float


class Ticker:
    """Ticks at ``start + n * interval``; after one that is late by more than an interval, missed ones are skipped."""

    def __init__(self, interval: float, clocks: Clocks) -> None:
        self._interval = interval
        self._clocks = clocks
        self._last = clocks.now()
        self.deadline = self._last.mono + interval
        """When the next tick is due, in seconds of the monotonic clock."""

    def wait(self) -> Tick | None:
        """Wait for the next tick and return it; None when the recorder is to stop."""
        if self._clocks.sleep(self.deadline - self._clocks.now().mono):
            return None
        now, last = self._clocks.now(), self._last
        lateness = now.mono - self.deadline
        missed = 0 if lateness < self._interval else math.floor(lateness / self._interval)
        self.deadline += (missed + 1) * self._interval
        self._last = now
        length = now.mono - last.mono
        return Tick(
            now,
            length,
            lateness,
            missed,
            _noticeable(now.wall - last.wall - (now.boot - last.boot)),
            _noticeable(now.boot - last.boot - length),
        )


def _noticeable(seconds: float) -> float:
    """0 for less than the microseconds by which clocks differ that are read one after the other."""
    return seconds if abs(seconds) >= _SMALLEST_STEP else 0.0
