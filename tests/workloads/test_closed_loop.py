"""Latencies against the time of clients that are always busy."""

import pytest

from vmlab.model.errors import WorkloadError
from vmlab.workloads.reports.closed_loop import demand_busy, mean_bounds


def test_a_quarter_of_the_clients_time_is_enough_and_less_is_refused() -> None:
    # Three are busy for 9 s at least, and one of them to the end: 28 s, a quarter of which is 7 s.
    demand_busy("ab", 7.0, 3, 10.0, 1.0)
    with pytest.raises(WorkloadError, match=r"ab are too short: .* 6\.990 s together, and 3 at a time 28\.000 s"):
        demand_busy("ab", 6.99, 3, 10.0, 1.0)


def test_where_one_operation_took_all_the_time_others_may_have_been_idle() -> None:
    demand_busy("ab", 10.5, 64, 10.0, 10.0)
    demand_busy("ab", 10.5, 64, 10.0, 11.0)


def test_a_mean_lies_between_its_percentiles() -> None:
    assert mean_bounds("ab", {100: 4.0, 50: 1.0, 95: 2.0}) == pytest.approx((0.55, 1.6))
    assert mean_bounds("ab", {100: 4.0}) == (0.0, 4.0)


def test_a_higher_percentile_is_not_shorter() -> None:
    with pytest.raises(WorkloadError, match="ab has 1 s as percentile 95 and 2 s as percentile 50"):
        mean_bounds("ab", {50: 2.0, 95: 1.0, 100: 3.0})
