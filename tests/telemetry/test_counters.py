"""Counters that wrap, and counters that begin anew."""

from __future__ import annotations

import math

import pytest

from vmlab.telemetry.host.counter import growth, growths


@pytest.mark.parametrize("bits", [32, 64])
def test_a_counter_goes_over_the_top(bits: int) -> None:
    assert growth(50, 2**bits - 100) == 150


def test_a_counter_that_only_grows_is_a_difference() -> None:
    assert growth(2**40 + 7, 2**40) == 7


@pytest.mark.parametrize(("new", "old"), [(5, 1000), (5, 2**33), (0, 2**31 - 1)])
def test_a_small_step_back_is_no_wrap(new: int, old: int) -> None:
    assert math.isnan(growth(new, old))


def test_one_wrap_among_many_counters_is_a_wrap() -> None:
    assert growths([10, 2000], [2**32 - 10, 1000]) == [20, 1000]


def test_two_steps_back_at_once_are_another_device() -> None:
    assert growths([10, 20, 5], [2**32 - 10, 2**32 - 10, 1]) is None


def test_a_step_back_that_is_no_wrap_is_another_device() -> None:
    assert growths([10, 20], [1000, 10]) is None
