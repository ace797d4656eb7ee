"""Small files in the state folder, which count only as they were written: what they have can be had again without them.

One of them has the CPU times that work took on this host, in the last cells that passed.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from vmlab.model.errors import UsageError
from vmlab.model.places import state_folder
from vmlab.system.given_file import new_file, read_given

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


_SCHEMA = "vmlab.cpu-needs/2"
_MOST = 2000
"""Works that are kept; of more, those that were measured last."""
_MOST_TIMES = 5
"""Times of a work that are kept, the last ones."""


def needs_file() -> Path:
    """Where it is kept."""
    return state_folder() / "cpu-needs.json"


class CpuNeeds:
    """Seconds by what names a work. A file that was damaged is as none, and `damaged` until the next one is written."""

    def __init__(self, path: Path) -> None:
        self._file = KeptFile(path, _SCHEMA)
        self._known = self._read()
        self.damaged = not self._known and path.exists()

    def _read(self) -> dict[str, list[float]]:
        try:
            kept = self._file.read()
        except (ValueError, RecursionError):
            return {}
        if not isinstance(kept, dict) or not all(map(_are_times, kept.values())):
            return {}
        return dict(kept)

    def usual(self, work: str) -> float | None:
        """The median CPU time in seconds that `work` took; None where it was never measured.

        One cell that did not do its work, be it the first, does not move it far.
        """
        return median(self._known[work]) if work in self._known else None

    def learn(self, works: Iterable[tuple[str, float]]) -> None:
        """These took so many seconds."""
        for work, seconds in works:
            self._known[work] = [*self._known.pop(work, ()), seconds][-_MOST_TIMES:]
        if self._known:
            self._known = dict(list(self._known.items())[-_MOST:])
            self._file.write(self._known)
            self.damaged = False


def _are_times(kept: Any) -> bool:
    return (
        isinstance(kept, list)
        and 0 < len(kept) <= _MOST_TIMES
        and all(type(one) is float and 0 < one < math.inf for one in kept)
    )
