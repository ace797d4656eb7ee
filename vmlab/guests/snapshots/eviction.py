"""Keeps snapshots within their share of the disk: the one that was used longest ago goes first."""

from __future__ import annotations

import os
import shutil

from vmlab.guests.snapshots import catalog
from vmlab.model.errors import RefusedError, UsageError
from vmlab.model.quantities import parse_bytes

LIMIT = "VMLAB_SNAPSHOT_LIMIT"
_MOST = 20 * 2**30
_SHARE_OF_DISK = 4


def size_limit() -> int:
    """Bytes that all snapshots together may take: VMLAB_SNAPSHOT_LIMIT, such as ``5 GiB``, or else a quarter of what
    would be free without them, and 20 GiB at most. Raises UsageError for a limit that is no size."""
    said = os.environ.get(LIMIT)
    if said is not None:
        try:
            return parse_bytes(said)
        except ValueError as error:
            raise UsageError(f"{LIMIT} {error}") from error
    place = catalog.snapshots_folder()
    place.mkdir(parents=True, exist_ok=True)
    taken = sum(one.bytes for one in catalog.list_snapshots())
    return min(_MOST, (shutil.disk_usage(place).free + taken) // _SHARE_OF_DISK)


def evict(limit: int, keep: str | None = None) -> list[str]:
    """Remove snapshots until they take `limit` bytes at most; the ids of those that went.

    What cannot be used any more goes in any case, and one in use, or with the id `keep`, never.
    """
    standing = catalog.list_snapshots()
    taken = sum(one.bytes for one in standing)
    gone = []
    for one in sorted(standing, key=lambda one: (one.whole, one.used)):
        if one.whole and taken <= limit:
            break
        if one.in_use or one.id == keep:
            continue
        try:
            catalog.remove(one.id)
        except RefusedError:
            # Somebody took it, or removed it, between the two looks.
            continue
        taken -= one.bytes
        gone.append(one.id)
    return gone
