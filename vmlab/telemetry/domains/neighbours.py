"""The words for the host's own guests beside a lab: who they are, and what each took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from vmlab.model.quantities import format_bytes
from vmlab.model.results import NeighbourUse

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
    return f"{len(guests)} guest{'s' * (len(guests) != 1)} of its own ({_listed([one.name for one in guests])})"


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
