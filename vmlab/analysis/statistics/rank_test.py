"""Whether two sides differ, and by how much: two rank tests, each of which gives verdict and interval.

Both are one construction. The readings give a list of shifts, each of which says by how much one side is larger: the
means of all pairs of differences where readings are paired (Walsh averages), all differences between a reading of one
side and one of the other where they are not. If the sides differ by nothing but a shift d, the number of shifts below
d has a distribution that is known exactly, whatever the distribution of the readings: that of Wilcoxon's signed rank,
or that of Mann and Whitney's U. The test asks whether d = 0 is likely, the interval has every d that is. So
the interval excludes 0 exactly where the test says that there is a difference. The estimate is the median of the
shifts: Hodges and Lehmann (Annals of Mathematical Statistics 34, 1963).

All of that rests on which shifts are equal, and on which are 0. Two that are equal may come out some last bits apart,
as the readings are decimals and a ratio is compared by its logarithm: of 1 to 2 and of 6 to 3 the mean is 5.6e-17. So
shifts that rounding alone can have made different are one shift, and those that it alone can have made different from 0
are 0, for verdict, interval, estimate and effect alike.

Sources: Wilcoxon (Biometrics Bulletin 1, 1945), Mann and Whitney (Annals of Mathematical Statistics 18, 1947); the
intervals are Tukey's and Moses', in Hollander, Wolfe and Chicken, Nonparametric Statistical Methods (2014), chapters
3.3 and 4.3.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from operator import sub
from statistics import NormalDist

from vmlab.analysis.statistics.descriptive import ROUNDING, percentile

EXACT = 50
"""Up to so many readings a side the distribution is exact, and beyond it normal, with a correction for continuity."""


@dataclass(frozen=True, slots=True)
class ShiftTest:
    """One test. `name` says which; `shifts` are in order, in the unit of the readings, the second side's excess.

    `sizes` is the number of pairs, or the numbers of readings of both sides. Shifts that differ by no more than
    `rounding` are equal; those in `shifts` are then the same to the last bit, and 0 where they are as near to 0.
    """

    name: str
    shifts: tuple[float, ...]
    sizes: tuple[int, ...]
    rounding: float = 0.0

    @classmethod
    def of(cls, name: str, shifts: list[float], sizes: tuple[int, ...], size: float) -> ShiftTest:
        """The test of `shifts` in any order, which were calculated from figures of this `size`."""
        shifts.sort()
        rounding = ROUNDING * max(size, -shifts[0], shifts[-1])
        return cls(name, tuple(_ties(shifts, rounding)), sizes, rounding)

    @property
    def estimate(self) -> float:
        """The median of the shifts."""
        return percentile(self.shifts, 50)

    @property
    def effect(self) -> float:
        """The share of shifts above 0 less the share below, from -1 to 1: the rank-biserial correlation.

        Of pairs it is that of Kerby (Comprehensive Psychology 3, 2014), of two sides Cliff's delta (Psychological
        Bulletin 114, 1993).
        """
        below, above = bisect_left(self.shifts, 0.0), len(self.shifts) - bisect_right(self.shifts, 0.0)
        return (above - below) / len(self.shifts)

    def p_of(self, shift: float = 0.0) -> float:
        """How likely readings are that lie at least as far from `shift` to either side, if that is the true shift.

        Shifts that are equal to it count against a difference, so that ties make the test careful and never bold.
        """
        at_most = bisect_right(self.shifts, shift + self.rounding)
        at_least = len(self.shifts) - bisect_left(self.shifts, shift - self.rounding)
        return min(1.0, 2 * _chance(self.sizes, min(at_most, at_least)))

    @property
    def smallest_p(self) -> float:
        """The p of readings that could not lie further apart."""
        return smallest_p(self.sizes)

    def interval(self, alpha: float) -> tuple[float, float] | None:
        """All shifts whose p is above `alpha`: an interval of 1 - alpha. None where no p is as small as `alpha`."""
        ends = end_of(self.sizes, alpha)
        return (self.shifts[ends - 1], self.shifts[-ends]) if ends else None


def signed_rank(differences: Sequence[float], *, size: float = 0.0) -> ShiftTest:
    """Wilcoxon's signed-rank test of the differences of pairs. Raises ValueError for none.

    `size` is that of the largest figure that they are differences of, where it is larger than they are.
    """
    if not differences:
        raise ValueError("a test of pairs needs one at least")
    ordered = sorted(differences)
    means = [(one + other) / 2 for place, one in enumerate(ordered) for other in ordered[place:]]
    if math.isinf(means[0]) or math.isinf(means[-1]):
        means = [one / 2 + other / 2 for place, one in enumerate(ordered) for other in ordered[place:]]
    return ShiftTest.of("Wilcoxon signed rank", means, (len(ordered),), size)


def rank_sum(
    before: Sequence[float],
    after: Sequence[float],
    *,
    size: float = 0.0,
    excess: Callable[[float, float], float] = sub,
) -> ShiftTest:
    """Mann and Whitney's test of two sides that are not paired. Raises ValueError for a side without a reading.

    `excess` is by how much its first argument, of `after`, is above its second; `size` is as of `signed_rank`.
    """
    if not before or not after:
        raise ValueError("a test of two sides needs a reading of each")
    shifts = [excess(other, one) for one in before for other in after]
    return ShiftTest.of("Mann-Whitney", shifts, (len(before), len(after)), size)


def _ties(ordered: Sequence[float], rounding: float) -> Iterator[float]:
    """The shifts, each as the first of those that it equals; those that equal 0 as 0."""
    first = -math.inf
    for shift in ordered:
        if -rounding <= shift <= rounding:
            first = 0.0
        elif shift - first > rounding:
            first = shift
        yield first


def smallest_p(sizes: tuple[int, ...]) -> float:
    """The smallest p that the test of so many pairs, or of two sides of so many readings, can reach."""
    return 2 * _chance(sizes, 0)


@cache
def end_of(sizes: tuple[int, ...], alpha: float) -> int:
    """Which shift from either end, counted from 1, ends the interval of 1 - `alpha`; 0 where there is no interval."""
    shifts = math.prod(sizes) if len(sizes) > 1 else sizes[0] * (sizes[0] + 1) // 2
    return bisect_right(range(shifts // 2), alpha, key=lambda count: 2 * _chance(sizes, count))


def _chance(sizes: tuple[int, ...], count: int) -> float:
    """How likely it is that at most `count` shifts are below the true one."""
    if max(sizes) > EXACT:
        return _normal(sizes).cdf(count + 0.5)
    chances = _signed_rank_chances(*sizes) if len(sizes) == 1 else _rank_sum_chances(*sizes)
    return chances[count]


def _normal(sizes: tuple[int, ...]) -> NormalDist:
    """The normal distribution that the exact one approaches."""
    if len(sizes) == 1:
        (pairs,) = sizes
        return NormalDist(pairs * (pairs + 1) / 4, math.sqrt(pairs * (pairs + 1) * (2 * pairs + 1) / 24))
    one, other = sizes
    return NormalDist(one * other / 2, math.sqrt(one * other * (one + other + 1) / 12))


@cache
def _signed_rank_chances(pairs: int) -> tuple[float, ...]:
    """Each rank from 1 to `pairs` is below or above with equal chances: the ways to make each sum of ranks."""
    ways = [1] + [0] * (pairs * (pairs + 1) // 2)
    for rank in range(1, pairs + 1):
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    return tuple(sum_ / 2**pairs for sum_ in accumulate(ways))


@cache
def _rank_sum_chances(one: int, other: int) -> tuple[float, ...]:
    """Every order of both sides' readings has equal chances: the coefficients of a Gaussian binomial."""
    ways = [1] + [0] * (one * other)
    for step in range(1, one + 1):
        for total in range(len(ways) - 1, other + step - 1, -1):
            ways[total] -= ways[total - other - step]
        for total in range(step, len(ways)):
            ways[total] += ways[total - step]
    return tuple(sum_ / math.comb(one + other, one) for sum_ in accumulate(ways))
