"""The one way to read files that users name or that others may have written: ordinary files only, up to a stated size.

A device may have no end and a named pipe no writer, so what is no ordinary file is refused before it is read. What is
wrong in a file is said with its words, so a link is followed only to a file of the user who made the link, or by that
user: whoever else may write a folder must not choose which file root reads and prints (fs.protected_symlinks has the
same rule for shared folders).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from vmlab.model.errors import UsageError
from vmlab.model.quantities import format_bytes

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def open_given(path: Path, *, follow: bool = True) -> BinaryIO:
    """An ordinary file, opened to be read. Without `follow` a link is refused, too.

    Returns at once for whatever stands there. Raises UsageError, which names the file, for anything else.
    """
    # Without O_NONBLOCK the call would wait for the writer of a named pipe; ordinary files know no difference.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        found = path.stat() if follow else path.lstat()
        _demand_ordinary(path, found.st_mode)
        _demand_own_link(path, found)
        file = os.open(path, flags)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{str(path)[:200]!r} is no path: {error}") from error
    try:
        # Another file may have come in its place.
        _demand_ordinary(path, os.fstat(file).st_mode)
        return os.fdopen(file, "rb")
    except BaseException:
        os.close(file)
        raise


def read_given(path: Path, most: int, *, follow: bool = True) -> bytes:
    """All of an ordinary file, of `most` bytes at most. Raises as `open_given`, and UsageError for a larger one."""
    with open_given(path, follow=follow) as file:
        try:
            content = file.read(most + 1)
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    if len(content) > most:
        raise UsageError(f"{path} is larger than {format_bytes(most)}")
    return content


def demand_given(path: Path) -> int:
    """The size in bytes of an ordinary file that another program is going to read. Raises as `open_given`."""
    with open_given(path) as file:
        return os.fstat(file.fileno()).st_size


def _demand_own_link(path: Path, target: os.stat_result) -> None:
    link = path.lstat()
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in (0, os.geteuid(), target.st_uid):
        raise UsageError(f"{path} is a link by another user to a file that is not that user's")


def _demand_ordinary(path: Path, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = "a link" if stat.S_ISLNK(mode) else next((words for is_one, words in _KINDS if is_one(mode)), "special")
    raise UsageError(f"{path} is {kind}, and not an ordinary file")
