"""Beside a claim without an answer stands how many repeats would be needed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.experiments.records import shipped
from tests.experiments.would_take import would_take
from vmlab.analysis.figures.pairing import ONE_SNAPSHOT
from vmlab.model.scenarios.reference import Claim

pytestmark = pytest.mark.xdist_group("experiments")


def _claim(kind: str) -> Claim:
    """The first claim of a shipped scenario that is of a kind."""
    return next(
        one for name in ("tile", "memory-overbooking") for one in shipped(name).scenario.claims if one.kind == kind
    )


def _body(difference: tuple[float | None, list[float] | None], readings: int = 6) -> dict[str, Any]:
    percent, interval = difference
    found = {"because": "", "percent": percent, "interval_percent": interval, "readings": readings}
    comparison = {"answer": "cannot tell", "level": None, "difference": found}
    return {"comparisons": [comparison], "readings_needed": 6}


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        # By hand: 0.9 (0.8 to 1.0125) lies log 0.9 below the bound of 1 and reaches log 1.125 beyond itself on either
        # side; (0.11778 / 0.10536)^2 is 1.2497, and 6 repeats times that are 7.5.
        ((-10.0, [-20.0, 1.25]), "some 8 repeats would be needed, if estimate and spread stay"),
        ((-10.0, None), "6 repeats at least would be needed"),
        ((-0.001, [-20.0, 25.0]), "more than 1000 repeats would be needed, as the estimate lies at the bound"),
        ((0.0, [-20.0, 25.0]), "more than 1000 repeats would be needed, as the estimate lies at the bound"),
        ((None, None), ""),
    ],
)
def test_the_repeats_follow_from_the_interval(difference: tuple[float | None, list[float] | None], words: str) -> None:
    claim = next(one for one in shipped("tile-disk").scenario.claims if one.kind == "less" and not one.by)
    assert would_take(claim, _body(difference)) == words


def test_a_figure_by_itself_is_held_against_its_bound() -> None:
    level = {"estimate": 8.0, "interval": [6.4, 10.0], "bound": 9.0, "readings": 8}
    comparison = {"answer": "cannot tell", "level": level, "difference": {"percent": None}}
    # (log 1.25 / log 1.125)^2 is 3.589, times 8 repeats.
    body = {"comparisons": [comparison], "readings_needed": 6}
    assert would_take(_claim("at_most"), body) == "some 29 repeats would be needed, if estimate and spread stay"


def test_where_one_of_several_comparisons_has_no_figures_repeats_do_not_help() -> None:
    body = _body((-10.0, [-20.0, 1.25]))
    body["comparisons"] += _body((None, None))["comparisons"]
    assert would_take(_claim("less"), body) == ""


def test_repeats_from_one_snapshot_a_side_do_not_help() -> None:
    body = _body((40.5, None))
    body["comparisons"][0]["difference"]["because"] = ONE_SNAPSHOT
    assert would_take(_claim("less"), body) == "guests booted for each repeat (`--cold`) would be needed"
