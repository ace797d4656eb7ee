"""The order of a run's cells: random in each repeat, the same for the same seed, as written where that is asked for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.plan.bad_scenarios import GOOD
from tests.plan.test_planning import HOST
from vmlab.analysis.comparison.gate import Condition
from vmlab.analysis.comparison.repeats_needed import gate_needed, repeats_needed
from vmlab.analysis.statistics.sample_size import readings_needed
from vmlab.cli.plan_text import plan_document, plan_text
from vmlab.model.errors import UsageError
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import load, read
from vmlab.plan.terms import Overrides, Plan

SIX = f"{GOOD}axes: {{tiles: [1, 2, 3], cache: [none, writeback]}}\n"
CLAIMED = """\
reference:
  source: '"A publication"'
  host: a machine
  claims: [{say: faster, source: ours, less: [{tiles: 1, cache: none}, {tiles: 1, cache: writeback}]}]
"""


def plan(text: str, **overrides: Any) -> Plan:
    return make_plan(read(Path("x.yaml"), text), Overrides(**{"size": "full", **overrides}), HOST)


def order(made: Plan, repeat: int) -> list[tuple[object, ...]]:
    return [tuple(cell.axes.values()) for cell in made.cells if cell.repeat == repeat]


def test_each_repeat_has_every_cell_once_in_an_order_of_its_own() -> None:
    made = plan(f"{SIX}repeats: 8\n")
    assert [cell.repeat for cell in made.cells] == [repeat for repeat in range(1, 9) for _ in range(6)]
    assert [cell.index for cell in made.cells] == list(range(1, 49))
    orders = [order(made, repeat) for repeat in range(1, 9)]
    assert {frozenset(one) for one in orders} == {frozenset(orders[0])}
    assert len({tuple(one) for one in orders}) == 8


def test_the_seed_decides_the_order_and_reproduces_it() -> None:
    orders = [order(plan(SIX, seed=seed), 1) for seed in (7, 8, 7)]
    assert orders[0] == orders[2] != orders[1]


def test_every_cell_is_first_about_equally_often() -> None:
    first = Counter(order(plan(SIX, seed=seed), 1)[0] for seed in range(300))
    # 50 each are expected, with a deviation of 6.5.
    assert len(first) == 6
    assert all(25 < count < 75 for count in first.values())


def test_cells_keep_their_order_to_each_other_where_others_are_left_out() -> None:
    some = [point for point in order(plan(SIX), 1) if point[0] != 2]
    assert order(plan(SIX, tiles=(1, 3)), 1) == some


def test_a_scenario_or_an_option_may_ask_for_the_order_as_written() -> None:
    as_written = [(tiles, cache) for tiles in (1, 2, 3) for cache in ("none", "writeback")]
    assert order(plan(f"{SIX}order: as written\n"), 1) == as_written
    assert order(plan(SIX, sets=("order=as written",)), 1) == as_written


def test_the_tile_is_random_where_it_is_repeated_and_as_written_where_people_watch() -> None:
    full = make_plan(load("tile"), Overrides(size="full"), HOST)
    demo = make_plan(load("tile"), Overrides(tiles=(1, 2)), HOST)
    assert full.scenario.order == "random"
    assert order(demo, 1) == [(1, "none"), (1, "writeback"), (2, "none"), (2, "writeback")]


def test_a_warm_up_is_the_first_cell_once_more_and_ahead() -> None:
    made = plan(f"{SIX}warm_up: true\nrepeats: 2\n")
    assert [cell.repeat for cell in made.cells] == [0, *[1] * 6, *[2] * 6]
    assert made.cells[0].axes == made.cells[1].axes


def test_until_plans_all_repeats_that_there_may_be() -> None:
    made = plan(f"{SIX}until: 2 %\n")
    assert made.scenario.until is not None
    assert made.scenario.until.model_dump() == {
        "spread": 2.0,
        "looks": None,
        "looks_at": None,
        "time": None,
        "at_least": 5,
        "at_most": 20,
    }
    assert (len(made.cells_at_least), len(made.cells)) == (30, 120)
    text = plan_text(made, HOST)
    assert "cells    30 to 120 (repeats go on until every metric is known to ± 2 %, 5 to 20), one after another" in text
    body = plan_document(made, HOST, None)["plan"]
    assert body["until"] == {"spread_percent": 2.0, "looks": None, "at_least": 5, "at_most": 20}
    assert (body["cells_at_least"], len(body["cells"]), body["order"]) == (30, 120, "random")


def test_looks_are_the_bounds_of_the_repeats() -> None:
    made = plan(f"{SIX}until: {{looks: [2, 3, 4]}}\n{CLAIMED}")
    assert (len(made.cells_at_least), len(made.cells)) == (12, 24)
    words = "cells    12 to 24 (repeats go on until every claim has an answer, analysed after 2, 3, 4), one after"
    assert words in plan_text(made, HOST)
    until = plan_document(made, HOST, None)["plan"]["until"]
    assert until == {"spread_percent": None, "looks": [2, 3, 4], "at_least": 2, "at_most": 4}


def test_a_scenario_without_claims_is_looked_at_by_its_table() -> None:
    until = "until: {looks: [10, 14, 18, 24]}\n"
    made = plan(f"{SIX}{until}")
    assert (len(made.cells_at_least), len(made.cells)) == (60, 144)
    words = "60 to 144 (repeats go on until every difference of the table is proven, analysed after 10, 14, 18, 24, "
    assert f"{words}each time at 1.25 %), one after" in plan_text(made, HOST)
    body = plan_document(made, HOST, None)["plan"]
    assert body["until"]["looks_at"] == "table" and body["until"]["looks"] == [10, 14, 18, 24]
    needed = repeats_needed(made.scenario)
    assert needed.difference == readings_needed(4 * needed.figures) == body["repeats_needed"]["difference"]
    once = plan(f"{SIX}until: {{looks: [12]}}\n")
    assert "72 (the table is analysed once, after 12 repeats), one after" in plan_text(once, HOST)
    early = plan(f"{SIX}until: {{looks: [4, 12]}}\n")
    assert f"takes {readings_needed(2 * needed.figures)} at least (a first analysis after " in plan_text(early, HOST)


def test_a_gate_on_a_table_that_is_looked_at_takes_as_many_repeats_as_its_level_does() -> None:
    asked = [Condition.parse("run_time > +5 %")]
    (fixed,), (of_looks,) = (
        gate_needed(plan(f"{SIX}{counts}\n"), asked) for counts in ("repeats: 9", "until: {looks: [10, 14, 18, 24]}")
    )
    assert fixed.repeats is not None and of_looks.repeats is not None
    assert (of_looks.repeats - fixed.repeats, of_looks.runs) == (2, fixed.runs), "two repeats more are a quarter of p"


def test_a_scenario_with_claims_is_looked_at_by_its_table_where_it_says_so() -> None:
    for looks_at in ("table", "claims"):
        made = plan(f"{SIX}until: {{looks: [9, 12], looks_at: {looks_at}}}\n{CLAIMED}")
        assert made.scenario.until is not None and made.scenario.until.looks_at == looks_at
        assert made.scenario.table_looks == (2 if looks_at == "table" else 1)


def test_a_control_run_has_as_many_repeats_as_the_first_look_and_looks_at_no_claims() -> None:
    made = plan(f"{SIX}until: {{looks: [9, 12]}}\n{CLAIMED}", control=True)
    assert (made.scenario.until, made.scenario.repeats, made.cells[-1].repeat) == (None, 9, 9)


def test_a_number_of_repeats_and_a_spread_take_each_others_place() -> None:
    until = "until: {spread: 1 %, at_least: 3, at_most: 4}\n"
    assert len(plan(f"{SIX}{until}", repeats=2).cells) == 12
    assert len(plan(f"{SIX}repeats: 2\n", sets=("until={spread: 1 %, at_most: 7}",)).cells) == 42
    sized = f"{SIX}{until}sizes: {{smoke: {{repeats: 1, order: as written}}}}\n"
    assert len(plan(sized, size="smoke").cells) == 6
    assert len(plan(sized).cells) == 24


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "until: 2 %\nrepeats: 3",
            ":8:1: `until` and `repeats` exclude each other; `at_least` of",
        ),
        ("until: 2", ":8:1: until.spread: needs a number of percent, such as 25 %, not 2"),
        ("until: 0 %", ":8:1: until.spread: must be more than 0 %, not '0 %'"),
        ("until: {spread: 2 %, at_least: 9, at_most: 8}", ":8:8: until: needs `at_least` no greater than `at_most`"),
        ("until: {spread: 2 %, looks: [3]}", ":8:8: until: needs `spread` or `looks`, and not both"),
        ("until: {at_most: 9}", ":8:8: until: needs `spread`, `looks` or `time`"),
        ("until: {looks: [7, 7]}", ":8:8: until: needs numbers of `looks` that rise"),
        ("until: {looks: [7, 9], at_most: 8}", ":8:8: until: has `at_least` and `at_most` by its `looks`: leave them"),
        ("until: {looks: [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}", ":8:16: until.looks: "),
        ("until: {looks: [2, 3], looks_at: claims}", ":8:16: `looks` at claims needs a `reference` with claims"),
        (
            "until: {looks: [2, 3], looks_at: tables}",
            ":8:34: until.looks_at: must be 'claims' or 'table', not 'tables'",
        ),
        ("until: {spread: 2 %, looks_at: table}", ":8:8: until: has `looks_at` beside `looks` alone"),
        ("until: {spread: 2 %, most: 8}", ":8:22: unknown key 'most' in until; did you mean 'at_most'?"),
        ("order: backwards", ":8:8: order: must be 'random' or 'as written', not 'backwards'"),
        ("warm_up: 2", ":8:10: warm_up: needs true or false, not 2"),
        ("until: {spread: 2 %, at_most: 400}", ":8:8: 400 repeats of 6 cells are 2400; at most 2000 are allowed"),
    ],
)
def test_what_is_wrong_with_repeats_and_order_is_one_line(text: str, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(f"{SIX}{text}\n")
    assert str(caught.value).startswith(f"x.yaml{line}")
    assert len(caught.value.lines()) == 1


def test_a_table_with_nothing_to_compare_is_not_looked_at() -> None:
    with pytest.raises(UsageError, match=":7:16: `looks` at a table needs an axis with two values"):
        plan(f"{GOOD}until: {{looks: [10, 14]}}\n")
