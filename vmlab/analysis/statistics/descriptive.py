"""The statistics that the lab uses, each with its definition.

Sums are `math.fsum`, so that the order of the figures does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

_CONFIDENCE = 0.95
_FEWEST_WITH_OUTLIERS = 5


@dataclass(frozen=True, slots=True)
class Spread:
    """Many readings of one figure: their mean, the half width of its 95 % confidence interval, how many.

    `half_width` is None for a single reading, of which no spread is known.
    """

    mean: float
    half_width: float | None
    count: int


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values have no mean")
    return math.fsum(values) / len(values)


def total(values: Sequence[float]) -> float:
    """The sum; 0 for no values."""
    return math.fsum(values)


def standard_deviation(values: Sequence[float]) -> float:
    """Of a sample, that is with n - 1 below (Bessel). Raises ValueError for fewer than two values."""
    if len(values) < 2:
        raise ValueError("a standard deviation needs two values")
    middle = mean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


def variation(values: Sequence[float]) -> float | None:
    """The standard deviation in percent of the mean; None for fewer than two values, and for a mean of 0."""
    if len(values) < 2 or (middle := mean(values)) == 0:
        return None
    return 100 * standard_deviation(values) / abs(middle)


def jain(values: Sequence[float]) -> float | None:
    """Fairness by (Σx)² / (n Σx²), from 1/n to 1, which is equal shares: Jain, Chiu and Hawe (DEC-TR-301, 1984).

    None where a value is negative or all are 0. Raises ValueError for no values.
    """
    largest = max(values)
    if min(values) < 0 or largest == 0:
        return None
    # Divided by the largest value: squares of the values themselves might overflow.
    shares = [value / largest for value in values]
    return math.fsum(shares) ** 2 / (len(shares) * math.fsum(share * share for share in shares))


def percentile(values: Sequence[float], percent: float) -> float:
    """Linear interpolation between closest ranks, h = (n - 1) p: Hyndman and Fan (1996), definition 7.

    `percent` is from 0 to 100. Raises ValueError for no values.
    """
    if not values:
        raise ValueError("no values have no percentile")
    ordered = sorted(values)
    rank = (len(ordered) - 1) * percent / 100
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def far_out(values: Sequence[float]) -> list[bool]:
    """Which values lie more than three interquartile ranges beyond the quartiles, as Tukey calls values far out.

    Exploratory Data Analysis, 1977. None does among fewer than five, of which that is not known.
    """
    if len(values) < _FEWEST_WITH_OUTLIERS:
        return [False] * len(values)
    low, high = percentile(values, 25), percentile(values, 75)
    room = 3 * (high - low)
    return [not low - room <= value <= high + room for value in values]


def spread(values: Sequence[float]) -> Spread:
    """Mean of independent readings and the half width t(0.975, n - 1) s / √n of its 95 % confidence interval.

    The interval is Student's (Biometrika 6, 1908); it takes the readings to be about normally distributed.
    Raises ValueError for no values.
    """
    if len(values) < 2:
        return Spread(mean(values), None, len(values))
    half = student_t(len(values) - 1) * standard_deviation(values) / math.sqrt(len(values))
    return Spread(mean(values), half, len(values))


@cache
def student_t(freedom: int) -> float:
    """The t that ``|T| < t`` holds for with a probability of 95 %, for `freedom` ≥ 1 degrees of freedom."""
    low, high = 0.0, 13.0
    # 13 is above the largest, t(1) = 12.706; sixty halvings reach the last bit of a float.
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _inside(middle, freedom) < _CONFIDENCE else (low, middle)
    return (low + high) / 2


def _inside(t: float, freedom: int) -> float:
    """The probability of ``|T| < t``, exact: Abramowitz and Stegun (1964), 26.7.3 (odd) and 26.7.4 (even)."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for factor in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine * cosine * (factor - 1) / factor
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def finite(value: float | None) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if value is not None and math.isfinite(value) else None
