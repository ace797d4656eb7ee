"""Cells that are measured again because they were invalid: what choosing by validity does to differences.

A cell's time is what it takes alone, times its own noise, times one and the share of the CPUs that other load took
meanwhile. Above the limit it is invalid and is measured again, until it is valid or the run has no attempts left; the
last attempt counts if it is valid, and its repeat is left out for that figure if it is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from vmlab.analysis.statistics.rank_test import signed_rank
from vmlab.analysis.statistics.sample_size import ALPHA

BLOCKS, RUNS = 8, 2_000
LIMIT = 0.20
"""A cell is invalid if other load takes more of the CPUs."""
AGAIN = max(2, 2 * BLOCKS // 4)
"""So many cells of a run are measured again at most."""
OWN = 0.03
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Bursts:
    """Other load: bursts of `seconds` that take half of the CPUs, so many a second, in addition to a steady share that
    varies from attempt to attempt. `unrelated` is a chance of being invalid that has nothing to do with time."""

    a_second: float = 1 / 60
    seconds: float = 12.0
    steady: float = 0.03
    unrelated: float = 0.0

    def shares(self, draw: np.random.Generator, lengths: Values) -> Values:
        """What load takes of the CPUs during attempts of these lengths; a burst may lie in part outside."""
        count = draw.poisson(self.a_second * (lengths + self.seconds))
        inside = np.minimum(self.seconds, lengths) * draw.uniform(0.25, 1.0, lengths.shape)
        return np.minimum(0.9, draw.exponential(self.steady, lengths.shape) + 0.5 * count * inside / lengths)


@dataclass(frozen=True)
class Outcome:
    """Of many runs: how often a difference was proven, its estimate without a limit, with one, and with the limit and
    cells measured again, and how much slower than alone the baseline's cells are, in percent; the pairs that
    a run has, and the percentage of first attempts that were invalid."""

    alarms: float
    unlimited: float
    limited: float
    again: float
    level: float
    pairs: float
    invalid: float


def _measured(lengths: tuple[float, float], loads: tuple[Bursts, Bursts], runs: int = RUNS, seed: int = 1) -> Outcome:
    """Runs of two sides whose cells take so many seconds alone, with load on each."""
    draw = np.random.default_rng(seed)
    alone = np.broadcast_to(np.array(lengths)[:, None], (2, BLOCKS))
    alarms, pairs, invalid, estimates, levels = 0, 0, 0, [], []
    for _ in range(runs):
        first = times, valid = _attempt(draw, alone, loads)
        unlimited = times.copy()
        kept, known, left = first[0].copy(), valid.copy(), AGAIN
        while left and not known.all():
            times, valid = _attempt(draw, alone, loads)
            due = np.flatnonzero(~known.ravel())[:left]
            kept.ravel()[due], known.ravel()[due] = times.ravel()[due], valid.ravel()[due]
            left -= len(due)
        invalid += int((~first[1]).sum())
        both, once = known.all(axis=0), first[1].all(axis=0)
        test = signed_rank([float(one) for one in np.log(kept[1] / kept[0])[both]]) if both.any() else None
        alarms += test is not None and test.p_of() <= ALPHA
        pairs += int(both.sum())
        estimates.append([_ratio(unlimited), _ratio(first[0][:, once]), _ratio(kept[:, both])])
        levels.append(float(np.mean(kept[0][known[0]]) / lengths[0]) if known[0].any() else np.nan)
    found = [100 * float(np.expm1(np.nanmean(one))) for one in zip(*estimates, strict=True)]
    level = 100 * (float(np.nanmean(levels)) - 1)
    return Outcome(
        alarms / runs, found[0], found[1], found[2], level, pairs / runs, 100 * invalid / runs / (2 * BLOCKS)
    )


def _attempt(
    draw: np.random.Generator, alone: Values, loads: tuple[Bursts, Bursts]
) -> tuple[Values, npt.NDArray[np.bool_]]:
    shares = np.array([load.shares(draw, lengths) for load, lengths in zip(loads, alone, strict=True)])
    chance = np.array([[load.unrelated] for load in loads])
    return alone * draw.lognormal(0, OWN, alone.shape) * (1 + shares), (shares <= LIMIT) & (
        draw.random(alone.shape) >= chance
    )


def _ratio(times: Values) -> float:
    return float(np.mean(np.log(times[1] / times[0]))) if times.size else float("nan")


QUIET = Bursts(a_second=0.0)
CASES = {
    "validity independent of the figure": ((20.0, 20.0), (Bursts(0.0, unrelated=0.2), Bursts(0.0, unrelated=0.2))),
    "load that slows, alike on both sides": ((20.0, 20.0), (Bursts(), Bursts())),
    "the same, the candidate takes twice as long": ((10.0, 20.0), (Bursts(), Bursts())),
    "load on the candidate alone": ((20.0, 20.0), (QUIET, Bursts())),
}


@pytest.mark.parametrize("case", list(CASES)[:2])
def test_with_load_alike_on_both_sides_there_are_no_more_alarms_and_no_bias(case: str) -> None:
    found = _measured(*CASES[case])
    assert found.alarms <= ALPHA
    assert abs(found.again) < 0.2
    assert found.pairs > BLOCKS - 2


def test_of_a_level_what_load_adds_below_the_limit_remains() -> None:
    found = _measured(*CASES["load that slows, alike on both sides"])
    assert 0 < found.level < 100 * LIMIT


def test_of_load_on_one_side_alone_most_is_gone_and_what_is_below_the_limit_remains() -> None:
    found = _measured(*CASES["load on the candidate alone"])
    assert found.unlimited > 8
    assert 1 < found.again < found.unlimited / 3


def test_where_cells_of_one_side_are_longer_the_limit_meets_the_short_ones_more() -> None:
    found = _measured(*CASES["the same, the candidate takes twice as long"])
    assert 1 < (1 + found.again / 100) / 2 < 1.03


def test_measuring_again_adds_no_bias_to_that_of_the_limit() -> None:
    for lengths, loads in CASES.values():
        found = _measured(lengths, loads)
        assert found.again == pytest.approx(found.limited, abs=0.4)


def test_two_looks_at_a_run_that_lacked_repeats_err_little_more_often() -> None:
    draw, alarms = np.random.default_rng(2), 0
    for _ in range(10 * RUNS):
        differences = [float(one) for one in draw.normal(0, 1, BLOCKS)]
        alarms += any(signed_rank(differences[:count]).p_of() <= ALPHA for count in (BLOCKS - 2, BLOCKS))
    assert ALPHA < alarms / (10 * RUNS) < 0.07
