"""The host's own guests as their QEMUs show them now, and what each took between two readings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from vmlab.model.results import NeighbourUse
from vmlab.system.processes import TICKS_PER_SECOND, stat_of
from vmlab.telemetry.domains.neighbours import Neighbour
from vmlab.telemetry.domains.qemu_processes import IO, guest_name, own_guests
from vmlab.telemetry.source import KeyedLines

_RESIDENT = KeyedLines((b"VmRSS:",))


class NeighbourCounters(NamedTuple):
    """CPU seconds and bytes of its disks since its QEMU was started."""

    name: str
    cpu_seconds: float
    disk_bytes: int


Counted = Mapping[tuple[int, int], NeighbourCounters]
"""By pid and start time."""


def neighbours(proc: Path) -> tuple[Neighbour, ...]:
    """Those that run now, by name; `proc` shows the host's processes."""
    return tuple(sorted(_found(proc)))


def _found(proc: Path) -> Iterator[Neighbour]:
    for pid, options in own_guests(proc).items():
        with suppress(OSError, ValueError):
            (resident,) = _RESIDENT.numbers((proc / str(pid) / "status").read_bytes())
            name = guest_name(options.name, pid)
            yield Neighbour(name, options.vcpus, options.memory_bytes, resident << 10)


def counted_neighbours(proc: Path) -> dict[tuple[int, int], NeighbourCounters]:
    """The counters of each as they are now; bytes are 0 where this user may not read them."""
    found = {}
    for pid, options in own_guests(proc).items():
        with suppress(OSError, ValueError):
            stat = stat_of(proc / str(pid))
            moved = _disk_bytes(proc / str(pid) / "io")
            name = guest_name(options.name, pid)
            found[pid, stat.born] = NeighbourCounters(name, stat.ran / TICKS_PER_SECOND, moved)
    return found


def _disk_bytes(file: Path) -> int:
    try:
        return sum(IO.numbers(file.read_bytes()))
    except (OSError, ValueError):
        return 0


def between(before: Counted, later: Counted, seconds: float) -> tuple[NeighbourUse, ...]:
    """What each took that ran at the later reading, the busiest first; one that was started since counts from 0."""
    whole = seconds * (os.cpu_count() or 1) / 100
    used = []
    for key, now in later.items():
        then = before.get(key, NeighbourCounters(now.name, 0.0, 0))
        cpu, moved = now.cpu_seconds - then.cpu_seconds, now.disk_bytes - then.disk_bytes
        used.append(NeighbourUse(now.name, max(0.0, cpu) / whole, max(0, moved) / seconds))
    return tuple(sorted(used, key=lambda one: (-one.cpu_percent, -one.disk_bytes_per_second, one.name)))
