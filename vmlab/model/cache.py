"""What each cache mode of a disk means, as flags of QEMU's block layer.

=============  ========  =============  ==========
mode           O_DIRECT  write cache    flushes
=============  ========  =============  ==========
none           yes       on             passed on
writeback      no        on             passed on
writethrough   no        off            passed on
directsync     yes       off            passed on
unsafe         no        on             ignored
=============  ========  =============  ==========

The guest sees the write cache and nothing else of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vmlab.model.run import CacheMode


@dataclass(frozen=True, slots=True)
class CacheFlags:
    """QMP's flags: `writeback` is the guest-visible write cache, `direct` O_DIRECT, `no_flush` ignored flushes."""

    writeback: bool
    direct: bool
    no_flush: bool


CACHE_FLAGS: Mapping[CacheMode, CacheFlags] = {
    "none": CacheFlags(writeback=True, direct=True, no_flush=False),
    "writeback": CacheFlags(writeback=True, direct=False, no_flush=False),
    "writethrough": CacheFlags(writeback=False, direct=False, no_flush=False),
    "directsync": CacheFlags(writeback=False, direct=True, no_flush=False),
    "unsafe": CacheFlags(writeback=True, direct=False, no_flush=True),
}


def has_write_cache(mode: CacheMode) -> bool:
    """Whether the guest's disk has a write cache, as the guest sees it."""
    return CACHE_FLAGS[mode].writeback
