"""What the yardstick of a cell shows: how far the host's own speed moved around it, and figures without that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from vmlab.analysis.figures.figure import Value
from vmlab.analysis.shape import CellDocument, YardstickDocument, YardstickReading
from vmlab.analysis.statistics.descriptive import mean
from vmlab.model.event import YardstickTaken

TIMES = ("s", "ms")
RATES = ("1/s", "B/s")
"""Units of what a slow host makes longer, and of what it makes less."""


@dataclass(frozen=True, slots=True)
class YardstickSpan:
    """The yardsticks of several cells in seconds, each the mean of before and after: their median, and both ends."""

    median: float
    shortest: float
    longest: float

    def to_json(self) -> dict[str, float]:
        """As it stands in ``vmlab.compare/2``."""
        return {"median_seconds": self.median, "shortest_seconds": self.shortest, "longest_seconds": self.longest}

    def without(self, value: Value, unit: str) -> Value | None:
        """`value`, which is in `unit`, as it would have been at the median yardstick; None for neither time nor rate.

        A time is divided by the cell's yardstick relative to the median, and a rate multiplied by it. A cell without a
        yardstick has no such value.
        """
        if unit not in (*TIMES, *RATES):
            return None

        def at_the_median(cell: CellDocument) -> float | None:
            taken, yardstick = value(cell), yardstick_of(cell)
            if taken is None or yardstick is None:
                return None
            relative = yardstick / self.median
            return taken / relative if unit in TIMES else taken * relative

        return at_the_median


def yardstick_of(cell: CellDocument) -> float | None:
    """The yardstick of a cell: the mean of before and after, in seconds; None unless both were measured."""
    taken = cell["yardstick"]
    if taken is None or taken["before"] is None or taken["after"] is None:
        return None
    both = mean([taken["before"]["seconds"], taken["after"]["seconds"]])
    return both if both > 0 else None


def yardstick_span(cells: Iterable[CellDocument]) -> YardstickSpan | None:
    """The yardsticks of those of `cells` that have one; None where none has."""
    found = [one for cell in cells if (one := yardstick_of(cell)) is not None]
    return YardstickSpan(median(found), min(found), max(found)) if found else None


def yardstick_document(taken: dict[str, YardstickTaken]) -> YardstickDocument | None:
    """The readings by ``before`` and ``after``; None where there is none."""
    if not taken:
        return None
    before, after = taken.get("before"), taken.get("after")
    return {
        "before": _reading(before),
        "after": _reading(after),
        "moved_percent": None if before is None or after is None else moved_percent(before.seconds, after.seconds),
    }


def moved_percent(one: float, other: float) -> float | None:
    """How much more the longer of two times is than the shorter one; None where that is nothing."""
    short, long = sorted((one, other))
    return 100 * (long / short - 1) if short > 0 else None


def _reading(taken: YardstickTaken | None) -> YardstickReading | None:
    if taken is None:
        return None
    return {
        "seconds": taken.seconds,
        "compute_seconds": taken.compute_seconds,
        "memory_seconds": taken.memory_seconds,
        "cpu_seconds": taken.cpu_seconds,
    }
