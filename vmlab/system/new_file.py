"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from vmlab.system.naming import named
from vmlab.system.removal import remove_file


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
        file = draft.open("xb")
    try:
        with named(path):
            yield file
            file.close()
            draft.replace(target)
    except BaseException:
        # What is still in its buffer may not fit now either.
        with contextlib.suppress(OSError):
            file.close()
        remove_file(draft)
        raise


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
