"""A file in the state folder that spares reading others: it counts only as it was written, and what it has can be had
again without it."""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from pathlib import Path
from typing import Any

from vmlab.model.errors import UsageError
from vmlab.system.given_file import read_given
from vmlab.system.new_file import new_file

MOST = 64 * 2**20
"""Bytes of such a file, which has some hundred for each run."""
# The kernel's clock for files moves every few milliseconds, so that two changes may leave the same times. A file that
# has not changed for so long shows every later change.
SETTLED_NANOSECONDS = 2 * 10**9


class KeptFile:
    """A dictionary in `path`; `schema` changes its number with what is in it."""

    def __init__(self, path: Path, schema: str) -> None:
        self.path = path
        self._schema = schema

    def read(self) -> dict[str, Any]:
        """What is kept; nothing where the file cannot be read, is not as it was written, or is of another version."""
        try:
            check, _, text = read_given(self.path, MOST).partition(b"\n")
        except UsageError:
            return {}
        found: dict[str, Any] = json.loads(text) if check == self._check(text) else {}
        return found

    def write(self, kept: dict[str, Any]) -> None:
        """Keep this in the place of what was there; nothing where it cannot be written."""
        text = json.dumps(kept, separators=(",", ":")).encode()
        with contextlib.suppress(OSError), new_file(self.path) as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(self._check(text) + b"\n" + text)

    def _check(self, text: bytes) -> bytes:
        return f"{self._schema} {zlib.crc32(text):08x}".encode()


def file_stamp(path: str) -> list[int] | None:
    """Inode, size, and when content and inode changed, in nanoseconds; None where there is no such file."""
    try:
        # A Path for each file takes longer than the kernel, where there are thousands of runs.
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
