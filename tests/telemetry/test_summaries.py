"""Mean, maximum, percentile and area over a span."""

from __future__ import annotations

import math

import pytest

from vmlab.model.results import Summary
from vmlab.model.sample import Sample, SampleNames, split_name, unit_of
from vmlab.telemetry.sample_summary import extremes_over, summarise

NAMES = (
    "tick_length_seconds",
    "tick_lateness_seconds",
    "cpu_user_percent",
    "cpu_count",
    "disk_await_ms",
    "disk_reads_per_second",
    "disk_writes_per_second",
    "disk_read_bytes_per_second",
    "cpu_user_percent[0]",
)
LAYOUT = SampleNames.of(NAMES)


def sample(end: float, length: float, user: float, wait: float = 0.0, reads: float = 0.0) -> Sample:
    values = (length, 0.0, user, 4.0, wait, reads, 0.0, reads * 4096, user)
    return Sample(1000 + end, end, length, 0.0, LAYOUT, values)


def test_extremes_are_those_of_any_instance_in_ticks_that_lie_in_the_span_by_half() -> None:
    layout = SampleNames.of(("cpu_speed_percent", "cpu_speed_percent[0]", "cpu_speed_percent[1]"))
    ticks = [(75.0, 50.0, 100.0), (70.0, 60.0, 80.0), (math.nan, math.nan, 90.0), (45.0, 40.0, 50.0)]
    taken = [Sample(0.0, end, 1.0, 0.0, layout, values) for end, values in enumerate(ticks, 1)]
    assert extremes_over(taken, "cpu_speed_percent", 0.6, 3.4) == (60.0, 90.0)
    assert extremes_over(taken, "cpu_speed_percent", 0.5, 3.5) == (40.0, 100.0)
    assert all(map(math.isnan, extremes_over(taken, "cpu_speed_percent", 9.0, 10.0)))


def test_a_long_tick_counts_as_long_as_it_was() -> None:
    got = summarise([sample(1, 1, 10), sample(4, 3, 50)], 0, 4)
    assert got["cpu_user_percent"].mean == pytest.approx(40.0)
    assert got["cpu_user_percent"].max == 50.0


def test_the_area_of_cpu_is_cpu_seconds() -> None:
    got = summarise([sample(end, 1, 50) for end in range(1, 11)], 0, 10)
    assert got["cpu_user_percent"].area == pytest.approx(20.0), "half of four CPUs over ten seconds"


def test_the_area_of_a_byte_rate_is_bytes_moved() -> None:
    got = summarise([sample(1, 1, 0, reads=10), sample(3, 2, 0, reads=20)], 0, 3)
    assert got["disk_read_bytes_per_second"].area == 50 * 4096


def test_a_wait_is_averaged_over_requests() -> None:
    got = summarise([sample(1, 1, 0, wait=1.0, reads=900), sample(2, 1, 0, wait=11.0, reads=100)], 0, 2)
    assert got["disk_await_ms"].mean == pytest.approx(2.0)
    assert got["disk_await_ms"].area == pytest.approx(2.0), "seconds that 1,000 requests waited together"


def test_a_tick_across_an_end_counts_with_its_part() -> None:
    got = summarise([sample(1, 1, 0), sample(2, 1, 100), sample(3, 1, 40)], 0.8, 2.25)
    assert got["cpu_user_percent"].mean == pytest.approx((0.2 * 0 + 1.0 * 100 + 0.25 * 40) / 1.45)
    assert got["cpu_user_percent"].p95 == 100


def test_a_span_shorter_than_a_tick_is_that_tick() -> None:
    got = summarise([sample(1, 1, 30), sample(2, 1, 70)], 1.2, 1.4)
    assert got["cpu_user_percent"].mean == pytest.approx(70)
    assert got["cpu_user_percent"].max == 70


def test_the_percentile_is_what_95_percent_of_the_time_stayed_below() -> None:
    got = summarise([sample(end, 1, end) for end in range(1, 101)], 0, 100)
    assert got["cpu_user_percent"].p95 == 95
    assert got["cpu_user_percent"].max == 100


def test_what_could_not_be_had_is_left_out() -> None:
    got = summarise([sample(1, 1, math.nan), sample(2, 1, 20)], 0, 2)
    assert got["cpu_user_percent"] == Summary(mean=20, max=20, p95=20, area=0.8)
    assert "cpu_user_percent" not in summarise([sample(1, 1, math.nan)], 0, 1)
    assert summarise([], 0, 1) == {}


def test_instances_are_told_when_asked_for() -> None:
    ticks = [sample(1, 1, 50)]
    assert "cpu_user_percent[0]" not in summarise(ticks, 0, 1)
    got = summarise(ticks, 0, 1, instances=True)
    assert got["cpu_user_percent[0]"].area == pytest.approx(0.5), "of one CPU, not of all"


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("cpu_user_percent", "%"),
        ("guest_cpu_percent[web]", "%"),
        ("pressure_cpu_some_percent", "%"),
        ("disk_util_percent[sda]", "%"),
        ("disk_write_bytes_per_second", "B/s"),
        ("power_watts", "W"),
        ("memory_used_bytes", "B"),
        ("disk_reads_per_second", "1/s"),
        ("cpu_count", "1"),
    ],
)
def test_units_follow_from_names(name: str, unit: str) -> None:
    assert unit_of(name) == unit


def test_names_split_into_metric_and_instance() -> None:
    assert split_name("disk_await_ms[vda]") == ("disk_await_ms", "vda")
    assert split_name("disk_await_ms") == ("disk_await_ms", None)
