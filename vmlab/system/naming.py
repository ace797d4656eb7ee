"""Gives errors of the system the whole path of the file that caused them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Give `path` to an OSError that comes without one, or with its last part alone.

    A call by descriptor knows no path: when the disk is full, the error of a write does not name the file.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and "/" not in str(error.filename):
            error.filename = str(path)
        raise
