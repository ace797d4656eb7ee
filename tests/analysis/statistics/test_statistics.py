"""The statistics, against values that others published or that are known in closed form."""

from __future__ import annotations

import math

import pytest

from vmlab.analysis.statistics.descriptive import (
    Spread,
    far_out,
    mean,
    percentile,
    spread,
    standard_deviation,
    student_t,
)


@pytest.mark.parametrize(
    ("freedom", "published"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (10, 2.228), (30, 2.042), (120, 1.980)],
)
def test_student_t_is_the_published_one(freedom: int, published: float) -> None:
    assert student_t(freedom) == pytest.approx(published, abs=5e-4)


def test_student_t_has_closed_forms_for_one_and_two() -> None:
    assert student_t(1) == pytest.approx(math.tan(math.pi / 2 * 0.95), rel=1e-12)
    assert student_t(2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)), rel=1e-12)


def test_student_t_falls_to_the_normal_one() -> None:
    values = [student_t(freedom) for freedom in range(1, 300)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(1.96, abs=0.01)


def test_the_mean_of_many_does_not_drift() -> None:
    assert mean([0.1] * 10) == 0.1
    assert mean([1e16, 1.0, -1e16]) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="no values"):
        mean([])


def test_percentiles_are_linear_between_ranks() -> None:
    values = [15.0, 20.0, 35.0, 40.0, 50.0]
    assert percentile(values, 40) == pytest.approx(29.0)
    assert (percentile(values, 0), percentile(values, 100), percentile(values, 50)) == (15.0, 50.0, 35.0)
    assert percentile([4.0, 1.0, 3.0, 2.0], 50) == 2.5
    assert percentile([7.0], 95) == 7.0


def test_the_deviation_is_that_of_a_sample() -> None:
    assert standard_deviation([2, 4, 4, 4, 5, 5, 7, 9]) == pytest.approx(math.sqrt(32 / 7))
    with pytest.raises(ValueError, match="two values"):
        standard_deviation([1.0])


def test_a_spread_is_the_half_width_of_the_interval() -> None:
    found = spread([10.0, 12.0, 14.0])
    assert (found.mean, found.count) == (12.0, 3)
    assert found.half_width == pytest.approx(4.3027 * 2 / math.sqrt(3), rel=1e-4)
    assert spread([5.0]) == Spread(5.0, None, 1)


def test_readings_far_from_the_others_are_flagged() -> None:
    assert far_out([10.0, 10.1, 9.9, 10.2, 14.0]) == [False, False, False, False, True]
    # Quartiles 11 and 13: three ranges beyond them are 5 and 19, which belong to the others still.
    assert far_out([5.0, 11.0, 12.0, 13.0, 19.0]) == [False] * 5
    assert far_out([4.9, 11.0, 12.0, 13.0, 19.1]) == [True, False, False, False, True]
    assert far_out([10.0, 10.1, 9.9, 1000.0]) == [False] * 4
