"""What a guest of the host's own took while the workloads of a cell ran, and the words for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from vmlab.model.quantities import format_bytes

_TOLD_CPU_PERCENT = 1.0
_TOLD_DISK_BYTES = 1 << 20
"""A guest that took less of both, in a second, is not named."""
_TOLD = 3
FIGURES = ("cpu_percent", "disk_bytes_per_second")
"""Their endings are the units (`sample.unit_of`)."""
GUESTS_OF_HOST = "guests of this host"


@dataclass(frozen=True, slots=True)
class NeighbourUse:
    """What a guest of the host took over a span: its share of all CPUs in percent, and bytes of its disks a second.

    The fields are the keys of documents and events, too.
    """

    name: str
    cpu_percent: float
    disk_bytes_per_second: float

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> NeighbourUse:
        """From a document or an event."""
        return cls(body["name"], *(body[figure] for figure in FIGURES))

    def to_json(self) -> dict[str, Any]:
        """As documents and events have it."""
        return asdict(self)

    @property
    def cpu_words(self) -> str:
        """``34 %``, of all CPUs."""
        return f"{self.cpu_percent:.0f} %"

    @property
    def disk_words(self) -> str:
        """``3.1 MiB/s``."""
        return f"{format_bytes(int(self.disk_bytes_per_second))}/s"

    @property
    def took_cpu(self) -> bool:
        """Whether its share of the CPUs is worth a word."""
        return self.cpu_percent >= _TOLD_CPU_PERCENT

    @property
    def used_disks(self) -> bool:
        """Whether the bytes of its disks are worth a word."""
        return self.disk_bytes_per_second >= _TOLD_DISK_BYTES


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
