"""Memory from /proc/meminfo and paging from /proc/vmstat (proc(5))."""

from __future__ import annotations

import os

from vmlab.telemetry.host.counter import NAN, growths
from vmlab.telemetry.host.group import FigureSource, GroupMaker, Watched
from vmlab.telemetry.host.shown_figure import HostFigure
from vmlab.telemetry.source import KernelFile, KeyedLines, Roots

FIGURES = (
    HostFigure("memory_used_bytes", "memory used", "used", "Memory", headline=True, chart="Memory", tone="one"),
    HostFigure(
        "memory_cached_bytes",
        "memory cached",
        "cached",
        "Memory",
        headline=True,
        chart="Memory",
        tone="two",
        area=(("memory_cached_bytes", 1), ("memory_reclaimable_slab_bytes", 1), ("memory_dirty_bytes", -1)),
    ),
    HostFigure("memory_dirty_bytes", "memory dirty", "dirty", "Pages", chart="Memory", tone="three"),
    HostFigure("memory_buffers_bytes", "memory buffers", "buffers", "Memory", chart="Memory", tone="four"),
    HostFigure("memory_free_bytes", "memory free", "free", "Memory", chart="Memory", tone="rest", drawn=False),
    HostFigure("memory_writeback_bytes", "memory written back", "writeback", "Pages"),
    HostFigure("memory_reclaimable_slab_bytes", "memory of slab cache", "slab cache", "Pages"),
    HostFigure("swap_in_bytes_per_second", "swapped in", "in", "Swap"),
    HostFigure("swap_out_bytes_per_second", "swapped out", "out", "Swap"),
)

# In the kernel's order.
_MEMINFO = (
    ("memory_total_bytes", b"MemTotal:"),
    ("memory_free_bytes", b"MemFree:"),
    ("memory_available_bytes", b"MemAvailable:"),
    ("memory_buffers_bytes", b"Buffers:"),
    ("memory_cached_bytes", b"Cached:"),
    ("swap_total_bytes", b"SwapTotal:"),
    ("swap_free_bytes", b"SwapFree:"),
    ("memory_dirty_bytes", b"Dirty:"),
    ("memory_writeback_bytes", b"Writeback:"),
    ("memory_anonymous_bytes", b"AnonPages:"),
    ("memory_shared_bytes", b"Shmem:"),
    ("memory_slab_bytes", b"Slab:"),
    ("memory_reclaimable_slab_bytes", b"SReclaimable:"),
    ("memory_hugepages_bytes", b"Hugetlb:"),
)
_RECLAIMABLE = [name for name, _ in _MEMINFO].index("memory_reclaimable_slab_bytes")


class Memory:
    """What memory is used for. ``used`` is without cache; with cached, buffers, reclaimable slab and free it is the
    total.
    """

    title = "memory"
    names: tuple[str, ...] = ("memory_used_bytes", *(name for name, _ in _MEMINFO))

    def __init__(self, roots: Roots) -> None:
        self._file = KernelFile(roots.proc / "meminfo")
        self._keys = KeyedLines([key for _, key in _MEMINFO])
        self.swap_total_bytes = 0.0
        self.total_bytes = 0.0

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`."""
        values: list[float] = [kib * 1024 for kib in self._keys.numbers(self._file.read())]
        total, free, _, buffers, cached, self.swap_total_bytes = values[:6]
        reclaimable = values[_RECLAIMABLE]
        self.total_bytes = total
        if not total:
            raise ValueError("/proc/meminfo has no MemTotal")
        return [total - free - buffers - cached - reclaimable, *values]


class Paging:
    """Swapping, from /proc/vmstat. On a host without swap all is 0 and the file is not read."""

    title = "paging"
    names: tuple[str, ...] = ("swap_in_bytes_per_second", "swap_out_bytes_per_second")

    def __init__(self, roots: Roots, memory: Memory) -> None:
        self._file = KernelFile(roots.proc / "vmstat")
        self._keys = KeyedLines([b"pswpin ", b"pswpout "])
        self._memory = memory
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._before: list[int] = []

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`; must be called after that of its `Memory`."""
        if not self._memory.swap_total_bytes:
            self._before = []
            return [0.0, 0.0]
        now = self._keys.numbers(self._file.read())
        grown = growths(now, self._before) if self._before else None
        self._before = now
        if grown is None:
            return [NAN, NAN]
        return [grown[0] * self._page / length, grown[1] * self._page / length]


def _paging(watched: Watched) -> Paging | None:
    memory = watched.find(Memory)
    return None if memory is None else Paging(watched.roots, memory)


SOURCE = FigureSource(
    (GroupMaker(Memory.title, lambda watched: Memory(watched.roots)), GroupMaker(Paging.title, _paging)),
    FIGURES,
    place=5,
)
