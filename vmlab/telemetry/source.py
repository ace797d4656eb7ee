"""Files of /proc and /sys: opened once, read with one ``pread`` a tick; how far a counter in them grew
between two readings, and when that is not known.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple


class Roots(NamedTuple):
    """Where the kernel's files are; tests use folders of recorded files.

    `host_proc` is a /proc that shows the host's kernel threads (ksmd). In a lab's PID namespace it may be a descriptor
    that was opened before: ``/proc/self/fd/N``.
    """

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    host_proc: Path = Path("/proc")


PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
THE_HOST = Roots()
"""Those of the running kernel."""

_MOST_KEPT = 256
"""Files that one watch keeps open; the others are opened for each reading, as a process may have only so many."""


class KernelFile:
    """A file whose content the kernel makes at every read. Raises OSError where it cannot be opened or read.

    It is closed when nobody has it any more: who opens some for a cell lets go of them at its end, since what is part
    of a cycle waits for the garbage collector, and a user's processes have 1,024 open files.
    """

    __slots__ = ("_descriptor", "_path", "_size")

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._path = path
        self._size = 8192

    def read(self) -> bytes:
        """The file as it is now."""
        text = os.pread(self._descriptor, self._size, 0)
        while len(text) == self._size:
            self._size *= 4
            text = os.pread(self._descriptor, self._size, 0)
        return text

    def number(self) -> int:
        """The one number in the file. Raises ValueError where it has none, as a driver may write ``N/A`` or nothing."""
        text = os.pread(self._descriptor, 64, 0)
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"{self._path} has no number, but {text.decode(errors='replace').strip()!r}") from None

    def __del__(self) -> None:
        descriptor = getattr(self, "_descriptor", -1)
        if descriptor >= 0:
            os.close(descriptor)


def readable(path: Path) -> KernelFile | None:
    """The file, where this user may read it: some may be opened by all and read by their owner alone."""
    try:
        file = KernelFile(path)
        file.read()
    except OSError:
        return None
    return file


def reader(path: Path, others: int) -> Callable[[], bytes]:
    """What reads `path` again and again: it stays open unless `others` are too many already. Raises OSError."""
    return KernelFile(path).read if others < _MOST_KEPT else path.read_bytes


class KeyedLines:
    """Finds numbers in a text whose lines are ``key number …``, by searching forward from key to key.

    Give the keys in the kernel's order: then the text is searched only once.
    """

    __slots__ = ("_keys",)

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = [(b"\n" + key, len(key) + 1) for key in keys]

    def numbers(self, text: bytes) -> list[int]:
        """The numbers of all keys in order; 0 for a key that the kernel does not have. ValueError if it has none of
        them.
        """
        return [number or 0 for number in self._found(text)]

    def known(self, text: bytes) -> list[float]:
        """The same, but NaN for a key that the kernel does not have."""
        return [math.nan if number is None else number for number in self._found(text)]

    def _found(self, text: bytes) -> list[int | None]:
        text = b"\n" + text
        at = 0
        numbers: list[int | None] = []
        missing = 0
        for key, width in self._keys:
            found = text.find(key, at)
            if found < 0 and (found := text.find(key)) < 0:
                numbers.append(None)
                missing += 1
                continue
            at = found + width
            numbers.append(int(text[at : text.index(b"\n", at)].removesuffix(b" kB")))
        if missing == len(self._keys):
            raise ValueError("the file has another form than expected")
        return numbers


NAN = math.nan
MOST_BYTES_PER_SECOND = 1e12
"""More than the memory of a host moves, and so more than any disk or link of it."""
_LAG_SECONDS = 0.2
_WIDTHS = (1 << 32, 1 << 64)


def most_seconds(passed: float) -> float:
    """The most seconds of one CPU or disk that the kernel can have counted while `passed` seconds went by.

    It counts in ticks of up to 10 ms, rounds each figure down, and counts late what a host lost to its own hypervisor.
    """
    return passed * 1.05 + _LAG_SECONDS


def growth(new: int, old: int) -> float:
    """How far a counter went from `old` to `new`; NaN where it went back, as nothing says whether it may wrap."""
    return growth_within(new, old, math.inf)


def growth_within(new: float, old: float, most: float) -> float:
    """How far a counter went from `old` to `new`, a wrap at 32 or 64 bits included; NaN where that is not known.

    `most` is how far it can have gone in the time between; where that is infinite no step back is a wrap.
    """
    if new >= old:
        return new - old if new - old <= most else NAN
    over_the_top = (new - old + width for width in _WIDTHS if old < width)
    return next((grown for grown in over_the_top if grown <= most < math.inf), NAN)


def growths(new: Sequence[float], old: Sequence[float], most: float = math.inf) -> list[float] | None:
    """The growth of counters that belong to one device or guest; None where that is not known, or it was replaced.

    Counters of one device do not wrap in the same tick, so two that went back mean that it began anew. A counter that
    the kernel does not have is NaN, and so is its growth.
    """
    grown: list[float] = [n - o for n, o in zip(new, old, strict=True)]
    if min(grown, default=0) >= 0 and max(grown, default=0) <= most:
        return grown
    if sum(value < 0 for value in grown) > 1:
        return None
    grown = [growth_within(n, o, most) for n, o in zip(new, old, strict=True)]
    broken = any(value != value and n == n and o == o for value, n, o in zip(grown, new, old, strict=True))
    return None if broken else grown
