"""How much of the disk snapshots may take."""

from __future__ import annotations

import os
import shutil

from vmlab.guests import cached
from vmlab.guests.snapshots import catalog
from vmlab.model.errors import UsageError
from vmlab.model.quantities import parse_bytes

LIMIT = "VMLAB_SNAPSHOT_LIMIT"
_MOST = 20 * 2**30
_SHARE_OF_DISK = 4


def size_limit() -> int:
    """Bytes that all snapshots together may take: VMLAB_SNAPSHOT_LIMIT, such as ``5 GiB``, or else a quarter of what
    would be free without them, and 20 GiB at most. Raises UsageError for a limit that is no size."""
    given = os.environ.get(LIMIT)
    if given is not None:
        try:
            return parse_bytes(given)
        except ValueError as error:
            raise UsageError(f"{LIMIT} {error}") from error
    place = catalog.snapshots_folder()
    place.mkdir(parents=True, exist_ok=True)
    taken = sum(one.bytes for one in catalog.SNAPSHOTS.entries())
    return min(_MOST, (shutil.disk_usage(place).free + taken) // _SHARE_OF_DISK)


def evict(limit: int, keep: str | None = None) -> list[str]:
    """Remove snapshots until they take `limit` bytes at most, as `cached.evict` does; the ids of those that went."""
    return cached.evict(catalog.SNAPSHOTS, limit, keep)
