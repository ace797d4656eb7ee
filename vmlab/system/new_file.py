"""Files that appear under their name only when they are complete.

Until then they have no name at all, so that the kernel removes what a killed process has not completed. On file systems
without such files, as over the network, a draft beside the file is left then, called ``.NAME.XXXXXXXX.new``.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from vmlab.system.removal import named, remove_file

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

    target = path.resolve()
    draft = target.with_name(f".{target.name[:200]}.{token_hex(4)}.new")
    with named(path):
        file = _nameless(target.parent) or draft.open("xb")
    try:
        with named(path):
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
    folder = os.open(draft.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.link(_OPEN_FILES / str(file), draft.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


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
