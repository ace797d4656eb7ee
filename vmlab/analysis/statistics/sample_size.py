"""What so many readings can show, and how many it takes: for the tests of `rank_test`, before anything is measured.

A difference is called detectable where the test finds it in `POWER` of all cases.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from functools import cache
from statistics import NormalDist

from vmlab.analysis.statistics.descriptive import percentile
from vmlab.analysis.statistics.rank_test import end_of, signed_rank, smallest_p
from vmlab.analysis.statistics.rank_test import rank_sum as rank_sum_of
from vmlab.model.run import MOST_EXTENSIONS

ALPHA = 0.05
"""How often at most a family of figures may show a difference where there is none."""
STATED = 2 * ALPHA
"""How often at most a family shows one at any of the looks at a run that is extended again and again."""
POWER = 0.8
"""How often a detectable difference is found, as usual since Cohen (Statistical Power Analysis, 1988)."""
LOOKS_AT_CLAIMS = 3
"""How often claims are looked at, where the number of repeats is chosen for them."""
MOST = 1000
"""More readings a side than this are not counted."""
_SIMULATED = 16
"""Up to so many readings a side the power is found by trying, beyond it by the formula for many readings."""
_TRIES = 500
_EFFICIENCY = 3 / math.pi
"""Of both tests against Student's where readings are normal and many: Hodges and Lehmann (1956)."""


def detectable_percent(spread_percent: float, repeats: int, figures: int = 1) -> float | None:
    """The smallest slowdown, in percent, that `repeats` find in four of five cases; None where they can prove nothing.

    `spread_percent` is the standard deviation of the ratio of both sides from repeat to repeat, in percent, and
    `figures` the number of figures over which is corrected. Normal readings are assumed.
    """
    size = detectable((repeats,), ALPHA / figures)
    return None if size is None else 100 * math.expm1(size * spread_percent / 100)


def readings_needed(figures: int = 1, *, paired: bool = True) -> int:
    """How many readings a side the test needs at least to prove anything of one of so many figures."""
    counts = range(1, MOST)
    return next(count for count in counts if smallest_p(_sizes(paired, count)) <= ALPHA / figures)


def level_divisor(extensions: int, looks: int = 1) -> int:
    """What divides `ALPHA` in a run whose tables are looked at so often, or that was extended so often after its end.

    Planned `looks` each have their share (Bonferroni). Within a look the families are corrected by Holm at that share,
    so the look errs in at most `ALPHA` / `looks` of cases, however the figures depend on each other; that anything is
    proven wrongly at any look is at most as likely as the sum of these, which is `ALPHA`. No look depends on what
    earlier ones showed, so it holds wherever the run ends, and for the table of that look alone.

    Whoever extends a run until something is proven tests again each time, so the k-th extension is judged at `ALPHA` /
    2^k: all looks together err in less than twice `ALPHA` (`STATED`) of cases, however many there are.
    """
    return looks << min(extensions, MOST_EXTENSIONS)


def planned_looks(figures: int = 1) -> tuple[int, int, int]:
    """After how many repeats claims are looked at, where the spread is not known beforehand.

    Each look is made at a third of `ALPHA` (Bonferroni), so that all three together err as seldom as one would. The
    first has as many readings as any answer takes, the last twice as many.
    """
    first = readings_needed(LOOKS_AT_CLAIMS * figures)
    return first, math.ceil(1.5 * first), 2 * first


def readings_to_find(size: float, figures: int = 1, *, paired: bool = True) -> int | None:
    """How many readings a side find a difference of `size` standard deviations; None for more than `MOST`."""
    least, alpha = readings_needed(figures, paired=paired), ALPHA / figures
    if size <= 0 or _reach(_sizes(paired, MOST), alpha) > size:
        return None
    counts = range(least, MOST + 1)
    return counts[bisect_left(counts, True, key=lambda count: _reach(_sizes(paired, count), alpha) <= size)]


def detectable(sizes: tuple[int, ...], alpha: float) -> float | None:
    """The detectable difference in standard deviations: of the pairs' differences, or of the readings of either side.

    None where the test of such `sizes` cannot reach `alpha`.
    """
    return _reach(sizes, alpha) if end_of(sizes, alpha) else None


def _sizes(paired: bool, count: int) -> tuple[int, ...]:
    return (count,) if paired else (count, count)


@cache
def _reach(sizes: tuple[int, ...], alpha: float) -> float:
    """By how much the truth is beyond the near end of the interval in `POWER` of all cases at most."""
    if max(sizes) > _SIMULATED:
        wanted = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(POWER)
        return wanted * math.sqrt(sum(1 / size for size in sizes) / _EFFICIENCY)
    draw, end = random.Random(1), end_of(sizes, alpha)
    return percentile([-_tried(sizes, draw)[end - 1] for _ in range(_TRIES)], 100 * POWER)


def _tried(sizes: tuple[int, ...], draw: random.Random) -> tuple[float, ...]:
    """The shifts of sides of normal readings with a deviation of 1 that do not differ."""
    sides = [[draw.gauss(0.0, 1.0) for _ in range(size)] for size in sizes]
    return (signed_rank(sides[0]) if len(sides) == 1 else rank_sum_of(*sides)).shifts
