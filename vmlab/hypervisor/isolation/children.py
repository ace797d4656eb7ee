"""Reports of the lab's init on its children, read by the runner. QEMU becomes one of them when libvirt daemonises it.

A line for each change, ``PID STATUS MONOTONIC``: the pid in the lab's namespace, wait(2)'s status, nanoseconds of the
monotonic clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
