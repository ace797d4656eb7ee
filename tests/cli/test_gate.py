"""`vmlab compare --fail-if`: what fails is established, what is not known says so, and the exit code tells a CI."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import junitparser
import pytest

import vmlab
from tests.store.stories import Story
from vmlab.analysis.statistics.sample_size import readings_needed
from vmlab.cli.main import command_line
from vmlab.model.places import runs_folder

Sides = Mapping[str, Sequence[float | None]]
"""The times of the workload web by cache mode, repeat by repeat; None for a cell that is invalid."""
RUN = "20261121-143000-tile-aaaa"
OTHER = "20261121-150000-tile-bbbb"
TWENTY_MORE = "web > +20 %"


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def told(run: str, times: Sides, tiles: Sequence[int] = (1,), p95: float | None = None) -> None:
    """A run with a cell for each cache mode and tile count in each repeat."""
    repeats = max(map(len, times.values()))
    story = Story(runs_folder() / run / "run.sqlite", run=run)
    story.begin({"cache": list(times), "tiles": list(tiles)}, cells=repeats * len(times) * len(tiles))
    for repeat in range(1, repeats + 1):
        for count in tiles:
            for cache, side in times.items():
                if repeat > len(side):
                    continue
                seconds = side[repeat - 1]
                story.start_cell({"cache": cache, "tiles": count}, repeat)
                story.measure("web", seconds or 10.0)
                if p95 is not None:
                    story.measure("web", p95 * (seconds or 1.0), "latency_p95", "s")
                story.end_cell("invalid" if seconds is None else "passed", wall=(seconds or 10.0) + 1)
    story.end()


def slower(factor: float, repeats: int = 8) -> Sides:
    """The candidate's times are `factor` times those of the baseline, give or take a percent."""
    before = [10.0 + 0.05 * ((3 * n) % 7) for n in range(repeats)]
    return {
        "none": before,
        "writeback": [one * factor * (1 + 0.002 * ((5 * n) % 11 - 5)) for n, one in enumerate(before)],
    }


