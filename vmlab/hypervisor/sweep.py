"""Removes what a dead run left behind, by its journal: only what was written down there and carries its mark."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from vmlab.hypervisor import cgroups, loop
from vmlab.hypervisor.journal import Journal, Kind
from vmlab.model.errors import CleanupIncomplete

MARK_FILE = "vmlab.mark"
"""A folder of the lab holds its own path in this file; a folder without it is never removed."""


def mark_folder(folder: Path) -> None:
    """Make `folder` and mark it as one that a sweep may remove."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / MARK_FILE).write_text(str(folder))


def sweep(journal_path: Path) -> list[str]:
    """Remove everything that a dead run's journal still has open; what was removed, as paths.

    Only for runs whose processes are gone. Raises CleanupIncomplete, naming what could not be removed, after
    everything else was.
    """
    journal = Journal(journal_path)
    removed: list[str] = []
    failed: list[str] = []
    for entry in journal.open_entries():
        try:
            removed += _REMOVERS[entry.kind](entry.what)
        except OSError as error:
            failed.append(f"{entry.kind} {entry.what}: {error.strerror or error}")
        else:
            journal.strike(entry)
    if failed:
        raise CleanupIncomplete("left behind: " + "; ".join(failed))
    return removed


def _remove_groups(prefix: str) -> list[str]:
    found = cgroups.partitions(cgroups.hierarchies())
    return [path for partition in found for path in cgroups.remove_groups(partition, prefix)]


def _remove_partition(path: str) -> list[str]:
    return [path] if cgroups.remove_partition(Path(path)) else []


def _remove_folder(path: str) -> list[str]:
    folder = Path(path)
    try:
        marked = (folder / MARK_FILE).read_text() == path
    except FileNotFoundError:
        return []
    if not marked:
        return []
    shutil.rmtree(folder)
    return [path]


def _remove_file(path: str) -> list[str]:
    file = Path(path)
    if file.suffix != ".qcow2" or not file.exists():
        return []
    file.unlink()
    return [path]


_REMOVERS: dict[Kind, Callable[[str], list[str]]] = {
    "cgroups": _remove_groups,
    "partition": _remove_partition,
    "folder": _remove_folder,
    "file": _remove_file,
    "loop": loop.clear_marked,
}
