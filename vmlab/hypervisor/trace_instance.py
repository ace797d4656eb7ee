"""An instance of the kernel's tracing that is a recording's own: its events, its buffer; journalled, and removed.

A process that is killed leaves it; `leftovers.sweep` finds it by the run's name.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.model.errors import RefusedError
from vmlab.system.removal import remove_empty_folder
from vmlab.telemetry.domains.block_events import EVENTS
from vmlab.telemetry.source import THE_HOST, Roots

_BUFFER_KB = 1024
"""Of each CPU: some 10,000 events."""
_MOST_READ = 2**16
_OPTION = "--blktrace"


def _tracing(roots: Roots) -> Path:
    return roots.sys / "kernel/tracing"


def folder_of(run: str, roots: Roots = THE_HOST) -> Path:
    """The folder of a run's instance."""
    return _tracing(roots) / "instances" / f"vmlab-{run}"


def demand_traceable(roots: Roots = THE_HOST) -> None:
    """Raises RefusedError where this process cannot trace requests to block devices."""
    place = _tracing(roots)
    if os.geteuid() != 0:
        raise RefusedError(f"{_OPTION} reads the kernel's trace, which takes root")
    if not (place / "instances").is_dir():
        raise RefusedError(f"{_OPTION} needs tracefs: mount -t tracefs nodev {place}")
    lacking = [event for event in EVENTS if not (place / "events/block" / event).is_dir()]
    if lacking:
        raise RefusedError(f"{_OPTION} needs the kernel's event block:{lacking[0]}, which this one lacks")


class TraceInstance:
    """Events of block devices from `start` to `close`; `read` gives what came, and never waits."""

    def __init__(self, run: str, journal: Journal, roots: Roots = THE_HOST) -> None:
        self._folder = folder_of(run, roots)
        self._journal = journal
        self._entry = JournalEntry("trace", self._folder.name)
        self._pipe = -1

    def start(self) -> None:
        """Make it; no device is traced yet. Raises OSError, and StoreError where the journal cannot be written."""
        self._journal.add(self._entry)
        try:
            self._folder.mkdir()
            self._set("buffer_size_kb", str(_BUFFER_KB))
            self._set("trace_clock", "mono")
            self._pipe = os.open(self._folder / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            self.close()
            raise

    def trace(self, devices: Collection[tuple[int, int]]) -> None:
        """Trace these devices, by major and minor number, and no other. Raises OSError."""
        words = " || ".join(f"dev == {major << 20 | minor}" for major, minor in sorted(devices))
        for event in EVENTS:
            if not words:
                self._set(f"events/block/{event}/enable", "0")
                continue
            self._set(f"events/block/{event}/filter", words)
            self._set(f"events/block/{event}/enable", "1")

    def read(self) -> bytes:
        """The next part of the trace, of whole lines; empty where nothing came. Raises OSError."""
        try:
            return os.read(self._pipe, _MOST_READ)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Remove it, with what it has not delivered. A second call does nothing. Raises StoreError."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if remove_empty_folder(self._folder) or not self._folder.exists():
            self._journal.strike(self._entry)

    def _set(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text)


def remove(name: str, run: str, roots: Roots = THE_HOST) -> list[str]:
    """Remove the instance `name` of a dead run, if it is its own; what went, as paths. Raises OSError."""
    folder = folder_of(run, roots)
    if name != folder.name or not folder.exists():
        return []
    if not remove_empty_folder(folder):
        raise OSError(f"{folder} is in use")
    return [str(folder)]
