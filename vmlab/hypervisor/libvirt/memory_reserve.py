"""Memory of guests that have ended, kept for those that are restored next.

A host that is a virtual machine itself gives memory that is free for half a second back to the hypervisor below it
(free page reporting). Getting it again costs some 10 µs of CPU time for each 4 KiB, twenty times what clearing the page
costs: half a second for a restored guest of 150 MiB. So the memory is taken as soon as guests have ended, and freed
piece by piece when QEMU is about to load a state into memory of its own. The kernel clears it in between, as always.
"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

from vmlab.system.kernel import OwnMemory

_CPUINFO = Path("/proc/cpuinfo")
_MEMINFO = Path("/proc/meminfo")
_PIECE = 32 * 2**20
_SLOW = 0.04
"""Seconds of CPU time for a piece: 0.006 where the memory was freed just now, 0.1 where it had been given back."""
_SHARE = 2
"""At most one part in so many of the memory that is available is kept."""


class MemoryReserve:
    """Some memory of this process. All methods block for fractions of a second, and may run in any thread.

    It never grows where the host is no virtual machine, or has no memory to spare.
    """

    def __init__(self, *, useful: bool | None = None, slow: float = _SLOW) -> None:
        self._useful = in_virtual_machine() if useful is None else useful
        self._slow = slow
        self._pieces: list[OwnMemory] = []
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return len(self._pieces) * _PIECE

    def take(self, size: int) -> None:
        """Keep up to `size` bytes more, to be called right after as much was freed.

        Ends early where the memory turns out to have been given back already: it would save nothing to get it now.
        """
        with self._lock, contextlib.suppress(OSError):
            wanted = min(size, available() // _SHARE) if self._useful else 0
            for _ in range(wanted // _PIECE):
                began = time.thread_time()
                self._pieces.append(OwnMemory(_PIECE))
                if time.thread_time() - began > self._slow:
                    break

    def free(self, size: int | None = None) -> None:
        """Free at least `size` bytes as far as they are kept, or all."""
        with self._lock:
            left = 0 if size is None else max(0, (self.size - size) // _PIECE)
            while len(self._pieces) > left:
                self._pieces.pop().free()


def in_virtual_machine() -> bool:
    """Whether this host is a virtual machine, as its processor says."""
    words = (line.split() for line in _CPUINFO.read_text().splitlines() if line.startswith("flags"))
    return "hypervisor" in next(words, [])


def available() -> int:
    """Bytes of memory that the kernel can hand out without swapping (MemAvailable)."""
    lines = _MEMINFO.read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)
