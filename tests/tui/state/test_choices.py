"""What is chosen in the console is planned as the same values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.plan.test_planning import HOST
from vmlab.model.run import AxisValue
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.tui.widgets.tables.choice_form import choices_of, overrides_of

SCENARIO = """\
name: primes
guests: {vm: {vcpus: 2, memory: 512 MiB, queues: 1}}
workloads:
  one: {kind: cpu, on: host, threads: 1}
axes:
  place: {values: [host, vm], sets: workloads.one.on}
  threads: {values: [1, 4], sets: workloads.one.threads}
"""


@pytest.mark.parametrize(("axis", "value"), [("place", "host"), ("threads", 4)])
def test_a_chosen_value_of_an_axis_is_planned(axis: str, value: AxisValue) -> None:
    file = read(Path("x.yaml"), SCENARIO)
    choices = tuple(
        replace(each, chosen=(value,), touched=True) if each.name == axis else each
        for each in choices_of(file.scenario, file.scenario, "full")
    )
    cells = make_plan(file, overrides_of(choices), HOST).cells
    assert {cell.axes[axis] for cell in cells} == {value}


def test_points_are_chosen_by_their_names() -> None:
    text = SCENARIO.partition("axes:")[0] + (
        "axes: {setup: {values: [b], points: {a: {queues: 2}, b: {}, c: {absent: not here}}}}\n"
    )
    file = read(Path("x.yaml"), text)
    choices = choices_of(file.scenario, file.scenario, "full")
    setup = next(each for each in choices if each.name == "setup")
    assert (setup.values, setup.chosen) == (("a", "b", "c"), ("b",))
    more = tuple(each.toggled("a").toggled("c") if each is setup else each for each in choices)
    made = make_plan(file, overrides_of(more), HOST)
    assert sorted(str(cell.axes["setup"]) for cell in made.cells) == ["a", "b"]
    assert [str(one) for one in made.absent] == ["setup c is absent: not here"]
