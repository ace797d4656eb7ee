"""Looking at a run's claims several times while it goes on keeps its promise of few wrong answers."""

from __future__ import annotations

import random

import pytest

from vmlab.analysis.statistics.rank_test import signed_rank
from vmlab.analysis.statistics.sample_size import ALPHA, LOOKS_AT_CLAIMS, planned_looks, readings_needed

RUNS = 1500


def _wrong(alpha: float, looks: tuple[int, ...]) -> float:
    """In how many runs an interval does not have the true difference of 0 in it at one look at least; a claim whose
    bound is 0 is then answered, and the answer is a matter of chance."""
    draw, wrong = random.Random(7), 0
    for _ in range(RUNS):
        readings = [draw.gauss(0.0, 1.0) for _ in range(looks[-1])]
        found = (signed_rank(readings[:look]).interval(alpha) for look in looks)
        wrong += any(interval is not None and not interval[0] <= 0.0 <= interval[1] for interval in found)
    return wrong / RUNS


def test_three_looks_err_in_one_run_of_twenty_at_most() -> None:
    assert _wrong(ALPHA / LOOKS_AT_CLAIMS, planned_looks()) <= ALPHA


@pytest.mark.parametrize("comparisons", [1, 4, 12])
def test_one_look_after_the_fewest_repeats_errs_as_seldom(comparisons: int) -> None:
    alpha = ALPHA / comparisons
    assert _wrong(alpha, (readings_needed(comparisons),)) <= alpha


def test_undivided_they_would_err_more_often() -> None:
    assert _wrong(ALPHA, planned_looks()) > ALPHA


@pytest.mark.parametrize("figures", [1, 4, 16])
def test_the_first_look_is_the_earliest_at_which_there_is_an_answer(figures: int) -> None:
    first, second, last = planned_looks(figures)
    assert first == readings_needed(LOOKS_AT_CLAIMS * figures)
    assert first < second < last == 2 * first
