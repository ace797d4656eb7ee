"""`vmlab compare --pooled` and `vmlab gate --run`: what they say, their exit codes, and which nights are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import vmlab
from tests.cli.called import ended
from tests.store.stories import Story
from vmlab.model.places import runs_folder
from vmlab.store.runs import tagged, write_tag


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def run_id(day: int) -> str:
    return f"202611{day:02}-143000-tile-aaaa"


def told(day: int, ratio: float = 0.6, seconds: float = 10.0) -> str:
    """A run of four repeats whose candidate takes `ratio` times as long."""
    run = run_id(day)
    story = Story(runs_folder() / run / "run.sqlite", run=run).begin({"cache": ["none", "writeback"]}, cells=8)
    for repeat in range(1, 5):
        story.cell({"cache": "none"}, {"web": seconds + repeat / 100}, 12.0 + repeat / 100, repeat)
        story.cell({"cache": "writeback"}, {"web": seconds * ratio + repeat / 50}, 8.0 + repeat / 100, repeat)
    story.end()
    return run


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = ended(*words)
    told = capsys.readouterr()
    return code, told.out, told.err


def document(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = said(capsys, *words, "--json")
    found: dict[str, Any] = json.loads(out)
    return code, found


def week(ratios: Sequence[float] = (0.57, 0.6, 0.61)) -> list[str]:
    return [told(day, ratio) for day, ratio in enumerate(ratios, start=1)]


def test_runs_are_pooled_one_by_one_by_commas_or_by_a_tag(capsys: pytest.CaptureFixture[str]) -> None:
    runs = week()
    write_tag("days", *runs)
    answers = [document(capsys, "compare", "--pooled", *words) for words in (runs, [",".join(runs)], ["days"])]
    assert [code for code, _ in answers] == [0, 0, 0]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][1] == vmlab.pool("days") == vmlab.pool(*map(vmlab.open_run, runs))
    code, text, error = said(capsys, "compare", "--pooled", "days")
    assert (code, error) == (0, "")
    assert "Another run like these: " in text


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["last"], "too few runs: a pooled answer takes three at least"),
        (["last:1", "last", "last"], "--pooled takes whole runs, and 'last:1' is a cell"),
        (["last", "--explain"], "--pooled goes with --baseline, --metric and --json alone"),
        (["last", "--fail-if", "web > +5 %"], "--pooled goes with --baseline, --metric and --json alone"),
        (["nothing"], "no run is called 'nothing'"),
    ],
)
def test_what_cannot_be_pooled_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], line: str) -> None:
    week()
    code, out, error = said(capsys, "compare", "--pooled", *words)
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert line in error


def test_nights_make_a_baseline_of_their_own_and_then_decide(capsys: pytest.CaptureFixture[str]) -> None:
    codes = []
    for day, seconds in enumerate((10.0, 10.1, 9.95, 10.05, 15.0, 10.0), start=1):
        told(day, seconds=seconds)
        code, found = document(capsys, "gate", "--run", run_id(day), "--baseline", "nightly")
        codes.append(code)
        assert len(found["nights"]) == min(day - 1, 4)
        assert found["kept"] == ("" if day == 5 else "nightly")
    assert codes == [4, 4, 4, 0, 1, 0]
    assert tagged("nightly") == tuple(run_id(day) for day in (1, 2, 3, 4, 6)), "a night that failed is none"


def test_a_night_that_failed_is_taken_in_when_it_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    write_tag("nightly", *[told(day, seconds=10 + day / 50) for day in range(1, 5)])
    slow = told(5, seconds=15.0)
    code, text, _ = said(capsys, "gate", "--run", slow, "--baseline", "nightly")
    assert code == 1 and slow not in (tagged("nightly") or ())
    assert f"`vmlab gate --run {slow} --baseline nightly --accept` takes it in" in " ".join(text.split())
    code, text, _ = said(capsys, "gate", "--run", slow, "--baseline", "nightly", "--accept")
    assert code == 0 and slow in (tagged("nightly") or ())
    assert f"run {slow} is kept as a night of nightly" in text


def test_the_last_nights_are_those_before_tonight_and_no_more_than_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_tag("nightly", *[told(day, seconds=10 + day / 50) for day in range(1, 8)])
    _, found = document(capsys, "gate", "--run", run_id(6), "--baseline", "nightly", "--nights", "3")
    assert [one["run"] for one in found["nights"]] == [run_id(day) for day in (3, 4, 5)]


def test_a_night_that_was_removed_is_named_and_counts_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    write_tag("nightly", "20261101-000000-tile-0000", *[told(day) for day in range(2, 5)])
    told(5)
    code, found = document(capsys, "gate", "--run", "last", "--baseline", "nightly")
    assert code == 0
    assert found["left_out"] == [{"run": "20261101-000000-tile-0000", "because": "it is not here any more, or damaged"}]


def test_the_exit_code_of_an_undecided_night_can_be_chosen(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    told(1)
    words = ("gate", "--run", "last", "--baseline", "nightly")
    assert said(capsys, *words, "--junit", "gate.xml")[0] == 4
    assert b"<skipped" in (tmp_path / "gate.xml").read_bytes()
    assert said(capsys, *words, "--strict", "--junit", "gate.xml")[0] == 1
    assert b"<error" in (tmp_path / "gate.xml").read_bytes()
    assert said(capsys, *words, "--lenient")[0] == 0


def test_a_program_has_the_same_answer(capsys: pytest.CaptureFixture[str]) -> None:
    write_tag("nightly", *[told(day, seconds=10 + day / 50) for day in range(1, 5)])
    told(5, seconds=15.0)
    found = vmlab.gate_run("last", baseline="nightly", metric=["web.run_time"])
    code, shown = document(capsys, "gate", "--run", "last", "--baseline", "nightly", "--metric", "web.run_time")
    assert (code, shown) == (1, found)
    with pytest.raises(vmlab.VmlabError, match="are lists"):
        vmlab.gate_run("last", baseline="nightly", metric="web")
    with pytest.raises(vmlab.VmlabError, match="nights is a number from 3 to 256"):
        vmlab.gate_run("last", baseline="nightly", nights=0)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--baseline", "nightly"], "name a scenario to run, or with --run a run to judge"),
        (["tile", "--run", "last", "--baseline", "nightly"], "name a scenario to run, or with --run a run to judge"),
        (["--run", "last", "--baseline", "tile"], "'tile' is the name of a scenario"),
        (["--run", "last", "--baseline", "a b"], "'a b' is no name"),
        (["--run", "last", "--baseline", "x", "--size", "smoke"], "it takes no options that change a run"),
        (["--run", "last", "--baseline", "x", "--strict", "--lenient"], "--strict and --lenient exclude each other"),
        (["--run", "last", "--baseline", "x", "--nights", "2"], "2 is not in the range 3<=x<=256"),
    ],
)
def test_a_gate_that_means_nothing_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], line: str) -> None:
    told(1)
    code, out, error = said(capsys, "gate", *words)
    assert (code, out) == (2, "")
    assert line in error
