"""A night against the last ones: what is worse, what is only another night, and which nights count."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.analysis.coverage_page import pooled
from tests.store.stories import HOST, Story
from vmlab.analysis.comparison.nights import NightGate, NightState, judge_night
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.descriptive import student_t
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.jsonable import jsonable
from vmlab.report.exports.junit import junit_night
from vmlab.report.night_text import night_text
from vmlab.store.reader import RunReader

NIGHTS = (10.0, 10.2, 9.9, 10.1)
REPEATS = (-0.05, 0.0, 0.05)


def night(
    path: Path,
    name: str,
    seconds: float,
    *,
    repeats: Sequence[float] = REPEATS,
    outcome: str = "passed",
    ended: str = "passed",
    further: Mapping[str, float] | None = None,
    caches: Sequence[str] = ("none",),
    metric: tuple[str, str] | None = None,
    **beginning: Any,
) -> RunDocument:
    """A run whose workload web takes about so many seconds, and `further` ones theirs."""
    story = Story(path / name / "run.sqlite", run=name)
    story.begin({"cache": list(caches)}, beginning.pop("table", None), cells=3, **beginning)
    for repeat, more in enumerate(repeats, start=1):
        for cache in caches:
            story.start_cell({"cache": cache}, repeat, settings={"cache": cache})
            if outcome == "failed":
                story.fail("web", "it broke")
            else:
                story.measure("web", seconds + more)
            for workload, value in (further or {}).items():
                story.measure(workload, value + more)
            if metric is not None:
                story.measure("web", 1000 / (seconds + more), *metric)
            story.end_cell(outcome, wall=seconds + more)
    with RunReader(story.end(ended)) as reader:
        return run_document(reader)


def judged(path: Path, tonight: RunDocument | float, nights: Sequence[RunDocument] = (), **asked: Any) -> NightGate:
    before = nights or [night(path, f"night-{at}", one) for at, one in enumerate(NIGHTS)]
    own = night(path, "tonight", tonight) if isinstance(tonight, float) else tonight
    return judge_night(own, before, baseline="nightly", **asked)


def states(found: NightGate) -> dict[str, NightState]:
    return {one.workload: one.state for one in found.figures}


@pytest.mark.parametrize(
    ("seconds", "state", "code"),
    [
        (10.1, NightState.WITHIN, ExitCode.PASSED),
        (12.0, NightState.WORSE, ExitCode.FAILED),
        (8.0, NightState.BETTER, ExitCode.PASSED),
    ],
)
def test_only_the_worse_end_fails(tmp_path: Path, seconds: float, state: NightState, code: ExitCode) -> None:
    found = judged(tmp_path, seconds)
    assert states(found) == {"web": state, "total wall clock": state}
    assert found.exit_code() == code
    assert len(found.nights) == 4 and found.asked == 2


def test_of_a_rate_less_is_worse(tmp_path: Path) -> None:
    table = {"columns": "cache", "rows": "workloads", "metrics": ["requests_per_second"], "baseline": None}
    of: dict[str, Any] = {"metric": ("requests_per_second", "1/s"), "table": table}
    nights = [night(tmp_path, f"night-{at}", one, **of) for at, one in enumerate(NIGHTS)]
    for seconds, state in ((12.0, NightState.WORSE), (8.0, NightState.BETTER)):
        (figure,) = judged(tmp_path, night(tmp_path / str(seconds), "tonight", seconds, **of), nights).figures
        assert (figure.metric, figure.more_is_better, figure.state) == ("requests_per_second", True, state)
        assert figure.fails_from is not None and -50 < figure.fails_from < 0


def test_a_metric_that_meant_something_else_on_other_nights_is_undecided_and_says_so(tmp_path: Path) -> None:
    table = {"columns": "cache", "rows": "workloads", "metrics": ["run_time", "pace"], "baseline": None}
    nights = [night(tmp_path, f"night-{at}", one, metric=("pace", "1/s"), table=table) for at, one in enumerate(NIGHTS)]
    found = judged(tmp_path, night(tmp_path, "tonight", 10.1, metric=("pace", "s"), table=table), nights)
    assert [(one.metric, one.state) for one in found.figures] == [
        ("run_time", NightState.WITHIN),
        ("wall_seconds", NightState.WITHIN),
        ("pace", NightState.CANNOT_TELL),
    ]
    line = found.figures[-1].because
    assert line.startswith("web pace is not compared, as it is not the same: ") and "tonight: in s, less is" in line
    assert found.exit_code() == ExitCode.INVALID and line in " ".join(night_text(found).split())


def test_the_interval_is_that_of_the_next_mean_of_equal_nights(tmp_path: Path) -> None:
    # Without repeats the nights' own spread is all that there is, and the interval Student's of one more reading.
    before = [night(tmp_path, f"night-{at}", one, repeats=(0.0,)) for at, one in enumerate(NIGHTS)]
    found = judged(tmp_path, night(tmp_path, "tonight", 10.1, repeats=(0.0,)), before, chosen=["web.run_time"])
    (figure,) = found.figures
    logs = [math.log(one) for one in NIGHTS]
    middle = sum(logs) / 4
    half = student_t(3) * math.sqrt(sum((one - middle) ** 2 for one in logs) / 3 * (1 + 1 / 4))
    assert figure.interval == pytest.approx((math.exp(middle - half), math.exp(middle + half)))
    assert (figure.confidence, figure.expected) == pytest.approx((95.0, math.exp(middle)))


def test_it_corrects_for_the_figures_that_are_asked_about_and_no_others(tmp_path: Path) -> None:
    whole, one = judged(tmp_path, 10.1), judged(tmp_path / "again", 10.1, chosen=["web.run_time"])
    assert [figure.confidence for figure in whole.figures] == pytest.approx([97.5, 97.5])
    assert [figure.confidence for figure in one.figures] == pytest.approx([95.0])
    assert "corrected for 2 metrics: each interval is at 97.5 %" in night_text(whole)
    assert "corrected" not in night_text(one)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_three_nights_make_a_baseline(tmp_path: Path, count: int) -> None:
    before = [night(tmp_path, f"night-{at}", one) for at, one in enumerate(NIGHTS[:count])]
    found = judge_night(night(tmp_path, "tonight", 30.0), before, baseline="nightly")
    assert found.learning and set(states(found).values()) == {NightState.CANNOT_TELL}
    assert [found.exit_code(), found.exit_code(strict=True), found.exit_code(lenient=True)] == [4, 1, 0]
    text = night_text(found)
    assert f"no baseline yet, {count} of the 3 nights that it takes" in text
    line = f"? cache none: web: 30.0 s, cannot tell, {count} of the 3 nights that an answer takes"
    assert line in " ".join(text.split())


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({"host": {**HOST, "qemu": "9.0"}}, "host qemu differs: then 9.0, tonight 7.2.22"),
        ({"host": {**HOST, "hostname": "pve9"}}, "host hostname differs: then pve9, tonight pve1"),
        ({"size": "full"}, "size differs: then full, tonight smoke"),
        ({"accelerator": "kvm"}, "accelerator differs: then kvm, tonight tcg"),
        ({"ended": "aborted"}, "it is aborted"),
        ({"ended": "failed"}, "it is failed"),
        ({"caches": ["writeback"]}, "it has no cell with cache none"),
    ],
)
def test_a_night_under_other_conditions_does_not_count(tmp_path: Path, changes: dict[str, Any], because: str) -> None:
    before = [night(tmp_path, f"night-{at}", one) for at, one in enumerate(NIGHTS)]
    other = night(tmp_path, "other", 20.0, **changes)
    found = judged(tmp_path, 10.1, [other, *before])
    assert found.left_out == (("other", because),)
    assert len(found.nights) == 4
    assert f"! run other does not count: {because}" in night_text(found)


def test_a_change_that_is_under_test_may_be_allowed(tmp_path: Path) -> None:
    newer = {**HOST, "qemu": "9.0"}
    assert judged(tmp_path / "a", night(tmp_path, "x", 12.0, host=newer)).learning
    found = judged(tmp_path / "b", night(tmp_path, "y", 12.0, host=newer), allowed=["host qemu"])
    assert found.fails and len(found.nights) == 4
    assert judged(tmp_path / "c", night(tmp_path, "z", 12.0, host=newer), allowed=["host"]).fails


def test_the_seed_may_differ_from_night_to_night(tmp_path: Path) -> None:
    assert len(judged(tmp_path, night(tmp_path, "tonight", 10.1, seed=77)).nights) == 4


def test_a_workload_that_failed_fails_the_gate_and_an_invalid_night_is_undecided(tmp_path: Path) -> None:
    broken = judged(tmp_path / "a", night(tmp_path, "x", 10.0, outcome="failed", ended="failed"))
    assert states(broken)["web"] == NightState.FAILED and broken.exit_code() == ExitCode.FAILED
    invalid = judged(tmp_path / "b", night(tmp_path, "y", 10.0, outcome="invalid", ended="invalid"))
    assert {one.because for one in invalid.figures} == {"tonight it is invalid"}
    assert invalid.exit_code() == ExitCode.INVALID
    with pytest.raises(UsageError, match="run z is aborted, and no night to judge"):
        judged(tmp_path / "c", night(tmp_path, "z", 10.0, ended="aborted"))


def test_a_recording_is_no_night(tmp_path: Path) -> None:
    recorded = night(tmp_path, "r", 10.0)
    recorded = replace(recorded, run=replace(recorded.run, size="host"))
    with pytest.raises(UsageError, match="run r is a recording of the host, and no night to judge"):
        judged(tmp_path / "a", recorded)


def test_a_place_that_tonight_lacks_is_undecided(tmp_path: Path) -> None:
    both = ("none", "writeback")
    before = [night(tmp_path, f"night-{at}", one, caches=both) for at, one in enumerate(NIGHTS)]
    found = judged(tmp_path, 10.1, before)
    assert [(one.workload, one.axes, one.because) for one in found.figures if one.undecided] == [
        ("every workload", {"cache": "writeback"}, "tonight has no cell there")
    ]


def test_figures_that_nobody_has_or_of_which_no_end_is_better_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no cell that is compared has this metric"):
        judged(tmp_path / "a", 10.1, chosen=["web.nothing"])
    of: dict[str, Any] = {"metric": ("bytes", "B")}
    before = [night(tmp_path, f"night-{at}", one, **of) for at, one in enumerate(NIGHTS)]
    with pytest.raises(UsageError, match="neither end of it is better"):
        judged(tmp_path, night(tmp_path, "tonight", 10.0, **of), before, chosen=["web.bytes"])


def test_the_document_and_the_cases_of_a_ci_server(tmp_path: Path) -> None:
    found = judged(tmp_path, night(tmp_path, "tonight", 12.0))
    body = jsonable(found)
    assert body["schema"] == "vmlab.gate/1"
    assert (body["run"], body["baseline"], body["fails"]) == ("tonight", "nightly", True)
    assert [one["run"] for one in body["nights"]] == ["night-0", "night-1", "night-2", "night-3"]
    figure = body["figures"][0]
    assert figure["interval"][0] < figure["expected"] < figure["interval"][1] < figure["value"]
    assert (figure["state"], figure["fails"], figure["nights"]) == ("worse", True, 4)
    assert figure["fails_from_percent"] == pytest.approx(100 * (figure["interval"][1] / figure["expected"] - 1))
    xml = junit_night(found).decode()
    assert xml.count("<failure") == 2 and 'name="cache none: web"' in xml and 'name="vmlab gate"' in xml
    undecided = judge_night(night(tmp_path, "first", 12.0), [], baseline="nightly")
    assert junit_night(undecided).count(b"<skipped") == 2 and b"<error" not in junit_night(undecided)
    assert junit_night(undecided, strict=True).count(b"<error") == 2


def test_the_text_says_how_far_tonight_is_off(tmp_path: Path) -> None:
    text = " ".join(night_text(judged(tmp_path, 12.0)).split())
    assert "gate nightly: failed at 2 of 2 metrics" in text
    assert "FAIL cache none: web: 12.0 s, worse than that: another of 4 nights lies from " in text
    assert "nights: 4, 2026-11-21 14:30 UTC" in text
    assert "; worse means +" in text
    assert "passed" in night_text(judged(tmp_path / "again", 10.1))
    assert max(map(len, night_text(judged(tmp_path / "third", 12.0), 80).splitlines())) <= 80


@pytest.mark.parametrize(("nights", "spread"), [(3, 0.0), (3, 1.0), (10, 0.0), (10, 1.0), (10, 3.0)])
def test_of_nights_that_do_not_differ_few_fail(nights: int, spread: float) -> None:
    # Four figures, three repeats a night, whose error is 1; at 5 % for both ends of all four together.
    draw, repeats, tries = np.random.default_rng(7), 3, 4_000
    shape = (tries, 4, nights + 1)
    readings = spread * draw.normal(size=shape)[..., None] + math.sqrt(repeats) * draw.normal(size=(*shape, repeats))
    shown = readings.mean(-1)
    variance = readings[..., :-1, :].var(-1, ddof=1).mean(-1) / repeats
    found = pooled(shown[..., :-1], np.repeat(variance[..., None], nights, axis=-1))
    half = student_t(nights - 1, 1 - 0.05 / 4) * np.sqrt(found.tau_squared + found.error**2 + variance)
    assert (shown[..., -1] > found.mean + half).any(-1).mean() < 0.035
