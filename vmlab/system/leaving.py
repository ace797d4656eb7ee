"""SIGINT and SIGTERM while nothing is open that must be closed: they end the program at once."""

from __future__ import annotations

import os
import signal
from types import FrameType

from vmlab.model.errors import ExitCode
from vmlab.system.terminal import say_at_once

STOPPING = (signal.SIGINT, signal.SIGTERM)
_WORDS = {ExitCode.INTERRUPTED: "vmlab: interrupted", ExitCode.TERMINATED: "vmlab: terminated"}


def leave_at_once() -> None:
    """From now on either signal ends the program with one line and its own exit code.

    An exception raised by the handler could get lost: the interpreter drops one that is raised in a finaliser or in a
    weak reference's callback, such as each import has; libraries take it for an error of their own work.
    """
    for number in STOPPING:
        signal.signal(number, _leave)


def words_for(code: ExitCode) -> str:
    """The line that says why the program ends with `code`, one of those of a signal."""
    return _WORDS[code]


def _leave(number: int, frame: FrameType | None) -> None:
    code = ExitCode.of_signal(number)
    say_at_once(words_for(code))
    os._exit(code)
