"""Families of figures: how often they alarm where nothing differs, and how often they find what does."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from vmlab.analysis.comparison.difference import (
    NO_DIFFERENCE,
    Difference,
    Sides,
    Verdict,
    corrected_for,
    difference,
    differences,
    readings_to_decide,
)
from vmlab.analysis.figures.figure import Figure, OneReading
from vmlab.analysis.statistics.descriptive import spread
from vmlab.analysis.statistics.rank_test import signed_rank
from vmlab.analysis.statistics.sample_size import detectable, detectable_percent, readings_needed, readings_to_find
from vmlab.model.jsonable import jsonable
from vmlab.model.scenarios.table_words import Relative

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


@pytest.mark.parametrize(
    ("percent", "more_is_better", "forms"),
    [
        (25.0, True, (25.0, 1.25, 125.0, -25.0, 0.8)),
        (25.0, None, (25.0, 1.25, 125.0, -25.0, 0.8)),
        (25.0, False, (25.0, 0.8, 80.0, 20.0, 1.25)),
        (-100.0, True, (-100.0, 0.0, 0.0, 100.0, None)),
        (-100.0, False, (-100.0, None, None, None, None)),
        (-150.0, True, (-150.0, -0.5, -50.0, 150.0, -2.0)),
        (-150.0, False, (-150.0, -2.0, -200.0, 300.0, -0.5)),
        (None, True, (None,) * 5),
    ],
)
def test_a_difference_has_five_forms(
    percent: float | None, more_is_better: bool | None, forms: tuple[float | None, ...]
) -> None:
    relatives: tuple[Relative, ...] = ("difference", "ratio", "percent", "overhead", "slowdown")
    found = Difference(percent=percent, more_is_better=more_is_better)
    assert [found.as_asked(relative) for relative in relatives] == [
        None if form is None else pytest.approx(form) for form in forms
    ]


def test_an_interval_in_another_form_has_its_lower_end_first_or_is_none() -> None:
    faster = Difference(percent=11.0, interval=(10.0, 25.0), more_is_better=False)
    assert faster.interval_as_asked("ratio") == pytest.approx((0.8, 1 / 1.1))
    assert faster.interval_as_asked("slowdown") == pytest.approx((1.1, 1.25))
    assert Difference(interval=(-100.0, 25.0), more_is_better=False).interval_as_asked("ratio") is None
    assert Difference(percent=11.0, more_is_better=False).interval_as_asked("ratio") is None


def test_a_document_has_all_that_is_known_of_a_difference() -> None:
    found = Difference(
        Verdict.PROVEN, None, "so", 25.0, (10.0, 40.0), 97.5, 1.25, False, "a test", True, 8, 0.01, 0.02, 2, 0.5, 7, 9
    )
    assert jsonable(replace(found, detectable=5.0, noise=3.0)) == {
        "verdict": "difference proven",
        "same_amount": False,
        "because": "so",
        "percent": 25.0,
        "interval_percent": [10.0, 40.0],
        "confidence_percent": 97.5,
        "ratio": 1.25,
        "better": False,
        "test": "a test",
        "paired": True,
        "readings": 8,
        "p": 0.01,
        "p_adjusted": 0.02,
        "family": 2,
        "effect_size": 0.5,
        "readings_needed": 7,
        "readings_to_find": 9,
        "detectable_percent": 5.0,
        "noise_percent": 3.0,
    }
    nothing = jsonable(NO_DIFFERENCE)
    assert (nothing["verdict"], nothing["interval_percent"], nothing["paired"]) == ("not compared", None, True)
    assert (nothing["readings"], nothing["family"]) == (0, 1)


def _sides(shifts: Sequence[float]) -> tuple[Figure, Figure]:
    """Pairs whose logarithms differ by `shifts`."""
    return _figure([10.0] * len(shifts)), _figure([10.0 * math.exp(shift) for shift in shifts])


def _around(middle: float) -> list[float]:
    """Eight shifts with this median, and a deviation of 0.1."""
    places = (-7, -5, -3, -1, 1, 3, 5, 7)
    return [middle + 0.1 * place / statistics.stdev(places) for place in places]


def test_what_it_takes_and_what_can_be_found_follow_from_the_deviation_and_the_noise() -> None:
    reach = detectable((8,), 0.05)
    assert reach is not None
    for middle in (0.05, -0.05):
        for noise, shift in ((None, 0.0), (2.0, math.log(1.02))):
            (found,) = differences([Sides(*_sides(_around(middle)), None, noise)])
            assert (found.verdict, found.better) == (Verdict.NOT_PROVEN, None)
            assert found.percent == pytest.approx(100 * math.expm1(middle))
            assert found.to_find == readings_to_find((0.05 - shift) / 0.1) and (found.to_find or 0) > 9
            assert found.detectable == pytest.approx(100 * math.expm1(shift + 0.1 * reach))
    (proven,) = differences([Sides(*_sides(_around(0.3)), True)])
    assert (proven.verdict, proven.to_find, proven.better) == (Verdict.PROVEN, None, True)
    (same,) = differences([Sides(*_sides([0.0] * 8), True)])
    assert (same.verdict, same.to_find, same.detectable, same.p) == (Verdict.NOT_PROVEN, None, 0.0, 1.0)


def test_what_was_not_enough_takes_one_reading_more_at_least() -> None:
    (few,) = differences([Sides(*_sides([0.3, 0.31, 0.32, 0.33, 0.34]), None)])
    assert (few.verdict, few.readings, few.needed, few.to_find) == (Verdict.TOO_FEW, 5, 6, 6)
    assert (few.interval, few.confidence, few.detectable, few.obstacle) == (None, None, None, "too few measurements")
    almost = _sides([-0.05, 0.5, 0.501, 0.502, 0.503, 0.504, 0.505, 0.506])
    found, *others = differences([Sides(*almost, None), *[Sides(*_sides([0.0] * 8), None)] * 3])
    assert [(one.p, one.p_adjusted) for one in others] == [(1.0, 1.0)] * 3
    assert (found.verdict, found.needed, found.to_find) == (Verdict.NOT_PROVEN, 8, 9)
    assert found.detectable is not None and found.percent is not None and found.detectable < found.percent


def test_figures_that_did_not_pass_widen_no_interval() -> None:
    failed = Sides(_figure([1.0]), Figure("failed"), None)
    assert [one.verdict for one in differences([failed])] == [Verdict.NOT_COMPARED]
    near, none = Sides(*_sides(_around(0.11)), None), Sides(*_sides(_around(0.0)), None)
    found = differences([failed, near, failed, none])
    assert [one.family for one in found] == [1, 2, 1, 2]
    assert found == [NO_DIFFERENCE, *differences([near, none])[:1], NO_DIFFERENCE, *differences([near, none])[1:]]
    assert [one.verdict for one in differences([none, near])] == [Verdict.NOT_PROVEN, Verdict.PROVEN]


def test_why_readings_allow_no_verdict_is_said() -> None:
    apart = [
        Figure("passed", spread([1.0, 2.0]), 0, tuple(OneReading(1.0, n) for n in one)) for one in ((1, 2), (3, 4))
    ]
    found = difference(apart[0], apart[1], None)
    assert (found.verdict, found.obstacle) == (
        Verdict.TOO_FEW,
        "too few measurements: there is no repeat in which both sides passed",
    )
    assert difference(_figure([1.0]), _figure([2.0]), None).obstacle == "one measurement each, no spread known"
    runs = difference(_figure([1.0, 2.0], "a"), _figure([2.0, 3.0], "b"), None)
    assert (runs.verdict, runs.obstacle) == (Verdict.ONE_A_SIDE, runs.because) and runs.because
    assert (runs.needed, runs.paired, runs.readings) == (4, False, 1)
    assert runs.percent == pytest.approx(100 * 2 / 3)
    assert difference(*_sides(_around(0.0)), None).obstacle == NO_DIFFERENCE.obstacle == ""


def test_a_correction_for_all_that_is_asked_is_that_of_so_large_a_family() -> None:
    sides = _sides(_around(0.3))
    found = difference(*sides, True)
    four = differences([Sides(*sides, True), *[Sides(*_sides([0.0] * 8), True)] * 3])[0]
    corrected = corrected_for(4, *sides, found)
    assert corrected.interval == four.interval
    assert corrected.confidence == pytest.approx(98.75)
    assert (corrected.verdict, corrected.family, corrected.needed) == (Verdict.PROVEN, 4, 8)
    many = corrected_for(7, *sides, found)
    assert (many.verdict, many.interval, many.confidence, many.needed) == (Verdict.TOO_FEW, None, None, 9)
    assert many.percent == found.percent
    single = _figure([10.0]), _figure([40.0])
    one = corrected_for(7, *single, difference(*single, True))
    assert (one.verdict, one.family, one.needed) == (Verdict.ONE_EACH, 7, 9)
    runs = _figure([1.0, 2.0], "a"), _figure([2.0, 3.0], "b")
    assert corrected_for(5, *runs, difference(*runs, True)).needed == 5
    failed = _figure([10.0]), Figure("failed")
    assert corrected_for(7, *failed, NO_DIFFERENCE) == replace(NO_DIFFERENCE, family=7)


def test_how_many_readings_decide_about_a_bound() -> None:
    sides = _sides(_around(0.2))
    far, noise = math.log(1.1), math.log(1.02)
    for figures in (1, 3):
        wanted = readings_to_find((0.2 - far) / 0.1, figures)
        assert readings_to_decide(figures, *sides, 10.0, 0.0) == wanted and (wanted or 0) > 9
        assert readings_to_decide(figures, *sides, 10.0, 2.0) == readings_to_find((0.2 - far - noise) / 0.1, figures)
    below = math.log(1.3)
    assert readings_to_decide(1, *sides, 30.0, 0.0) == readings_to_find((below - 0.2) / 0.1)
    assert readings_to_decide(1, *sides, -99.0, 0.0) == 9
    assert [readings_to_decide(1, *sides, bound, 0.0) for bound in (-100.0, -150.0)] == [None, None]
    assert readings_to_decide(1, *sides, 22.1, 0.0) is None
    assert readings_to_decide(1, *sides, 22.1, 30.0) is None
    assert readings_to_decide(1, *_sides([0.2] * 8), 10.0, 0.0) is None
    assert readings_to_decide(1, _figure([10.0]), _figure([40.0]), 10.0, 0.0) is None
    assert readings_to_decide(1, _figure([10.0]), Figure("failed"), 10.0, 0.0) is None
    own = [
        replace(side, readings=tuple(replace(one, snapshots={"vm": name}) for one in side.readings))
        for side, name in zip(sides, "ab", strict=True)
    ]
    assert difference(own[0], own[1], None).verdict == Verdict.ONE_A_SIDE
    assert readings_to_decide(1, own[0], own[1], 10.0, 0.0) is None


@pytest.mark.parametrize("sign", [1, -1])
def test_what_is_proven_beyond_0_is_not_yet_proven_beyond_the_noise(sign: int) -> None:
    sides = _sides([sign * (0.05 + 0.01 * place) for place in (-3, -2, -1, -0.5, 0.5, 1, 2, 3)])
    alone, noisy = (differences([Sides(*sides, None, noise)])[0] for noise in (None, 4.0))
    assert (alone.verdict, alone.p) == (Verdict.PROVEN, 2 / 2**8)
    assert (noisy.verdict, noisy.percent) == (Verdict.NOT_PROVEN, alone.percent)
    assert noisy.p == signed_rank([sign * shift - math.log(1.04) for shift in _logs(sides)]).p_of() > 0.05


def _logs(sides: tuple[Figure, Figure]) -> list[float]:
    pairs = zip(sides[0].readings, sides[1].readings, strict=True)
    return [math.log(after.value / before.value) for before, after in pairs]


def test_what_is_just_as_large_as_the_noise_is_not_proven() -> None:
    """Readings of 0 are compared by their difference, which is exactly 10 % of the mean of 10 here."""
    before = [0.0, 20.0] * 4
    for shift, verdict in ((1.0, Verdict.NOT_PROVEN), (-1.0, Verdict.NOT_PROVEN), (1.125, Verdict.PROVEN)):
        (found,) = differences([Sides(_figure(before), _figure([one + shift for one in before]), None, 10.0)])
        assert (found.verdict, found.percent) == (verdict, 10 * shift)
        assert (found.p == 1.0) == (verdict == Verdict.NOT_PROVEN)
