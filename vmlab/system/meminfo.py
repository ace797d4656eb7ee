"""The host's memory, read once: totals in bytes, as psutil has them."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import psutil

_LACKS = ".*memory stats couldn't be determined"
"""What psutil warns of where /proc/meminfo lacks lines, as in some containers; none that is read here is among them."""


class HostMemory(NamedTuple):
    """Bytes: of all memory, of what can be had without swapping, and of the page cache with what can be reclaimed."""

    total: int
    available: int
    cached: int


def host_memory() -> HostMemory:
    """The host's memory now."""
    warnings.filterwarnings("ignore", _LACKS, RuntimeWarning)
    found = psutil.virtual_memory()
    return HostMemory(found.total, found.available, found.cached)
