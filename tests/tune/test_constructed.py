"""The constructed cases: each can be tuned, fits into its time by the plan, and is judged by what is best."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.plan.test_planning import HOST
from tests.tune.constructed import MOST_SECONDS, Attempt, best_of, cases
from vmlab.analysis.comparison.tuned import USUAL_REPEATS
from vmlab.plan.planning import load_valid, make_plan
from vmlab.plan.terms import Overrides
from vmlab.plan.tuning.tuning_scenarios import TuningRequest, plan_screening


@pytest.mark.parametrize("name", cases())
def test_each_case_fits_and_has_its_levers(name: str) -> None:
    path = cases()[name]
    screening = plan_screening(load_valid(str(path)), Overrides(), 2, TuningRequest())
    plan = make_plan(screening.file, Overrides(), replace(HOST, cpus=2))
    assert best_of(path) <= screening.note.levers.keys()
    assert plan.seconds * (1 + 3 * USUAL_REPEATS / len(plan.cells)) <= MOST_SECONDS
    assert plan.scenario.host.disk == "hdd-7200"


def document(winner: str | None, levers: list[str], *, undecided: bool = False) -> dict[str, Any]:
    return {"winner": winner, "undecided": undecided, "settings": [{"setting": "a", "levers": levers}]}


@pytest.mark.parametrize(
    ("body", "best", "found"),
    [
        (document("a", ["cache"]), {"cache"}, True),
        (document("a", ["cache", "queues"]), {"cache"}, True),
        (document("a", ["queues"]), {"cache"}, False),
        (document(None, ["cache"]), {"cache"}, False),
        (document(None, ["cache"]), set(), True),
        (document("a", ["cache"]), set(), False),
        (document(None, [], undecided=True), set(), False),
        (None, set(), False),
    ],
)
def test_an_attempt_is_judged_by_the_levers_that_matter(
    body: dict[str, Any] | None, best: set[str], found: bool
) -> None:
    assert Attempt("case", body, 0, 1.0).found(frozenset(best)) is found
