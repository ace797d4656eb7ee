"""The host's own guests beside a lab: who they are, what each did over a span, and the words for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from vmlab.model.quantities import format_bytes
from vmlab.model.results import NeighbourUse
from vmlab.system.processes import TICKS_PER_SECOND, stat_of
from vmlab.telemetry.source import KeyedLines

_TOLD = 3
FIGURES = ("cpu_percent", "disk_bytes_per_second")
"""Their endings are the units (`sample.unit_of`)."""
GUESTS_OF_HOST = "guests of this host"


def cpu_list(uses: Sequence[NeighbourUse]) -> str:
    """``db1 34 %, web 2 %, mail 1 %, 2 more``, in their order; empty where none took much."""
    return _listed([f"{one.name} {one.cpu_words}" for one in uses if one.took_cpu])


def disk_list(uses: Sequence[NeighbourUse]) -> str:
    """``db1 3.1 MiB/s, 4 more``, what used most first; empty where none used much."""
    moved = sorted(uses, key=lambda one: -one.disk_bytes_per_second)
    return _listed([f"{one.name} {one.disk_words}" for one in moved if one.used_disks])


def took_words(uses: Sequence[NeighbourUse]) -> str:
    """``CPUs db1 34 %; disks db1 3.1 MiB/s``; ``little`` where none took much, ``nothing`` where there are none."""
    parts = [f"{what} {those}" for what, those in (("CPUs", cpu_list(uses)), ("disks", disk_list(uses))) if those]
    return "; ".join(parts) or ("little" if uses else "nothing")


def mean_uses(cells: Sequence[Sequence[NeighbourUse]]) -> tuple[NeighbourUse, ...]:
    """The mean of each over cells, the busiest first; a guest took nothing of a cell in which it did not run.

    Guests of one name are one: their figures are added up.
    """
    return tuple(sorted(_means(cells), key=lambda one: (-one.cpu_percent, -one.disk_bytes_per_second, one.name)))


def _means(cells: Sequence[Sequence[NeighbourUse]]) -> Iterator[NeighbourUse]:
    for name in dict.fromkeys(one.name for uses in cells for one in uses):
        of_name = [one for uses in cells for one in uses if one.name == name]
        cpu = sum(one.cpu_percent for one in of_name) / len(cells)
        yield NeighbourUse(name, cpu, sum(one.disk_bytes_per_second for one in of_name) / len(cells))


def _listed(words: Sequence[str]) -> str:
    more = [f"{len(words) - _TOLD} more"] if len(words) > _TOLD else []
    return ", ".join([*words[:_TOLD], *more])


_NAMED = 3
_RESIDENT = KeyedLines((b"VmRSS:",))


class Neighbour(NamedTuple):
    """A guest that no lab has started, by its process; 0 where its arguments do not tell."""

    name: str
    vcpus: int
    memory_bytes: int
    resident_bytes: int

    @property
    def growth_bytes(self) -> int:
        """What it may still take of the host's memory."""
        return max(0, self.memory_bytes - self.resident_bytes)


def named(guests: Sequence[Neighbour]) -> str:
    """``2 guests of its own (db1, web2)``; of many the first ones are named."""
    told = [one.name for one in guests[:_NAMED]]
    told += [f"{len(guests) - _NAMED} more"] if len(guests) > _NAMED else []
    return f"{len(guests)} guest{'s' * (len(guests) != 1)} of its own ({', '.join(told)})"


def described(guests: Sequence[Neighbour]) -> str:
    """The same with what they have and may still take; what some of them do not tell makes a sum the least of it."""
    vcpus, unknown_vcpus = sum(one.vcpus for one in guests), sum(not one.vcpus for one in guests)
    growth, unknown_memory = sum(one.growth_bytes for one in guests), sum(not one.memory_bytes for one in guests)
    resident = format_bytes(sum(one.resident_bytes for one in guests))
    return (
        f"{named(guests)}: {_least(f'{vcpus}', 'number of', unknown_vcpus, len(guests))} vCPU{'s' * (vcpus != 1)}, "
        f"{resident} of memory, which may grow by {_least(format_bytes(growth), 'amount', unknown_memory, len(guests))}"
    )


def _least(known: str, what: str, unknown: int, of: int) -> str:
    if unknown == of:
        return f"an unknown {what}"
    return f"at least {known}" if unknown else known


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
    # Imported late, here and below: whoever compares runs needs the words alone.
    from vmlab.telemetry.domains.qemu_processes import own_guests

    for pid, options in own_guests(proc).items():
        with suppress(OSError, ValueError):
            (resident,) = _RESIDENT.numbers((proc / str(pid) / "status").read_bytes())
            name = options.name or f"qemu-{pid}"
            yield Neighbour(name, options.vcpus, options.memory_bytes, resident << 10)


def counted_neighbours(proc: Path) -> dict[tuple[int, int], NeighbourCounters]:
    """The counters of each as they are now; bytes are 0 where this user may not read them."""
    from vmlab.telemetry.domains.qemu_processes import own_guests

    found = {}
    for pid, options in own_guests(proc).items():
        with suppress(OSError, ValueError):
            stat = stat_of(proc / str(pid))
            moved = _disk_bytes(proc / str(pid) / "io")
            name = options.name or f"qemu-{pid}"
            found[pid, stat.born] = NeighbourCounters(name, stat.ran / TICKS_PER_SECOND, moved)
    return found


def _disk_bytes(file: Path) -> int:
    from vmlab.telemetry.domains.qemu_processes import IO

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
