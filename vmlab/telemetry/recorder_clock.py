"""The recorder's clocks: absolute deadlines on the monotonic clock, and steps of the other clocks in between;
and priorities above that of guests: its threads', which also share a CPU, and the console's.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import time
from typing import NamedTuple

_SMALLEST_STEP = 0.001
_SHORT_WAIT = 0.2


class Moment(NamedTuple):
    """The three clocks at one moment, in seconds; `boot` goes on while the host is suspended, `mono` does not."""

    mono: float
    wall: float
    boot: float


class HostClocks:
    """The host's clocks; tests replace them.

    A wait of up to `plain` seconds is a plain sleep that nothing ends early; a longer one is a lock's timeout, which
    `wake` and `stop` end.
    """

    def __init__(self, plain: float = _SHORT_WAIT) -> None:
        self._plain = plain
        self._stopped = False
        self._woken = threading.Lock()
        self._woken.acquire()

    def now(self) -> Moment:
        """All clocks, read one after the other."""
        return Moment(time.monotonic(), time.time(), time.clock_gettime(time.CLOCK_BOOTTIME))

    def sleep(self, seconds: float) -> bool:
        """Wait `seconds`; True when `stop` ended the wait."""
        if seconds <= self._plain and not self._stopped:
            time.sleep(max(0.0, seconds))  # A third cheaper, which matters at ten ticks a second.
        elif not self._stopped:
            self._woken.acquire(timeout=max(0.0, seconds))
        return self._stopped

    def wake(self) -> None:
        """End the current wait, or the next one at once."""
        with contextlib.suppress(RuntimeError):  # It is awake already.
            self._woken.release()

    def stop(self) -> None:
        """End the current wait, and every later one at once."""
        self._stopped = True
        self.wake()


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
    """Ticks at ``start + n * interval``; after one that is late by more than an interval, missed ones are skipped.

    `read_at` adds a tick out of turn. One in turn that is due less than half an interval before or after it is left
    out, so that no sample is much shorter than the others but for one that nobody could foresee.
    """

    def __init__(self, interval: float, clocks: HostClocks) -> None:
        self._interval = interval
        self._clocks = clocks
        self._last = clocks.now()
        self._wanted: list[float] = []
        self.deadline = self._last.mono + interval
        """When the next tick in turn is due, in seconds of the monotonic clock."""

    def read_at(self, mono: float) -> None:
        """Tick at this moment too, or at once where it has passed; any thread may call."""
        self._wanted.append(mono)
        self._clocks.wake()

    def wait(self) -> Tick | None:
        """Wait for the next tick and return it; None when the recorder is to stop."""
        while True:
            wanted = min(self._wanted) if self._wanted else math.inf
            in_turn = self.deadline < wanted - self._interval / 2
            due = self.deadline if in_turn else wanted
            if self._clocks.sleep(due - self._clocks.now().mono):
                return None
            now = self._clocks.now()
            if now.mono >= due:
                return self._in_turn(now) if in_turn else self._out_of_turn(now, due)

    def _in_turn(self, now: Moment) -> Tick:
        lateness = now.mono - self.deadline
        missed = 0 if lateness < self._interval else math.floor(lateness / self._interval)
        self.deadline += (missed + 1) * self._interval
        return self._tick(now, lateness, missed)

    def _out_of_turn(self, now: Moment, due: float) -> Tick:
        for one in [one for one in self._wanted if one <= now.mono]:
            self._wanted.remove(one)  # In place: another thread may add one meanwhile.
        while self.deadline < now.mono + self._interval / 2:
            self.deadline += self._interval
        return self._tick(now, now.mono - due, 0)

    def _tick(self, now: Moment, lateness: float, missed: int) -> Tick:
        last, self._last = self._last, now
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


_SWITCH_SECONDS = 0.0005
_CONSOLE_NICE = -5


def take_precedence() -> str | None:
    """Put the calling thread under SCHED_FIFO 1; a line for people where that is refused, else None.

    Every thread of the recorder calls this: one that loses its CPU while it holds Python's lock would delay the others.
    They work for a fraction of a millisecond at a time. The process gains no privilege that it did not have. From then
    on threads of this process also release Python's lock after half a millisecond instead of five, because a thread
    that is awake in time but waits for the lock is late too.
    """
    sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except OSError as error:
        return f"the recorder has no real-time priority here ({error.strerror}): ticks may be late under load"
    return None


def share_cpu() -> None:
    """Keep the calling thread on the last CPU that it may use; for threads with real-time priority that wake in turn.

    The second one then finds what the first has left in that CPU's caches. Without a real-time priority such a thread
    would wait for the CPU under load, and should not be bound.
    """
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def answer_first() -> None:
    """Raise this thread's priority a little, where that is allowed; threads and processes it starts are not raised.

    The console uses less than a hundredth of a core, so guests lose nothing that could be measured.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, _CONSOLE_NICE)
    except OSError:
        return  # An ordinary user may not raise it; the console then runs with the normal priority.
