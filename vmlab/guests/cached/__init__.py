"""What images and snapshots have in common: they are entries of the cache, each a folder with locks, a mark and a
manifest.
"""

from vmlab.guests.cached.collection import Collection, Entry, Notice
from vmlab.guests.cached.eviction import evict
from vmlab.guests.cached.locks import USE_LOCK, Lock, wait_for, wait_for_async
from vmlab.guests.cached.manifest import MANIFEST, Fault, digests_in, read_bytes, require_sizes, write_manifest

__all__ = [
    "MANIFEST",
    "USE_LOCK",
    "Collection",
    "Entry",
    "Fault",
    "Lock",
    "Notice",
    "digests_in",
    "evict",
    "read_bytes",
    "require_sizes",
    "wait_for",
    "wait_for_async",
    "write_manifest",
]