def gate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, gate of the document, and standard error."""
    code = command_line(["compare", "last", "--json", *arguments])
    said = capsys.readouterr()
    return code, json.loads(said.out)["gate"] if said.out else [], said.err


@pytest.mark.parametrize(
    ("factor", "condition", "state", "code"),
    [
        (1.4, "web > +20 %", "met", 1),
        (1.4, "web>+20%", "met", 1),
        (1.4, "web.run_time > +20 %", "met", 1),
        (1.2, "web > +20 %", "possible", 4),
        (1.1, "web > +20 %", "not met", 0),
        (1.4, "web < -20 %", "not met", 0),
        (0.5, "web < -20 %", "met", 1),
        (0.5, "web > -40 %", "not met", 0),
        (0.7, "web > -40 %", "met", 1),
        (1.0, "web > 0 %", "possible", 4),
        (1.4, "total wall clock > +20 %", "met", 1),
    ],
)
def test_a_gate_fails_where_a_difference_beyond_the_bound_is_established(
    capsys: pytest.CaptureFixture[str], factor: float, condition: str, state: str, code: int
) -> None:
    told(RUN, slower(factor))
    found, (answer,), err = gate(capsys, "--fail-if", condition)
    assert (found, answer["state"], answer["fails"]) == (code, state, code == 1)
    assert err.count("\n") == bool(code)
    strict, (answer,), _ = gate(capsys, "--fail-if", condition, "--strict")
    assert (strict, answer["fails"]) == ((state != "not met"),) * 2
    lenient, (answer,), err = gate(capsys, "--fail-if", condition, "--lenient")
    assert (lenient, answer["fails"], err.count("\n")) == (code == 1, code == 1, code == 1)


def test_the_interval_is_corrected_for_all_that_is_asked_and_for_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told(RUN, slower(1.4), tiles=(1, 2, 3))
    _, answers, _ = gate(capsys, "--fail-if", TWENTY_MORE)
    assert [answer["axes"] for answer in answers] == [{"tiles": count} for count in (1, 2, 3)]
    # The condition asks about one figure at three places.
    assert {(answer["figures"], answer["confidence_percent"]) for answer in answers} == {(3, 100 - 5 / 3)}
    _, answers, _ = gate(
        capsys, "--fail-if", TWENTY_MORE, "--fail-if", "web < -20%", "--fail-if", "total wall clock > 0%"
    )
    assert {answer["figures"] for answer in answers} == {6}
    assert len(answers) == 9
    told(RUN.replace("aaaa", "bbbb"), slower(1.4))
    # The table corrects for two figures, web and the wall clock, and the gate for the one that it names, however often.
    twice = ("--fail-if", TWENTY_MORE, "--fail-if", "web>+20%", "--fail-if", "web < -20 %")
    for conditions, states in ((twice[:2], ["met"]), (twice, ["met", "not met"])):
        _, answers, _ = gate(capsys, *conditions)
        assert [answer["state"] for answer in answers] == states
        assert {(answer["figures"], answer["confidence_percent"]) for answer in answers} == {(1, 95.0)}


def test_what_holms_procedure_would_let_through_is_not_enough(capsys: pytest.CaptureFixture[str]) -> None:
    """The interval of a difference that Holm proves last is at 95 %, and says too little about any bound but 0."""
    told(RUN, slower(1.4, repeats=7))
    command_line(["compare", "last", "--json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    confidences = sorted(row["candidates"][0]["difference"]["confidence_percent"] for row in rows)
    assert confidences == [95.0, 97.5]
    _, answers, _ = gate(capsys, "--fail-if", TWENTY_MORE, "--fail-if", "total wall clock > +20 %")
    assert [answer["confidence_percent"] for answer in answers] == [97.5, 97.5]


def test_too_few_readings_say_so_and_fail_where_doubt_does(capsys: pytest.CaptureFixture[str]) -> None:
    told(RUN, slower(3.0, repeats=4))
    code, (answer,), err = gate(capsys, "--fail-if", TWENTY_MORE)
    words = "cannot tell: too few measurements: 4 repeats; to prove a difference takes 6 repeats at least"
    line = f"vmlab: {TWENTY_MORE}, tiles 1: {words}\n"
    assert (code, answer["state"], answer["readings"], answer["readings_needed"], err) == (4, "cannot tell", 4, 6, line)
    code, _, err = gate(capsys, "--fail-if", TWENTY_MORE, "--strict")
    assert (code, err) == (1, line)


def test_what_is_possible_says_how_many_readings_decide_it(capsys: pytest.CaptureFixture[str]) -> None:
    told(RUN, slower(1.195))
    assert command_line(["compare", "last", "--fail-if", TWENTY_MORE]) == 4
    out = capsys.readouterr().out
    assert "gate: undecided at 1 of 1 configuration\n" in out
    (count,) = re.findall(r"to decide it takes about (\d+)\s+repeats", out)
    _, (answer,), _ = gate(capsys, "--fail-if", TWENTY_MORE)
    assert answer["readings_to_decide"] == int(count) > 8


def level(values: Sequence[float], *, metric: str = "latency_p95", run: str = RUN) -> None:
    """A run with a cell for two cache modes in each repeat, of which writeback gives the values."""
    story = Story(runs_folder() / run / "run.sqlite", run=run)
    story.begin({"cache": ["none", "writeback"]}, cells=2 * len(values))
    for repeat, value in enumerate(values, start=1):
        for cache in ("none", "writeback"):
            story.start_cell({"cache": cache}, repeat)
            story.measure("web", 10.0)
            story.measure("web", value if cache == "writeback" else 1.0, metric, "s")
            story.end_cell("passed", wall=11.0)
    story.end()


LATENCIES = [0.021, 0.022, 0.0215, 0.023, 0.0225, 0.0235, 0.0212]


@pytest.mark.parametrize(
    ("values", "condition", "state", "code"),
    [
        (LATENCIES, "web.latency_p95 > 20 ms", "met", 1),
        (LATENCIES, "web.latency_p95>20ms", "met", 1),
        (LATENCIES, "web.latency_p95 > 0.02 s", "met", 1),
        (LATENCIES, "web.latency_p95 > 22 ms", "possible", 4),
        (LATENCIES, "web.latency_p95 > 30 ms", "not met", 0),
        (LATENCIES, "web.latency_p95 < 30 ms", "met", 1),
        (LATENCIES[:5], "web.latency_p95 > 20 ms", "cannot tell", 4),
        (LATENCIES[:6], "web.latency_p95 > 20 ms", "met", 1),
    ],
)
def test_a_bound_on_the_candidates_own_level(
    capsys: pytest.CaptureFixture[str], values: Sequence[float], condition: str, state: str, code: int
) -> None:
    level(values)
    found, (answer,), _ = gate(capsys, "--fail-if", condition)
    assert (found, answer["state"], answer["candidate"]) == (code, state, "cache writeback")
    assert (answer["level"]["readings"], answer["level"]["needed"], answer["bound_percent"]) == (len(values), 6, None)


def test_levels_are_corrected_for_all_that_is_asked_and_say_what_they_rest_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    level(LATENCIES[:6])
    conditions = ("--fail-if", "web.latency_p95 > 20 ms", "--fail-if", "web < 5 s", "--fail-if", "web > +20 %")
    assert command_line(["compare", "last", *conditions]) == 4
    assert "too few measurements: 6 repeats; the level of one of 3 metrics takes 7 repeats at least" in " ".join(
        capsys.readouterr().out.split()
    )
    level(LATENCIES, run=RUN.replace("aaaa", "bbbb"))
    assert command_line(["compare", "last", *conditions[:4]]) == 1
    assert " at 97.5 % confidence, corrected for 2 metrics, 7 repeats" in " ".join(capsys.readouterr().out.split())


def test_of_a_group_each_run_counts_once(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [RUN.replace("aaaa", f"{number:04}") for number in range(12)]
    for number, run in enumerate(runs):
        story = Story(runs_folder() / run / "run.sqlite", run=run).begin({"cache": ["none"]}, cells=4)
        for repeat in (1, 2, 3, 4):
            story.start_cell({"cache": "none"}, repeat)
            story.measure("web", 10.0 + number + 0.1 * repeat)
            story.end_cell("passed", wall=30.0)
        story.end()
    arguments = ["compare", ",".join(runs[:6]), ",".join(runs[6:]), "--json", "--fail-if", "web > 15 s"]
    assert command_line(arguments) == 1
    (answer,) = json.loads(capsys.readouterr().out)["gate"]
    assert (answer["level"]["runs"], answer["level"]["readings"], answer["state"]) == (True, 6, "met")
    assert answer["level"]["interval"] == pytest.approx([16.25, 21.25])


def measured(values: Sequence[float], run: str = RUN, **axes: str) -> str:
    """A run without an axis that it varies, in which web takes so many seconds; its id."""
    story = Story(runs_folder() / run / "run.sqlite", run=run)
    story.begin({name: [value] for name, value in axes.items()}, cells=len(values))
    for repeat, value in enumerate(values, start=1):
        story.start_cell(axes, repeat)
        story.measure("web", value)
        story.end_cell("passed", wall=value + 1)
    story.end()
    return run


SECONDS = [10.2, 10.1, 10.4, 10.3, 10.6, 10.5]


@pytest.mark.parametrize("axes", [{}, {"cache": "none"}])
@pytest.mark.parametrize(
    ("values", "condition", "state", "code"),
    [
        (SECONDS, "web > 10 s", "met", 1),
        (SECONDS, "web > 10.3 s", "possible", 4),
        (SECONDS, "web > 11 s", "not met", 0),
        (SECONDS, "total wall clock > 11 s", "met", 1),
        (SECONDS[:5], "web > 10 s", "cannot tell", 4),
        (SECONDS[:1], "web > 10 s", "cannot tell", 4),
    ],
)
def test_a_level_needs_one_run_alone(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    values: Sequence[float],
    condition: str,
    state: str,
    code: int,
    axes: dict[str, str],
) -> None:
    measured(values, **axes)
    arguments = ("compare", "last", "--fail-if", condition, "--junit", str(tmp_path / "gate.xml"))
    assert command_line([*arguments, "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    (answer,) = document["gate"]
    assert (answer["state"], answer["candidate"], answer["figures"]) == (state, "last", 1)
    assert (document["baseline"], document["candidates"], document["overall"]) == ("last", [], [])
    assert {len(row["candidates"]) for row in document["rows"]} == {0}
    (suite,) = junitparser.JUnitXml.fromfile(str(tmp_path / "gate.xml"))
    assert (suite.name, suite.failures, suite.skipped) == ("gate: last", code == 1, code == 4)
    assert command_line([*arguments]) == code
    out = capsys.readouterr().out
    assert (
        out.startswith("last: the only side\n")
        and f"{condition}{', cache none' if axes and len(values) > 1 else ''}: {state}: " in out
    )
    assert ("too few measurements: 1 repeat; the level takes 6 repeats at least" in out) is (len(values) == 1)
    assert vmlab.compare("last", fail_if=[condition]).exit_code == code


def test_a_level_of_several_runs_alone_is_that_of_their_means(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [measured([10.0 + at], RUN.replace("aaaa", f"{at:04}")) for at in range(6)]
    for bound, code in (("9.5 s", 1), ("16 s", 0)):
        assert command_line(["compare", ",".join(runs), "--fail-if", f"web > {bound}", "--json"]) == code
        (answer,) = json.loads(capsys.readouterr().out)["gate"]
        assert (answer["level"]["runs"], answer["level"]["readings"]) == (True, 6)


def test_a_level_of_one_cell_is_one_reading(capsys: pytest.CaptureFixture[str]) -> None:
    told(RUN, slower(1.4))
    assert command_line(["compare", "last:2", "--fail-if", "web > 5 s"]) == 4
    assert "too few measurements: 1 repeat; the level takes 6 repeats at least" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("last", "--fail-if", "web > 5 s", "--fail-if", "web > +5 %"),
            "--fail-if 'web > +5 %': last has no baseline and varies no axis; name a baseline before it, or bound the "
            "value itself, as 'web > 20 s'",
        ),
        (("last", "--fail-if", "overall < 0 %"), "--fail-if 'overall < 0 %': last has no baseline and varies no axis"),
        (("last", "--fail-if", "mail > 5 s"), "--fail-if 'mail > 5 s': no such workload; there are web, total wall"),
        (("last", "--fail-if", "overall > 5 s"), "--fail-if 'overall > 5 s': no such workload; there are web, total"),
        (("last", "--fail-if", "web > 5 s", "--baseline", "last"), "--baseline 'last' is none of the sides; there are"),
        (("last",), "a comparison needs two runs or cells; `vmlab ls` lists the runs"),
    ],
)
def test_what_one_run_alone_cannot_answer_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: Sequence[str], line: str
) -> None:
    measured(SECONDS)
    assert command_line(["compare", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith(f"vmlab: {line}") and said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("sides", "line"),
    [
        (("last", "last"), f"'last' and 'last' both have run {OTHER}, and nothing is compared with itself; name an"),
        (("base", "last"), f"'base' and 'last' both have run {OTHER}, and nothing"),
        (("base", "night"), f"'base' and 'night' both have run {OTHER}, and nothing"),
        ((OTHER, RUN, "last"), f"'{OTHER}' and 'last' both have run {OTHER}, and nothing"),
        (("last:1", "last:1"), f"'last:1' and 'last:1' both have cell 1 of run {OTHER}, and nothing"),
        (("last", "last:2"), f"'last' and 'last:2' both have cell 2 of run {OTHER}, and nothing"),
        (("both", "last"), f"'both' and 'last' both have run {OTHER}, and nothing"),
        ((f"{RUN},last,last", RUN), f"'{RUN},last,last' names run {OTHER} twice; each counts once"),
        ((RUN, "night,last"), f"'night,last' names run {OTHER} twice; each counts once"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--fail-if", TWENTY_MORE, "--json"), ("--metric", "run_time")])
def test_a_run_is_not_compared_with_itself(
    capsys: pytest.CaptureFixture[str], sides: Sequence[str], line: str, options: Sequence[str]
) -> None:
    for run in (RUN, OTHER):
        told(run, slower(1.4))
    for runs, name in ((OTHER, "base"), (OTHER, "night"), (f"{RUN},{OTHER}", "both")):
        assert command_line(["tag", runs, name]) == 0
    capsys.readouterr()
    assert command_line(["compare", *sides, *options]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith(f"vmlab: {line}") and said.err.count("\n") == 1
    with pytest.raises(vmlab.VmlabError, match=re.escape(line)):
        vmlab.compare(*sides)
    assert command_line(["report", *sides, "-o", "page.md"]) == 2
    assert capsys.readouterr().err.startswith(f"vmlab: {line}") and not Path("page.md").exists()


def test_the_page_on_gates_has_the_fewest_readings_that_decide() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/ci-gate.md").read_text()
    rows = re.findall(r"^\| (\d+)(?: to (\d+))? \| (\d+) repeats \| (\d+) runs a side \| (\d+) repeats \|$", page, re.M)
    assert len(rows) == 4
    for first, last, repeats, runs, level in rows:
        for count in range(int(first), int(last or first) + 1):
            assert int(repeats) == int(level) == readings_needed(count)
            assert int(runs) == readings_needed(count, paired=False)


@pytest.mark.parametrize("bound", ["20", "20 MB", "5/s", "3 parsecs"])
def test_a_bound_in_another_unit_is_refused(capsys: pytest.CaptureFixture[str], bound: str) -> None:
    level(LATENCIES)
    code, _, err = gate(capsys, "--fail-if", f"web.latency_p95 > {bound}")
    assert code == 2
    assert err.startswith(f"vmlab: --fail-if 'web.latency_p95 > {bound}': ") and "such as 30 s" in err


def test_more_conditions_take_more_readings(capsys: pytest.CaptureFixture[str]) -> None:
    told(RUN, slower(1.4, repeats=7), tiles=(1, 2, 3, 4))
    _, answers, _ = gate(capsys, "--fail-if", TWENTY_MORE)
    assert {(answer["state"], answer["interval_percent"], answer["readings_needed"]) for answer in answers} == {
        ("cannot tell", None, 8)
    }


def test_one_run_a_side_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    for run, factor in ((RUN, 1.0), (RUN.replace("aaaa", "bbbb"), 3.0)):
        told(run, {"none": [10.0 * factor + n for n in range(8)]})
    line = f"{TWENTY_MORE}, cache none, tiles 1: cannot tell: one run a side, whose repeats"
    takes = (
        "to prove a difference takes 4 runs a side at least; fastest, if both can run here: one run with both sides "
        "as values of an axis, 6 repeats"
    )
    for options, code, head, mark in (
        ([], 4, "undecided", "?   "),
        (["--lenient"], 0, "undecided", "?   "),
        (["--strict"], 1, "failed", "FAIL"),
    ):
        assert command_line(["compare", RUN, "last", "--fail-if", TWENTY_MORE, *options]) == code
        out = capsys.readouterr().out
        assert f"gate: {head} at 1 of 1 configuration\n{mark}  {line}" in out
        assert takes in " ".join(out.split())
        assert "a proof takes 5 runs a side." in " ".join(out.split())


def test_invalid_cells_are_named_and_nothing_is_made_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    told(RUN, {**slower(3.0), "writeback": [None] * 8})
    code, (answer,), _ = gate(capsys, "--fail-if", TWENTY_MORE)
    assert (code, answer["state"], answer["because"]) == (4, "cannot tell", "cache writeback is invalid")
    assert gate(capsys, "--fail-if", TWENTY_MORE, "--strict")[0] == 1


def test_a_place_that_a_side_lacks_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told(RUN, {"none": [10.0] * 8, "writeback": [5.0] * 8})
    told(RUN.replace("aaaa", "bbbb"), {"none": [10.0] * 8})
    assert command_line(["compare", RUN, "last", "--fail-if", TWENTY_MORE]) == 4
    line = "?     web > +20 %, cache writeback, tiles 1: cannot tell: no cell of last is there\n"
    assert line in capsys.readouterr().out


def test_a_workload_that_never_passed_is_no_wrong_name(capsys: pytest.CaptureFixture[str]) -> None:
    story = Story(runs_folder() / RUN / "run.sqlite", run=RUN).begin({"cache": ["none", "writeback"]})
    for cache in ("none", "writeback"):
        story.start_cell({"cache": cache})
        story.fail("mail", "lost")
        story.end_cell("failed")
    story.end("failed", 1)
    code, (answer,), _ = gate(capsys, "--fail-if", "mail > +5 %")
    assert (code, answer["state"], answer["because"]) == (4, "cannot tell", "no cell has a metric of mail")


def test_noise_moves_the_bound(capsys: pytest.CaptureFixture[str]) -> None:
    told(RUN, slower(1.01))
    told(RUN.replace("aaaa", "bbbb"), slower(1.22))
    assert gate(capsys, "--fail-if", TWENTY_MORE)[0] == 1
    code, (answer,), _ = gate(capsys, "--fail-if", TWENTY_MORE, "--control", RUN)
    assert (code, answer["state"]) == (4, "possible")
    low, _ = answer["interval_percent"]
    assert 20 < low < 20 + answer["noise_percent"] * 1.2
    assert gate(capsys, "--fail-if", "web > +15 %", "--control", RUN)[0] == 1


def test_the_lines_stand_below_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    told(RUN, slower(1.4), p95=0.01)
    conditions = ("--fail-if", "web.latency_p95 > +20 %", "--fail-if", "web < -5 %")
    assert command_line(["compare", "last", *conditions]) == 1
    said = capsys.readouterr()
    assert said.err == ""
    *_, head, fails, holds = said.out.splitlines()
    assert head == "gate: failed at 1 of 2 configurations"
    assert fails.startswith("FAIL  web.latency_p95 > +20 %, tiles 1: met: +40.0 % (")
    assert fails.endswith(") at 97.5 % confidence, corrected for 2 metrics, 8 repeats")
    assert holds.startswith("ok    web < -5 %, tiles 1: not met: +40.0 % (")


def test_each_candidate_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    told(RUN, {**slower(1.4), "unsafe": slower(1.0)["writeback"]})
    code, answers, err = gate(capsys, "--fail-if", TWENTY_MORE)
    assert [(answer["candidate"], answer["state"]) for answer in answers] == [
        ("cache writeback", "met"),
        ("cache unsafe", "not met"),
    ]
    assert code == 1 and err.startswith("vmlab: web > +20 %, tiles 1, cache writeback: met: ")


def test_junit_has_a_case_a_condition(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    told(RUN, slower(1.4), tiles=(1, 2))
    texts = ("web > +20 %", "web < -5 %", "total wall clock > +41 %")
    options = [word for text in texts for word in ("--fail-if", text)]
    assert gate(capsys, *options, "--junit", "gate.xml")[0] == 1
    suites = junitparser.JUnitXml.fromfile(str(tmp_path / "gate.xml"))
    (suite,) = suites
    assert (suite.name, suites.tests, suites.failures, suites.errors) == (
        "gate: cache writeback against cache none",
        3,
        1,
        0,
    )
    cases = {case.name: case for case in suite}
    assert list(cases) == list(texts)
    failure = cases[texts[0]].result[0]
    assert isinstance(failure, junitparser.Failure) and failure.type == "met"
    assert failure.message.count("web > +20 %, tiles ") == 2
    assert cases[texts[1]].is_passed and cases[texts[1]].system_out.count("not met") == 2


def test_junit_skips_what_cannot_be_told_and_has_an_error_for_it_where_it_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told(RUN, slower(1.4, repeats=2))
    for strict, code, kind in (([], 4, junitparser.Skipped), (["--strict"], 1, junitparser.Error)):
        assert gate(capsys, "--fail-if", TWENTY_MORE, *strict, "--junit", "gate.xml")[0] == code
        suites = junitparser.JUnitXml.fromfile(str(tmp_path / "gate.xml"))
        (result,) = next(iter(next(iter(suites)))).result
        assert isinstance(result, kind) and "too few measurements: 2 repeats" in result.message
        assert (suites.failures, suites.errors, suites.skipped) == (0, len(strict), 1 - len(strict))


def fixed(*, kinds: Sequence[str] = ("fio",), repeats: int = 8) -> None:
    """A run of workloads, those of kind fio for a fixed time: their throughput falls by a third."""
    params = {"fio": {"rw": "read", "time": 3.0}, "cpu": {"threads": 1}}
    settings = {"workloads": {kind: {"kind": kind, "params": params[kind]} for kind in kinds}}
    story = Story(runs_folder() / RUN / "run.sqlite", run=RUN)
    said = {"workloads": {kind: {"kind": kind} for kind in kinds}}
    story.begin({"cache": ["none", "writeback"]}, cells=2 * repeats, said=said)
    for repeat in range(1, repeats + 1):
        for cache, rate in (("none", 30e6), ("writeback", 20e6)):
            story.start_cell({"cache": cache}, repeat, settings=settings)
            for kind in kinds:
                story.measure(kind, 3.0 + 0.001 * repeat)
                if kind == "fio":
                    story.measure(kind, rate + 1e5 * repeat, "throughput", "B/s")
            story.end_cell("passed", wall=3.5 + 0.001 * repeat)
    story.end()


def test_a_workload_of_fixed_duration_is_compared_by_its_throughput(capsys: pytest.CaptureFixture[str]) -> None:
    fixed()
    assert command_line(["show", "last"]) == 0
    shown = capsys.readouterr().out
    assert "throughput (MB/s)" in shown and "total wall clock" not in shown and "run time" not in shown
    assert command_line(["compare", "last", "--json", "--fail-if", "fio.throughput < -20 %"]) == 1
    document = json.loads(capsys.readouterr().out)
    rows = {(row["workload"], row["metric"]): row for row in document["rows"]}
    assert next(iter(rows)) == ("fio", "throughput")
    assert [metric for (_, metric), row in rows.items() if row["fixed"]] == ["run_time", "wall_seconds"]
    assert all(row["candidates"][0]["without_yardstick"] is None for row in rows.values() if row["fixed"])
    assert rows["fio", "throughput"]["candidates"][0]["difference"]["verdict"] == "difference proven"
    assert command_line(["compare", "last"]) == 0
    assert "wall clock" not in capsys.readouterr().out


def test_the_wall_clock_stays_beside_a_workload_that_works_as_long_as_it_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fixed(kinds=("fio", "cpu"))
    assert command_line(["show", "last"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line.split("  ")[0] for line in lines if line.startswith(("run time", "fio", "cpu", "total"))]
    assert heads == ["run time (s)", "fio, throughput (MB/s)", "cpu", "total wall clock"]


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("fio > +10 %", "name its throughput, with the other sign: 'fio.throughput < -10 %'"),
        ("fio.run_time < -5 %", "name its throughput, with the other sign: 'fio.throughput > +5 %'"),
        ("total wall clock > +10 %", "all workloads work for a fixed time, so the total wall clock is no result"),
        ("fio > 4 s", "fio works for a fixed time, so its run time is no result; name another metric of it"),
    ],
)
def test_a_condition_on_a_fixed_time_is_refused(capsys: pytest.CaptureFixture[str], condition: str, words: str) -> None:
    fixed(repeats=1)
    code, _, err = gate(capsys, "--fail-if", condition)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"vmlab: --fail-if '{condition}': ") and words in err


PLANNED = """
name: mine
guests: {}
workloads: {disk: {kind: fio, on: host, rw: read, size: 8 MiB, time: 1 s}, primes: {kind: cpu, on: host, threads: 1}}
axes: {depth: {values: [1, 4], sets: workloads.disk.depth}, jobs: {values: [1, 2, 4], sets: workloads.disk.jobs}}
"""


def test_a_plan_says_what_a_condition_takes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(PLANNED)
    conditions = ("primes > +10 %", "disk.latency_p99 > 20 ms")
    options = [word for condition in conditions for word in ("--fail-if", condition)]
    assert command_line(["plan", "mine.yaml", "--json", *options]) == 0
    # Of three places each, as which the values of the first axis are compared; of six between groups of runs.
    assert json.loads(capsys.readouterr().out)["plan"]["gate"] == [
        {"condition": "primes > +10 %", "repeats": 8, "runs": 6},
        {"condition": "disk.latency_p99 > 20 ms", "repeats": 8, "runs": 9},
    ]
    assert command_line(["plan", "mine.yaml", *options]) == 0
    line = "  primes > +10 %: 8 repeats in one run (--repeats 8), or 6 runs a side\n"
    assert line in capsys.readouterr().out
    needed = []
    for condition in ("primes > +10 %", "overall < -5 %", "tile index.tile_index < -5 %"):
        assert command_line(["plan", "mine.yaml", "--json", "--fail-if", condition]) == 0
        (one,) = json.loads(capsys.readouterr().out)["plan"]["gate"]
        needed.append({name: one[name] for name in ("repeats", "runs")})
    assert needed == [needed[0]] * 3
    assert command_line(["plan", "mine.yaml", "--fail-if", "overall > 20 s"]) == 2
    assert "the overall value is a ratio to the baseline" in capsys.readouterr().err
    (tmp_path / "one.yaml").write_text(PLANNED.replace(", primes: {kind: cpu, on: host, threads: 1}", ""))
    assert command_line(["plan", "one.yaml", "--fail-if", "overall < -5 %"]) == 2
    assert "no such workload; there are disk" in capsys.readouterr().err
    (tmp_path / "mine.yaml").write_text(PLANNED.partition("axes:")[0])
    assert command_line(["plan", "mine.yaml", *options]) == 0
    out = capsys.readouterr().out
    assert "  primes > +10 %: 5 runs a side\n" in out
    assert "  disk.latency_p99 > 20 ms: 7 repeats in one run (--repeats 7), or 7 runs\n" in out
    assert command_line(["plan", "mine.yaml", "--fail-if", "disk > +10 %"]) == 2
    assert "disk works for a fixed time" in capsys.readouterr().err


def test_junit_skips_what_is_possible(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    told(RUN, slower(1.195))
    assert gate(capsys, "--fail-if", TWENTY_MORE, "--junit", "gate.xml")[0] == 4
    (suite,) = junitparser.JUnitXml.fromfile(str(tmp_path / "gate.xml"))
    (case,) = suite
    (result,) = case.result
    assert isinstance(result, junitparser.Skipped) and result.type == "possible"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--fail-if", "web"), "--fail-if 'web': say WORKLOAD.METRIC > +20 %, with > or <, a sign, and %, or"),
        (
            ("--fail-if", "web > 20 %"),
            "--fail-if 'web > 20 %': say WORKLOAD.METRIC > +20 %, with > or <, a sign, and %, or",
        ),
        (("--fail-if", "web >= +20 %"), "--fail-if 'web >= +20 %': say WORKLOAD.METRIC"),
        (("--fail-if", "> +20 %"), "--fail-if '> +20 %': say WORKLOAD.METRIC"),
        (("--fail-if", "web > +2\x1b0 %"), "--fail-if 'web > +2\\x1b0 %': say WORKLOAD.METRIC"),
        (("--fail-if", "x" * 5000), f"--fail-if '{'x' * 60}…': say WORKLOAD.METRIC"),
        (("--fail-if", "mail > +1 %"), "--fail-if 'mail > +1 %': no such workload; there are web, total wall clock"),
        (("--fail-if", "web.speed > +1 %"), "--fail-if 'web.speed > +1 %': web has no such metric; it has run_time"),
        (("--fail-if", "web. > +1 %"), "--fail-if 'web. > +1 %': say WORKLOAD.METRIC"),
        (("--strict",), "--strict, --lenient and --junit go with --fail-if, which names a condition"),
        (("--junit", "x.xml"), "--strict, --lenient and --junit go with --fail-if, which names a condition"),
        (("--fail-if", "web > +1 %", "--reference"), "--fail-if compares what was measured; it does not go with"),
    ],
)
def test_wrong_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], line: str
) -> None:
    told(RUN, slower(1.0, repeats=1))
    assert command_line(["compare", "last", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert said.err.startswith(f"vmlab: {line}")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_junit_file_that_cannot_be_written_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    told(RUN, slower(1.0, repeats=1))
    assert command_line(["compare", "last", "--fail-if", TWENTY_MORE, "--junit", "none/x.xml"]) == 3
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1


def _amounts(run: str, repeats: int, written: Mapping[str, float]) -> None:
    """Bytes and files, which the parameters set, beside a run time that is equal by chance."""
    story = Story(runs_folder() / run / "run.sqlite", run=run).begin({"cache": list(written)}, cells=2 * repeats)
    for repeat in range(1, repeats + 1):
        for cache, count in written.items():
            story.start_cell({"cache": cache}, repeat)
            story.measure("web", 10.0)
            story.measure("web", count, "bytes", "B")
            story.measure("web", 0.0, "errors", "1")
            story.end_cell(wall=11.0)
    story.end()


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    command_line([*arguments])
    return capsys.readouterr().out


@pytest.mark.parametrize("repeats", [1, 3, 8])
def test_an_amount_of_work_that_is_the_same_has_no_doubt(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, repeats: int
) -> None:
    """The rule: chance is in what is measured, and not in an amount that the parameters set.

    An amount is a metric of which neither end is better. Equal times are still no more than equal times.
    """
    _amounts(RUN, repeats, {"none": 2.0**20, "writeback": 2.0**20})
    document = json.loads(_printed(capsys, "compare", "last", "--json"))
    found = {row["metric"]: row["candidates"][0]["difference"] for row in document["rows"]}
    assert found["bytes"]["same_amount"] and found["errors"]["same_amount"]
    assert (found["bytes"]["percent"], found["bytes"]["better"], found["errors"]["percent"]) == (0.0, None, None)
    assert found["run_time"]["verdict"] in ("one reading each", "too few readings", "no difference proven")
    lines = _printed(capsys, "compare", "last", "--explain").splitlines()
    (bytes_, errors, web) = (
        next(line for line in lines if line.strip().startswith(name)) for name in ("web bytes", "web errors", "web (s)")
    )
    assert bytes_.rstrip().endswith("same") and errors.rstrip().endswith("same")
    assert "+0.0 %" in web and not any(name in line for line in lines for name in ("web bytes:", "web bytes,"))
    for page in (tmp_path / "page.html", tmp_path / "page.md"):
        _printed(capsys, "report", f"{RUN}:1", f"{RUN}:2", "-o", str(page))
        rows = [line for line in page.read_text().splitlines() if "web bytes" in line]
        assert rows and all("same amount" in line for line in rows), rows
    assert "web bytes" not in _printed(capsys, "compare", "last", "--explain").partition("No verdict on")[2]


def test_a_gate_decides_on_an_amount_that_is_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _amounts(RUN, 1, {"none": 2.0**20, "writeback": 2.0**20})
    file = tmp_path / "gate.xml"
    conditions = ("--fail-if", "web.bytes > 0 %", "--fail-if", "web.errors < 0 %", "--junit", str(file))
    code, answers, _ = gate(capsys, *conditions)
    assert (code, [answer["state"] for answer in answers]) == (0, ["not met", "not met"])
    assert "web.bytes > 0 %: not met: same amount on both sides, 1 repeat" in _printed(
        capsys, "compare", "last", *conditions
    )
    assert "<failure" not in file.read_text() and 'skipped="0"' in file.read_text()
    code, (answer,), _ = gate(capsys, "--fail-if", "web.bytes > -5 %")
    assert (code, answer["state"]) == (1, "met")


def test_an_amount_that_differs_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    _amounts(RUN, 1, {"none": 2.0**20, "writeback": 2.0**20 - 1})
    document = json.loads(_printed(capsys, "compare", "last", "--json"))
    (found,) = (row["candidates"][0]["difference"] for row in document["rows"] if row["metric"] == "bytes")
    assert found["verdict"] == "one reading each" and found["percent"] == pytest.approx(-100 / 2**20)
    lines = _printed(capsys, "compare", "last", "--explain").splitlines()
    line = next(one for one in lines if one.strip().startswith("web bytes"))
    assert "? -0.00 %" in line
    code, (answer,), _ = gate(capsys, "--fail-if", "web.bytes < 0 %")
    assert (code, answer["state"]) == (4, "cannot tell")
