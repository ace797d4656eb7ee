"""Files that appear under their name only when they are complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from vmlab.system.naming import named
from vmlab.system.removal import remove_file


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """The file at `path` to be written; it takes the place of an older one when the block ends without an error.

    What is no ordinary file, such as ``/dev/stdout`` or a named pipe, is written directly. Raises OSError.
    """
    with named(path):
        direct = path.exists() and not path.is_file()
    if direct:
        with named(path), path.open("wb") as file:
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
        file.close()
        remove_file(draft)
        raise
