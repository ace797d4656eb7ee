"""PID 1 of a lab: reaps orphans, forwards signals to the runner, ends with it, and reports changes of other children.

libvirt daemonises QEMU, so that every QEMU becomes a child of PID 1. Where PID 1 does not reap, libvirt waits for
the zombie's end: 80 s for every stop instead of 0.2 s.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable

from vmlab.system.processes import signal_child

FORWARDED = frozenset({signal.SIGTERM, signal.SIGINT})
ATTENDED = FORWARDED | {signal.SIGCHLD}


def exit_status(wait_status: int) -> int:
    """wait(2)'s status as a shell shows it: the exit code, or 128 plus the signal that killed."""
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code


def attend(child: int, report: int | None = None) -> int:
    """Wait for `child`, reap everything else, forward SIGTERM and SIGINT to it; its exit status.

    The caller has blocked ATTENDED: a blocked signal reaches even a PID 1 that has no handler for it, and none is
    lost between two waits. Where `report` is given, the writing end of a pipe, a line goes there for each process that
    ends, is stopped or goes on: see `children.py`.
    """
    watched = 0 if report is None else os.WUNTRACED | os.WCONTINUED
    while True:
        received = signal.Signals(signal.sigwait(ATTENDED))
        if received in FORWARDED:
            signal_child(child, received)
        for pid, status in _changes(watched):
            if report is not None:
                _report(report, pid, status)
            if pid == child and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
                return exit_status(status)


def _report(report: int, pid: int, status: int) -> None:
    """A full pipe must not block the one process that reaps."""
    with contextlib.suppress(OSError):
        os.write(report, f"{pid} {status} {time.monotonic_ns()}\n".encode())


def _changes(watched: int) -> Iterable[tuple[int, int]]:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | watched)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status
