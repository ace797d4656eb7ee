"""Signals on the command line: what they do to a command that is loaded, that draws, or that has a run to stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

from vmlab.model.errors import ExitCode
from vmlab.system.processes import stop_job
from vmlab.system.terminal import ON_A_TERMINAL, OTHER_SCREEN, STOPPING, leave_at_once, put_back, take_terminal


class Terminated(BaseException):
    """SIGTERM or SIGHUP came. Like KeyboardInterrupt it is not an Exception, so handlers of errors do not catch it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = ExitCode.of_signal(number)


_came: int | None = None


def _terminate(number: int, frame: FrameType | None) -> None:
    global _came
    _came = number
    raise Terminated(number)


def heed() -> None:
    """Raise what came and is not obeyed yet: an exception of a handler gets lost in a finaliser or a library."""
    if _came is not None:
        raise Terminated(_came)


def obey() -> None:
    """From now on SIGINT raises KeyboardInterrupt, SIGTERM and SIGHUP Terminated, so that open files are closed.

    SIGHUP stays ignored where it is, as after `nohup`.
    """
    global _came
    _came = None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _terminate)


@contextmanager
def on_other_screen(stream: TextIO) -> Iterator[None]:
    """In this block the terminal of `stream` shows its other screen, which a command may draw on.

    The first one is back after it, also where a signal ends the program, and while Ctrl-Z has it stopped.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        put_back()
        stop_job()
        take_terminal(stream, keys=False).write(OTHER_SCREEN)

    before = {number: signal.getsignal(number) for number in (*ON_A_TERMINAL, signal.SIGTSTP)}
    leave_at_once(ON_A_TERMINAL)
    signal.signal(signal.SIGTSTP, stop)
    take_terminal(stream, keys=False).write(OTHER_SCREEN)
    try:
        yield
    finally:
        put_back()
        for number, handler in before.items():
            signal.signal(number, handler)


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
