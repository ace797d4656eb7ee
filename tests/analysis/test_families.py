"""Families of figures: how often they alarm where nothing differs, and how often they find what does."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from functools import cache

import pytest

from vmlab.analysis.difference import Difference, Sides, Verdict, difference, differences
from vmlab.analysis.figure import Figure, OneReading
from vmlab.analysis.power import detectable_percent, readings_needed, readings_to_find
from vmlab.analysis.statistics import spread

SLOWNESS, OWN = 0.10, 0.03
"""How a host's speed moves from repeat to repeat, which all cells of it share, and how each cell does besides."""


def _figure(values: Sequence[float], run: str = "") -> Figure:
    readings = tuple(OneReading(value, repeat, run) for repeat, value in enumerate(values, 1))
    return Figure("passed", spread(values), 0, readings)


def _blocks(draw: random.Random, repeats: int, workloads: int) -> list[list[tuple[float, float]]]:
    """Run times of both sides, by workload and repeat, of sides that do not differ."""
    speeds = [draw.gauss(0, SLOWNESS) for _ in range(repeats)]
    return [
        [(_time(draw, 10.0 * workload, speed), _time(draw, 10.0 * workload, speed)) for speed in speeds]
        for workload in range(1, workloads + 1)
    ]


def _time(draw: random.Random, seconds: float, speed: float) -> float:
    # One reading in twenty is disturbed, as by a cron job.
    disturbed = 0.2 if draw.random() < 0.05 else 0.0
    return seconds * (1 + speed / 10) * draw.lognormvariate(speed, OWN) * (1 + disturbed)


def _family(blocks: Sequence[Sequence[tuple[float, float]]], slower: float = 1.0) -> list[Difference]:
    figures = [(_figure([a for a, _ in pairs]), _figure([b * slower for _, b in pairs])) for pairs in blocks]
    return differences([Sides(before, after, more_is_better=False) for before, after in figures])


def _alarms(blocks: Sequence[Sequence[tuple[float, float]]], tries: int) -> float:
    """The share of relabellings in which anything is called different; in each, whole repeats swap their sides."""

    @cache
    def alarms(swapped: int) -> bool:
        relabelled = [
            [(b, a) if swapped >> place & 1 else (a, b) for place, (a, b) in enumerate(pairs)] for pairs in blocks
        ]
        return any(one.proven for one in _family(relabelled))

    draw, repeats = random.Random(1), len(blocks[0])
    # To swap all repeats but these is the same comparison from the other side.
    chosen = (draw.getrandbits(repeats) for _ in range(tries))
    return sum(alarms(min(swapped, swapped ^ (2**repeats - 1))) for swapped in chosen) / tries


def test_one_family_in_twenty_alarms_where_nothing_differs() -> None:
    """Over 10,000 relabellings of the same repeats 5 % of families do, give or take a hundredth."""
    assert 0.04 <= _alarms(_blocks(random.Random(1), 12, 4), 10_000) <= 0.06


def test_eight_repeats_alarm_less_often_as_they_have_no_p_between() -> None:
    """All eight must agree: each of four workloads alarms in 2 of 2^8 relabellings, so 3.1 % of families at most."""
    rates = [_alarms(_blocks(random.Random(seed), 8, 4), 10_000) for seed in range(5)]
    assert all(0.0 < rate <= 8 / 2**8 + 0.005 for rate in rates)


def _found(repeats: int, slower: float, tries: int = 200) -> float:
    """How often a slowdown of one workload of four is found, and nothing else with it is not asked."""
    draw, found = random.Random(2), 0
    for _ in range(tries):
        blocks = _blocks(draw, repeats, 4)
        blocks[0] = [(a, b * slower) for a, b in blocks[0]]
        found += _family(blocks)[0].better is False
    return found / tries


def _spread_percent() -> float:
    """The deviation of a workload's ratio in a long run without a difference, in percent."""
    (pairs,) = _blocks(random.Random(3), 2000, 1)
    return 100 * statistics.stdev(math.log(b / a) for a, b in pairs)


