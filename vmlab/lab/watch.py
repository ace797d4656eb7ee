"""A run's events as they come, read from its store: the same for a live run, a dead one and a finished one."""

from __future__ import annotations

import time
from collections.abc import Iterator

from vmlab.lab.folder import RunFolder
from vmlab.model.errors import UsageError
from vmlab.model.event import Event, RunEnded
from vmlab.store.reader import RunReader

_POLL_SECONDS = 0.15


def watch(folder: RunFolder, after: int = 0) -> Iterator[Event | None]:
    """Every event from rowid `after` on, and None at each poll that brought nothing, until the run is over.

    Ends after RunEnded, or when no process of the run is left and all its events have been read.
    """
    reader: RunReader | None = None
    try:
        while True:
            alive = folder.alive()
            if reader is None and folder.store.exists():
                reader = _opened(folder, alive=alive)
            for rowid, event in reader.events(after) if reader else ():
                after = rowid
                yield event
                if isinstance(event, RunEnded):
                    return
            if not alive:
                return
            yield None
            time.sleep(_POLL_SECONDS)
    finally:
        if reader is not None:
            reader.close()


def _opened(folder: RunFolder, *, alive: bool) -> RunReader | None:
    """The store's reader; None for one that its writer has not yet finished to set up. Raises what RunReader raises."""
    try:
        return RunReader(folder.store)
    except UsageError:
        if alive:
            return None
        raise
