"""All that the program writes to standard output and standard error goes through this module.

The console, whose screen is Textual's, makes its texts visible with the same functions of `model.visible`. Whoever puts
the terminal into another state (alternate screen, mouse reports, keys without echo) takes it here first, so that it is
put back however the program ends: by itself, by an exception, or by a signal, which ends it at once while nothing is
open that must be closed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Iterable
from types import FrameType
from typing import Any, NoReturn, TextIO

from vmlab.model.visible import Control, visible

OTHER_SCREEN, FIRST_SCREEN = Control("\x1b[?1049h"), Control("\x1b[?1049l")
_AS_BEFORE = "".join(
    (
        "\x1b[?2026l",  # what is drawn is shown at once
        "\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1004l",  # pastes, line wrap, reports of size and of focus
        "\x1b[?1016l\x1b[?1015l\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l",  # mouse
        "\x1b[<u",  # kitty's keyboard protocol, which each screen has of its own
        FIRST_SCREEN,
        "\x1b[?25h\x1b[0m",  # cursor, colours
    )
)
"""Each state that Textual or a command of ours puts the terminal into, taken back; an escape ends half a sequence."""
_STUCK_SECONDS = 0.5
"""A terminal that takes nothing for so long, such as one that was stopped with Ctrl-S, is left as it is."""


class TakenTerminal:
    """The terminal of `stream` while the program has it in another state; a file for whoever draws on it.

    What is written to it is written whole, so that nothing is drawn after it was put back. Characters that its encoding
    lacks become question marks, and a terminal that is gone takes everything: its end is reported where keys are read.
    """

    def __init__(self, stream: TextIO, *, keys: bool) -> None:
        self._file = stream.fileno()
        self._encoding = "utf-8" if is_unicode(stream) else stream.encoding
        self._writing = threading.RLock()
        self._as_before = _AS_BEFORE if keys else FIRST_SCREEN
        self._settings: list[Any] | None = None
        with contextlib.suppress(termios.error):
            self._settings = termios.tcgetattr(self._file) if keys else None

    def write(self, text: str) -> None:
        """Write all of `text`, as it is."""
        rest = memoryview(text.encode(self._encoding, "replace"))
        with self._writing, contextlib.suppress(OSError):
            while rest:
                rest = rest[os.write(self._file, rest) :]

    def flush(self) -> None:
        """Nothing is held back."""

    def fileno(self) -> int:
        """The descriptor that is written to."""
        return self._file

    def put_back(self) -> None:
        """Put the terminal back as it was, and draw nothing on it any more. May be called in a signal's handler."""
        # Not released: a picture of another thread would follow. That thread may hold it for as long as it is stuck.
        self._writing.acquire(timeout=_STUCK_SECONDS)
        with contextlib.suppress(OSError, ValueError):
            if select.select([], [self._file], [], _STUCK_SECONDS)[1]:
                os.write(self._file, self._as_before.encode())
        if self._settings is not None:
            self._set(self._settings)

    def _set(self, settings: list[Any]) -> None:
        # Whoever is in the background by now would be stopped for it.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._file, termios.TCSANOW, settings)
            # Reports of the mouse that nobody reads any more would stand behind the shell's prompt.
            termios.tcflush(self._file, termios.TCIFLUSH)
        signal.signal(signal.SIGTTOU, before)


_taken: TakenTerminal | None = None


def take_terminal(stream: TextIO, *, keys: bool) -> TakenTerminal:
    """Say that the terminal of `stream` is put into another state from now on; `put_back` ends that.

    Without `keys` it only shows its other screen: nothing is changed of how keys and the mouse are read.
    """
    global _taken
    _taken = TakenTerminal(stream, keys=keys)
    return _taken


def is_back() -> None:
    """Say that whoever took the terminal has put it back already."""
    global _taken
    _taken = None


def put_back() -> None:
    """Put the terminal back as it was where it is taken. May be called in a signal's handler, and twice."""
    global _taken
    taken, _taken = _taken, None
    if taken is not None:
        taken.put_back()


def open_streams() -> None:
    """Replace standard streams that the caller has closed; call it before anything else.

    Otherwise the next file that is opened, a run's lock for instance, would be taken for a standard stream. Writing to
    a closed standard output fails, as in any program; writing to a closed standard error does nothing.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # open() takes the lowest free descriptor, which is this one: those below it are in use.
            os.open(os.devnull, mode)
            os.set_inheritable(number, True)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open for as long as the program runs
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def put(stream: TextIO, *parts: str) -> None:
    """Write `parts` one after the other and flush: `Control` sequences unchanged, all other text made visible.

    Characters that the stream's encoding lacks become escapes. Raises OSError where the stream is closed or full.
    """
    text = "".join(part if isinstance(part, Control) else visible(part) for part in parts)
    try:
        stream.write(_encodable(text, stream))
        stream.flush()
    except ValueError as error:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF)) from error


def is_unicode(stream: TextIO) -> bool:
    """Whether `stream` takes every character."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")


def _encodable(text: str, stream: TextIO) -> str:
    if is_unicode(stream):
        return text
    return text.encode(stream.encoding, "backslashreplace").decode(stream.encoding)


def say(*parts: str) -> None:
    """Write a message for people to standard error; errors of writing are ignored.

    `parts` are as for `put`, and end with a line break.
    """
    try:
        put(sys.stderr, *parts, "\n")
    except OSError:
        forget(sys.stderr)


def say_at_once(line: str) -> None:
    """As `say`, for a signal's handler: past the stream's buffer, which may be half written when the signal comes."""
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode("ascii", "backslashreplace"))


def forget(stream: TextIO) -> None:
    """Point a stream that fails at /dev/null, so that the interpreter's flush at exit does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


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


def words_of_exit(code: int) -> str:
    """The line that says why the program ends with `code`, one of those of a signal."""
    return _WORDS[signal.Signals(code - _OF_A_SIGNAL)]


def leave(number: int, frame: FrameType | None = None) -> NoReturn:
    """End the program as this signal does."""
    # A second one would begin all this anew.
    for each in (*STOPPING, *ON_A_TERMINAL):
        signal.signal(each, signal.SIG_IGN)
    put_back()
    say_at_once(words_of_exit(_OF_A_SIGNAL + number))
    os._exit(_OF_A_SIGNAL + number)
