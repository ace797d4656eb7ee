"""The two tests against SciPy, against published examples, and against what must hold of any test and its interval."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest
from scipy import stats

from vmlab.analysis.statistics.rank_test import EXACT, ShiftTest, rank_sum, signed_rank, smallest_p

LEVELS = (0.05, 0.05 / 2, 0.05 / 4, 0.05 / 5)


def _samples() -> Iterator[tuple[list[float], list[float]]]:
    draw = random.Random(3)
    for _ in range(60):
        one, other = draw.randint(2, 30), draw.randint(2, 30)
        shift = draw.choice([0.0, 0.5, 2.0])
        yield [draw.gauss(0, 1) for _ in range(one)], [draw.gauss(shift, 1) for _ in range(other)]


SAMPLES = list(_samples())


def test_p_is_scipy_s() -> None:
    assert len(SAMPLES) == 60
    for before, after in SAMPLES:
        exact = stats.wilcoxon(after, method="exact").pvalue
        assert signed_rank(after).p_of() == pytest.approx(exact, rel=1e-9), after
        both = stats.mannwhitneyu(before, after, method="exact").pvalue
        assert rank_sum(before, after).p_of() == pytest.approx(both, rel=1e-9), (before, after)


def test_p_of_many_readings_is_scipy_s() -> None:
    draw = random.Random(5)
    values = [draw.gauss(0.2, 1) for _ in range(EXACT + 10)]
    by_scipy = stats.wilcoxon(values, method="asymptotic", correction=True).pvalue
    assert signed_rank(values).p_of() == pytest.approx(by_scipy, rel=1e-9)
    others = [draw.gauss(0.5, 1) for _ in range(EXACT + 20)]
    by_scipy = stats.mannwhitneyu(values, others, method="asymptotic", use_continuity=True).pvalue
    assert rank_sum(values, others).p_of() == pytest.approx(by_scipy, rel=1e-9)


def test_up_to_fifty_readings_p_is_exact_and_beyond_the_normal_distributions() -> None:
    draw = random.Random(6)
    values = [draw.gauss(0.3, 1) for _ in range(51)]
    exact = stats.wilcoxon(values[:50], method="exact").pvalue
    normal = stats.wilcoxon(values, method="asymptotic", correction=True).pvalue
    assert signed_rank(values[:50]).p_of() == pytest.approx(exact, rel=1e-9)
    assert signed_rank(values).p_of() == pytest.approx(normal, rel=1e-9)
    for one, other in ((values, values[:9]), (values[:9], values)):
        shifted = [value + 0.4 for value in other]
        normal = stats.mannwhitneyu(one, shifted, method="asymptotic", use_continuity=True).pvalue
        assert rank_sum(one, shifted).p_of() == pytest.approx(normal, rel=1e-9)
    shifted = [value + 0.4 for value in values[:9]]
    exact = stats.mannwhitneyu(values[:50], shifted, method="exact").pvalue
    assert rank_sum(values[:50], shifted).p_of() == pytest.approx(exact, rel=1e-9)
    # The sums of so many ranks have half numbers as their mean.
    values = [draw.gauss(0.3, 1) for _ in range(53)]
    normal = stats.wilcoxon(values, method="asymptotic", correction=True).pvalue
    assert signed_rank(values).p_of() == pytest.approx(normal, rel=1e-9)
    shifted = [value + 0.4 for value in values[:9]]
    normal = stats.mannwhitneyu(values, shifted, method="asymptotic", use_continuity=True).pvalue
    assert rank_sum(values, shifted).p_of() == pytest.approx(normal, rel=1e-9)


def test_readings_that_lie_to_one_side_have_the_smallest_p_at_either_side() -> None:
    for far in ([5.0, 6.0, 7.0, 8.0, 9.0, 10.0], [-5.0, -6.0, -7.0, -8.0, -9.0, -10.0]):
        paired, apart = signed_rank(far), rank_sum([0.0] * 6, far)
        assert paired.p_of() == paired.smallest_p == 2 / 2**6
        assert apart.p_of() == apart.smallest_p == pytest.approx(2 / 924)
        assert (abs(paired.effect), paired.effect) == (1.0, far[0] / 5.0)


def test_two_readings_of_three_above_0_are_the_effect_of_a_third() -> None:
    assert rank_sum([0.0], [-1.0, 2.0, 3.0]).effect == pytest.approx(1 / 3)
    assert rank_sum([0.0], [-1.0, 0.0, 3.0, 4.0]).effect == pytest.approx(1 / 4)
    assert (signed_rank([1.0]).name, rank_sum([0.0], [1.0]).name) == ("Wilcoxon signed rank", "Mann-Whitney")


def test_the_effect_is_the_statistic_of_scipy_scaled() -> None:
    for before, after in SAMPLES:
        u = stats.mannwhitneyu(after, before).statistic
        assert rank_sum(before, after).effect == pytest.approx(2 * u / (len(before) * len(after)) - 1)


@pytest.mark.parametrize("alpha", LEVELS)
def test_the_interval_is_the_inverse_of_the_test(alpha: float) -> None:
    """A shift is inside the interval exactly where p is above alpha; beyond its ends it is not."""
    intervals = 0
    for test in _tests():
        interval = test.interval(alpha)
        intervals += interval is not None
        if interval is None:
            assert test.smallest_p > alpha
            continue
        low, high = interval
        for shift in (*test.shifts, low, high, test.estimate, 0.0):
            assert (test.p_of(shift) > alpha) == (low <= shift <= high)
        beyond = 1e-9 * (high - low)
        assert test.p_of(low - beyond) <= alpha and test.p_of(high + beyond) <= alpha
    assert intervals > 100


def _tests() -> Iterator[ShiftTest]:
    for before, after in SAMPLES:
        yield signed_rank(after)
        yield rank_sum(before, after)
    # Ties, as tools print rounded figures.
    draw = random.Random(7)
    for _ in range(20):
        yield signed_rank([draw.randint(-3, 4) for _ in range(12)])
        yield rank_sum([draw.randint(0, 4) for _ in range(9)], [draw.randint(0, 5) for _ in range(9)])


def test_a_published_example() -> None:
    """Depression factor of nine patients: Hollander, Wolfe and Chicken, table 3.1, as in R's documentation."""
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    test = signed_rank([other - one for one, other in zip(before, after, strict=True)])
    assert test.p_of() == pytest.approx(0.0390625)
    assert test.estimate == pytest.approx(-0.46, abs=1e-9)
    # At 96.1 %, the level that nine pairs have next to 95 %.
    interval = test.interval(0.05)
    assert interval is not None and interval == pytest.approx((-0.786, -0.01))


