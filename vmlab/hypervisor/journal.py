"""Lists what outlives the lab's namespaces: an entry is added before it is made and closed when it is gone.

One JSON object a line, flushed to the disk. An entry that was not closed is something that a dead run left behind.
A line that is no such entry, whatever it is, counts for nothing and hides none of the others. Where the journal's
folder is lost to this process (`held_folder`) nothing is added, and so nothing is made that nobody would find.
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

from vmlab.model.checked import made
from vmlab.model.errors import StoreError, UsageError
from vmlab.system.descriptors import closed_after
from vmlab.system.given_file import read_given
from vmlab.system.held_folder import demand, need, opened

OR_FORGET = "or, if it is gone for good, delete the lines that name it from the journal in the run's folder"
"""Ends what is said of a place that is not there, in which something of a run may be."""
_MOST_BYTES = 16 * 2**20
"""Bytes of the largest journal; a run's has some hundred lines for each cell."""

Kind = Literal[
    "cgroups", "partition", "loop", "folder", "file", "outside", "setting", "rbd", "volume", "libvirt", "log", "trace"
]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One thing that was made, or a setting of the host that was changed.

    `what` identifies it: a cgroup name's prefix, a loop device's mark, a path, also of a file in a folder of the user's
    (``outside``), an instance of the kernel's tracing, an image in a pool of Ceph, a logical volume, the lab whose mark
    is in the host's libvirt, the name of a domain there whose log is kept, a setting's file below /sys or /proc/sys. A
    setting also has the state that it `was` in before the run, and the value `ours`, which the run gave it; a number of
    huge pages has the `boot` of the host in which it was asked for, and how many the run `got`, once that is known. A
    file in a folder of the user's has in `was` the mount point above it.
    """

    kind: Kind
    what: str
    was: str = ""
    ours: str = ""
    boot: str = ""
    got: str = ""


class Journal:
    """Appends to one run's journal; safe to use from several threads of the runner."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def add(self, entry: JournalEntry) -> None:
        """Add what is about to be made; returns when it is on the disk.

        Raises StoreError, as on a full disk, and FolderLostError.
        """
        demand()
        self._append({"made": asdict(entry)})

    def strike(self, entry: JournalEntry) -> None:
        """Close the entry: it is gone. Raises StoreError."""
        self._append({"gone": asdict(entry)})

    def replace(self, entry: JournalEntry, known: JournalEntry) -> None:
        """Close the entry and add what is known of it by now, both in one write. Raises StoreError."""
        self._append({"made": asdict(known)}, {"gone": asdict(entry)})

    @contextlib.contextmanager
    def kept(self, entry: JournalEntry) -> Iterator[None]:
        """An entry while the block runs; it stays in the journal when the block raises."""
        self.add(entry)
        yield
        self.strike(entry)

    def open_entries(self) -> list[JournalEntry]:
        """What was made and is not known to be gone, newest first. An incomplete last line is ignored.

        Raises StoreError where the journal is there and cannot be read.
        """
        if not self.path.exists():
            return []
        try:
            lines = read_given(self.path, _MOST_BYTES).decode("utf-8", "replace").splitlines()
        except UsageError as error:
            raise StoreError(str(error)) from error
        standing: dict[JournalEntry, int] = {}
        for line in lines:
            _apply(line, standing)
        return [entry for entry, times in reversed(standing.items()) for _ in range(times)]

    def _append(self, *records: dict[str, dict[str, str]]) -> None:
        lines = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
        try:
            with self._lock:
                self._write(lines.encode())
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror or error}") from error

    def _write(self, lines: bytes) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with (
            opened(self.path.parent) as folder,
            closed_after(os.open(self.path.name, flags, 0o600, dir_fd=folder)) as descriptor,
        ):
            size = os.fstat(descriptor).st_size
            # A host that lost its power may have left half of a line, and the run goes on.
            torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
            os.write(descriptor, b"\n" + lines if torn else lines)
            os.fsync(descriptor)
            need(self.path)


def _apply(line: str, standing: dict[JournalEntry, int]) -> None:
    """`standing` has how often each was made and is not gone."""
    try:
        ((verb, fields),) = json.loads(line).items()
        entry = made(JournalEntry, fields)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return
    if "\0" in entry.what:
        return
    if verb == "made":
        standing[entry] = standing.pop(entry, 0) + 1
    elif standing.get(entry, 0) > 1:
        standing[entry] -= 1
    else:
        standing.pop(entry, None)
