"""`vmlab scale` with real launchers and runners, and cells whose figures the test says."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.lab.faked import CELL_SECONDS, LOAD, MEMORY, SOON, Home, until

SCENARIO = """\
name: load
guests:
  users: {vcpus: 1, memory: 512 MiB}
  front: {role: web, vcpus: 1, memory: 512 MiB}
workloads:
  web: {kind: http, from: users, to: front, requests: 60, pace: 5/s}
axes: {cache: [writeback, none]}
order: as written
targets: {web: {latency_p95: 500 ms}}
"""
GIB = 2**30
ROOMY = {CELL_SECONDS: "0", MEMORY: str(60 * GIB)}


@pytest.fixture
def scenario(home: Home) -> Path:
    path = home.folder / "load.yaml"
    path.write_text(SCENARIO)
    return path


def load(**by_cache: float | str) -> dict[str, str]:
    return {**ROOMY, LOAD: json.dumps(by_cache)}


def scaled(home: Home, scenario: Path, *options: str, **said: str) -> dict[str, Any]:
    """The document of a climb that ends with code 0."""
    code, output, words = home.run("scale", str(scenario), "--until-knee", "--json", *options, **said)
    assert code == 0, words
    document: dict[str, Any] = json.loads(output)
    return document


def test_each_cache_mode_climbs_until_its_own_tiles_miss(home: Home, scenario: Path) -> None:
    document = scaled(home, scenario, **load(none=0.3, writeback=0.2))
    assert document["schema"] == "vmlab.scale/1"
    assert document["scale"]["stopped_by"] == "knee"
    writeback, none = document["places"]
    assert (none["axes"], none["tiles"], none["at_least"]) == ({"cache": "none"}, 1, False)
    assert (writeback["axes"], writeback["tiles"], writeback["at_least"]) == ({"cache": "writeback"}, 2, False)
    assert [step["tiles"] for step in none["steps"]] == [1, 2], "a mode that has missed is not run again"
    assert [step["tiles"] for step in writeback["steps"]] == [1, 2, 3]
    assert document["scale"]["runs"] == [record.name for record in home.records()]
    assert [end["exit_code"] for record in range(3) for end in home.events("RunEnded", record)] == [0, 0, 0]


def test_the_curve_grows_line_by_line_and_ends_with_one_sentence(home: Home, scenario: Path) -> None:
    code, output, words = home.run("scale", str(scenario), "--until-knee", **load(none=0.3, writeback=0.2))
    assert code == 0, words
    lines = output.splitlines()
    assert lines[0] == (
        "load, size full: each tile must deliver web.latency_p95 at most 500 ms, web.delivered_percent at least 95 %"
    )
    rows = [line.split()[:3] for line in lines if "web.latency_p95" in line and "|" in line]
    assert rows == [
        ["1", "cache", "writeback"],
        ["1", "cache", "none"],
        ["2", "cache", "writeback"],
        ["2", "cache", "none"],
        ["3", "cache", "writeback"],
    ]
    assert "MISSED: web.latency_p95 600.0 ms in tile 1 (at most 500 ms)" in output
    assert lines[-1].startswith("this host carries 2 tiles with cache writeback (one repeat, no spread known), where ")
    assert "with 3 tiles web.latency_p95 was 600.0 ms in tile 1 instead of at most 500 ms" in lines[-1]
    assert "; and 1 tile with cache none" in lines[-1]
    assert lines[-2] == "", "nothing stands behind the figures of a host that works alone"


def test_repeats_give_a_range_and_no_interval_before_there_are_enough(home: Home, scenario: Path) -> None:
    document = scaled(home, scenario, "--repeats", "2", "--cache", "none", **load(none=0.3))
    (place,) = document["places"]
    assert [climb["tiles"] for climb in place["repeats"]] == [1, 1]
    assert (place["range"], place["interval_95"], place["because"]) == ([1, 1], None, "too few repeats")


def test_the_climb_ends_before_the_host_has_to_swap(home: Home, scenario: Path) -> None:
    # Two guests of 512 MiB, and what QEMU takes under either accelerator: one tile fits, three never do.
    memory = {MEMORY: str(3 * GIB)}
    for options in ((), ("--allow-overcommit",)):
        document = scaled(home, scenario, *options, "--cache", "none", **{**load(none=0.01), **memory})
        assert document["scale"]["stopped_by"] == "guard"
        (place,) = document["places"]
        assert place["at_least"] is True
        assert 1 <= place["tiles"] < 3
        assert "where memory ran out first: with " in document["scale"]["sentence"]
        assert "3 GiB free" in document["scale"]["sentence"]


def test_a_host_that_cannot_hold_one_tile_is_refused_and_nothing_is_started(home: Home, scenario: Path) -> None:
    code, output, words = home.run("scale", str(scenario), "--until-knee", "--json", **{**load(), MEMORY: str(GIB)})
    assert (code, output) == (3, "")
    assert "1 GiB free" in words
    assert home.records() == []


def test_the_most_tiles_that_were_asked_for_are_a_lower_bound(home: Home, scenario: Path) -> None:
    document = scaled(home, scenario, "--max-tiles", "2", "--cache", "none", **load(none=0.01))
    assert document["scale"]["stopped_by"] == "max tiles"
    assert "at least 2 tiles with cache none" in document["scale"]["sentence"]
    assert "the most that were tried" in document["scale"]["sentence"]


def test_without_until_knee_the_curve_goes_on_behind_the_knee(home: Home, scenario: Path) -> None:
    code, output, words = home.run("scale", str(scenario), "--max-tiles", "3", "--json", **load(none=0.3, writeback=9))
    assert code == 0, words
    places = json.loads(output)["places"]
    assert [[step["tiles"] for step in place["steps"]] for place in places] == [[1, 2, 3], [1, 2, 3]]
    assert [place["tiles"] for place in places] == [0, 1]


@pytest.mark.parametrize(("outcome", "code"), [("invalid", 4), pytest.param("failed", 1, marks=pytest.mark.exhaustive)])
def test_a_cell_that_is_not_to_be_believed_is_no_missed_target(
    home: Home, scenario: Path, outcome: str, code: int
) -> None:
    said = load(none=outcome, writeback=0.3)
    ended, output, _ = home.run("scale", str(scenario), "--until-knee", "--json", **said)
    assert ended == code
    writeback, none = json.loads(output)["places"]
    assert writeback["tiles"] == 1
    assert (none["tiles"], none["repeats"]) == (None, [{"repeat": 1, "tiles": 0, "ended": "unknown"}])


def test_a_climb_that_is_interrupted_stops_its_run_and_says_what_is_known(home: Home, scenario: Path) -> None:
    process = home.spawn("scale", str(scenario), "--until-knee", "--json", **{**load(), CELL_SECONDS: "3600"})
    until(home.in_a_cell, "a cell")
    process.send_signal(signal.SIGINT)
    output, words = process.communicate(timeout=SOON)
    assert process.returncode == 130, words
    assert json.loads(output)["scale"]["stopped_by"] == "run"
    (end,) = home.events("RunEnded")
    assert end["outcome"] == "aborted"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ((), "say --until-knee, or --max-tiles"),
        (("--until-knee", "--tiles", "3"), "--tiles"),
        (("--until-knee", "--control"), "--control"),
        (("--until-knee", "--max-tiles", "0"), "0 is not in the range"),
    ],
)
def test_wrong_use_is_one_line(home: Home, scenario: Path, options: tuple[str, ...], line: str) -> None:
    code, output, words = home.run("scale", str(scenario), *options)
    assert (code, output) == (2, "")
    assert line in words
    assert len(words.splitlines()) == 1


def test_a_scenario_that_asks_nothing_of_its_tiles_is_refused(home: Home) -> None:
    code, _, words = home.run("scale", "tile", "--until-knee")
    assert code == 2
    assert "tile defines no targets" in words
