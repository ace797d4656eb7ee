"""A run's events as they come, read from its store: the same for a live run, a dead one and a finished one."""

from __future__ import annotations

import time
from collections.abc import Iterator

from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.cell_event import WorkloadProgressed
from vmlab.model.errors import UsageError
from vmlab.model.event import Event, RunEnded
from vmlab.store.reader import RunReader
from vmlab.system.held_folder import demand, need

_POLL_SECONDS = 0.15
# After a kill, the last event is written by another process, some moments after the run's last process ended.
_LAST_WORD_SECONDS = 0.6


def watch(folder: RunFolder, after: int = 0) -> Iterator[Event | None]:
    """Every event from rowid `after` on, and None at each poll without a new one, until the run is over.

    Events of progress that are already stored are skipped: they are most of all events and out of date. Ends after
    RunEnded, or when no process of the run is left and all its events have been read.
    """
    reader: RunReader | None = None
    died: float | None = None
    kinds = tuple(kind for kind in Event.registry.values() if kind is not WorkloadProgressed)
    try:
        while True:
            alive = folder.alive()
            if reader is None and folder.store.exists():
                # Where this process holds the folder: not of another folder, whose store even a reader's index changes.
                demand()
                reader = _opened(folder, alive=alive)
                need(folder.store)
            for rowid, event in reader.events(after, kinds) if reader else ():
                after = rowid
                yield event
                if isinstance(event, RunEnded):
                    return
            died = None if alive else died or time.monotonic()
            if died is not None and time.monotonic() - died > _LAST_WORD_SECONDS:
                return
            if reader is not None:
                kinds = ()
            yield None
            time.sleep(_POLL_SECONDS)
    finally:
        if reader is not None:
            reader.close()


def _opened(folder: RunFolder, *, alive: bool) -> RunReader | None:
    """The store's reader; None for one that its writer has not finished setting up. Raises what RunReader raises."""
    try:
        return RunReader(folder.store)
    except UsageError:
        if alive:
            return None
        raise
