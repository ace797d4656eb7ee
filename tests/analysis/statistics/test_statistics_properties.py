"""What holds of the statistics for any readings, against Python's own and against SciPy."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator

import pytest
from scipy import stats

from vmlab.analysis.figures.over_tiles import statistic_of
from vmlab.analysis.statistics.descriptive import jain, mean, spread, standard_deviation, student_t, total, variation


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
