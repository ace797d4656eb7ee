"""What holds of the statistics for any readings, against Python's own and against SciPy."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator

import pytest
from scipy import stats

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.difference import Verdict, difference
from vmlab.analysis.figures.figure import MISSING, Figure, OneReading, figure_of
from vmlab.analysis.figures.over_tiles import statistic_of
from vmlab.analysis.statistics.descriptive import (
    compared,
    far_out,
    jain,
    mean,
    percentile,
    spread,
    standard_deviation,
    student_t,
    total,
    variation,
)
from vmlab.analysis.statistics.rank_test import signed_rank
from vmlab.model.jsonable import jsonable


def _readings() -> Iterator[list[float]]:
    """Lists of 2 to 40 readings, from a thousandth to a thousand million, with a spread of any size."""
    draw = random.Random(7)
    for _ in range(200):
        middle = 10 ** draw.uniform(-3, 9)
        yield [middle * draw.lognormvariate(0, draw.choice([0.001, 0.1, 1.0])) for _ in range(draw.randint(2, 40))]


READINGS = list(_readings())


def test_there_are_readings() -> None:
    assert len(READINGS) == 200
    assert {2, 40} <= {len(values) for values in READINGS} <= {*range(2, 41)}


def test_they_agree_with_python_s_own() -> None:
    for values in READINGS:
        assert mean(values) == pytest.approx(statistics.fmean(values), rel=1e-12), values
        assert standard_deviation(values) == pytest.approx(statistics.stdev(values), rel=1e-9), values
        assert total(values) == pytest.approx(sum(values), rel=1e-12), values


def test_fairness_is_between_one_share_and_all() -> None:
    for values in READINGS:
        index = jain(values)
        assert index is not None and 1 / len(values) - 1e-12 <= index <= 1 + 1e-12
        # Without a unit and without an order.
        assert jain([value * 8 for value in reversed(values)]) == pytest.approx(index, rel=1e-12)
        # The index is 1 / (1 + v²) of the variation v with n below: Jain, Chiu and Hawe, section 3.
        of_population = statistics.pstdev(values) / statistics.fmean(values)
        assert index == pytest.approx(1 / (1 + of_population**2), rel=1e-9)


def test_fairness_of_equal_shares_and_of_one_that_takes_all() -> None:
    assert jain([3.0, 3.0, 3.0]) == 1.0
    assert jain([5.0, 0.0, 0.0, 0.0]) == 0.25
    assert jain([0.0, 0.0]) is None
    assert jain([-1.0, 2.0]) is None
    assert jain([1e300, 1e300]) == 1.0


def test_best_and_worst_are_ends_and_the_mean_is_between() -> None:
    for values in READINGS:
        ends = [statistic_of(values, which, more) for which in ("best", "worst") for more in (True, False)]
        assert ends == [max(values), min(values), min(values), max(values)]
        middle = statistic_of(values, "mean", None)
        assert middle is not None and min(values) * (1 - 1e-12) <= middle <= max(values) * (1 + 1e-12)
        assert statistic_of(values, "best", None) is None


def test_a_single_reading_has_no_deviation() -> None:
    assert (statistic_of([4.0], "sd", True), variation([4.0]), jain([4.0])) == (None, None, 1.0)
    assert variation([1.0, -1.0]) is None


def test_intervals_are_scipy_s() -> None:
    for values in READINGS:
        low, high = stats.t.interval(0.95, len(values) - 1, loc=mean(values), scale=stats.sem(values))
        half = spread(values).half_width
        assert half is not None and half == pytest.approx((high - low) / 2, rel=1e-9)


def test_intervals_hold_the_mean_as_often_as_they_say() -> None:
    """Of 4,000 samples of five normal readings 95 % of the intervals hold the true mean; 3 standard errors allowed."""
    draw = random.Random(11)
    held = 0
    for _ in range(4000):
        found = spread([draw.gauss(100, 5) for _ in range(5)])
        held += found.half_width is not None and abs(found.mean - 100) <= found.half_width
    assert abs(held / 4000 - 0.95) < 3 * math.sqrt(0.95 * 0.05 / 4000)
    assert student_t(4) == pytest.approx(2.7764451)


POWERS = (-1060, -1000, -600, -300, 300, 600, 1000, 1013)
"""A reading of about 2 to the 10th, times these powers of two: next to the smallest and the largest float."""


@pytest.mark.parametrize("power", POWERS)
def test_what_holds_of_usual_sizes_holds_of_any(power: int) -> None:
    """A power of two changes no digit, so every statistic of readings that are so much larger is so much larger."""
    values = [700.0, 512.0, 1000.0, 640.0, 513.0, 950.0]
    large = [math.ldexp(value, power) for value in values]
    for statistic in (mean, standard_deviation, lambda those: percentile(those, 33)):
        found, expected = statistic(large), math.ldexp(statistic(values), power)
        assert found == pytest.approx(expected, rel=1e-12 if power > -1000 else 0.01), statistic
    assert variation(large) == pytest.approx(variation(values), rel=1e-12 if power > -1000 else 0.01)
    assert jain(large) == pytest.approx(jain(values))
    assert far_out(large) == far_out(values) == [False] * 6
    one, usual = spread(large), spread(values)
    assert one.half_width is not None and usual.half_width is not None
    assert one.half_width == pytest.approx(math.ldexp(usual.half_width, power), rel=1e-12 if power > -1000 else 0.01)
    test = signed_rank(large)
    assert test.estimate == pytest.approx(math.ldexp(signed_rank(values).estimate, power), rel=0.01)
    assert test.p_of() == 2 / 2**6
    assert total(large[:2]) == math.ldexp(total(values[:2]), power)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("with_zero", [False, True])
def test_a_difference_does_not_depend_on_the_size_of_its_readings(power: int, with_zero: bool) -> None:
    before = [700.0, 512.0, 1000.0, 640.0, 512.0, 960.0, 0.0 if with_zero else 800.0]
    after = [350.0, 256.0, 500.0, 320.0, 256.0, 480.0, 0.0 if with_zero else 400.0]
    small, large = (
        jsonable(difference(_figure(before, by), _figure(after, by), more_is_better=False)) for by in (0, power)
    )
    assert small["verdict"] == Verdict.PROVEN
    for key, value in small.items():
        if isinstance(value, float | list):
            assert large[key] == pytest.approx(value, rel=0.01), key
        else:
            assert large[key] == value, key


def _figure(values: list[float], power: int = 0) -> Figure:
    readings = [math.ldexp(value, power) for value in values]
    ones = tuple(OneReading(value, repeat) for repeat, value in enumerate(readings, start=1))
    return Figure("passed", spread(readings), 0, ones)


HUGE = 1.7e308
TINY = 5e-324


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([TINY] * 7, [HUGE] * 7),
        ([HUGE] * 7, [TINY] * 7),
        ([-HUGE] * 7, [HUGE] * 7),
        ([0.0] * 7, [HUGE] * 7),
        ([0.0, *[TINY] * 6], [HUGE] * 7),
        ([HUGE, -HUGE, 0.0, TINY, 1.0, -TINY, 1.0], [1.0] * 7),
        ([0.0] * 7, [0.0] * 7),
    ],
)
def test_no_readings_make_a_figure_that_is_no_number(before: list[float], after: list[float]) -> None:
    """All numbers of a difference and of its figures are finite or None: documents have no infinity and no NaN."""
    one, other = _figure(before), _figure(after)
    found = difference(one, other, more_is_better=True)
    for document in (jsonable(one), jsonable(other), jsonable(found)):
        numbers = [value for value in document.values() if isinstance(value, float)]
        assert all(map(math.isfinite, numbers)), document
    assert all(map(math.isfinite, found.interval or ()))
    assert found.verdict == (Verdict.PROVEN if before[1:] != after[1:] and len(set(before)) == 1 else found.verdict)
    assert found.p is not None and 0 < found.p <= 1


def test_results_beyond_the_largest_float_are_infinite_and_no_figure() -> None:
    assert total([HUGE, HUGE]) == math.inf and total([-HUGE, -HUGE, HUGE]) == pytest.approx(-HUGE)
    assert standard_deviation([HUGE, -HUGE]) == math.inf
    assert variation([HUGE, -HUGE, HUGE]) == pytest.approx(100 * math.sqrt(12))
    assert (variation([1e300, -1e300, TINY]), spread([HUGE, -HUGE]).half_width) == (None, None)
    assert (statistic_of([HUGE, HUGE], "sum", True), statistic_of([HUGE, -HUGE], "sd", True)) == (None, None)
    assert (mean([HUGE] * 5), mean([HUGE, -HUGE]), mean([TINY] * 3)) == (HUGE, 0.0, TINY)
    assert percentile([-HUGE, HUGE], 75) == pytest.approx(HUGE / 2) and percentile([-HUGE, HUGE], 0) == -HUGE
    cell = CellDocument(cell=1, repeat=1, outcome="passed")
    assert figure_of([cell], lambda cell: math.inf).state == MISSING
    assert figure_of([cell], lambda cell: 2.0, lambda values: math.inf).state == MISSING
    assert figure_of([cell], lambda cell: 2.0).state == "passed"


def test_equal_readings_have_their_own_value_as_mean_and_no_deviation() -> None:
    draw = random.Random(13)
    for _ in range(500):
        values = [draw.randint(1, 9999) / draw.choice([7, 10, 100, 1000])] * draw.randint(2, 12)
        assert (mean(values), standard_deviation(values), variation(values)) == (values[0], 0.0, 0.0)


def test_what_rounding_makes_of_equal_figures_is_equal() -> None:
    assert [compared(0.1 + 0.2, 0.3), compared(0.3, 0.31), compared(0.31, 0.3)] == [0, -1, 1]
    assert [compared(1e-15, 0.0), compared(1e-15, 0.0, 1.0), compared(1e-13, 0.0, 1.0)] == [1, 0, 1]
    assert [compared(HUGE, -HUGE), compared(math.inf, HUGE), compared(-math.inf, math.inf)] == [1, 1, -1]
    assert [compared(math.inf, math.inf), compared(TINY, 0.0), compared(0.0, -0.0)] == [0, 1, 0]
