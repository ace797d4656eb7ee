"""Plans of loops: what they last, and what is refused before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vmlab.cli.main import command_line
from vmlab.model.checked import made
from vmlab.model.errors import UsageError
from vmlab.model.jsonable import jsonable
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.workloads.registry import kinds

GIB = 2**30
FACTS = HostFacts(16 * GIB, 16 * GIB, 2**40, 4, "kvm")
JOB = """name: job
guests: {vm: {memory: 960 MiB}}
workloads: {job: {kind: cpu, on: vm, threads: 1}}
repeats: 3
warm_up: true
axes: {cache: [none, writeback]}
"""


def planned(overrides: Overrides, text: str = JOB) -> Plan:
    return make_plan(read(Path("job.yaml"), text), overrides, FACTS)


def test_each_cell_of_a_loop_runs_once_and_lasts_as_long_as_it_is_told() -> None:
    usual, looped = planned(Overrides(size="full")), planned(Overrides(size="full", loop=60.0))
    assert (usual.loop, looped.loop) == (None, 60.0)
    assert sorted((cell.axes["cache"], cell.repeat) for cell in looped.cells) == [("none", 1), ("writeback", 1)]
    assert looped.cells[0].seconds == usual.cells[-1].seconds + 60.0
    assert len(usual.cells) > 2


def test_what_is_asked_for_survives_the_way_to_the_runner() -> None:
    overrides = Overrides(size="full", loop=60.0)
    assert made(Overrides, jsonable(overrides)) == overrides


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (Overrides(size="full", loop=60.0, control=True), "--loop and --control exclude each other"),
        (Overrides(size="full", loop=60.0, repeats=2), "--loop and --repeats exclude each other"),
    ],
)
def test_what_only_readings_have_is_refused(overrides: Overrides, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        planned(overrides)


def test_a_workload_that_cannot_start_again_is_named_with_those_that_can() -> None:
    text = JOB.replace("{kind: cpu, on: vm, threads: 1}", "{kind: fio, on: vm, rw: read, size: 1 MiB}")
    assert not kinds()["fio"].loops
    with pytest.raises(UsageError, match=r"job is of kind fio, which cannot start again .* is for cpu, fileco"):
        planned(Overrides(size="full", loop=60.0), text)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["--loop", "tile"], "put --loop after the scenario, or give it a time, as --loop=10min"),
        (["tile", "--loop=0 s"], "must be more than 0 and at most 4 h"),
        (["tile", "--loop=5h"], "must be more than 0 and at most 4 h"),
        (["tile", "--loop=ten"], "put --loop after the scenario"),
    ],
)
def test_a_time_that_is_none_is_told(said: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["plan", *said]) == 2
    assert words in capsys.readouterr().err


def test_without_a_time_it_is_half_an_hour(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line(["plan", "tile", "--size", "smoke", "--cache", "none", "--loop", "--json"]) == 0
    looped = capsys.readouterr().out
    assert command_line(["plan", "tile", "--size", "smoke", "--cache", "none", "--json"]) == 0
    usual = capsys.readouterr().out
    assert json.loads(looped)["plan"]["loop_seconds"] == 1800.0
    assert json.loads(usual)["plan"]["loop_seconds"] is None
    assert json.loads(looped)["plan"]["estimated_seconds"] - json.loads(usual)["plan"][
        "estimated_seconds"
    ] == pytest.approx(1800.0)
