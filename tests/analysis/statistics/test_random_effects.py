"""Random effects against R's metafor on published examples, against SciPy, and by simulation.

The constants are those of metafor 3.8.1 in R, by `bench/support/metafor.R`, which prints them again.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from tests.analysis.coverage_page import PAGE, RUNS, SPREADS, coverage, current, pooled
from vmlab.analysis.statistics.descriptive import mean, standard_deviation, student_t
from vmlab.analysis.statistics.random_effects import (
    ENOUGH_BLOCKS,
    FEWEST_RUNS,
    LEAST_COVERAGE,
    chi_square_p,
    random_effects,
)

BCG = (
    *((4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619), (33, 5036, 47, 5761)),
    *((180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892), (29, 7470, 45, 7232)),
    *((17, 1699, 65, 1600), (186, 50448, 141, 27197), (5, 2493, 3, 2338), (27, 16886, 29, 17825)),
)
"""dat.bcg: cases and others among the vaccinated, and among those who were not, in thirteen trials of a vaccine."""

EXPECTANCY = (
    *(0.03, 0.12, -0.14, 1.18, 0.26, -0.06, -0.02, -0.32, 0.27, 0.8, 0.54, 0.18, -0.02, 0.23, -0.18, -0.06, 0.3),
    *(0.07, -0.07),
)
EXPECTANCY_VARIANCES = (
    *(0.0156, 0.0216, 0.0279, 0.1391, 0.1362, 0.0106, 0.0106, 0.0484, 0.0269, 0.063, 0.0912, 0.0497, 0.0835, 0.0841),
    *(0.0253, 0.0279, 0.0193, 0.0088, 0.0303),
)
"""dat.raudenbush1985: what teachers expect of pupils and these do then, in nineteen experiments."""
SMOKE = (
    *(0.1655144385, 0.3715635564, 0.7030975114, 0.1823215568, -0.2876820725, 0.7275486073, 0.7561219797),
    *(-0.2231435513, -0.2357223335, 0.6981347221, 0.2070141694, 0.1823215568, 0.4187103349, 0.02955880224),
    *(0.4382549309, 0.02955880224, 0.8501509294, 0.5007752879, 0.1739533071, 0.4187103349, 0.7701082217),
    *(0.07696104114, 0.9360933592, 0.4824261492, 0.05826890812, -0.2357223335, -0.3011050928, 0.8197798315),
    *(-0.03045920748, 0.4700036292, 0.1739533071, 0.5068176024, 0.231111721, 0.0953101798, 0.5068176024),
    *(0.1484200051, 0.1043600153),
)
SMOKE_VARIANCES = (
    *(0.01877688549, 0.03304403891, 0.5401958653, 0.03126761449, 0.0796556541, 0.2273205917, 0.08892156271),
    *(0.1926796031, 0.3390163475, 0.09806620244, 0.04555554858, 0.2317499696, 0.07964292202, 0.2173950247),
    *(0.07695797404, 0.07150176353, 0.2925657721, 0.03243750743, 0.03627334664, 0.4838512418, 0.1238162019),
    *(0.07108519172, 0.3981954334, 0.08962312407, 0.03371988833, 0.01612949092, 0.1802334734, 0.3171477229),
    *(0.01254684515, 0.1136962924, 0.08933678042, 0.1759855948, 0.01002904743, 0.08621435589, 0.03987496754),
    *(0.03639975557, 0.06641950662),
)
"""dat.hackshaw1998: log odds ratios of lung cancer with a spouse who smokes, in 37 studies, as metafor has them."""


@dataclass(frozen=True)
class Expected:
    """What metafor gives: `rma(yi, vi, method="REML", test="adhoc")`, and `predict` of it."""

    mean: float
    error: float
    interval: tuple[float, float]
    tau_squared: float
    i2: float
    q: float
    q_p: float
    prediction: tuple[float, float]


def _log_risk_ratios() -> tuple[list[float], list[float]]:
    effects = [math.log(a / (a + b) / (c / (c + d))) for a, b, c, d in BCG]
    return effects, [1 / a - 1 / (a + b) + 1 / c - 1 / (c + d) for a, b, c, d in BCG]


PUBLISHED = {
    "bcg": (
        _log_risk_ratios(),
        Expected(
            *(-0.714532342, 0.180791744, (-1.10844371, -0.320620971), 0.313243258, 92.2213845, 152.233008),
            *(1.99676459e-26, (-1.99601683, 0.56695215)),
        ),
    ),
    "raudenbush1985": (
        (EXPECTANCY, EXPECTANCY_VARIANCES),
        Expected(
            *(0.0837012419, 0.0615793195, (-0.0456721076, 0.213074591), 0.0188182881, 41.8466702, 35.8295363),
            *(0.00741931325, (-0.232208564, 0.399611048)),
        ),
    ),
    # Here the factor would be below 1: with test="knha" the error is 0.0461686764.
    "hackshaw1998": (
        (SMOKE, SMOKE_VARIANCES),
        Expected(
            *(0.218889232, 0.049395534, (0.118710445, 0.319068018), 0.022394531, 29.5693829, 47.4979458),
            *(0.0951623187, (-0.100717083, 0.538495546)),
        ),
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_examples_have_the_figures_of_metafor(name: str) -> None:
    (effects, variances), expected = PUBLISHED[name]
    found = random_effects(effects, variances)
    known = (found.mean, found.error, found.tau**2, found.i2, found.q, found.q_p)
    told = (expected.mean, expected.error, expected.tau_squared, expected.i2, expected.q, expected.q_p)
    assert known == pytest.approx(told, rel=2e-7)
    assert found.interval() == pytest.approx(expected.interval, rel=2e-7)
    assert found.prediction(0.0) == pytest.approx(expected.prediction, rel=2e-7)


def test_fewer_than_three_runs_have_no_answer() -> None:
    with pytest.raises(ValueError, match="takes 3 of them"):
        random_effects([1.0] * (FEWEST_RUNS - 1), [1.0] * (FEWEST_RUNS - 1))


def test_runs_that_agree_have_no_spread_and_the_factor_is_not_below_one() -> None:
    found = random_effects([0.1, 0.1, 0.1, 0.1], [0.04] * 4)
    assert (found.mean, found.tau, found.q, found.i2, found.q_p) == pytest.approx((0.1, 0.0, 0.0, 0.0, 1.0))
    assert found.error == pytest.approx(0.1), "that of four equal variances, though no run differs from another"


def test_runs_without_any_variance_of_their_own_give_the_interval_of_one_more_reading() -> None:
    values = [9.8, 10.1, 10.4, 9.9, 10.0]
    found = random_effects(values, [0.0] * 5)
    middle, half = mean(values), stats.t.ppf(0.975, 4) * standard_deviation(values) * math.sqrt(1 + 1 / 5)
    assert found.prediction(0.0) == pytest.approx((middle - half, middle + half))


def test_equal_runs_without_variance_are_all_there_is() -> None:
    found = random_effects([0.2] * 3, [0.0] * 3)
    assert found.interval() == pytest.approx((0.2, 0.2))


@pytest.mark.parametrize("seed", range(20))
def test_the_spread_has_the_largest_restricted_likelihood(seed: int) -> None:
    draw = random.Random(seed)
    variances = [draw.uniform(0.5, 2.0) for _ in range(6)]
    effects = [draw.gauss(0.0, 1.5) for _ in variances]
    found = random_effects(effects, variances)

    def likelihood(tau: float) -> float:
        weights = [1 / (one + tau**2) for one in variances]
        middle = sum(w * y for w, y in zip(weights, effects, strict=True)) / sum(weights)
        squares = sum(w * (y - middle) ** 2 for w, y in zip(weights, effects, strict=True))
        return sum(map(math.log, weights)) / 2 - math.log(sum(weights)) / 2 - squares / 2

    best = likelihood(found.tau)
    assert all(likelihood(tau / 100) <= best + 1e-9 for tau in range(600))


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_a_change_of_unit_changes_nothing_else(factor: float) -> None:
    effects, variances = _log_risk_ratios()
    one, other = (
        random_effects(effects, variances),
        random_effects([factor * effect for effect in effects], [factor**2 * variance for variance in variances]),
    )
    assert other.mean == pytest.approx(factor * one.mean)
    assert other.tau == pytest.approx(factor * one.tau)
    assert (other.q, other.i2) == pytest.approx((one.q, one.i2))


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 12, 50])
@pytest.mark.parametrize("value", [0.0, 0.3, 3.84, 20.0, 152.0])
def test_chi_square_is_scipys(freedom: int, value: float) -> None:
    assert chi_square_p(value, freedom) == pytest.approx(stats.chi2.sf(value, freedom), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("freedom", [1, 2, 3, 9, 40])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99, 1 - 0.05 / 30])
def test_students_t_is_scipys_at_every_confidence(freedom: int, confidence: float) -> None:
    assert student_t(freedom, confidence) == pytest.approx(stats.t.ppf((1 + confidence) / 2, freedom), rel=1e-9)


def _one(effects: Sequence[float], variances: Sequence[float]) -> tuple[float, float, float]:
    found = random_effects(effects, variances)
    return found.mean, found.error, found.tau**2


def test_what_is_simulated_is_what_is_used() -> None:
    draw = np.random.default_rng(3)
    effects, variances = draw.normal(size=(40, 5)), draw.uniform(0.3, 1.5, size=(40, 5))
    many = pooled(effects, variances)
    for place in range(40):
        known = _one([*map(float, effects[place])], [*map(float, variances[place])])
        assert known == pytest.approx((many.mean[place], many.error[place], many.tau_squared[place]), abs=1e-6)


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("unequal", [False, True])
def test_another_runs_figure_lies_where_it_is_said_to(runs: int, spread: float, unequal: bool) -> None:
    assert coverage(runs, spread, tries=4_000, unequal=unequal).shown > 93


@pytest.mark.parametrize("unequal", [False, True])
def test_with_few_blocks_the_interval_of_the_mean_covers_what_is_said(unequal: bool) -> None:
    def least(blocks: int) -> float:
        return min(
            coverage(runs, spread, blocks=blocks, tries=4_000, unequal=unequal).mean
            for runs in RUNS
            for spread in SPREADS
        )

    assert LEAST_COVERAGE - 1 < least(2) < 93
    assert least(ENOUGH_BLOCKS) > 92.5


@pytest.mark.exhaustive
def test_the_page_has_the_table_that_is_simulated() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == current(page), "run `python -m tests.analysis.coverage_page`"
