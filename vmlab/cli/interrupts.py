"""SIGINT and SIGTERM on the command line: their effect when a command is loaded, and while there is a run to stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from vmlab.model.errors import ExitCode
from vmlab.system.leaving import STOPPING, leave_at_once


class Terminated(BaseException):
    """SIGTERM came. Like KeyboardInterrupt it is not an Exception, so handlers of errors do not catch it."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def obey() -> None:
    """From now on SIGINT raises KeyboardInterrupt and SIGTERM Terminated, so that open files are closed."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)


class InterruptedLater:
    """Records SIGINT and SIGTERM: the program does not end, but asks the run to stop and waits for its clean-up."""

    def __init__(self) -> None:
        self.number = signal.SIGINT
        self.count = 0

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the last signal."""
        return ExitCode.of_signal(self.number)

    def __enter__(self) -> InterruptedLater:
        self._before = {number: signal.getsignal(number) for number in STOPPING}
        self._listen()
        return self

    def __exit__(self, *failure: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def obeyed(self) -> Iterator[None]:
        """In this block there is nothing to stop or close: a signal ends the program, also one that came before."""
        leave_at_once()
        try:
            if self.count:
                signal.raise_signal(self.number)
            yield
        finally:
            self._listen()

    def _listen(self) -> None:
        for number in STOPPING:
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.number = signal.Signals(number)
        self.count += 1
