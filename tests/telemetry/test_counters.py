"""The rule for counters: none grows by more than the time allows; what went back has wrapped only if the time allows
that, too, else it began anew; and what breaks the rule is unknown.
"""

from __future__ import annotations

import math

import pytest

from vmlab.telemetry.source import growth, growth_within, growths, most_seconds

INF = math.inf


@pytest.mark.parametrize(
    ("new", "old", "most", "grown"),
    [
        (2**40 + 7, 2**40, INF, 7),
        (50, 2**32 - 100, 150, 150),
        (50, 2**64 - 100, 150, 150),
        (50, 2**32 - 100, 149, None),
        (50, 2**64 - 100, 149, None),
        # Without anything that says how fast it can grow, a counter that went back began anew.
        (50, 2**32 - 100, INF, None),
        (10, 3_000_000_000, 125e6, None),
        (5, 1000, 1e9, None),
        (5, 2**33, 2**32, None),
        (0, 2**31 - 1, 2**30, None),
        (1000, 0, 1000, 1000),
        (1001, 0, 1000, None),
        (2167542567 + 832457433, 2167542567, 125, None),
        (math.nan, 5, 100, None),
        (5, math.nan, 100, None),
    ],
)
def test_growth_is_what_the_time_allows_or_unknown(new: float, old: float, most: float, grown: float | None) -> None:
    assert growth_within(new, old, most) == pytest.approx(math.nan if grown is None else grown, nan_ok=True)


@pytest.mark.parametrize(
    ("new", "old", "most", "grown"),
    [
        ([10, 2000], [2**32 - 10, 1000], 1000, [20, 1000]),
        ([10, 2000], [2**32 - 10, 1000], INF, None),
        ([10, 20, 5], [2**32 - 10, 2**32 - 10, 1], 1000, None),
        ([10, 20], [1000, 10], 1000, None),
        ([10, 20], [5, 10], INF, [5, 10]),
        ([10, 2000], [5, 10], 1000, None),
        ([], [], INF, []),
    ],
)
def test_counters_of_one_device_are_known_together(
    new: list[float], old: list[float], most: float, grown: list[float] | None
) -> None:
    assert growths(new, old, most) == grown


@pytest.mark.parametrize(("new", "old", "grown"), [(12, 5, 7), (5, 2**32 - 3, math.nan), (5, 12, math.nan)])
def test_a_counter_of_a_plugin_that_went_back_is_unknown(new: int, old: int, grown: float) -> None:
    assert growth(new, old) == pytest.approx(grown, nan_ok=True)


def test_time_that_is_counted_may_differ_by_ticks_and_no_more() -> None:
    assert 1.1 < most_seconds(1.0) < 1.5
    assert most_seconds(3600.0) < 3600 * 1.1
