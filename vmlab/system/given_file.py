"""The one way to read files that users name or that others may have written: ordinary files only, up to a stated size.

A device may have no end and a named pipe no writer, so what is no ordinary file is refused before it is read. What is
wrong in a file is said with its words, so a link is followed only to a file of the user who made the link, or by that
user: whoever else may write a folder must not choose which file root reads and prints (fs.protected_symlinks has the
same rule for shared folders).

Files that are written for a user appear under their name only when they are complete.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from vmlab.model.errors import UsageError
from vmlab.model.quantities import format_bytes
from vmlab.system.descriptors import closed_after
from vmlab.system.removal import named, remove_file

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


_OPEN_FILES = Path("/proc/self/fd")
_NO_NAMELESS = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)
"""Errors of open(2) where there are no files without a name; ENOENT, too, where the folder is on such a file system."""


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """The file at `path` to be written; it takes the place of an older one when the block ends without an error.

    What is no ordinary file, such as ``/dev/stdout`` or a named pipe that somebody reads, is written directly, from
    its beginning to its end. Raises OSError, which names the file.
    """
    with named(path):
        # Path.resolve raises RuntimeError for a link to itself.
        direct = _is_there(path) and not path.is_file()
    if direct:
        with named(path), _direct(path) as file:
            yield file
        return
    # Imported late: it loads OpenSSL, which whoever only reads does not need.
    from secrets import token_hex

    with named(path):
        # Of a name without a folder it asks for the current one, which may be gone.
        target = path.resolve()
    draft = target.with_name(f".{target.name[:200]}.{token_hex(4)}.new")
    with _named_for(draft, path):
        file = _nameless(target.parent) or draft.open("xb")
    try:
        with _named_for(draft, path):
            yield file
            file.flush()
            if not draft.exists():
                _give_name(file.fileno(), draft)
            file.close()
            draft.replace(target)
    except BaseException:
        # What is still in its buffer may not fit now either.
        with contextlib.suppress(OSError):
            file.close()
        remove_file(draft)
        raise


def put_in_place(path: Path, content: bytes) -> None:
    """Keep a small file in the place of the one that was there. Raises OSError.

    Raises UsageError where a link, a folder or a special file stands in its place, which stays as it is.
    """
    if os.path.lexists(path):
        with open_given(path, follow=False):
            pass
    with new_file(path) as file:
        file.write(content)
        file.flush()
        # The content is on the disk before it has its place.
        os.fsync(file.fileno())


@contextmanager
def _named_for(draft: Path, path: Path) -> Iterator[None]:
    """As `named`: an OSError of the draft or its folder has the name that the user gave, and knows no other."""
    try:
        with named(path):
            yield
    except OSError as error:
        if str(error.filename) in (str(draft), str(draft.parent)):
            error.filename, error.filename2 = str(path), None
        raise


def _nameless(folder: Path) -> BinaryIO | None:
    """A new file in `folder` that has no name yet; None where the file system knows none, or no name could be given."""
    if not _OPEN_FILES.is_dir():
        return None
    try:
        return os.fdopen(os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666), "wb")
    except OSError as error:
        if error.errno in _NO_NAMELESS:
            return None
        raise


def _give_name(file: int, draft: Path) -> None:
    # With a folder's descriptor os.link follows the kernel's link to the open file.
    with closed_after(os.open(draft.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as folder:
        os.link(_OPEN_FILES / str(file), draft.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def _direct(path: Path) -> BinaryIO:
    # Without O_NONBLOCK a named pipe that nobody reads would be waited for.
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    return _Stream(os.fdopen(descriptor, "wb", buffering=0))


class _Stream(io.BufferedWriter):
    """A file that is written in order: a device says that it can be sought in, and stays where it is."""

    _at = 0

    def write(self, data: Any) -> int:
        written = super().write(data)
        self._at += written
        return written

    def tell(self) -> int:
        return self._at

    def seekable(self) -> bool:
        return False

    def seek(self, *_: Any) -> int:
        raise io.UnsupportedOperation("it is written in order")
