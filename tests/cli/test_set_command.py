"""`vmlab set`: what a run is asked for, what is refused before it is asked, and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.answering_run import Answering, answering
from tests.store.stories import Story
from vmlab.cli.main import command_line
from vmlab.model.errors import CommandFailed, RefusedError, UsageError, VmlabError
from vmlab.model.places import runs_folder

RUN = "20261121-143000-tile-aaaa"
SWITCHED = {
    "cell": 3,
    "what": "cache",
    "before": "writeback",
    "after": "none",
    "pauses_ms": {"t1-web": 4.0, "t1-db": 6.25},
    "drained_seconds": 1.5,
    "drained_bytes": 40 * 2**20,
}


def cell(number: int, state: str = "planned", **axes: Any) -> dict[str, Any]:
    """A cell to come, planned with one tile and the cache mode writeback."""
    planned = {"tiles": 1, "cache": "writeback"}
    return {"cell": number, "axes": planned | axes, "repeat": 1, "state": state, "planned": planned}


COMING = {"coming": [cell(2, "changed", cache="none"), cell(3), cell(4, "skipped")]}
LISTED = """\
CELL  AXES                      REPEAT    AS PLANNED
2     tiles 1, cache none       repeat 1  no: cache writeback was planned
3     tiles 1, cache writeback  repeat 1  yes
4     tiles 1, cache writeback  repeat 1  skipped
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Answering]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "r"))
    Story(runs_folder() / RUN / "run.sqlite", run=RUN).begin({"cache": ["none", "writeback"]}).close()
    with answering(RUN, SWITCHED) as living:
        yield living


Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def say(*arguments: str) -> tuple[int, str, str]:
        code = command_line(["set", *arguments])
        words = capsys.readouterr()
        return code, words.out, words.err

    return say


def test_now_is_asked_of_the_running_guests_and_told_with_its_pause(run: Answering, said: Said) -> None:
    assert said("last", "cache=none", "--now") == (
        0,
        "cell 3: cache writeback to none; guests stood still for at most 6.25 ms; dirty pages written before in 1.5 s "
        "(40 MiB); invalidates the cell\n",
        "",
    )
    assert run.asked == [("set", {"cache": "none", "now": True, "origin": "vmlab set"})]


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (["cache=none", "--now"], {"cache": "none", "now": True}),
        (["end", "--now"], {"end": True, "now": True}),
    ],
)
def test_without_a_name_it_is_the_run_under_way(
    arguments: list[str], asked: dict[str, Any], run: Answering, said: Said
) -> None:
    newer = "20261121-150000-tile-bbbb"
    Story(runs_folder() / newer / "run.sqlite", run=newer).begin({"cache": ["none"]}).end()
    run.answer = {"cell": 3, "ended": True} if "end" in arguments else SWITCHED
    assert said(*arguments)[0] == 0
    assert run.asked == [("set", {**asked, "origin": "vmlab set"})]


def test_the_cells_to_come_are_changed_and_listed_without_a_name(run: Answering, said: Said) -> None:
    run.answer = COMING
    assert said("planned")[:2] == (0, NEXT)
    assert said("--cell", "4", "skip")[0] == 0
    assert said("--list")[:2] == (0, LISTED)
    assert [command for command, _ in run.asked] == ["set", "set", "coming"]


def test_without_a_name_and_a_run_under_way_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Story(runs_folder() / RUN / "run.sqlite", run=RUN).begin({"cache": ["none"]}).end()
    assert said("cache=none") == (2, "", "vmlab: no run is under way; `vmlab ls` lists those that are over\n")


def test_the_loop_that_runs_is_ended(run: Answering, said: Said) -> None:
    run.answer = {"cell": 3, "ended": True}
    words = "cell 3: no workload starts again; the cell ends when those under way have ended\n"
    assert said("last", "end", "--now") == (0, words, "")
    assert run.asked == [("set", {"end": True, "now": True, "origin": "vmlab set"})]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (1, 2, "cell 3: tile 2 is being added; invalidates the cell\n"),
        (2, 1, "cell 3: tile 2 is retired when its rounds have ended; invalidates the cell\n"),
    ],
)
def test_a_tile_of_the_loop_is_added_or_retired(
    before: int, after: int, words: str, run: Answering, said: Said
) -> None:
    run.answer = {"cell": 3, "before": before, "after": after}
    assert said("last", f"tiles={after}", "--now") == (0, words, "")
    assert run.asked == [("set", {"tiles": after, "now": True, "origin": "vmlab set"})]


def test_end_is_for_what_runs_alone(run: Answering, said: Said) -> None:
    code, _, err = said("last", "end")
    assert code == 2 and "say end --now, or `vmlab stop` for the whole run" in err
    assert not run.asked


