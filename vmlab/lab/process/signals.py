"""How launcher and runner handle signals: none ends them by accident, and none is lost while they start.

The process that starts a launcher blocks `HELD` for it. A signal that comes while a program still loads waits, and is
delivered when the program is ready: `heeded` in the launcher, `released` in the runner.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from vmlab.model.errors import ExitCode

STOPPING = frozenset({signal.SIGINT, signal.SIGTERM})
HELD = STOPPING | {signal.SIGHUP}
"""SIGHUP does not stop a run: it has no terminal to lose."""


class Stopped(BaseException):
    """A signal asked this process to stop."""

    def __init__(self, number: int) -> None:
        self.exit_code = ExitCode.of_signal(number)


def hold_back() -> None:
    """Block signals from now on, in this process and in those that it starts."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD)


@contextmanager
def heeded() -> Iterator[None]:
    """In this block the first of `STOPPING`, also one that was blocked, raises Stopped; later ones wait again."""
    raised = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        if not raised:
            raised = True
            raise Stopped(number)

    for number in STOPPING:
        signal.signal(number, stop)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)


def released() -> None:
    """Unblock signals, for handlers that are installed already, and SIGHUP for one that does nothing.

    A handler and not SIG_IGN, because programs that this process starts then get the default action.
    """
    signal.signal(signal.SIGHUP, lambda number, frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