@pytest.mark.parametrize("repeats", [8, 12, 20])
def test_twice_the_detectable_size_is_found_nine_times_in_ten_and_less_than_the_noise_is_not(repeats: int) -> None:
    size = detectable_percent(_spread_percent(), repeats, 4)
    assert size is not None
    assert _found(repeats, 1 + 2 * size / 100) >= 0.9
    assert _found(repeats, 1 + size / 100) >= 0.65
    assert _found(repeats, 1 + 0.1 * size / 100) <= 0.05


def test_the_detectable_size_is_found_in_four_of_five_cases_of_normal_readings() -> None:
    draw, found = random.Random(4), 0
    size = detectable_percent(5.0, 10, 3)
    assert size is not None
    for _ in range(400):
        family = []
        for slower in (1 + size / 100, 1.0, 1.0):
            pairs = [(10.0, 10.0 * slower * math.exp(draw.gauss(0, 0.05))) for _ in range(10)]
            family.append(pairs)
        found += _family(family)[0].proven
    assert found / 400 == pytest.approx(0.8, abs=0.06)


def test_too_few_follows_from_the_smallest_p_after_the_correction() -> None:
    assert [readings_needed(figures) for figures in (1, 2, 4, 5, 6, 7, 16)] == [6, 7, 8, 8, 8, 9, 10]
    assert [readings_needed(figures, paired=False) for figures in (1, 4, 5)] == [4, 5, 5]
    pairs = [(10.0, 11.0 + 0.01 * place) for place in range(8)]
    verdicts = [{one.verdict for one in _family([pairs[:repeats]] * 4)} for repeats in (7, 8)]
    assert verdicts == [{Verdict.TOO_FEW}, {Verdict.PROVEN}]
    assert detectable_percent(5.0, 7, 4) is None


def test_more_readings_find_smaller_differences() -> None:
    assert readings_to_find(3.0, 4) == 8
    needed = [readings_to_find(size, 4) for size in (2.0, 1.0, 0.5, 0.2)]
    assert needed == sorted(number for number in needed if number is not None)
    assert readings_to_find(0.01, 4) is None and readings_to_find(0.0, 4) is None
    sizes = [detectable_percent(5.0, repeats, 4) for repeats in (8, 10, 12, 16, 20, 40)]
    assert sizes == sorted((size for size in sizes if size is not None), reverse=True)


def test_holm_goes_from_the_smallest_p_to_the_largest() -> None:
    """p of 2/2^8, 2/2^8, 10/2^8 and 80/2^8: the first two are proven at 1/4 and 1/3 of 5 %, the third is not at 1/2."""
    sure = [(10.0, 11.0 + 0.01 * place) for place in range(8)]
    near = [(10.0, 10.0 + shift) for shift in (0.8, 0.7, 0.6, 0.5, 0.4, 0.25, -0.3, 0.1)]
    none = [(10.0, 10.0 + shift) for shift in (0.5, -0.5) * 4]
    found = _family([none, sure, near, sure])
    assert [one.verdict for one in found] == [
        Verdict.NOT_PROVEN,
        Verdict.PROVEN,
        Verdict.NOT_PROVEN,
        Verdict.PROVEN,
    ]
    adjusted = [one.p_adjusted for one in found]
    assert [one.p for one in found] == [80 / 2**8, 2 / 2**8, 10 / 2**8, 2 / 2**8]
    by_hand = [80 / 2**8, 4 * 2 / 2**8, 2 * 10 / 2**8, 4 * 2 / 2**8]
    assert adjusted == pytest.approx(by_hand)
    assert [one.confidence for one in found] == pytest.approx([97.5, 98.75, 97.5, 100 * (1 - 0.05 / 3)])


def test_the_interval_excludes_0_exactly_where_a_difference_is_proven() -> None:
    draw, seen = random.Random(6), set()
    for _ in range(100):
        blocks = _blocks(draw, draw.randint(6, 14), draw.randint(1, 5))
        slower = draw.choice([1.0, 1.05, 1.3])
        for one in _family(blocks, slower):
            seen.add(one.verdict)
            if one.interval is None:
                assert one.verdict == Verdict.TOO_FEW
                continue
            low, high = one.interval
            assert one.percent is not None and low <= one.percent <= high
            assert (low > 0 or high < 0) == one.proven == (one.better is not None)
            assert one.p_adjusted is not None and (one.p_adjusted <= 0.05) == one.proven
    assert seen == {Verdict.TOO_FEW, Verdict.PROVEN, Verdict.NOT_PROVEN}


