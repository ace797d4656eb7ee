"""A run's answers to the sentences of a publication."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.analysis.comparison.difference import difference
from vmlab.analysis.document import run_document
from vmlab.analysis.figures.figure import Figure, OneReading
from vmlab.analysis.figures.reading import Reading
from vmlab.analysis.reference.claims import answer_claim, answered
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.descriptive import spread
from vmlab.model.jsonable import jsonable
from vmlab.model.scenarios.reference import Claim
from vmlab.store.reader import RunReader

NONE, WRITEBACK = {"cache": "none"}, {"cache": "writeback"}


def _run(path: Path, none: list[float], writeback: list[float], outcome: str = "passed") -> RunDocument:
    """Repeats of both cache modes, `outcome` of the second."""
    story = Story(path / "run.sqlite").begin({"cache": ["none", "writeback", "unsafe"]}, cells=6)
    for cache, times, ended in (("none", none, "passed"), ("writeback", writeback, outcome)):
        for repeat, seconds in enumerate(times, start=1):
            story.start_cell({"cache": cache}, repeat)
            story.measure("web", seconds)
            story.end_cell(ended, [] if ended == "passed" else ["late"], wall=seconds)
    with RunReader(story.end()) as reader:
        return run_document(reader)


def _claim(**said: Any) -> Claim:
    return Claim.model_validate({"say": "a sentence", **said})


def _around(middle: float, percent: float = 0.5, repeats: int = 6) -> list[float]:
    """Repeats that move about `middle` by up to so many percent, and not with those of another middle."""
    steps = [math.sin(repeat * middle) for repeat in range(1, repeats + 1)]
    return [middle * (1 + percent / 100 * step) for step in steps]


@pytest.mark.parametrize(
    ("none", "writeback", "said", "answer"),
    [
        (_around(10), _around(8), {"less": [WRITEBACK, NONE]}, "reproduced"),
        (_around(10), _around(8), {"greater": [WRITEBACK, NONE]}, "not"),
        (_around(8), _around(10), {"greater": [WRITEBACK, NONE]}, "reproduced"),
        (_around(10, 20), _around(9.9, 20), {"less": [WRITEBACK, NONE]}, "cannot tell"),
        (_around(10), _around(8), {"less": [WRITEBACK, NONE], "by": "15 %"}, "reproduced"),
        (_around(10), _around(8), {"less": [WRITEBACK, NONE], "by": "20 %"}, "cannot tell"),
        (_around(10), _around(8), {"less": [WRITEBACK, NONE], "by": "50 %"}, "not"),
        (_around(10), _around(8), {"less": [WRITEBACK, NONE], "metric": "wall_seconds"}, "reproduced"),
        # Shown to be equal, shown to differ, not known well enough for either, and at the edge of the tolerance.
        (_around(10), _around(10.1), {"equal_within": [WRITEBACK, NONE]}, "reproduced"),
        (_around(10), _around(13), {"equal_within": [WRITEBACK, NONE]}, "not"),
        (_around(10), _around(7), {"equal_within": [WRITEBACK, NONE]}, "not"),
        (_around(10, 20), _around(10.1, 20), {"equal_within": [WRITEBACK, NONE]}, "cannot tell"),
        (_around(10), _around(10.5), {"equal_within": [WRITEBACK, NONE]}, "cannot tell"),
        (_around(10), _around(7.6), {"ratio": [WRITEBACK, NONE], "value": "0.75"}, "reproduced"),
        (_around(10), _around(5), {"ratio": [WRITEBACK, NONE], "value": "0.75"}, "not"),
        (_around(10), _around(10), {"ratio": [WRITEBACK, NONE], "value": "0.75"}, "not"),
        # What is equal in all repeats is neither less nor known to be greater.
        ([10.0] * 6, [10.0] * 6, {"less": [WRITEBACK, NONE]}, "not"),
        ([10.0] * 6, [10.0] * 6, {"equal_within": [WRITEBACK, NONE], "tolerance": "0 %"}, "reproduced"),
    ],
)
def test_the_interval_of_the_difference_answers(
    none: list[float], writeback: list[float], said: dict[str, Any], answer: str, tmp_path: Path
) -> None:
    found = answer_claim(_run(tmp_path, none, writeback), _claim(**said))
    assert found.answer == answer, found.because
    assert found.points_to is None
    assert len(found.evidence) == 2


@pytest.mark.parametrize("said", [{"less": [WRITEBACK, NONE]}, {"greater": [WRITEBACK, NONE]}])
def test_a_claim_of_one_comparison_is_answered_where_a_difference_is_proven(said: dict[str, Any]) -> None:
    verdicts = set()
    for middle, percent in ((8.0, 0.5), (9.9, 0.5), (9.5, 20), (10.3, 20), (13.0, 20)):
        one, other = _evidence(_around(middle, percent)), _evidence(_around(10, percent))
        (comparison,) = answered(_claim(**said), [[one, other]]).comparisons
        expected = difference(other.figure, one.figure, None)
        assert comparison.difference == expected
        assert (comparison.answer != "cannot tell") == expected.proven
        verdicts.add(expected.verdict)
    assert len(verdicts) == 2


@pytest.mark.parametrize(
    ("none", "writeback", "said", "points_to"),
    [
        ([10], [8], {"less": [WRITEBACK, NONE]}, "reproduced"),
        ([10], [8], {"greater": [WRITEBACK, NONE]}, "not"),
        ([10], [10.2], {"equal_within": [WRITEBACK, NONE]}, "reproduced"),
        ([10], [13], {"equal_within": [WRITEBACK, NONE]}, "not"),
        (_around(10, repeats=5), _around(8, repeats=5), {"less": [WRITEBACK, NONE]}, "reproduced"),
        ([10], [8], {"less": [{"cache": "unsafe"}, NONE]}, None),
        ([10], [8], {"less": [WRITEBACK, NONE], "metric": "iops"}, None),
        ([0], [8], {"less": [WRITEBACK, NONE]}, None),
    ],
)
def test_readings_that_are_too_few_point_and_do_not_answer(
    none: list[float], writeback: list[float], said: dict[str, Any], points_to: str | None, tmp_path: Path
) -> None:
    found = answer_claim(_run(tmp_path, none, writeback), _claim(**said))
    assert (found.answer, found.points_to) == ("cannot tell", points_to), found.because
    assert found.too_few == (points_to is not None)
    assert found.readings_needed == 6
    if points_to is not None:
        why = "one measurement each, no spread known" if len(none) == 1 else "too few measurements"
        assert found.because[0].endswith(f", {why}")


def test_several_comparisons_are_corrected_and_all_that_are_named_count(tmp_path: Path) -> None:
    """Six repeats that differ by 5 to 6 % answer for one comparison, and are too few for two, run or not."""
    less, each = {"less": [{}, NONE]}, {"each": {"cache": ["writeback", "unsafe"]}}
    for repeats, answer in ((6, "cannot tell"), (7, "not")):
        run = _run(tmp_path / f"{repeats}", _around(10, repeats=repeats), _around(10.55, repeats=repeats))
        found = answer_claim(run, _claim(**less, **each))
        assert (found.answer, found.readings_needed) == (answer, 7)
        assert [one.answer for one in found.comparisons] == [answer, "cannot tell"]
        assert found.comparisons[0].difference.family == 2
    assert (
        answer_claim(_run(tmp_path / "one", _around(10), _around(10.55)), _claim(less=[WRITEBACK, NONE])).answer
        == "not"
    )
    assert found.comparisons[0].difference.confidence == 97.5


def test_claims_that_are_true_are_seldom_answered_with_not() -> None:
    """Of 1000 claims of three comparisons, on a host whose speed moves by 10 %: 46 are expected at 1.6 % each."""
    draw, each = random.Random(3), {"workloads": ["web", "mail", "files"]}
    claim = _claim(equal_within=[WRITEBACK, NONE], each=each, tolerance="0 %")
    wrong = 0
    for _ in range(1000):
        speeds = [draw.lognormvariate(0, 0.1) for _ in range(8)]
        evidence = [
            [_evidence([speed * draw.lognormvariate(0, 0.03) for speed in speeds]) for _ in "ab"] for _ in "abc"
        ]
        wrong += answered(claim, evidence).answer == "not"
    assert 20 < wrong < 75


def _figure(values: Sequence[float]) -> Figure:
    return Figure(
        "passed", spread(values), 0, tuple(OneReading(value, repeat) for repeat, value in enumerate(values, 1))
    )


def _evidence(values: Sequence[float], unit: str = "s") -> Reading:
    return Reading(_figure(values), unit, cells=(1,))


@pytest.mark.parametrize(
    ("share", "said", "answer", "words"),
    [
        # 18 to 20 of three tiles against 10 of one, and 13.5 to 20.
        (0.9, {"greater": [WRITEBACK, NONE], "by": "50 %"}, "reproduced", r"18.* to 20.*, \+80\.\d to \+100\.\d % \("),
        (0.675, {"greater": [WRITEBACK, NONE], "by": "50 %"}, "cannot tell", "run at the same time, so their rates"),
        (0.675, {"greater": [WRITEBACK, NONE], "by": "110 %"}, "not", r"13\.5 1/s to 20"),
        (0.9, {"ratio": [WRITEBACK, NONE], "value": "2", "tolerance": "25 %"}, "reproduced", r"is 1\.80\d to 2\.00\d"),
        (0.9, {"less": [NONE, WRITEBACK], "by": "40 %"}, "reproduced", r", -50\.\d to -44\.\d %"),
        (0.9, {"less": [NONE, WRITEBACK], "by": "47 %"}, "cannot tell", "run at the same time, so their rates"),
        (None, {"greater": [WRITEBACK, NONE]}, "cannot tell", "run at the same time, so their rates"),
    ],
)
def test_a_sum_of_tiles_that_ran_together_for_a_part_lies_between_two_bounds(
    share: float | None, said: dict[str, Any], answer: str, words: str
) -> None:
    alone, sums = _around(10), _around(20)
    least = None if share is None else _figure([share * one for one in sums])
    together = Reading(_figure(sums), "1/s", apart=True, overlap=share, least=least, place=WRITEBACK)
    sides = {"none": _evidence(alone, "1/s"), "writeback": together}
    claim = _claim(metric="iops", **said)
    found = answered(claim, [[sides[str(place["cache"])] for place in claim.places]])
    assert found.answer == answer, found.because
    assert re.search(words, found.because[0]), found.because
    assert found.open is False


def test_what_is_invalid_tells_nothing(tmp_path: Path) -> None:
    found = answer_claim(_run(tmp_path, [10], [5], "invalid"), _claim(less=[WRITEBACK, NONE]))
    assert found.answer == "cannot tell"
    assert found.because == ("cache writeback: the metric is invalid",)


def test_the_evidence_names_figures_and_cells(tmp_path: Path) -> None:
    found = answer_claim(_run(tmp_path, [10, 10.1], [8]), _claim(less=[WRITEBACK, NONE]))
    assert found.because == (
        "cache writeback: 8 s (n 1, cell 3) against cache none: 10.05 s (n 2, cells 1, 2), -20.0 %, "
        "too few measurements",
    )
    body = jsonable(found)
    first = body["evidence"][0]
    assert (first["place"], first["mean"], first["count"], first["cells"]) == (WRITEBACK, 8.0, 1, [3])
    (comparison,) = body["comparisons"]
    assert (comparison["answer"], comparison["points_to"]) == (body["answer"], body["points_to"])
    assert comparison["difference"]["percent"] == pytest.approx(-20)


def test_the_reason_has_the_interval(tmp_path: Path) -> None:
    run = _run(tmp_path, _around(10), _around(8))
    (why,) = answer_claim(run, _claim(less=[WRITEBACK, NONE])).because
    assert re.search(r" \(n 6, cells 1, 2, 3, 4, 5, 6\), -20\.. % \(-20\.. to -19\.. at 95 % confidence\)$", why)
    (why,) = answer_claim(run, _claim(ratio=[WRITEBACK, NONE], value="0.75")).because
    assert re.search(r" over cache none: .*\) is 0\.80. \(0\.79. to 0\.80. at 95 % confidence\)$", why)


def test_a_claim_for_several_values_holds_for_all_of_them(tmp_path: Path) -> None:
    claim = _claim(less=[{}, {"cache": "none"}], each={"cache": ["writeback", "none"]})
    found = answer_claim(_run(tmp_path, [10], [8]), claim)
    assert [one.points_to for one in found.comparisons] == ["reproduced", "not"]
    assert (found.answer, found.points_to) == ("cannot tell", "not")


def test_a_part_that_was_not_run_keeps_the_others_from_pointing(tmp_path: Path) -> None:
    claim = _claim(less=[{}, {"cache": "none"}], each={"cache": ["writeback", "unsafe"]})
    found = answer_claim(_run(tmp_path, [10], [8]), claim)
    assert [one.points_to for one in found.comparisons] == ["reproduced", None]
    assert (found.answer, found.points_to) == ("cannot tell", None)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "needs one of less, greater, equal_within, ratio, at_least, at_most, not 0"),
        ({"less": [NONE, WRITEBACK], "greater": [NONE, WRITEBACK]}, "not 2"),
        ({"ratio": [NONE, WRITEBACK]}, "`value` goes with ratio, at_least and at_most"),
        ({"at_least": [NONE]}, "`value` goes with ratio, at_least and at_most"),
        ({"less": [NONE, WRITEBACK], "value": "0.75"}, "`value` goes with ratio, at_least and at_most"),
        ({"less": [NONE, WRITEBACK], "unit": "s"}, "`unit` is that of the bound"),
        ({"less": [NONE, WRITEBACK], "source": "ours", "where": "page 2"}, "is not in the publication"),
        ({"less": [NONE, WRITEBACK], "source": "ours", "there": "it is so"}, "is not in the publication"),
        ({"less": [NONE]}, "at least 2 items"),
    ],
)
def test_a_sentence_that_says_nothing_is_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        _claim(**said)
