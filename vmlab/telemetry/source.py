"""Files of /proc and /sys: opened once, read with one ``pread`` a tick."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Roots:
    """Where the kernel's figures are; tests point them at folders of recorded files.

    `host_proc` is a /proc that shows the host's kernel threads (ksmd). Inside a lab's PID namespace it can be a
    descriptor that was opened before: ``/proc/self/fd/N``.
    """

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    host_proc: Path = Path("/proc")


class KernelFile:
    """A file that the kernel writes anew on every read. Raises OSError where it cannot be opened or read."""

    __slots__ = ("_descriptor", "_size")

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._size = 8192

    def read(self) -> bytes:
        """The file as it is now."""
        text = os.pread(self._descriptor, self._size, 0)
        while len(text) == self._size:
            self._size *= 4
            text = os.pread(self._descriptor, self._size, 0)
        return text

    def number(self) -> int:
        """The one number in the file."""
        return int(os.pread(self._descriptor, 64, 0))

    def __del__(self) -> None:
        descriptor = getattr(self, "_descriptor", -1)
        if descriptor >= 0:
            os.close(descriptor)


class KeyedLines:
    """Picks numbers out of a text whose lines are ``key number …``, by searching onward from key to key.

    Give the keys in the order in which the kernel writes them: then a text is gone through once.
    """

    __slots__ = ("_keys",)

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = [(b"\n" + key, len(key) + 1) for key in keys]

    def numbers(self, text: bytes) -> list[int]:
        """The numbers of all keys in order; 0 for a key that the kernel does not have. ValueError if it has none."""
        text = b"\n" + text
        at = 0
        numbers: list[int] = []
        missing = 0
        for key, width in self._keys:
            found = text.find(key, at)
            if found < 0 and (found := text.find(key)) < 0:
                numbers.append(0)
                missing += 1
                continue
            at = found + width
            numbers.append(int(text[at : text.index(b"\n", at)].removesuffix(b" kB")))
        if missing == len(self._keys):
            raise ValueError("the file has another form than expected")
        return numbers