def test_swapped_sides_read_the_other_way_round() -> None:
    draw = random.Random(8)
    before, after = [draw.lognormvariate(2, 0.1) for _ in range(9)], [draw.lognormvariate(2.3, 0.1) for _ in range(9)]
    one = difference(_figure(before), _figure(after), more_is_better=True)
    other = difference(_figure(after), _figure(before), more_is_better=True)
    assert one.ratio is not None and other.ratio is not None and one.interval and other.interval
    assert one.ratio * other.ratio == pytest.approx(1.0)
    assert (1 + one.interval[0] / 100) * (1 + other.interval[1] / 100) == pytest.approx(1.0)
    assert (one.p, one.effect, one.better, other.better) == (other.p, -(other.effect or 0), True, False)


def test_readings_of_0_and_below_are_compared_by_their_difference() -> None:
    zeros, ones = _figure([0.0] * 8), _figure([1.0] * 8)
    assert difference(zeros, ones, more_is_better=False).verdict == Verdict.PROVEN
    assert difference(zeros, ones, more_is_better=False).percent is None
    back = difference(ones, zeros, more_is_better=False)
    assert (back.percent, back.interval, back.better) == (-100.0, (-100.0, -100.0), True)


def test_runs_count_once_each_and_are_not_paired() -> None:
    draw = random.Random(10)

    def side(seconds: float, runs: int, name: str) -> Figure:
        readings = [
            OneReading(seconds * draw.lognormvariate(0, 0.02), repeat, f"{name}{run}")
            for run in range(runs)
            for repeat in range(1, 4)
        ]
        return Figure("passed", spread([one.value for one in readings]), 0, tuple(readings))

    alone = difference(side(10, 1, "a"), side(20, 1, "b"), more_is_better=False)
    assert (alone.verdict, alone.interval, alone.needed) == (Verdict.ONE_A_SIDE, None, 4)
    several = difference(side(10, 4, "a"), side(20, 4, "b"), more_is_better=False)
    assert (several.verdict, several.test, several.readings) == (Verdict.PROVEN, "Mann-Whitney", 4)
    assert several.paired is False and several.better is False
    too_few = difference(side(10, 3, "a"), side(20, 3, "b"), more_is_better=False)
    assert (too_few.verdict, too_few.better) == (Verdict.TOO_FEW, None)


def test_one_reading_each_says_nothing_of_better_or_worse() -> None:
    found = difference(_figure([10.0]), _figure([40.0]), more_is_better=False)
    assert (found.verdict, found.percent, found.better, found.interval) == (Verdict.ONE_EACH, 300.0, None, None)
    failed = difference(_figure([10.0]), Figure("failed"), more_is_better=False)
    assert (failed.verdict, failed.percent) == (Verdict.NOT_COMPARED, None)


def test_what_is_not_beyond_the_noise_is_not_proven() -> None:
    before, after = _figure([10.0 + 0.01 * n for n in range(8)]), _figure([10.5 + 0.011 * n for n in range(8)])
    sides = [Sides(before, after, False, noise) for noise in (None, 3.0, 4.9, 5.2, 30.0)]
    alone = [differences([one])[0] for one in sides]
    assert [one.verdict for one in alone] == [Verdict.PROVEN] * 3 + [Verdict.NOT_PROVEN] * 2
    intervals = {one.interval for one in alone}
    assert len(intervals) == 1
    assert all(one.interval is not None and one.interval[0] > (one.noise or 0) for one in alone[:3])
    assert [one.better for one in alone] == [False] * 3 + [None] * 2
    # The other way round the noise is as wide as a ratio: 5.2 % more is 4.9 % less.
    back = [differences([Sides(after, before, False, noise)])[0] for noise in (3.0, 5.2)]
    assert [one.verdict for one in back] == [Verdict.PROVEN, Verdict.NOT_PROVEN]
