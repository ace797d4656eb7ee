"""Clears what dead runs left: only what carries a run's mark or stands in its journal."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vmlab.guests import image as images
from vmlab.guests import snapshots
from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.sweep import sweep
from vmlab.lab.folder import OWNER, RunFolder
from vmlab.model.errors import CleanupIncomplete
from vmlab.model.places import runs_folder, runtime_folder

_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Swept:
    """What `vmlab clean` did for one run, or in the cache: what it removed and what it could not."""

    run: str
    removed: tuple[str, ...]
    left: tuple[str, ...]


def sweep_run(folder: RunFolder) -> list[str]:
    """Remove all that the run made outside its namespaces; what is still there afterwards. Idempotent.

    Call it only when no process of the run is left but the caller.
    """
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        with contextlib.suppress(CleanupIncomplete):
            sweep(folder.journal)
        for path in (folder.runtime, folder.disks):
            shutil.rmtree(path, ignore_errors=True)
        left = list(_remains(folder))
        # The kernel lets go of a dead process's cgroup some moments after the process.
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.1)


def _remains(folder: RunFolder) -> Iterator[str]:
    """Everything of the run that lies outside its record: disks, sockets, and what its journal has open."""
    yield from (str(path) for path in (folder.runtime, folder.disks) if path.exists())
    yield from (f"{entry.kind} {entry.what}" for entry in Journal(folder.journal).open_entries())


def dead_runs() -> Iterator[RunFolder]:
    """Runs that are over and have something left to clear, those whose record was deleted by hand included."""
    paths = {path for path in runs_folder().glob("*") if path.is_dir()}
    for owner in runtime_folder().glob(f"*/{OWNER}"):
        paths.add(Path(owner.read_text()))
    for path in sorted(paths):
        folder = RunFolder(path.name, path)
        if not folder.alive() and next(_remains(folder), None) is not None:
            yield folder


def clean() -> list[Swept]:
    """Clear after every dead run, and what killed makers left in the cache; nothing to do gives an empty list."""
    swept = []
    for folder in dead_runs():
        before = list(_remains(folder))
        left = sweep_run(folder)
        swept.append(Swept(folder.id, tuple(set(before) - set(left)), tuple(left)))
    unfinished = [*images.clear_unfinished(), *snapshots.clear_unfinished()]
    if unfinished:
        swept.append(Swept("(images and snapshots)", tuple(map(str, unfinished)), ()))
    return swept
