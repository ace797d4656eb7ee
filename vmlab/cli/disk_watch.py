"""Disks that answer nothing, of the runs that measure on this host, for who follows none of them."""

from __future__ import annotations

import time
from pathlib import Path

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.lab.process.measuring_runs import host_queue
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    DiskSilent,
)
from vmlab.model.errors import VmlabError
from vmlab.model.event import RunEnded
from vmlab.report.words import silent_words
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE

_EVERY = 5.0
_KINDS = (CellStarted, DiskSilent, CellEnded, RunEnded)


class SilentDisks:
    """Looks into the records of the runs every few seconds, as far as this user may read them."""

    def __init__(self) -> None:
        self._looked = -_EVERY
        self._silent: dict[str, tuple[DiskSilent, ...]] = {}

    def words(self) -> list[str]:
        """A sentence for each run with such a disk."""
        now = time.monotonic()
        if now - self._looked >= _EVERY:
            measuring = (one for one in host_queue().measuring if one.folder)
            self._looked, self._silent = now, {one.run: silent_in(Path(one.folder) / STORE) for one in measuring}
        found = {run: silent_words(silent, now) for run, silent in self._silent.items()}
        return [f"run {run}: {words}" for run, words in found.items() if words]


def silent_in(store: Path) -> tuple[DiskSilent, ...]:
    """The disks that answer nothing now, by the record of a run; () where it cannot be read."""
    try:
        with RunReader(store) as reader:
            timeline = RunTimeline.of(event for _, event in reader.events(kinds=_KINDS))
    except (VmlabError, OSError):
        return ()
    return () if timeline.cell is None else tuple(timeline.cell.silent.values())
