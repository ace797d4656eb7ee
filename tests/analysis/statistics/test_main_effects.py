"""Main effects of folded designs: published ones, those of NumPy's least squares, and known ones by simulation."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from scipy import stats

from vmlab.analysis.statistics.main_effects import FoldedPair, MainEffect, main_effects
from vmlab.plan.tuning.screening_design import Levels, mirrored, screening, usual_blocks

Readings = Mapping[Levels, Sequence[float]]
"""Of each setting, block by block."""


def levels_of(letters: str, levers: int) -> Levels:
    return tuple(1 if letter in letters else -1 for letter in "abcdefghijkl"[:levers])


def pairs_of(readings: Readings) -> list[FoldedPair]:
    return [
        FoldedPair(levels, [one - other for one, other in zip(own, readings[mirrored(levels)], strict=True)])
        for levels, own in readings.items()
        if levels > mirrored(levels)
    ]


def effects_of(readings: Readings) -> list[MainEffect]:
    found = main_effects(pairs_of(readings))
    assert found is not None
    return found


def test_effects_of_a_half_fraction_are_those_that_are_published() -> None:
    # Montgomery, Design and Analysis of Experiments, 8th edition, problem 8.1: 2^(4-1), I = ABCD.
    published = {"": 90, "ad": 72, "bd": 87, "ab": 83, "cd": 99, "ac": 81, "bc": 88, "abcd": 80}
    readings = {levels_of(letters, 4): [float(value)] for letters, value in published.items()}
    assert readings.keys() == {*screening(4)}
    found = effects_of(readings)
    assert [one.effect for one in found] == pytest.approx([-12, -1, 4, -1])
    assert [(one.error, one.freedom, one.interval()) for one in found] == [(None, 0, None)] * 4


PLASMA = {
    "": (550, 604),
    "a": (669, 650),
    "b": (633, 601),
    "ab": (642, 635),
    "c": (1037, 1052),
    "ac": (749, 868),
    "bc": (1075, 1063),
    "abc": (729, 860),
}
"""Montgomery, example 6.1: the rate at which plasma etches, 2^3 with two replicates."""


def test_effects_of_replicated_runs_are_those_that_are_published() -> None:
    readings = {levels_of(letters, 3): [*map(float, values)] for letters, values in PLASMA.items()}
    assert readings.keys() == {*screening(3)}
    assert [one.effect for one in effects_of(readings)] == pytest.approx([-101.625, 7.375, 306.125])


def test_errors_and_intervals_are_those_of_least_squares_with_a_saturated_model() -> None:
    """All terms of one and of three levers, so that only what differs from block to block is left."""
    readings = {levels_of(letters, 3): [*map(float, values)] for letters, values in PLASMA.items()}
    rows, values = [], []
    for pair in pairs_of(readings):
        for difference in pair.differences:
            a, b, c = pair.levels
            rows.append([a, b, c, a * b * c])
            values.append(difference)
    solved, residual, *_ = np.linalg.lstsq(np.array(rows, float), np.array(values), rcond=None)
    freedom = len(rows) - 4
    errors = np.sqrt(residual[0] / freedom * np.diag(np.linalg.inv(np.array(rows, float).T @ np.array(rows, float))))
    reach = stats.t.ppf(0.975, freedom)
    for number, one in enumerate(effects_of(readings)):
        assert one.freedom == freedom
        assert (one.effect, one.error) == pytest.approx((solved[number], errors[number]))
        ends = solved[number] - reach * errors[number], solved[number] + reach * errors[number]
        assert one.interval() == pytest.approx(ends)


def test_a_missing_pair_leaves_effects_that_least_squares_has() -> None:
    draw = random.Random(3)
    readings = {levels: [draw.gauss(0, 1) for _ in range(2)] for levels in screening(5)}
    pairs = pairs_of(readings)
    pairs[2] = FoldedPair(pairs[2].levels, pairs[2].differences[:1])
    pairs[5] = FoldedPair(pairs[5].levels, [])
    rows = [one.levels for one in pairs for _ in one.differences]
    values = [value for one in pairs for value in one.differences]
    solved, *_ = np.linalg.lstsq(np.array(rows, float), np.array(values), rcond=None)
    found = main_effects(pairs)
    assert found is not None
    assert [one.effect for one in found] == pytest.approx(list(solved))
    assert {one.freedom for one in found} == {6}


def test_levers_that_cannot_be_told_from_each_other_have_no_effect() -> None:
    assert main_effects([]) is None
    assert main_effects([FoldedPair((1, 1), []), FoldedPair((1, -1), [])]) is None
    assert main_effects([FoldedPair((1, 1), [1.0, 2.0])]) is None


def test_equal_readings_have_an_interval_without_width() -> None:
    found = effects_of({levels: [0.1 * sum(levels), 0.1 * sum(levels)] for levels in screening(3)})
    assert [one.interval() for one in found] == [pytest.approx((0.2, 0.2), abs=1e-12)] * 3


Truth = Callable[[Levels], float]


def truth(effects: Sequence[float], interactions: Mapping[tuple[int, int], float]) -> Truth:
    def value(levels: Levels) -> float:
        alone = sum(effect / 2 * level for effect, level in zip(effects, levels, strict=True))
        return alone + sum(size / 2 * levels[one] * levels[other] for (one, other), size in interactions.items())

    return value


def every_pair(levers: int, size: float) -> dict[tuple[int, int], float]:
    """Interactions of all pairs of levers, of either sign."""
    return {pair: size * (-1) ** sum(pair) for pair in itertools.combinations(range(levers), 2)}


@pytest.mark.parametrize("levers", range(2, 13))
def test_interactions_of_two_levers_and_blocks_leave_main_effects_as_they_are(levers: int) -> None:
    effects = [0.3 * (-1) ** number * number for number in range(levers)]
    value = truth(effects, every_pair(levers, 0.9))
    readings = {levels: [value(levels) + block for block in (0.0, 5.0, -2.0)] for levels in screening(levers)}
    assert [one.effect for one in effects_of(readings)] == pytest.approx(effects, abs=1e-9)


def test_without_the_fold_over_they_would_not() -> None:
    effects = [0.3 * number for number in range(5)]
    value = truth(effects, every_pair(5, 0.9))
    base = screening(5)[:8]
    biased = [2 * sum(levels[lever] * value(levels) for levels in base) / len(base) for lever in range(5)]
    assert max(abs(one - other) for one, other in zip(biased, effects, strict=True)) > 0.5


@pytest.mark.parametrize(
    ("levers", "unequal"), [(2, False), (4, False), (5, False), (5, True), (8, False), (11, False)]
)
def test_intervals_hold_the_true_effects(levers: int, unequal: bool) -> None:
    """Also where a setting spreads more than another, and pairs of levers interact as much as one lever does."""
    draw = random.Random(17)
    effects = [0.0, 0.05, -0.1, 0.2, 1.0, 0.0, 0.0, 0.3, 0.0, 0.1, 0.0, 0.4][:levers]
    value, design, blocks = truth(effects, every_pair(levers, 0.2)), screening(levers), usual_blocks(levers)
    held, tried, runs = 0, 0, 3000 // levers
    for _ in range(runs):
        level = [draw.gauss(0, 0.3) for _ in range(blocks)]
        spread = {levels: 0.05 * (1.6 if unequal and levels[0] > 0 else 1.0) for levels in design}
        readings = {
            levels: [value(levels) + level[block] + draw.gauss(0, spread[levels]) for block in range(blocks)]
            for levels in design
        }
        for one, true in zip(effects_of(readings), effects, strict=True):
            low, high = one.interval() or (math.nan, math.nan)
            held += low <= true <= high
            tried += 1
    assert tried >= 2500
    assert 0.93 <= held / tried <= 0.97
