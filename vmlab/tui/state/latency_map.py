"""The latency of guests' disks over time: what the console's heat map shows."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from vmlab.model.cell_event import DiskLatencyRead
from vmlab.telemetry.latency_bins import BINS, OPERATIONS, LatencyBins, add, bins_of

_MOST_COLUMNS = 400
Place = tuple[int, str, str]
"""Tile, guest and disk."""


class LatencyColumn(NamedTuple):
    """One reading of all guests' disks: requests in each bin by operation.

    `part` is the number of the part that it belongs to, and `word` is that one's.
    """

    part: int
    word: str
    counts: dict[str, list[int]]
    guests: set[tuple[int, str]]


class LatencyMap:
    """The newest readings in `columns`; `disks` and `total` have what was counted in the newest part of the run.

    A part begins with a cell, and where running guests are switched. `about` says which one it is.
    """

    def __init__(self) -> None:
        self.bins: LatencyBins = BINS
        self.columns: deque[LatencyColumn] = deque(maxlen=_MOST_COLUMNS)
        self.disks: dict[Place, dict[str, list[int]]] = {}
        self.total: dict[str, list[int]] = {}
        self.about = ""
        self.version = 0
        self._next: tuple[str, str] | None = ("", "")
        self._part, self._word = 0, ""

    def begin(self, word: str, about: str) -> None:
        """What is read next belongs to another part: in a word for the time axis, and in more of them."""
        self._next = word, about

    def take(self, event: DiskLatencyRead) -> None:
        """Take in what was read of one guest."""
        self.version += 1
        bins = bins_of(*event.scale)
        if bins.scale != self.bins.scale:
            self.bins = bins
            self.columns.clear()
            self._next = self._next or (self._word, self.about)
        place = event.tile, event.guest
        begins = self._next is not None
        if self._next is not None:
            self._word, self.about = self._next
            self._part += 1
            self._next, self.disks, self.total = None, {}, self._nothing()
        if begins or not self.columns or place in self.columns[-1].guests:
            self.columns.append(LatencyColumn(self._part, self._word, self._nothing(), set()))
        column = self.columns[-1]
        column.guests.add(place)
        for disk, operations in event.counts.items():
            own = self.disks.get((*place, disk))
            if own is None:
                own = self.disks[*place, disk] = self._nothing()
            for operation in OPERATIONS:
                if operation in operations:
                    for sums in (own, self.total, column.counts):
                        add(sums[operation], operations[operation])

    def _nothing(self) -> dict[str, list[int]]:
        return {operation: self.bins.nothing() for operation in OPERATIONS}
