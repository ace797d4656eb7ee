"""Keeps a collection within its share of the disk: the entry that was used longest ago goes first."""

from __future__ import annotations

from vmlab.guests.cached.collection import Collection
from vmlab.model.errors import RefusedError


def evict(collection: Collection, limit: int, keep: str | None = None) -> list[str]:
    """Remove entries until they take `limit` bytes at most; the ids of those that went.

    Unusable entries are removed in any case; entries in use, and the one with the id `keep`, never.
    """
    standing = [(collection.usable(entry), entry) for entry in collection.entries()]
    taken = sum(entry.bytes for _, entry in standing)
    gone = []
    for usable, entry in sorted(standing, key=lambda one: (one[0], one[1].used)):
        if usable and taken <= limit:
            break
        if entry.in_use or entry.id == keep:
            continue
        try:
            collection.remove(entry.id)
        except RefusedError:
            # Another process began to use or removed it in between.
            continue
        taken -= entry.bytes
        gone.append(entry.id)
    return gone
