"""Signals that end the program at once, while nothing is open that must be closed.

A terminal that was taken is put back first, whatever the signal, and the exit code is 128 and the signal's number, as a
shell reports it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from types import FrameType
from typing import NoReturn

from vmlab.system.terminal import put_back, say_at_once

STOPPING = (signal.SIGINT, signal.SIGTERM)
ON_A_TERMINAL = (signal.SIGHUP, signal.SIGQUIT)
"""Those that also end what draws on a terminal: it was closed, or Ctrl-\\ was pressed."""
_OF_A_SIGNAL = 128
_WORDS = {
    signal.SIGHUP: "vmlab: the terminal was closed",
    signal.SIGINT: "vmlab: interrupted",
    signal.SIGQUIT: "vmlab: quit",
    signal.SIGTERM: "vmlab: terminated",
}


def leave_at_once(numbers: Iterable[signal.Signals] = STOPPING) -> None:
    """From now on each of these signals ends the program with one line and its own exit code.

    One that is ignored, as after `nohup`, stays so. An exception raised by the handler could get lost: the interpreter
    drops one that is raised in a finaliser or in a weak reference's callback, such as each import has; libraries take
    it for an error of their own work.
    """
    for number in numbers:
        if number in STOPPING or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, leave)


def words_for(code: int) -> str:
    """The line that says why the program ends with `code`, one of those of a signal."""
    return _WORDS[signal.Signals(code - _OF_A_SIGNAL)]


def leave(number: int, frame: FrameType | None = None) -> NoReturn:
    """End the program as this signal does."""
    # A second one would begin all this anew.
    for each in (*STOPPING, *ON_A_TERMINAL):
        signal.signal(each, signal.SIG_IGN)
    put_back()
    say_at_once(words_for(_OF_A_SIGNAL + number))
    os._exit(_OF_A_SIGNAL + number)
