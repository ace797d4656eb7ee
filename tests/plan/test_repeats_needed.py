"""How many repeats a question takes is told before it runs: in the plan, and beside what was published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.plan.test_planning import HOST
from tests.plan.test_points import GUESTS
from vmlab.analysis.comparison.repeats_needed import repeats_needed, with_enough_repeats
from vmlab.cli.main import command_line
from vmlab.cli.plan_text import plan_document, plan_text
from vmlab.model.errors import ExitCode, UsageError
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import load, read
from vmlab.plan.terms import FOR_CLAIMS, Overrides, Plan

KVM = replace(HOST, cpus=4, accelerator_guess="kvm")
THREADS = f"{GUESTS}axes: {{threads: {{values: [1, 2], sets: workloads.job.threads}}}}\n"


def _plan(text: str, **asked: int) -> Plan:
    return make_plan(read(Path("x.yaml"), text), Overrides(size="full", seed=1, **asked), HOST)  # type: ignore[arg-type]


def _repeats(plan: Plan) -> list[str]:
    """The lines of a plan that say what its repeats can prove."""
    lines = plan_text(plan, HOST).splitlines()
    found = next((place for place, line in enumerate(lines) if line.startswith("repeats")), len(lines))
    return [line for line in lines[found : found + 2] if line.startswith(("repeats", "     "))]


def _least(figures: int) -> int:
    """By hand: n repeats that all agree have a p of 2 / 2ⁿ, which must be 5 % of as many figures at most."""
    return next(count for count in range(1, 30) if 2 / 2**count <= 0.05 / figures)


def test_a_plan_says_how_many_repeats_it_takes_to_prove_anything() -> None:
    # The run time and the total wall clock.
    line = "repeats  1; to prove a difference in one of 2 metrics takes 7 at least"
    assert _repeats(_plan(THREADS)) == [f"{line} (--repeats 7)"]
    assert _repeats(_plan(THREADS, repeats=7)) == [line.replace("1;", "7;")]


def test_a_plan_that_compares_nothing_says_nothing() -> None:
    assert _repeats(_plan(GUESTS)) == []


@pytest.mark.parametrize(("modes", "told"), [("none, writeback", False), ("none, writethrough", True)])
def test_guests_that_may_be_frozen_in_two_ways_take_cold_as_well(modes: str, told: bool) -> None:
    text = f"{GUESTS}axes: {{cache: [{modes}]}}\n"
    assert (len(_repeats(_plan(text))) == 2) is told
    assert len(_repeats(_plan(f"{text}provision: cold\n"))) == 1


@pytest.mark.parametrize("name", ["tile-backing", "network-classic", "cpu-priority"])
def test_claims_have_a_number_of_their_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = load(name).scenario
    assert scenario.reference is not None
    needed = repeats_needed(scenario)
    assert needed.difference == _least(needed.figures)
    assert needed.claims == tuple(_least(claim.comparisons) for claim in scenario.reference.claims)
    plan = make_plan(load(name), Overrides(size="smoke", seed=1), KVM)
    assert not plan.unanswerable
    words = " to ".join(map(str, dict.fromkeys((min(needed.claims), max(needed.claims)))))
    assert f", to answer its claims {words} (--repeats {max(needed.difference, *needed.claims)})" in "".join(
        _repeats(plan)
    )
    assert plan_document(plan, HOST, None)["plan"]["repeats_needed"]["claims"] == list(needed.claims)

    assert command_line(["show", name, "--reference"]) == 0
    shown = capsys.readouterr().out
    assert [int(part.split()[0]) for part in shown.split("an answer takes ")[1:]] == list(needed.claims)


def test_repeats_for_claims_are_looked_at_three_times_and_leave_out_what_no_claim_names() -> None:
    file = load("cpu-overhead")
    overrides = with_enough_repeats(Overrides(size="smoke", repeats="claims"), file.scenario)
    made = make_plan(file, overrides, KVM)
    assert file.scenario.reference is not None
    # By hand: n repeats that agree have a p of 2 / 2^n, at a third of 5 % over as many comparisons.
    first = _least(3 * max(claim.comparisons for claim in file.scenario.reference.claims))
    assert overrides.looks == (first, -(-3 * first // 2), 2 * first)
    assert made.cells_at_least[-1].repeat == first
    assert made.cells[-1].repeat == 2 * first
    claimed = {(cell.axes["setup"], cell.axes["threads"]) for cell in made.cells}
    every = {(cell.axes["setup"], cell.axes["threads"]) for cell in make_plan(file, Overrides(size="full"), HOST).cells}
    assert {setup for setup, _ in claimed} == {"node", "vm"}
    assert claimed < every


def test_one_look_at_claims_comes_after_one_repeat_more_than_the_fewest_of_the_same_cells() -> None:
    file = load("cpu-overhead")
    once, thrice = (
        make_plan(file, with_enough_repeats(Overrides(size="smoke", repeats=word), file.scenario), KVM)
        for word in FOR_CLAIMS[::-1]
    )
    # By hand: its one claim has four comparisons, and 8 repeats that agree have a p of 2 / 2^8 < 5 % / 4; one more is
    # to spare.
    assert once.scenario.until is not None and once.scenario.until.looks == (9,)
    assert once.cells_at_least == once.cells and once.cells[-1].repeat == 9
    assert {tuple(cell.axes.items()) for cell in once.cells} == {tuple(cell.axes.items()) for cell in thrice.cells}
    assert "(claims are analysed once, after 9 repeats)" in plan_text(once, HOST)


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        (Overrides(repeats="claims-once", control=True), "--repeats claims-once: a control run answers no claims"),
        (Overrides(repeats="claims-once"), "--repeats claims-once: cache-modes has no claims"),
        (Overrides(repeats="claims", control=True), "--repeats claims: a control run answers no claims"),
        (Overrides(repeats="claims"), "--repeats claims: cache-modes has no claims"),
    ],
)
def test_repeats_for_claims_are_refused_where_there_is_nothing_to_answer(overrides: Overrides, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        with_enough_repeats(overrides, load("cache-modes").scenario)


def test_what_makes_a_run_for_each_number_of_tiles_refuses_repeats_for_claims(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        command_line(["scale", "tile", "--size", "smoke", "--max-tiles", "1", "--repeats", "claims"]) == ExitCode.USAGE
    )
    assert "--repeats claims is for `vmlab run` and `vmlab plan`" in capsys.readouterr().err