def test_ksm_is_asked_of_the_running_cell_too(run: Answering, said: Said) -> None:
    run.answer = {"cell": 3, "what": "ksm", "before": "off", "after": "on"}
    assert said("last", "ksm=on", "--now") == (0, "cell 3: ksm off to on; invalidates the cell\n", "")
    assert run.asked == [("set", {"ksm": "on", "now": True, "origin": "vmlab set"})]


def test_without_now_it_is_the_cells_to_come(run: Answering, said: Said) -> None:
    run.answer = COMING
    code, out, _ = said(RUN, "cache=none", "tiles=3")
    words = "2 cells to come, the next with tiles 1, cache none; the running cell stays as it is\n"
    assert (code, out) == (0, words)
    assert run.asked == [("set", {"cache": "none", "tiles": 3, "origin": "vmlab set"})]


NEXT = "2 cells to come, the next with tiles 1, cache none; the running cell stays as it is\n"


@pytest.mark.parametrize(
    ("arguments", "asked", "words"),
    [
        (["--cell", "2", "cache=none"], {"cell": 2, "cache": "none"}, f"cell 2 has tiles 1, cache none; {NEXT}"),
        (["--cell", "3", "tiles=1"], {"cell": 3, "tiles": 1}, f"cell 3 has tiles 1, cache writeback; {NEXT}"),
        (["--cell", "4", "skip"], {"cell": 4, "skip": True}, f"cell 4 is skipped; {NEXT}"),
        (["--cell", "3", "planned"], {"cell": 3, "as_planned": True}, f"cell 3 has tiles 1, cache writeback; {NEXT}"),
        (["planned"], {"as_planned": True}, NEXT),
    ],
)
def test_one_cell_to_come_is_changed_skipped_or_put_back(
    arguments: list[str], asked: dict[str, Any], words: str, run: Answering, said: Said
) -> None:
    run.answer = COMING
    assert said("last", *arguments) == (0, words, "")
    assert run.asked == [("set", {**asked, "origin": "vmlab set"})]


def test_the_list_is_text_or_json_and_asks_for_no_change(run: Answering, said: Said) -> None:
    run.answer = COMING
    assert said("last", "--list") == (0, LISTED, "")
    code, out, err = said("last", "--list", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"schema": "vmlab.coming/1", "run": RUN, "cells": COMING["coming"]}
    assert run.asked == [("coming", {"origin": "vmlab set"})] * 2


def test_an_empty_list_is_a_sentence(run: Answering, said: Said) -> None:
    run.answer = {"coming": []}
    assert said("last", "--list") == (0, "no cell is to come; the running one stays as it is\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no change is given; use NAME=VALUE, such as cache=none, or --list"),
        (["--cell", "3"], "no change is given"),
        (["skip"], "skip needs --cell N; --list has the numbers"),
        (["--cell", "3", "skip", "cache=none"], "skip cannot be combined with another change"),
        (["--cell", "3", "cache=none", "--now"], "--cell is for a cell to come; --now is for the one that runs"),
        (["planned", "--now"], "planned cannot be changed while guests run"),
        (["--list", "cache=none"], "--list only shows the cells to come"),
        (["--list", "--cell", "3"], "--list only shows the cells to come"),
        (["cache=none", "--json"], "--json is for the list of the cells to come"),
        (["ksm=on", "cache=none", "--now"], "--now changes one thing at a time"),
        (
            ["thp=always", "--now"],
            "thp cannot be changed while guests run; --now is for cache, ksm or tiles, and end for",
        ),
        (["cache=none", "tiles=2", "--now"], "--now changes one thing at a time"),
        (["end=1", "--now"], "end cannot be changed while guests run"),
        ([f"tiles={'9' * 5000}"], "999999999… tiles are more than any host carries"),
        (["ksm=on"], "cannot be given another ksm; cache and tiles can"),
        (["cache"], "'cache' is not a change"),
        (["cache="], "'cache=' is not a change"),
    ],
)
def test_what_no_run_can_do_is_refused_before_it_is_asked(
    arguments: list[str], words: str, run: Answering, said: Said
) -> None:
    code, out, err = said("last", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err and run.asked == []


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (UsageError("cache unsafe promises other flushes"), 2),
        (RefusedError("cache=none needs O_DIRECT"), 3),
        (CommandFailed("cell 3 was not switched: dirty pages; the cells to come can have it"), 1),
    ],
)
def test_a_refusal_of_the_run_is_one_line_with_its_exit_code(
    answer: VmlabError, code: int, run: Answering, said: Said
) -> None:
    run.answer = answer
    found = said("last", "cache=none", "--now")
    assert found == (code, "", f"vmlab: {answer}\n")


def test_a_run_that_is_over_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Story(runs_folder() / RUN / "run.sqlite", run=RUN).begin({"cache": ["none"]}).end()
    assert said("last", "cache=none", "--now") == (2, "", f"vmlab: run {RUN} is not running\n")
