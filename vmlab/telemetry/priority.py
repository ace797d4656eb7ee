"""Priorities above that of guests: the recorder's threads, which also share a CPU, and the console's."""

from __future__ import annotations

import contextlib
import os
import sys

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
