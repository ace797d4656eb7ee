"""Frozen guests: made on first use, stored under a digest of all that they depend on, shared by all runs."""

from vmlab.guests.snapshots.catalog import (
    Snapshot,
    SnapshotSummary,
    discard,
    find,
    hold,
    list_snapshots,
    remove,
    snapshots_folder,
)
from vmlab.guests.snapshots.making import clear_unfinished, make
from vmlab.guests.snapshots.recipe import SnapshotRecipe, image_digest
from vmlab.guests.snapshots.size_limit import evict, size_limit
from vmlab.model.frozen import DISK, MACHINE, RAM

__all__ = [
    "DISK",
    "MACHINE",
    "RAM",
    "Snapshot",
    "SnapshotRecipe",
    "SnapshotSummary",
    "clear_unfinished",
    "discard",
    "evict",
    "find",
    "hold",
    "image_digest",
    "list_snapshots",
    "make",
    "remove",
    "size_limit",
    "snapshots_folder",
]
