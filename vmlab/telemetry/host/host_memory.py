"""Memory from /proc/meminfo, ZFS's cache from its arcstats, and paging from /proc/vmstat (proc(5))."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from vmlab.telemetry.host.host_figures import FigureSource, GroupMaker, HostChart, HostFigure, Watched
from vmlab.telemetry.source import (
    MOST_BYTES_PER_SECOND,
    NAN,
    PAGE_BYTES,
    KernelFile,
    KeyedLines,
    Roots,
    growths,
    readable,
)

_CHART = HostChart("Memory", panel=2, top="memory_total_bytes", page="GiB", track="GiB", whole=False)
_OF_CACHE = (("memory_cached_bytes", 1), ("memory_reclaimable_slab_bytes", 1), ("memory_dirty_bytes", -1))
_shown = partial(HostFigure, group="Memory", chart=_CHART)
FIGURES = (
    _shown("memory_used_bytes", "memory used", "used", headline=True),
    _shown("memory_cached_bytes", "memory cached", "cached", headline=True, tone="two", area=_OF_CACHE),
    HostFigure("memory_dirty_bytes", "memory dirty", "dirty", "Pages", chart=_CHART, tone="three"),
    _shown("memory_buffers_bytes", "memory buffers", "buffers", tone="four"),
    _shown("memory_free_bytes", "memory free", "free", tone="rest", drawn=False),
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
_PLACE = {name: place for place, (name, _) in enumerate(_MEMINFO)}
_TOTAL, _FREE, _AVAILABLE, _BUFFERS, _CACHED, _SWAP_TOTAL, _SWAP_FREE = range(7)
_ANONYMOUS, _SHARED = _PLACE["memory_anonymous_bytes"], _PLACE["memory_shared_bytes"]
_SLAB, _RECLAIMABLE = _PLACE["memory_slab_bytes"], _PLACE["memory_reclaimable_slab_bytes"]
_HUGE = _PLACE["memory_hugepages_bytes"]
_PARTS = (
    *((part, _TOTAL) for part in (_FREE, _AVAILABLE, _BUFFERS, _CACHED, _ANONYMOUS, _SLAB, _HUGE)),
    (_SHARED, _CACHED),
    (_RECLAIMABLE, _SLAB),
    (_SWAP_FREE, _SWAP_TOTAL),
)
"""Each with what it is a part of."""
_DRIFT = 0.01
"""Part of the memory by which figures may differ that are counted apart on each CPU."""
_FILE_CACHE = KeyedLines((b"Active(file):", b"Inactive(file):"))
_HUGE_PAGES = KeyedLines((b"HugePages_Total:", b"Hugepagesize:"))


class Memory:
    """What memory is used for. ``used`` is without cache; with cached, buffers, reclaimable slab and free it is the
    total.

    No part may exceed its whole: such a part is unknown, as is ``used`` where the others leave less than nothing, or
    less than the anonymous memory in it. A container's meminfo (lxcfs) may name the host's slab. What a kernel does not
    have is unknown, but for two: ``available`` is estimated as the kernel has done since 3.14, and huge pages are their
    number times their size. Before Linux 2.6.19 all slab is in ``used``, as nothing says what of it is cache.

    ZFS keeps its cache (ARC) outside the page cache; the part above its least size (``c_min``) is given back when
    memory is short, as page cache is, and stands in ``cached`` and not in ``used``.
    """

    title = "memory"
    names: tuple[str, ...] = ("memory_used_bytes", *(name for name, _ in _MEMINFO))

    def __init__(self, roots: Roots) -> None:
        self._file = KernelFile(roots.proc / "meminfo")
        self._keys = KeyedLines([key for _, key in _MEMINFO])
        self._least_free = roots.proc / "sys/vm/min_free_kbytes"
        self._huge = roots.sys / "kernel/mm/hugepages"
        self._arc = None if _is_of_a_container(roots.proc) else readable(roots.proc / "spl/kstat/zfs/arcstats")
        if self._arc is not None:
            self.names = (*self.names, "memory_arc_bytes")
        self.swap_total_bytes = 0.0
        self.total_bytes = 0.0

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`."""
        text = self._file.read()
        values: list[float] = [kib * 1024 for kib in self._keys.known(text)]
        total = values[_TOTAL]
        if not total > 0:
            raise ValueError("/proc/meminfo has no MemTotal")
        if values[_AVAILABLE] != values[_AVAILABLE]:
            values[_AVAILABLE] = self._estimated_available(text, values)
        if values[_HUGE] != values[_HUGE]:
            values[_HUGE] = self._huge_pages(text, total)
        counted = [part for part in (_BUFFERS, _RECLAIMABLE) if values[part] == values[part]]
        for part in [part for part, whole in _PARTS if values[part] > values[whole]]:
            values[part] = NAN
        self.total_bytes, self.swap_total_bytes = total, values[_SWAP_TOTAL]
        arc, given_back = self._arc_sizes()
        values[_CACHED] += given_back
        used = total - values[_FREE] - values[_CACHED] - sum(values[part] for part in counted)
        if used < 0 or values[_ANONYMOUS] > used + total * _DRIFT:
            used = NAN
        return [used, *values] if self._arc is None else [used, *values, arc]

    def _estimated_available(self, text: bytes, values: list[float]) -> float:
        """As si_mem_available of the kernel (mm/page_alloc.c): free memory, and of file cache and reclaimable slab what
        is above the half or the low watermark, which is 5/4 of vm.min_free_kbytes.
        """
        try:
            low = int(self._least_free.read_text()) * 1024 * 5 / 4
            cache = sum(_FILE_CACHE.known(text)) * 1024
        except (OSError, ValueError):
            return NAN
        slab = values[_RECLAIMABLE]
        available = values[_FREE] - low + cache - min(low, cache / 2) + slab - min(low, slab / 2)
        return 0.0 if available < 0 else available

    def _huge_pages(self, text: bytes, total: float) -> float:
        """All huge pages of all sizes, reserved ones included, as ``Hugetlb`` has them since Linux 4.16.

        Without ``Hugepagesize`` it is the one size of this kernel with which so many fit into memory, if it is one.
        """
        try:
            count, size = _HUGE_PAGES.known(text)
            others = {int(one.name[10:-2]): one / "nr_hugepages" for one in self._huge.glob("hugepages-*kB")}
            fitting = [kib for kib in others if count * kib * 1024 <= total]
            if size != size and len(fitting) == 1:
                (size,) = fitting
            others.pop(int(size) if size == size else 0, None)
            bytes_of_others = sum(int(file.read_text()) * kib * 1024 for kib, file in others.items())
        except (OSError, ValueError):
            return NAN
        # Without any it does not matter that their size is not known.
        return (count * size * 1024 if count else count) + bytes_of_others

    def _arc_sizes(self) -> tuple[float, float]:
        """The size of ZFS's cache, and how much of it is given back when memory is short."""
        if self._arc is None:
            return 0, 0
        text = self._arc.read()
        size = _kstat(text, b"\nsize ")
        given_back = size - _kstat(text, b"\nc_min ")
        return size, 0 if given_back < 0 else given_back


