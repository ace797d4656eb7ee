"""The statistics that the lab uses, each with its definition.

Sums are `math.fsum`, so that the order of the figures does not matter. Values may have any size that a float has: what
would overflow or vanish on the way, such as a square, is calculated of the values over a power of two, which changes no
digit. A result beyond the largest float is infinite, and `finite` makes None of it before a document has it.

Figures are decimals, which floats hold only nearly, so figures that are equal may come out a few last bits apart.
Whatever asks whether two are equal, or one is beyond another, asks `compared`, which takes such bits for none.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

ROUNDING = 2.0**-46
"""Figures that differ by no more than this share of the larger one are equal: 64 times the last bit of a float.

That is more than a mean of means, a change of unit and a logarithm round together, and less than any tool prints.
"""
CONFIDENCE = 0.95
"""Of every interval that is corrected for nothing."""
_FEWEST_WITH_OUTLIERS = 5
_LARGEST = sys.float_info.max
_SPARE = 64
"""The sum of up to 2 to this power floats has an exponent that a float has, once each is divided by as much."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Many readings of one figure: their mean, the half width of its 95 % confidence interval, how many.

    `half_width` is None for a single reading, of which no spread is known, and where no float is as large.
    """

    mean: float
    half_width: float | None
    count: int


def compared(one: float, other: float, size: float = 0.0) -> int:
    """1 where `one` is above `other`, -1 where it is below, and 0 where rounding alone may have made the difference.

    `size` is that of the figures that both were calculated from, where it is above their own: 100 for percentages, as 1
    is 100 %.
    """
    if one == other or abs(one - other) <= ROUNDING * min(max(abs(one), abs(other), size), _LARGEST):
        return 0
    return 1 if one > other else -1


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; of equal values that value. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values have no mean")
    try:
        middle = math.fsum(values) / len(values)
    except OverflowError:
        middle = math.ldexp(math.fsum(math.ldexp(value, -_SPARE) for value in values) / len(values), _SPARE)
    return min(max(middle, min(values)), max(values))


def total(values: Sequence[float]) -> float:
    """The sum; 0 for no values."""
    try:
        return math.fsum(values)
    except OverflowError:
        return enlarged(math.fsum(math.ldexp(value, -_SPARE) for value in values), _SPARE)


def standard_deviation(values: Sequence[float]) -> float:
    """Of a sample, that is with n - 1 below (Bessel). Raises ValueError for fewer than two values."""
    if len(values) < 2:
        raise ValueError("a standard deviation needs two values")
    scaled, power = reduced(values)
    middle = mean(scaled)
    apart, more = reduced([value - middle for value in scaled])
    return enlarged(math.sqrt(math.fsum(one * one for one in apart) / (len(apart) - 1)), power + more)


def variation(values: Sequence[float]) -> float | None:
    """The standard deviation in percent of the mean; None for fewer than two values, and for a mean of 0."""
    scaled, _ = reduced(values)
    if len(values) < 2 or (middle := mean(scaled)) == 0:
        return None
    return finite(100 * standard_deviation(scaled) / abs(middle))


def smallest_known(values: Sequence[float | None]) -> float | None:
    """The smallest value; None where one is not known, or there is none."""
    known = [value for value in values if value is not None]
    return min(known) if known and len(known) == len(values) else None


def reduced(values: Sequence[float]) -> tuple[list[float], int]:
    """The values over a power of two, so that the largest is from 1/2 to 1, and the exponent of that power."""
    power = max((math.frexp(value)[1] for value in values if value), default=0)
    return [math.ldexp(value, -power) for value in values], power


def enlarged(value: float, power: int) -> float:
    """A value times 2 to that power, the inverse of `reduced`; infinite where that is beyond the largest float."""
    try:
        return math.ldexp(value, power)
    except OverflowError:
        return math.copysign(math.inf, value)


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
    part, apart = rank - below, ordered[above] - ordered[below]
    if math.isinf(apart):
        return ordered[below] * (1 - part) + ordered[above] * part
    return ordered[below] + apart * part


def far_out(values: Sequence[float]) -> list[bool]:
    """Which values lie more than three interquartile ranges beyond the quartiles, as Tukey calls values far out.

    Exploratory Data Analysis, 1977. None does among fewer than five, of which that is not known.
    """
    if len(values) < _FEWEST_WITH_OUTLIERS:
        return [False] * len(values)
    low, high = percentile(values, 25), percentile(values, 75)
    room, size = 3 * (high - low), max(abs(low), abs(high))
    fences = low - room, high + room
    return [compared(value, fences[0], size) < 0 or compared(value, fences[1], size) > 0 for value in values]


def spread(values: Sequence[float]) -> Spread:
    """Mean of independent readings and the half width t(0.975, n - 1) s / √n of its 95 % confidence interval.

    The interval is Student's (Biometrika 6, 1908); it takes the readings to be about normally distributed.
    Raises ValueError for no values.
    """
    if len(values) < 2:
        return Spread(mean(values), None, len(values))
    (deviation,), power = reduced([standard_deviation(values)])
    half = enlarged(student_t(len(values) - 1) * deviation / math.sqrt(len(values)), power)
    return Spread(mean(values), finite(half), len(values))


@cache
def student_t(freedom: int, confidence: float = CONFIDENCE) -> float:
    """The t that ``|T| < t`` holds for with this probability, for `freedom` ≥ 1 degrees of freedom."""
    low, high = 0.0, 13.0
    # 13 is above the largest of 95 %, t(1) = 12.706; sixty halvings reach the last bit of a float.
    while _inside(high, freedom) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _inside(middle, freedom) < confidence else (low, middle)
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
