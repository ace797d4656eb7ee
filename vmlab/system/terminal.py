"""All that the program writes to standard output and standard error goes through this module.

The console, whose screen is Textual's, makes its texts visible with the same functions of `model.visible`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import TextIO

from vmlab.model.visible import Control, visible


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