def _kstat(text: bytes, key: bytes) -> float:
    """The number of one line, as in ``size 4 1234``, where the second word is the number's type."""
    at = text.find(key)
    return NAN if at < 0 else int(text[at:].split(None, 3)[2])


def _is_of_a_container(proc: Path) -> bool:
    """Whether meminfo is lxcfs's: then it is the container's, while the cache of ZFS is the host's."""
    try:
        mounts = (proc / "self/mountinfo").read_text()
    except OSError:
        return False
    return any(line.split(" ", 5)[4] == "/proc/meminfo" and " - fuse.lxcfs " in line for line in mounts.splitlines())


class Paging:
    """Swapping, from /proc/vmstat. On a host without swap all is 0 and the file is not read."""

    title = "paging"
    names: tuple[str, ...] = ("swap_in_bytes_per_second", "swap_out_bytes_per_second")

    def __init__(self, roots: Roots, memory: Memory) -> None:
        self._file = KernelFile(roots.proc / "vmstat")
        self._keys = KeyedLines([b"pswpin ", b"pswpout "])
        self._memory = memory
        self._before: list[float] = []

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`; must be called after that of its `Memory`."""
        if not self._memory.swap_total_bytes:
            self._before = []
            return [0.0, 0.0]
        now = self._keys.known(self._file.read())
        grown = growths(now, self._before, MOST_BYTES_PER_SECOND / PAGE_BYTES * length) if self._before else None
        self._before = now
        if grown is None:
            return [NAN, NAN]
        return [grown[0] * PAGE_BYTES / length, grown[1] * PAGE_BYTES / length]


def _paging(watched: Watched) -> Paging | None:
    memory = watched.find(Memory)
    return None if memory is None else Paging(watched.roots, memory)


SOURCE = FigureSource(
    (GroupMaker(Memory.title, lambda watched: Memory(watched.roots)), GroupMaker(Paging.title, _paging)),
    FIGURES,
    place=5,
)
