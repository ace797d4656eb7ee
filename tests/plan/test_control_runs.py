"""The plan of a control run: one point as both sides, and nothing else that differs between them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plan.bad_scenarios import GOOD
from tests.plan.test_planning import HOST, PRIMES
from vmlab.analysis.comparison.repeats_needed import with_enough_repeats
from vmlab.cli.plan_text import plan_document, plan_text
from vmlab.model.checked import made
from vmlab.model.errors import ScenarioError, UsageError
from vmlab.model.jsonable import jsonable
from vmlab.model.run import AxisValue
from vmlab.plan.cell_settings import settings_of
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import load, read
from vmlab.plan.terms import Overrides, Plan

CACHES = f"{GOOD}axes: {{tiles: [1, 2], cache: [none, writeback]}}\n"


def plan(text: str, **overrides: Any) -> Plan:
    """The plan of a control run, as the command line asks for one."""
    file = read(Path("x.yaml"), text)
    asked = Overrides(**{"size": "full", "control": True, **overrides})
    return make_plan(file, with_enough_repeats(asked, file.scenario), HOST)


def point(made: Plan) -> dict[str, AxisValue]:
    """The point that both sides have."""
    points = [{name: value for name, value in cell.axes.items() if name != "side"} for cell in made.cells]
    assert all(one == points[0] for one in points)
    return points[0]


def test_both_sides_are_one_configuration_in_blocks_of_random_order() -> None:
    made = plan(f"{CACHES}order: as written\ntable: {{columns: cache, baseline: writeback}}\n")
    assert made.control
    assert point(made) == {"tiles": 1, "cache": "writeback"}
    blocks = [[cell.axes["side"] for cell in made.cells if cell.repeat == repeat] for repeat in range(1, 8)]
    assert len(made.cells) == 14 and {tuple(block) for block in blocks} == {("A", "B"), ("B", "A")}
    first, second = (next(cell for cell in made.cells if cell.axes["side"] == side) for side in ("A", "B"))
    assert settings_of(first) == settings_of(second)
    assert (first.guests, first.workloads, first.host) == (second.guests, second.workloads, second.host)
    assert list(made.scenario.axes) == ["tiles", "cache", "side"]
    assert (made.table.columns, made.table.baseline) == (("side",), "A")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD, {"cache": "writeback"}),
        (CACHES, {"tiles": 1, "cache": "none"}),
        (
            f"{CACHES}table: {{columns: cache, rows: tiles, metrics: run_time, baseline: 2}}\n",
            {"tiles": 2, "cache": "none"},
        ),
        (
            f"{CACHES}table: {{columns: cache, baseline: {{cache: writeback, tiles: 2}}}}\n",
            {"tiles": 2, "cache": "writeback"},
        ),
        (f"{PRIMES}table: {{columns: workloads, rows: threads, baseline: two}}\n", {"place": "host", "threads": 1}),
        (f"{GOOD}axes: {{how: {{points: {{far: {{absent: not here}}, near: {{cache: none}}}}}}}}\n", {"how": "near"}),
        (
            f"{GOOD}axes:\n  how: {{points: {{all: {{}}, alone: {{without: cache}}}}}}\n  cache: [none, writeback]\n"
            "table: {columns: how, rows: cache, relative: ratio, baseline: {how: alone}}\n",
            {"how": "alone"},
        ),
    ],
)
def test_the_point_is_the_baseline_of_the_table_or_the_first(text: str, expected: dict[str, AxisValue]) -> None:
    assert point(plan(text)) == expected


def test_a_point_of_two_axes_is_fully_named_by_the_shipped_scenarios() -> None:
    file = load("cpu-overhead")
    made = make_plan(file, with_enough_repeats(Overrides(size="smoke", control=True), file.scenario), HOST)
    assert point(made) == {"setup": "node", "threads": 1}
    assert made.scenario.reference is None and file.scenario.reference is not None


@pytest.mark.parametrize(("overrides", "cache"), [({"cache": ("writeback",)}, "writeback"), ({}, "none")])
def test_an_option_may_name_another_point(overrides: dict[str, Any], cache: str) -> None:
    made = plan(f"{CACHES}table: {{columns: cache, baseline: none}}\n", **overrides, sets=("axes.tiles=[2]",))
    assert point(made) == {"tiles": 2, "cache": cache}


@pytest.mark.parametrize(
    ("text", "overrides", "repeats"),
    [
        # One workload and the total wall clock are two figures, which takes seven readings of each side.
        (GOOD, {}, 7),
        (f"{GOOD}repeats: 9\n", {}, 9),
        (GOOD, {"repeats": 3}, 3),
        (GOOD, {"sets": ("repeats=4",)}, 4),
        # Two workloads and the total wall clock are three figures, two metrics of two workloads are four.
        (PRIMES, {}, 7),
        (f"{PRIMES}table: {{columns: threads, rows: metrics, metrics: [latency_avg, latency_p95]}}\n", {}, 8),
    ],
)
def test_there_are_as_many_repeats_as_the_test_needs(text: str, overrides: dict[str, Any], repeats: int) -> None:
    made = plan(text, **overrides)
    assert len(made.cells) == 2 * repeats
    assert [note for note in made.notes if "shows noise from 7 repeats on" in note] == made_notes(made, repeats)


def made_notes(made: Plan, repeats: int) -> list[str]:
    """The note of a run that asks for too few."""
    return [made.notes[0]] if repeats < 7 else []


def test_until_begins_where_the_test_can_say_something() -> None:
    made = plan(f"{GOOD}until: {{spread: 2 %, at_least: 2, at_most: 4}}\n").scenario.until
    assert made is not None and (made.at_least, made.at_most) == (7, 7)
    asked = plan(GOOD, sets=("until={spread: 2 %, at_least: 3, at_most: 5}",)).scenario.until
    assert asked is not None and (asked.at_least, asked.at_most) == (3, 5)


def test_an_option_may_ask_for_the_order_as_written() -> None:
    made = plan(GOOD, sets=("order=as written",))
    assert [cell.axes["side"] for cell in made.cells] == ["A", "B"] * 7


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ({"cache": ("none", "writeback")}, "--cache none,writeback: a control run has one configuration on both sides"),
        ({"tiles": (1, 2)}, "--tiles 1,2: a control run has one configuration on both sides; name one value of tiles"),
        ({"sets": ("axes.tiles=[1, 2]",)}, "--set axes.tiles=[1, 2]: a control run has one configuration"),
    ],
)
def test_an_option_that_asks_for_several_values_is_refused(overrides: dict[str, Any], line: str) -> None:
    with pytest.raises(UsageError) as error:
        plan(CACHES, **overrides)
    assert str(error.value).startswith(line) and "\n" not in str(error.value)


def test_an_axis_of_the_same_name_is_refused_with_its_place() -> None:
    text = f"{GOOD}axes: {{side: {{values: [1, 2], sets: guests.a.vcpus}}}}\n"
    with pytest.raises(ScenarioError, match=r"^x\.yaml:7:8: a control run has an axis side of its own"):
        plan(text)
    assert len(make_plan(read(Path("x.yaml"), text), Overrides(size="full"), HOST).cells) == 2


def test_a_plan_says_that_it_is_a_control_run() -> None:
    made = plan(CACHES)
    assert "\ncontrol  tiles 1, cache none as both sides, A and B, in 7 blocks\n" in plan_text(made, HOST)
    assert plan_document(made, HOST, None)["plan"]["control"] is True
    plain = make_plan(read(Path("x.yaml"), CACHES), Overrides(size="full"), HOST)
    assert "control" not in plan_text(plain, HOST)
    assert plan_document(plain, HOST, None)["plan"]["control"] is False


def test_the_runner_makes_the_same_plan_from_what_is_kept_of_the_request() -> None:
    file = read(Path("x.yaml"), CACHES)
    asked = with_enough_repeats(Overrides(size="full", control=True), file.scenario)
    kept = made(Overrides, json.loads(json.dumps(jsonable(asked))))
    assert make_plan(file, kept, HOST) == make_plan(file, asked, HOST)
    plain = Overrides(size="full")
    assert with_enough_repeats(plain, file.scenario) == plain
