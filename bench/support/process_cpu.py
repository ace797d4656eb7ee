"""CPU of a tree of processes in nanoseconds, from the run time in /proc/PID/task/TID/schedstat."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

import psutil


@dataclass
class TreeCpu:
    """Adds up what every thread under `roots` has run; a thread that ends in between keeps its last reading."""

    roots: list[int]
    _seen: dict[tuple[int, int], int] = field(default_factory=dict)
    _start: dict[tuple[int, int], int] = field(default_factory=dict)

    def begin(self) -> None:
        """Start counting from here."""
        self.look()
        self._start = dict(self._seen)

    def look(self) -> None:
        """Read all threads; call it a few times a second so that short-lived ones are seen too."""
        for pid in self._pids():
            with contextlib.suppress(OSError):
                for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - a name is all that is needed
                    with contextlib.suppress(OSError):
                        text = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text()
                        self._seen[pid, int(thread)] = int(text.split()[0])

    def _pids(self) -> list[int]:
        pids: list[int] = []
        for root in self.roots:
            with contextlib.suppress(psutil.Error):
                pids += [root, *(child.pid for child in psutil.Process(root).children(recursive=True))]
        return pids

    @property
    def alive(self) -> bool:
        """Whether all roots still run."""
        try:
            return all(psutil.Process(root).status() != psutil.STATUS_ZOMBIE for root in self.roots)
        except psutil.Error:
            return False

    @property
    def seconds(self) -> float:
        """CPU seconds since `begin`."""
        return sum(now - self._start.get(key, 0) for key, now in self._seen.items()) / 1e9
