"""Deadlines, late ticks, a clock that is set and a host that sleeps, on clocks that the test moves."""

from __future__ import annotations

import time

import pytest

from vmlab.telemetry.recorder_clock import HostClocks, Moment, Ticker


class HandClocks(HostClocks):
    """Sleeps by moving on, plus what the next sleep is told to add to each clock."""

    def __init__(self) -> None:
        super().__init__()
        self.moment = Moment(mono=100.0, wall=1000.0, boot=500.0)
        self.late = self.step = self.suspend = 0.0

    def now(self) -> Moment:
        return self.moment

    def sleep(self, seconds: float) -> bool:
        passed = max(0.0, seconds) + self.late
        super().__init__()
        self.moment = Moment(
            self.moment.mono + passed,
            self.moment.wall + passed + self.suspend + self.step,
            self.moment.boot + passed + self.suspend,
        )
        self.late = self.step = self.suspend = 0.0
        return False


def test_deadlines_are_absolute() -> None:
    clocks = HandClocks()
    ticker = Ticker(1.0, clocks)
    clocks.late = 0.3
    first, second = ticker.wait(), ticker.wait()
    assert first is not None
    assert second is not None
    assert (first.length, first.lateness, first.missed) == pytest.approx((1.3, 0.3, 0))
    assert (second.length, second.lateness) == pytest.approx((0.7, 0.0)), "lateness does not add up"


def test_a_tick_that_comes_too_late_leaves_out_those_it_missed() -> None:
    clocks = HandClocks()
    ticker = Ticker(1.0, clocks)
    clocks.late = 2.5
    late, following = ticker.wait(), ticker.wait()
    assert late is not None
    assert following is not None
    assert (late.length, late.lateness, late.missed) == pytest.approx((3.5, 2.5, 2))
    assert following.moment.mono == pytest.approx(104.0)


def test_a_clock_that_is_set_changes_no_length() -> None:
    clocks = HandClocks()
    ticker = Ticker(1.0, clocks)
    clocks.step = -3600.0
    tick = ticker.wait()
    assert tick is not None
    assert (tick.length, tick.clock_step, tick.suspended) == pytest.approx((1.0, -3600.0, 0.0))


def test_a_host_that_slept_is_told_from_one_whose_clock_was_set() -> None:
    clocks = HandClocks()
    ticker = Ticker(1.0, clocks)
    clocks.suspend = 600.0
    tick = ticker.wait()
    assert tick is not None
    assert (tick.length, tick.clock_step, tick.suspended) == pytest.approx((1.0, 0.0, 600.0))


def test_the_few_microseconds_between_two_clocks_are_no_step() -> None:
    clocks = HandClocks()
    ticker = Ticker(1.0, clocks)
    clocks.step = 0.0005
    tick = ticker.wait()
    assert tick is not None
    assert tick.clock_step == 0.0


@pytest.mark.parametrize(
    ("asked", "ticks"),
    [
        ([102.3], [101, 102.3, 103, 104]),
        ([102.7], [101, 102, 102.7, 104]),
        ([101.975, 103.31], [101, 101.975, 103.31, 104]),
        ([99.0], [100, 101, 102, 103]),
        ([102.2, 102.4], [101, 102.2, 102.4, 103]),
    ],
)
def test_a_tick_out_of_turn_comes_at_its_moment_and_one_that_is_close_to_it_is_left_out(
    asked: list[float], ticks: list[float]
) -> None:
    """The samples are whole: each begins where the one before ended, and none is late for it."""
    clocks = HandClocks()
    ticker = Ticker(1.0, clocks)
    for moment in asked:
        ticker.read_at(moment)
    last = 100.0
    for expected in ticks:
        tick = ticker.wait()
        assert tick is not None
        assert (tick.moment.mono, tick.length) == pytest.approx((expected, expected - last))
        assert tick.missed == 0
        assert tick.lateness == pytest.approx(max(0.0, expected - asked[0]) if expected == 100 else 0.0)
        last = expected


def test_a_wait_ends_when_somebody_asks() -> None:
    clocks = HostClocks(plain=0.0)
    clocks.wake()
    clocks.wake()
    began = time.monotonic()
    assert clocks.sleep(3600) is False
    assert time.monotonic() - began < 3600
    assert clocks.sleep(0.01) is False, "once"


def test_the_hosts_clocks_wait_and_can_be_stopped() -> None:
    clocks = HostClocks()
    before = clocks.now()
    assert clocks.sleep(0.02) is False
    assert clocks.now().mono - before.mono >= 0.02
    clocks.stop()
    clocks.stop()
    began = time.monotonic()
    assert clocks.sleep(3600) is True
    assert clocks.sleep(3600) is True
    assert time.monotonic() - began < 3600