def test_a_test_alarms_as_rarely_as_it_says_over_all_signs() -> None:
    """Of all 2^10 ways to swap the sides in ten pairs at most alpha give a p of at most alpha, and almost as many."""
    draw = random.Random(9)
    values = [draw.expovariate(1) for _ in range(10)]
    signs = itertools.product((1, -1), repeat=10)
    chances = [signed_rank([s * v for s, v in zip(sign, values, strict=True)]).p_of() for sign in signs]
    for alpha in LEVELS:
        rate = sum(p <= alpha for p in chances) / len(chances)
        assert 0.7 * alpha < rate <= alpha


def test_an_interval_that_holds_for_almost_nothing_is_the_shift_in_the_middle() -> None:
    """Six shifts of three pairs have 3/4 as the largest p below 1, four shifts of two sides of two have 2/3."""
    assert signed_rank([1.0, 2.0, 4.0]).shifts == (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
    assert [signed_rank([1.0, 2.0, 4.0]).interval(alpha) for alpha in (0.76, 0.74)] == [(2.0, 2.5), (1.5, 3.0)]
    sides = rank_sum([0.0, 1.0], [3.0, 7.0])
    assert [sides.interval(alpha) for alpha in (0.67, 0.66)] == [(3.0, 6.0), (2.0, 7.0)]
    assert signed_rank([1.0]).interval(0.99) is None


def test_ties_and_equal_readings_prove_nothing() -> None:
    assert signed_rank([0.0] * 10).p_of() == 1.0
    assert signed_rank([0.0] * 10).interval(0.05) == (0.0, 0.0)
    assert rank_sum([3.0] * 8, [3.0] * 8).p_of() == 1.0
    assert rank_sum([3.0] * 8, [3.0] * 8).effect == 0.0


def test_the_smallest_p() -> None:
    assert [smallest_p((pairs,)) for pairs in (1, 2, 6, 8)] == [1.0, 0.5, 2 / 2**6, 2 / 2**8]
    assert smallest_p((5, 5)) == pytest.approx(2 / 252)
    assert signed_rank([1.0, 2.0, 3.0]).p_of() == signed_rank([1.0, 2.0, 3.0]).smallest_p == 0.25


def test_no_readings_are_no_test() -> None:
    with pytest.raises(ValueError, match="one at least"):
        signed_rank([])
    with pytest.raises(ValueError, match="of each"):
        rank_sum([1.0], [])
