"""How far a kernel counter grew between two readings, and when that is not known.

The rule for all counters: none grows by more than the time that passed allows. A CPU gains no more ticks than passed, a
disk is busy no longer than that, a link carries no more than its speed. What grew by more is unknown for that tick
(NaN), and is not cut down to what is possible. A counter that went back has wrapped only if the time allows the
difference over the top, too; else it began anew, with another device, CPU or guest under the old name. Where nothing
says how fast a counter can grow, one that went back began anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

NAN = math.nan
MOST_BYTES_PER_SECOND = 1e12
"""More than the memory of a host moves, and so more than any disk or link of it."""
_LAG_SECONDS = 0.2
_WIDTHS = (1 << 32, 1 << 64)


def most_seconds(passed: float) -> float:
    """The most seconds of one CPU or disk that the kernel can have counted while `passed` seconds went by.

    It counts in ticks of up to 10 ms, rounds each figure down, and counts late what a host lost to its own hypervisor.
    """
    return passed * 1.05 + _LAG_SECONDS


def growth(new: int, old: int) -> float:
    """How far a counter went from `old` to `new`; NaN where it went back, as nothing says whether it may wrap."""
    return growth_within(new, old, math.inf)


def growth_within(new: float, old: float, most: float) -> float:
    """How far a counter went from `old` to `new`, a wrap at 32 or 64 bits included; NaN where that is not known.

    `most` is how far it can have gone in the time between; where that is infinite no step back is a wrap.
    """
    if new >= old:
        return new - old if new - old <= most else NAN
    over_the_top = (new - old + width for width in _WIDTHS if old < width)
    return next((grown for grown in over_the_top if grown <= most < math.inf), NAN)


def growths(new: Sequence[float], old: Sequence[float], most: float = math.inf) -> list[float] | None:
    """The growth of counters that belong to one device or guest; None where that is not known, or it was replaced.

    Counters of one device do not wrap in the same tick, so two that went back mean that it began anew. A counter that
    the kernel does not have is NaN, and so is its growth.
    """
    grown: list[float] = [n - o for n, o in zip(new, old, strict=True)]
    if min(grown, default=0) >= 0 and max(grown, default=0) <= most:
        return grown
    if sum(value < 0 for value in grown) > 1:
        return None
    grown = [growth_within(n, o, most) for n, o in zip(new, old, strict=True)]
    broken = any(value != value and n == n and o == o for value, n, o in zip(grown, new, old, strict=True))
    return None if broken else grown
