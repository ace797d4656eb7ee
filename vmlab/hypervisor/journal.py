"""What outlives the lab's namespace, written down before it is made and struck off when it is gone.

One JSON object a line, flushed to the disk. An entry without its strike is what a dead run left behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["cgroups", "partition", "loop", "folder", "file"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was made. `what` identifies it: a cgroup name's prefix, a loop device's backing file, a path."""

    kind: Kind
    what: str


class Journal:
    """Appends to one run's journal; safe to use from several threads of the runner."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def add(self, entry: Entry) -> None:
        """Write down what is about to be made; returns once it is on the disk."""
        self._append({"made": asdict(entry)})

    def strike(self, entry: Entry) -> None:
        """Write down that it is gone."""
        self._append({"gone": asdict(entry)})

    @contextlib.contextmanager
    def kept(self, entry: Entry) -> Iterator[None]:
        """Entry while the block runs; stays in the journal when the block raises."""
        self.add(entry)
        yield
        self.strike(entry)

    def open_entries(self) -> list[Entry]:
        """What was made and is not known to be gone, newest first. A torn last line counts for nothing."""
        try:
            lines = self.path.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return []
        standing: list[Entry] = []
        for line in lines:
            _apply(line, standing)
        return standing[::-1]

    def _append(self, record: dict[str, dict[str, str]]) -> None:
        line = json.dumps(record, separators=(",", ":")) + "\n"
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, line.encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _apply(line: str, standing: list[Entry]) -> None:
    try:
        ((verb, fields),) = json.loads(line).items()
        entry = Entry(**fields)
    except (ValueError, TypeError, AttributeError):
        return
    if verb == "made":
        standing.append(entry)
    elif entry in standing:
        standing.remove(entry)
