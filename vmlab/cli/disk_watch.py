"""Disks that answer nothing, of the runs that measure on this host, for who follows none of them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.lab.process.measuring_runs import measuring_place, others_measuring
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
            self._looked, self._silent = now, {run: silent_in(folder / STORE) for run, folder in _measuring()}
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


def _measuring() -> Iterable[tuple[str, Path]]:
    try:
        place = measuring_place()
    except (VmlabError, OSError):
        return []
    try:
        return [(one.run, Path(one.folder)) for one in others_measuring(place, "") if one.folder]
    finally:
        os.close(place)
