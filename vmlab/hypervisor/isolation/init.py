"""PID 1 of a lab: reaps orphans, forwards signals to the runner, ends with it, and reports changes of other children.

libvirt daemonises QEMU, so that every QEMU becomes a child of PID 1. Where PID 1 does not reap, libvirt waits for
the zombie's end: 80 s for every stop instead of 0.2 s.

The runner reads the reports (`Children`). A line for each change, ``PID STATUS MONOTONIC``: the pid in the lab's
namespace, wait(2)'s status, nanoseconds of the monotonic clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

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
    ends, is stopped or goes on: see `Children`.
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


CHILDREN = "VMLAB_CHILDREN_FD"
"""In the runner's environment: the descriptor to read from."""

_AT_ONCE = 65536


@dataclass(frozen=True, slots=True)
class Change:
    """One child was stopped, was continued, or ended; `mono` is seconds of the monotonic clock."""

    pid: int
    status: int
    mono: float

    @property
    def stopped(self) -> bool:
        """Whether it was stopped."""
        return os.WIFSTOPPED(self.status)

    @property
    def goes_on(self) -> bool:
        """Whether it was continued after a stop."""
        return os.WIFCONTINUED(self.status)

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return not self.stopped and not self.goes_on

    @property
    def killed_by(self) -> signal.Signals | None:
        """The signal that ended it, if one did."""
        return signal.Signals(os.WTERMSIG(self.status)) if os.WIFSIGNALED(self.status) else None

    def ending(self) -> str:
        """How it ended, for people."""
        if (number := self.killed_by) is not None:
            return f"killed by {number.name}"
        return f"exit status {os.waitstatus_to_exitcode(self.status)}"


class Children:
    """Calls `on_change` in the event loop's thread, between `start` and `stop`. Does nothing outside a lab."""

    def __init__(self, on_change: Callable[[Change], None], env: Mapping[str, str] = os.environ) -> None:
        given = env.get(CHILDREN, "")
        self._heard = int(given) if given.isdigit() else None
        self._on_change = on_change
        self._rest = b""

    def start(self) -> None:
        """Listen."""
        if self._heard is not None:
            os.set_inheritable(self._heard, False)
            asyncio.get_running_loop().add_reader(self._heard, self._read)

    def stop(self) -> None:
        """Stop listening."""
        if self._heard is not None:
            asyncio.get_running_loop().remove_reader(self._heard)

    def _read(self) -> None:
        assert self._heard is not None
        try:
            chunk = os.read(self._heard, _AT_ONCE)
        except BlockingIOError:
            return
        if not chunk:
            self.stop()
            return
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            # A line may be incomplete if the pipe was full.
            with contextlib.suppress(ValueError):
                pid, status, mono = (int(word) for word in line.split())
                self._on_change(Change(pid, status, mono / 1e9))
