"""Figures of a limited host, from its cgroups (cgroup-v1/memory.rst and cgroup-v2.rst of the kernel's documents)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

from vmlab.model.ordered import LIMITED_HOST
from vmlab.telemetry.host.host_cpu import CpuShares
from vmlab.telemetry.host.host_figures import FigureSource, GroupMaker, HostChart, HostFigure, Watched
from vmlab.telemetry.host.host_memory import Memory
from vmlab.telemetry.source import (
    NAN,
    PAGE_BYTES,
    KernelFile,
    KeyedLines,
    growth_within,
    growths,
    most_seconds,
    readable,
)

_CHART = HostChart(
    "Limited memory",
    top="ordered_memory_limit_bytes",
    title=f"{LIMITED_HOST.capitalize()} memory",
    page="GiB",
    track=f"{LIMITED_HOST} GiB",
)
"""The upper edge is the limit."""
_shown = partial(HostFigure, group="Ordered")
FIGURES = (
    _shown("ordered_cpu_percent", "limited host CPU", "cpu"),
    _shown("ordered_memory_used_bytes", "limited host memory used", "used", chart=_CHART),
    _shown("ordered_memory_cached_bytes", "limited host memory cached", "cached", chart=_CHART, tone="two"),
    _shown("ordered_memory_free_bytes", "limited host memory free", "free", chart=_CHART, tone="rest", drawn=False),
    _shown("ordered_memory_swapped_bytes", "limited host memory swapped", "swapped"),
    _shown("ordered_memory_reclaimed_bytes_per_second", "limited host memory reclaimed", "reclaimed"),
    _shown("ordered_memory_reread_bytes_per_second", "limited host cache read again", "read again"),
)


class GroupFiles(NamedTuple):
    """Where the figures are: the cgroup with the limit of memory, its version, the one that counts CPU time (None where
    nothing does), and the number of CPUs, None for all of the host's.
    """

    memory: Path
    version: int
    cpu: Path | None
    cpus: int | None


class _Form(NamedTuple):
    usage: str
    limit: str
    keys: tuple[bytes, ...]
    """Of memory.stat: cached, swapped, read again (two), reclaimed; in the kernel's order."""


_FORMS = {
    1: _Form(
        "memory.usage_in_bytes",
        "memory.limit_in_bytes",
        (b"total_cache ", b"total_swap ", b"total_workingset_refault_anon ", b"total_workingset_refault_file "),
    ),
    2: _Form(
        "memory.current",
        "memory.max",
        (b"file ", b"swapcached ", b"workingset_refault_anon ", b"workingset_refault_file ", b"pgsteal "),
    ),
}


class OrderedHost:
    """Memory and CPU of the limited host; with used, cached and free its memory is its limit, where it has one.

    Used is all that is charged to it but the page cache. Version 1 of cgroups does not count what was reclaimed: that
    is NaN, and only what had to be read again after it is known.
    """

    title = "the limited host"
    names: tuple[str, ...] = ("ordered_memory_limit_bytes", *(figure.name for figure in FIGURES))

    def __init__(self, files: GroupFiles, host_cpus: int, host_memory: int) -> None:
        self._form = _FORMS[files.version]
        self._usage = KernelFile(files.memory / self._form.usage)
        self._limit = KernelFile(files.memory / self._form.limit)
        self._stat = KernelFile(files.memory / "memory.stat")
        self._keys = KeyedLines(self._form.keys)
        self._swap = readable(files.memory / "memory.swap.current")
        self._cpu = None if files.cpu is None else _CpuTime(files.cpu)
        self._cpus = files.cpus or host_cpus
        self._host_memory = host_memory
        self._before: list[float] = []
        self._cpu_before: int | None = None

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`."""
        usage = self._usage.number()
        limit = self._limited()
        cached, swapped, *counts = self._keys.known(self._stat.read())
        if self._swap is not None:
            swapped = self._swap.number()
        grown = growths(counts, self._before) if self._before else None
        self._before = counts
        rates = [NAN] * len(counts) if grown is None else [one * PAGE_BYTES / length for one in grown]
        reclaimed = rates[2] if len(rates) > 2 else NAN
        # The two are read one after the other, and memory.stat is up to two seconds old.
        cached = usage if cached > usage else cached
        return [
            limit,
            self._cpu_share(length),
            usage - cached,
            cached,
            max(0, limit - usage),
            swapped,
            reclaimed,
            rates[0] + rates[1],
        ]

    def _limited(self) -> int:
        text = self._limit.read().strip()
        return self._host_memory if text == b"max" else min(int(text), self._host_memory)

    def _cpu_share(self, length: float) -> float:
        if self._cpu is None:
            return NAN
        now = self._cpu.nanoseconds()
        before, self._cpu_before = self._cpu_before, now
        if before is None:
            return NAN
        return growth_within(now, before, most_seconds(length) * self._cpus * 1e9) / 1e9 / length / self._cpus * 100


class _CpuTime:
    """What all processes of a cgroup and those below it have used, since it was made."""

    def __init__(self, folder: Path) -> None:
        first = folder / "cpuacct.usage"
        self._microseconds = None if first.exists() else KeyedLines([b"usage_usec "])
        self._file = KernelFile(folder / "cpu.stat") if self._microseconds else KernelFile(first)

    def nanoseconds(self) -> int:
        """The time so far."""
        if self._microseconds is None:
            return self._file.number()
        return self._microseconds.numbers(self._file.read())[0] * 1000


def _ordered(watched: Watched) -> OrderedHost | None:
    cpu, memory = watched.find(CpuShares), watched.find(Memory)
    if watched.ordered is None or cpu is None or memory is None:
        return None
    return OrderedHost(watched.ordered, cpu.count, int(memory.total_bytes))


SOURCE = FigureSource((GroupMaker(OrderedHost.title, _ordered),), FIGURES, place=6)
