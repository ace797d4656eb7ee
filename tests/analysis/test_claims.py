"""A run's answers to the sentences of a publication."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.analysis.claims import answer_claim
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.model.reference import Claim
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


@pytest.mark.parametrize(
    ("none", "writeback", "said", "answer"),
    [
        ([10, 10.1, 10.2], [8, 8.1, 8.2], {"less": [WRITEBACK, NONE]}, "reproduced"),
        ([10, 10.1, 10.2], [8, 8.1, 8.2], {"greater": [WRITEBACK, NONE]}, "not"),
        ([10, 12, 14], [9, 11, 13], {"less": [WRITEBACK, NONE]}, "cannot tell"),
        ([10, 10.1, 10.2], [8, 8.1, 8.2], {"less": [WRITEBACK, NONE], "by": "50 %"}, "not"),
        ([10], [8], {"less": [WRITEBACK, NONE]}, "reproduced"),
        ([10], [9.5], {"less": [WRITEBACK, NONE]}, "cannot tell"),
        ([10], [10.2], {"equal_within": [WRITEBACK, NONE]}, "reproduced"),
        ([10], [11], {"equal_within": [WRITEBACK, NONE]}, "cannot tell"),
        ([10], [13], {"equal_within": [WRITEBACK, NONE]}, "not"),
        ([10, 10.05, 10.1], [10, 10.1, 10.1], {"equal_within": [WRITEBACK, NONE]}, "reproduced"),
        ([10, 15, 20], [10, 15, 20], {"equal_within": [WRITEBACK, NONE]}, "cannot tell"),
        ([10, 10.1, 10.2], [7.5, 7.6, 7.7], {"ratio": [WRITEBACK, NONE], "value": "0.75"}, "reproduced"),
        ([10, 10.1, 10.2], [5, 5.1, 5.2], {"ratio": [WRITEBACK, NONE], "value": "0.75"}, "not"),
        ([10], [8], {"less": [{"cache": "unsafe"}, NONE]}, "cannot tell"),
        ([10], [8], {"less": [WRITEBACK, NONE], "metric": "wall_seconds"}, "reproduced"),
        ([10], [8], {"less": [WRITEBACK, NONE], "metric": "iops"}, "cannot tell"),
    ],
)
def test_what_is_answered(
    none: list[float], writeback: list[float], said: dict[str, Any], answer: str, tmp_path: Path
) -> None:
    answered = answer_claim(_run(tmp_path, none, writeback), _claim(**said))
    assert answered.answer == answer, answered.because
    assert len(answered.evidence) == 2


def test_single_readings_are_held_against_the_spread_of_what_was_repeated(tmp_path: Path) -> None:
    answered = answer_claim(_run(tmp_path, [10, 14, 18], [7]), _claim(less=[WRITEBACK, NONE]))
    assert answered.answer == "cannot tell"
    assert "by repeats elsewhere" in answered.because[0]


def test_what_is_invalid_tells_nothing(tmp_path: Path) -> None:
    answered = answer_claim(_run(tmp_path, [10], [5], "invalid"), _claim(less=[WRITEBACK, NONE]))
    assert answered.answer == "cannot tell"
    assert answered.because == ("cache writeback: the figure is invalid",)


def test_the_evidence_names_figures_and_cells(tmp_path: Path) -> None:
    answered = answer_claim(_run(tmp_path, [10, 10.1], [8]), _claim(less=[WRITEBACK, NONE]))
    assert answered.because[0].startswith(
        "cache writeback: 8 s (n 1, cell 3) against cache none: 10.05 s (n 2, cells 1, 2), -20.4 %"
    )
    first = answered.to_json()["evidence"][0]
    assert (first["place"], first["mean"], first["count"], first["cells"]) == (WRITEBACK, 8.0, 1, [3])


def test_a_claim_for_several_values_holds_for_all_of_them(tmp_path: Path) -> None:
    claim = _claim(less=[{}, {"cache": "none"}], each={"cache": ["writeback", "none"]})
    answered = answer_claim(_run(tmp_path, [10], [8]), claim)
    assert len(answered.because) == 2


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "needs one of less, greater, equal_within, ratio, not 0"),
        ({"less": [NONE, WRITEBACK], "greater": [NONE, WRITEBACK]}, "not 2"),
        ({"ratio": [NONE, WRITEBACK]}, "`ratio` and `value` go together"),
        ({"less": [NONE]}, "at least 2 items"),
    ],
)
def test_a_sentence_that_says_nothing_is_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        _claim(**said)
