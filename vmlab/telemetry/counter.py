"""The growth of a kernel counter between two readings, when it wrapped, and when it began anew."""

from __future__ import annotations

import math
from collections.abc import Sequence

NAN = math.nan


def growth(new: int, old: int) -> float:
    """How far a counter went from `old` to `new`; across a wrap at 32 or 64 bits too, NaN where it began anew.

    A step back is a wrap when the way over the top is less than half of the counter's range; otherwise the thing that
    is counted was replaced by another one.
    """
    if new >= old:
        return new - old
    for span in (1 << 32, 1 << 64):
        if old < span and new - old + span < span >> 1:
            return new - old + span
    return NAN


def growths(new: Sequence[int], old: Sequence[int]) -> list[float] | None:
    """The growth of counters that belong to one thing; None where that thing was replaced by another one.

    Counters of one thing do not wrap in the same tick, so two that went back mean that they began anew.
    """
    grown: list[float] = [n - o for n, o in zip(new, old, strict=True)]
    if min(grown, default=0) >= 0:
        return grown
    if sum(value < 0 for value in grown) > 1:
        return None
    grown = [growth(n, o) for n, o in zip(new, old, strict=True)]
    return None if any(value != value for value in grown) else grown
