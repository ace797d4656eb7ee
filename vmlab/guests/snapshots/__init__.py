"""Frozen guests: made on first use, kept by the address of all that they depend on, shared by all runs."""

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
from vmlab.guests.snapshots.eviction import evict, size_limit
from vmlab.guests.snapshots.making import clear_unfinished, make
from vmlab.guests.snapshots.recipe import Recipe, image_digest

__all__ = [
    "Recipe",
    "Snapshot",
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
