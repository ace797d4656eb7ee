"""Latency histograms: the bins in which requests of guests' disks are counted, and percentiles from their counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

OPERATIONS = ("read", "write", "flush")
"""What is counted apart, in the order in which it is shown."""


Counts = Sequence[int]
"""How many requests fell into each bin."""
Packed = list[int]
"""`Counts` without the empty bins at both ends: the number of the first bin, then the counts from there on."""


class LatencyBins:
    """Bins whose `boundaries`, in ns, grow by the same ratio: `count` of them from `lowest` on, `a_decade` in a decade.

    There is one bin more than boundaries: below the first, between each two, and from the last on. A boundary belongs
    to the bin above it (`BlockLatencyHistogramInfo` in QEMU's qapi/block-core.json).
    """

    def __init__(self, lowest: int, a_decade: int, count: int) -> None:
        self.scale = [lowest, a_decade, count]
        self.boundaries = [round(lowest * 10 ** (place / a_decade)) for place in range(count)]

    @cached_property
    def error_percent(self) -> float:
        """By how much a percentile may be off that lies between the first and the last boundary."""
        # The geometric middle of a bin is off by the same factor at both of its ends.
        widest = max((high / low for low, high in itertools.pairwise(self.boundaries)), default=1.0)
        return (math.sqrt(widest) - 1) * 100

    @property
    def least_ms(self) -> float:
        """The first boundary: of what is below nothing more is known."""
        return self.boundaries[0] / 1e6

    @property
    def most_ms(self) -> float:
        """The last boundary: of what is above nothing more is known."""
        return self.boundaries[-1] / 1e6

    def percentile_ms(self, counts: Counts, percent: float) -> float | None:
        """The geometric middle of the bin that has the request of this rank (nearest rank); None without requests.

        Of the bins at both ends it is the one boundary that they have.
        """
        rank = max(1, math.ceil(sum(counts) * percent / 100))
        for place, reached in enumerate(itertools.accumulate(counts)):
            if reached >= rank:
                return self._middle(place) / 1e6
        return None

    def _middle(self, place: int) -> float:
        low, high = self.boundaries[max(0, place - 1)], self.boundaries[min(place, len(self.boundaries) - 1)]
        return math.sqrt(low * high)

    def nothing(self) -> list[int]:
        """Counts to which others can be added."""
        return [0] * (len(self.boundaries) + 1)

    def total(self, packed: Iterable[Packed]) -> list[int]:
        """The sum of several."""
        counts = self.nothing()
        for one in packed:
            add(counts, one)
        return counts


BINS = LatencyBins(10_000, 10, 71)
"""Those that a run asks QEMU for: ten in each decade from 10 µs to 100 s. Their number is what a query costs."""


@lru_cache(maxsize=16)
def bins_of(lowest: int, a_decade: int, count: int) -> LatencyBins:
    """The bins of a recorded reading, by its `LatencyBins.scale`."""
    return LatencyBins(lowest, a_decade, count)


def add(counts: list[int], packed: Packed) -> None:
    """Add to `counts`; bins that these do not have are left out."""
    first, *more = packed
    for place, count in enumerate(more[: max(0, len(counts) - first)], first):
        counts[place] += count


def packed(counts: Counts) -> Packed:
    """See `Packed`; empty where nothing was counted."""
    filled = [place for place, count in enumerate(counts) if count]
    return [filled[0], *counts[filled[0] : filled[-1] + 1]] if filled else []
