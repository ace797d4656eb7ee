"""Counters of the host that are read before and after a span of work; at each tick they would cost too much."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from vmlab.model.results import NeighbourUse
from vmlab.system.mounts import cgroups_in, throttled_seconds
from vmlab.system.processes import TICKS_PER_SECOND, stat_of, vm_counter
from vmlab.telemetry.domains.neighbour_readings import NeighbourCounters, between, counted_neighbours
from vmlab.telemetry.source import THE_HOST, Roots, most_seconds

Number = TypeVar("Number", int, float)

_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD among the flags of a task (include/linux/sched.h)."""
_SOFTIRQ = b"ksoftirqd/"
"""What these threads do is in the kernel's count of softirq already."""
_THROTTLES = ("core_throttle_count", "package_throttle_count")
_READINGS = 3
_DIGITS = 2
"""Of seconds: clocks that are read one after the other differ by less."""


@dataclass(frozen=True, slots=True)
class Between:
    """What happened from one reading to the next, which came after `seconds`.

    `kernel_threads_percent` is their share of all CPUs. `heat` is how often the processor lowered its speed because of
    its temperature, `held_back_percent` the share of the time in which a CPU quota kept this process or its cgroup from
    running. `neighbours` are the host's own guests, the busiest first. `caches_dropped` is how often somebody emptied
    the host's caches. `suspended` are the seconds for which the host slept, which `seconds` does not have.
    """

    kernel_threads_percent: float = 0.0
    heat: int = 0
    held_back_percent: float = 0.0
    neighbours: tuple[NeighbourUse, ...] = ()
    caches_dropped: int = 0
    suspended: float = 0.0


@dataclass(frozen=True, slots=True)
class HostCounters:
    """One reading. `kernel_threads` are CPU seconds by pid and start time, `quotas` seconds held back by file,
    `suspended` the seconds for which the host slept since it booted.
    """

    mono: float
    kernel_threads: dict[tuple[int, int], float] = field(default_factory=dict)
    heat: dict[str, int] = field(default_factory=dict)
    quotas: dict[str, float] = field(default_factory=dict)
    neighbours: dict[tuple[int, int], NeighbourCounters] = field(default_factory=dict)
    caches_dropped: int = 0
    suspended: float = 0.0

    def until(self, later: HostCounters) -> Between:
        """What happened from this reading to a later one.

        Threads that are new count from 0, and so does a counter that went back: its CPU was taken off and on, or its
        cgroup made anew. A thread or a quota that grew by more than the time that passed is left out.
        """
        seconds = later.mono - self.mono
        if seconds <= 0:
            return Between()
        cpus, most = os.cpu_count() or 1, most_seconds(seconds)
        whole = seconds * cpus / 100
        used = (_since(now, self.kernel_threads.get(key, 0.0)) for key, now in later.kernel_threads.items())
        threads = sum(one for one in used if one <= most)
        heat = sum(_since(count, self.heat.get(name, count)) for name, count in later.heat.items())
        # A group above another one is held back with it, so the largest is taken and not the sum.
        waited = (_since(now, self.quotas.get(name, now)) for name, now in later.quotas.items())
        held = max((one for one in waited if one <= most * cpus), default=0.0)
        beside = between(self.neighbours, later.neighbours, seconds)
        dropped = _since(later.caches_dropped, self.caches_dropped)
        suspended = round(later.suspended - self.suspended, _DIGITS)
        return Between(threads / whole, heat, held / whole, beside, dropped, suspended)


def _since(now: Number, before: Number) -> Number:
    """The growth of a counter that counts from 0 where it began anew."""
    return now - before if now >= before else now


def host_counters(roots: Roots = THE_HOST) -> HostCounters:
    """Read all of them now. What this host does not have is left out."""
    return HostCounters(
        mono=time.monotonic(),
        kernel_threads=dict(_kernel_threads(roots.host_proc)),
        heat=dict(_heat(roots.sys)),
        quotas=dict(_quotas(roots)),
        neighbours=counted_neighbours(roots.host_proc),
        caches_dropped=vm_counter(roots.proc, "drop_pagecache", "drop_slab"),
        suspended=_suspended(),
    )


def _suspended() -> float:
    """The least of some readings of two clocks, as between them this thread may wait for a CPU."""
    return min(-time.monotonic() + time.clock_gettime(time.CLOCK_BOOTTIME) for _ in range(_READINGS))


def _kernel_threads(proc: Path) -> Iterator[tuple[tuple[int, int], float]]:
    for folder in proc.glob("[0-9]*"):
        # It may end after it was listed.
        with suppress(OSError, ValueError):
            stat = stat_of(folder)
            if stat.flags & _KERNEL_THREAD and not stat.name.startswith(_SOFTIRQ):
                yield (int(folder.name), stat.born), stat.ran / TICKS_PER_SECOND


def _heat(sys: Path) -> Iterator[tuple[str, int]]:
    for name in _THROTTLES:
        for file in sys.glob(f"devices/system/cpu/cpu[0-9]*/thermal_throttle/{name}"):
            with suppress(OSError, ValueError):
                yield str(file), int(file.read_text())


def _quotas(roots: Roots) -> Iterator[tuple[str, float]]:
    """Seconds for which this process's cgroups, and those above them, were held back."""
    try:
        own = (roots.proc / "self/cgroup").read_bytes()
    except OSError:
        return
    base = roots.sys / "fs/cgroup"
    for controllers, inner in cgroups_in(own):
        for root in [base / ",".join(controllers)] if controllers else [base, base / "unified"]:
            for folder in (inner, *inner.parents):
                file = root / folder / "cpu.stat"
                with suppress(OSError, ValueError):
                    if (seconds := throttled_seconds(file.read_bytes())) is not None:
                        yield str(file), seconds
