"""Readings with ties, against exact fractions.

The rule: figures are decimals, so whether two shifts are equal, or one is 0, is a question about those decimals, and
what floats and logarithms make of their last bits is no answer. Verdict, p, interval, estimate and effect follow from
which shifts are equal alone, here as in `rank_test`; so does whether a bound is reached.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations_with_replacement
from operator import sub, truediv

import pytest

from vmlab.analysis.comparison.difference import Verdict, difference
from vmlab.analysis.comparison.gate import Condition, State
from vmlab.analysis.comparison.judging import level_of
from vmlab.analysis.figures.figure import Figure, OneReading
from vmlab.analysis.figures.pairing import Pairing, pairing_of
from vmlab.analysis.reference.claims import _BARELY, _lying
from vmlab.analysis.statistics.descriptive import compared, far_out, spread
from vmlab.analysis.statistics.rank_test import signed_rank
from vmlab.analysis.tiles.knee import KneeVerdict, Step, knee_of

ALPHA = 0.05
WRITTEN: dict[str, Callable[[int], str]] = {
    "whole numbers": str,
    "ms": lambda count: f"{count / 10:.1f}e-3",
    "MB/s": lambda count: f"{count / 10:.1f}e6",
    "s": lambda count: f"{count / 100:.2f}",
}
"""How tools print a rounded figure, as a decimal in the base unit."""


@cache
def _ways(pairs: int) -> list[int]:
    """In how many of all choices of signs the ranks above sum up to each number."""
    ways = [1]
    for rank in range(1, pairs + 1):
        ways = [
            (ways[total] if total < len(ways) else 0) + (ways[total - rank] if total >= rank else 0)
            for total in range(len(ways) + rank)
        ]
    return ways


@cache
def _ways_of_sides(one: int, other: int) -> list[int]:
    """In how many of all orders of two sides each number of pairs is in the wrong order."""
    if not one or not other:
        return [1]
    largest_of_one, largest_of_other = _ways_of_sides(one - 1, other), _ways_of_sides(one, other - 1)
    ways = [0] * (one * other + 1)
    for total, count in enumerate(largest_of_one):
        ways[total + other] += count
    for total, count in enumerate(largest_of_other):
        ways[total] += count
    return ways


def _exact(before: Sequence[str], after: Sequence[str], *, paired: bool) -> tuple[float, list[float], float]:
    """p of no shift, the ends of the interval in percent ([] for none), and the effect, all by fractions."""
    one, other = [Fraction(text) for text in before], [Fraction(text) for text in after]
    by_ratio = min(*one, *other) > 0
    excess: Callable[[Fraction, Fraction], Fraction] = truediv if by_ratio else sub
    if paired:
        own = [excess(y, x) for x, y in zip(one, other, strict=True)]
        # Squares of geometric means, and twice the means: they are in the same order, and no root is taken.
        shifts = sorted(x * y if by_ratio else x + y for x, y in combinations_with_replacement(own, 2))
        ways = _ways(len(one))
    else:
        shifts, ways = sorted(excess(y, x) for x in one for y in other), _ways_of_sides(len(one), len(other))
    every = sum(ways)
    chances = [Fraction(sum_, every) for sum_ in accumulate(ways)]
    nothing = 1 if by_ratio else 0
    at_most, at_least = bisect_right(shifts, nothing), len(shifts) - bisect_left(shifts, nothing)
    p = min(Fraction(1), 2 * chances[min(at_most, at_least)])
    ends = bisect_right(range(len(shifts) // 2), Fraction(1, 20), key=lambda count: 2 * chances[count])
    found = [shifts[ends - 1], shifts[-ends]] if ends else []
    root: Callable[[Fraction], float] = math.sqrt if paired else float
    scale = float(sum(one) / len(one))
    percents = [
        100 * (root(end) - 1) if by_ratio else 100 * float(end) / (2 if paired else 1) / abs(scale) for end in found
    ]
    exact = [0.0 if end == nothing else percent for end, percent in zip(found, percents, strict=True)]
    return float(p), exact, (len(shifts) - at_most - (len(shifts) - at_least)) / len(shifts)


def _pairing(before: Sequence[str], after: Sequence[str], *, paired: bool) -> Pairing:
    one, other = tuple(map(float, before)), tuple(map(float, after))
    return Pairing(one, other, (sum(one) / len(one), sum(other) / len(other)), paired=paired)


def _differing_sets(count: int, seed: int) -> list[str]:
    draw, wrong = random.Random(seed), []
    for _ in range(count):
        written, paired = draw.choice(list(WRITTEN.values())), draw.random() < 0.5
        sizes = [draw.randint(6, 9)] * 2 if paired else [draw.randint(4, 7), draw.randint(4, 7)]
        least = draw.choice([0, 1, 1, 1])
        most = draw.choice([5, 12, 40])
        before, after = ([written(draw.randint(least, most)) for _ in range(size)] for size in sizes)
        if sum(map(Fraction, before)) == 0:
            continue
        p, interval, effect = _exact(before, after, paired=paired)
        pairing = _pairing(before, after, paired=paired)
        test = pairing.test
        assert test is not None
        found = pairing.interval(test, ALPHA) or ()
        right = (
            test.p_of() == pytest.approx(p, rel=1e-12)
            and test.effect == pytest.approx(effect, abs=1e-12)
            and list(found) == pytest.approx(interval, rel=1e-9, abs=1e-9)
            and [end == 0 for end in found] == [end == 0 for end in interval]
            and (not found or (found[0] <= 0 <= found[1]) == (test.p_of() > ALPHA))
        )
        wrong += [] if right else [f"{before} {after} paired={paired}: {test.p_of()} {found}, not {p} {interval}"]
    return wrong


def test_tied_readings_have_the_p_and_the_interval_of_exact_fractions() -> None:
    assert _differing_sets(2000, seed=1) == []


@pytest.mark.nightly
def test_tied_readings_have_the_p_and_the_interval_of_exact_fractions_in_thirty_thousand_sets() -> None:
    assert _differing_sets(30_000, seed=2) == []


def _figure(values: Sequence[float]) -> Figure:
    readings = tuple(OneReading(value, repeat) for repeat, value in enumerate(values, start=1))
    return Figure("passed", spread(values), 0, readings)


def test_two_shifts_that_are_exactly_0_count_against_a_difference() -> None:
    """(1 to 2) with (6 to 3), as 15 to 10 stands beside others here: the mean of their logarithms is 5.6e-17."""
    before, after = _figure([20, 20, 10, 30, 15, 25, 30]), _figure([12, 10, 12, 25, 10, 10, 25])
    found = difference(before, after, False)
    assert (found.p, found.verdict, found.better) == (0.078125, Verdict.NOT_PROVEN, None)
    assert found.interval is not None and found.interval[1] == 0.0
    assert found.interval[0] == pytest.approx(100 * (math.sqrt(0.6 * 0.4) - 1))


@pytest.mark.parametrize(
    ("before", "after"),
    [([0.1, 0.3, 0.7], [0.3, 0.9, 2.1]), ([1e6, 3e6, 7e6], [3e6, 9e6, 21e6]), ([0.0001, 0.0003], [0.0003, 0.0009])],
)
def test_what_is_three_times_as_large_everywhere_has_no_deviation(before: list[float], after: list[float]) -> None:
    pairing = pairing_of(_figure(before), _figure(after))
    assert pairing is not None and pairing.deviation == 0.0
    assert pairing.test is not None and len(set(pairing.test.shifts)) == 1


@pytest.mark.parametrize(("sign", "bound"), [(">", "+20"), (">", "+10"), ("<", "-40"), ("<", "-30"), (">", "+70")])
def test_a_difference_that_is_just_the_bound_of_a_gate_is_not_beyond_it(sign: str, bound: str) -> None:
    before = [10.0, 20.0, 30.0, 0.7, 0.1, 60.0, 1e-3, 3e9]
    pairing = pairing_of(_figure(before), _figure([one * (1 + int(bound) / 100) for one in before]))
    assert pairing is not None and pairing.test is not None
    interval = pairing.interval(pairing.test, ALPHA)
    assert interval is not None
    assert Condition.parse(f"web {sign} {bound} %").state(interval, 0.0) is State.NOT_MET
    # 0.1 points nearer it is met.
    nearer = f"{int(bound) - math.copysign(0.1, int(bound)):+.1f}"
    assert Condition.parse(f"web {sign} {nearer} %").state(interval, 0.0) is State.MET


def test_a_level_that_is_just_the_bound_is_not_beyond_it() -> None:
    """The means of 0.1 and 0.2 are 0.15000000000000002."""
    level = level_of(_figure([0.1, 0.2] * 5), 0.15, "s", 1)
    assert level.interval is not None and compared(level.estimate, 0.15) == 0
    flat = level_of(_figure([0.1 + 0.2] * 8), 0.3, "s", 1)
    assert flat.interval is not None
    assert Condition.parse("web > 0.3 s").state_of_level(flat.interval, 0.3) is State.NOT_MET
    assert Condition.parse("web > 0.29 s").state_of_level(flat.interval, 0.29) is State.MET


def test_a_claim_holds_at_its_bounds_and_a_difference_of_none_is_none() -> None:
    wanted = 100 * math.expm1(math.log(1.8))
    assert _lying(wanted - 1e-13, wanted, (80.0, 120.0), 100) == "reproduced"
    assert _lying(wanted - 1e-9, wanted, (80.0, 120.0), 100) is None
    assert _lying(0.0, 0.0, (_BARELY, math.inf), 100) == "not"
    assert _lying(-1e-12, -1e-12, (-math.inf, -_BARELY), 100) == "reproduced"


def test_a_gain_that_is_just_the_limit_of_the_knee_is_not_below_it() -> None:
    gains = tuple(100 * (many - fewer) / alone for many, fewer, alone in [(1.1, 1.0, 1.0), (3.3, 3.0, 3.0)] * 4)
    assert min(gains) < 10.0 or max(gains) > 10.0
    assert knee_of([Step(1, 2, gains)], 10.0).verdict is KneeVerdict.CANNOT_TELL
    assert knee_of([Step(1, 2, gains)], 9.9).verdict is KneeVerdict.NOT_REACHED
    assert knee_of([Step(1, 2, gains)], 10.1).verdict is KneeVerdict.REACHED


def test_equal_readings_are_not_far_out_by_their_last_bit() -> None:
    assert far_out([0.3, 0.3, 0.3, 0.3, 0.1 + 0.2]) == [False] * 5
    assert far_out([0.3, 0.3, 0.3, 0.3, 0.3001]) == [False] * 4 + [True]


def test_shifts_that_are_rounding_are_0_and_others_are_not() -> None:
    test = signed_rank([1e-17, -1e-17, 2.0, 2.0 + 1e-15, -2.0])
    assert sorted(set(test.shifts)) == [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert signed_rank([1e-17, 2e-17]).shifts == (1e-17, 1.5e-17, 2e-17)
    assert signed_rank([1e-17, 2e-17], size=1.0).shifts == (0.0, 0.0, 0.0)
