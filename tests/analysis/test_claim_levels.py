"""Claims that hold a figure by itself against a bound, and claims about single tiles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.analysis.comparison.judging import level_of
from vmlab.analysis.document import run_document
from vmlab.analysis.figures.reading import find
from vmlab.analysis.reference.claims import answer_claim
from vmlab.analysis.shape import RunDocument
from vmlab.model.jsonable import jsonable
from vmlab.model.scenarios.reference import Claim
from vmlab.store.reader import RunReader

ONE = {"tiles": 3}
STEPS = (-2.0, 1.0, -1.0, 2.0, 0.5, -0.5, 1.5)


def _run(path: Path, tiles: dict[int, list[float]], metric: str = "throughput", unit: str = "B/s") -> RunDocument:
    """Repeats of one point, with a figure of each tile in each; the host swapped as many bytes as tile 1 has."""
    story = Story(path / "run.sqlite").begin({"tiles": [3]}, cells=len(tiles[1]))
    for repeat, first in enumerate(tiles[1], start=1):
        story.start_cell(ONE, repeat, guests=3)
        story.execute(2.0, [{"memory_used_bytes": first}])
        for tile, values in tiles.items():
            story.measure("files", values[repeat - 1], metric, unit, tile)
        story.end_cell(wall=5.0)
    with RunReader(story.end()) as reader:
        return run_document(reader)


def _claim(**said: Any) -> Claim:
    return Claim.model_validate({"say": "a sentence", "metric": "throughput", **said})


def _about(middle: float, repeats: int = 7) -> list[float]:
    return [middle + step for step in STEPS[:repeats]]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ({"at_least": [ONE], "value": "90"}, "reproduced"),
        ({"at_most": [ONE], "value": "90"}, "not"),
        ({"at_most": [ONE], "value": "110"}, "reproduced"),
        ({"at_least": [ONE], "value": "110"}, "not"),
        ({"at_least": [ONE], "value": "100"}, "cannot tell"),
        ({"at_least": [ONE], "value": "0.09", "unit": "KiB/s"}, "reproduced"),
        ({"at_least": [ONE], "value": "0.11", "unit": "KiB/s"}, "not"),
        ({"at_most": [ONE], "value": "110", "metric": "host.memory_used_bytes"}, "reproduced"),
        ({"at_least": [ONE], "value": "1", "unit": "MB", "metric": "host.memory_used_bytes"}, "not"),
    ],
)
def test_the_interval_of_the_figure_answers(said: dict[str, Any], answer: str, tmp_path: Path) -> None:
    found = answer_claim(_run(tmp_path, {1: _about(100)}), _claim(**said))
    assert found.answer == answer, found.because
    assert found.readings_needed == 6
    level = found.comparisons[0].level
    assert level is not None
    assert level == level_of(found.evidence[0].figure, level.bound, level.unit, 1)
    assert jsonable(found)["comparisons"][0]["level"]["interval"] == list(level.interval or ())


def test_the_reason_has_figure_bound_and_interval(tmp_path: Path) -> None:
    run = _run(tmp_path, {1: _about(100)}, "iops", "1/s")
    (why,) = answer_claim(run, _claim(metric="iops", at_least=[ONE], value="90")).because
    words = "tiles 3: 100.2 1/s (n 7, cells 1, 2, 3, 4, 5, 6, 7), against at least 90 1/s ("
    assert why.startswith(words) and why.endswith(" at 95 % confidence)")


@pytest.mark.parametrize(("repeats", "few"), [(1, "one measurement, no spread known"), (5, "too few measurements")])
def test_readings_that_are_too_few_point_and_do_not_answer(repeats: int, few: str, tmp_path: Path) -> None:
    found = answer_claim(_run(tmp_path, {1: _about(100, repeats)}), _claim(at_least=[ONE], value="90"))
    assert (found.answer, found.points_to, found.too_few) == ("cannot tell", "reproduced", True)
    assert found.because[0].endswith(few)


def test_levels_are_corrected_for_all_that_the_claim_names(tmp_path: Path) -> None:
    run = _run(tmp_path, {1: _about(100, 6)})
    assert answer_claim(run, _claim(at_least=[ONE], value="90")).answer == "reproduced"
    two = answer_claim(run, _claim(at_least=[ONE, {"tiles": 4}], value="90"))
    assert (two.answer, two.readings_needed, two.claim.comparisons) == ("cannot tell", 7, 2)
    assert two.because[1] == "the run has no cell with tiles 4"


def test_of_a_run_to_which_repeats_were_added_an_answer_takes_more(tmp_path: Path) -> None:
    run = _run(tmp_path, {1: _about(100, 6)})
    extended = replace(run, cells=[replace(cell, level_divisor=2) for cell in run.cells])
    found = answer_claim(extended, _claim(at_least=[ONE], value="90"))
    assert (found.answer, found.readings_needed) == ("cannot tell", 7)
    seven = _run(tmp_path / "seven", {1: _about(100)})
    extended = replace(seven, cells=[replace(cell, level_divisor=2) for cell in seven.cells])
    found = answer_claim(extended, _claim(at_least=[ONE], value="90"))
    assert (found.answer, found.comparisons[0].level and found.comparisons[0].level.confidence) == ("reproduced", 97.5)


def test_a_unit_of_another_thing_is_the_reason_for_no_answer(tmp_path: Path) -> None:
    found = answer_claim(_run(tmp_path, {1: _about(100)}), _claim(at_least=[ONE], value="90", unit="GB"))
    assert found.answer == "cannot tell"
    assert found.because[0].endswith("which cannot be converted to GB")


def test_a_statistic_over_tiles_is_held_against_a_bound(tmp_path: Path) -> None:
    """Three tiles with 50, 100 and 150 differ by half of their mean."""
    run = _run(tmp_path, {1: _about(50), 2: _about(100), 3: _about(150)})
    claim = _claim(at_least=[ONE], value="10", statistic="cv")
    found = answer_claim(run, claim)
    assert found.answer == "reproduced"
    assert found.evidence[0].unit == "%"
    assert found.evidence[0].figure.readings[1].value == pytest.approx(100 * 50 / 101)


def test_tiles_are_compared_with_each_other_over_repeats(tmp_path: Path) -> None:
    turns = [[60, 100, 140], [140, 60, 100], [100, 140, 60]] * 3
    even = _run(tmp_path / "even", {tile: [float(turn[tile - 1]) for turn in turns] for tile in (1, 2, 3)})
    biased = _run(tmp_path / "biased", {1: _about(100), 2: _about(101), 3: _about(150)})
    places = [{**ONE, "tile": tile} for tile in (1, 2, 3)]
    claim = _claim(equal_within=places, tolerance="10 %")
    assert answer_claim(biased, claim).answer == "not"
    assert [one.answer for one in answer_claim(biased, claim).comparisons] == ["reproduced", "not"]
    figures = [one.figure for one in answer_claim(even, claim).evidence]
    assert [figure.spread.mean for figure in figures if figure.spread] == pytest.approx([100, 100, 100])
    assert answer_claim(even, claim).answer == "cannot tell"


def test_a_tile_that_is_not_there_has_no_figure(tmp_path: Path) -> None:
    run = _run(tmp_path, {1: _about(100)})
    assert find(run, ONE, "throughput", tile=1).figure.state == "passed"
    assert find(run, ONE, "throughput", tile=2).reason == "tiles 3: throughput was not measured"
