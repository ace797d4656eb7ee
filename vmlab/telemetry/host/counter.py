"""The growth of a kernel counter between two readings, also where it wrapped or started again from zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

NAN = math.nan


def growth(new: int, old: int) -> float:
    """How far a counter went from `old` to `new`, with a wrap at 32 or 64 bits counted in; NaN where it was reset.

    A step back is a wrap when the growth over the top is less than half of the counter's range; otherwise the disk, CPU
    or guest that it counts was replaced.
    """
    if new >= old:
        return new - old
    for span in (1 << 32, 1 << 64):
        if old < span and new - old + span < span >> 1:
            return new - old + span
    return NAN


def growths(new: Sequence[int], old: Sequence[int]) -> list[float] | None:
    """The growth of counters that belong to one device or guest; None where that was replaced by another.

    Counters of one device do not wrap in the same tick, so two that went back mean a reset.
    """
    grown: list[float] = [n - o for n, o in zip(new, old, strict=True)]
    if min(grown, default=0) >= 0:
        return grown
    if sum(value < 0 for value in grown) > 1:
        return None
    grown = [growth(n, o) for n, o in zip(new, old, strict=True)]
    return None if any(value != value for value in grown) else grown
