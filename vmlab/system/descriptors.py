"""A file descriptor for as long as a block runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def closed_after(descriptor: int) -> Iterator[int]:
    """The descriptor while the block runs; it is closed afterwards."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)
