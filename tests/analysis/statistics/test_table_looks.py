"""Planned looks at a table: how seldom they prove what is not there, what they save, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.analysis.looks_page import (
    FIGURES,
    LOOKS,
    NOISE,
    PAGE,
    Array,
    Looked,
    alarms,
    covered,
    current,
    looked,
    ratios,
    size_of,
    with_size,
)
from tests.store.stories import Story
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.difference import Difference, Sides, differences
from vmlab.analysis.comparison.meetings import sides_by_axis
from vmlab.analysis.document import compared_document, run_document
from vmlab.analysis.figures.figure import Figure, OneReading
from vmlab.analysis.shape import RunDocument, UntilDocument
from vmlab.analysis.statistics.descriptive import spread
from vmlab.analysis.statistics.sample_size import ALPHA, level_divisor, readings_needed
from vmlab.model.event import RepeatsEnded
from vmlab.model.jsonable import jsonable
from vmlab.report.comparison_text import comparison_notes
from vmlab.report.run.run_page import run_table
from vmlab.report.verdicts import planned_words
from vmlab.store.reader import RunReader

FEWER_TRIES = 1_000


@pytest.mark.exhaustive
@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("figures", FIGURES)
def test_looks_prove_what_is_not_there_in_one_run_of_twenty_at_most(figures: int, noise: str) -> None:
    found = alarms(noise, figures)
    assert max(found.shown, found.any_look, found.among_others) <= ALPHA < found.undivided


@pytest.mark.parametrize("figures", [1, 3])
def test_so_they_do_in_fewer_tries_and_undivided_they_would_not(figures: int) -> None:
    found = alarms(NOISE[2], figures, FEWER_TRIES, seed=5)
    assert 0 < found.any_look <= ALPHA < found.undivided
    assert found.among_others <= ALPHA


@pytest.mark.parametrize("figures", FIGURES)
def test_three_detectable_sizes_save_half_of_the_cells_and_lose_no_difference(figures: int) -> None:
    drawn = with_size(ratios(NOISE[0], 12, (FEWER_TRIES, figures, LOOKS[-1])), 3.0, figures)
    found = looked(drawn)
    assert found.repeats <= LOOKS[-1] / 2
    assert found.shown.mean() > 0.99
    assert covered(drawn, found, 3.0 * size_of(figures)) >= 1 - ALPHA / len(LOOKS) - 0.01


@pytest.mark.exhaustive
def test_the_page_has_the_tables_that_are_simulated() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == current(page), "run `python -m tests.analysis.looks_page`"


def _family(ratios_of_blocks: Array, divisor: int) -> list[Difference]:
    def figure(values: list[float]) -> Figure:
        readings = tuple(OneReading(one, at, level_divisor=divisor) for at, one in enumerate(values))
        return Figure("passed", spread(values), 0, readings)

    before = figure([1.0] * ratios_of_blocks.shape[-1])
    return differences(
        [Sides(before, figure([*map(float, np.exp(one))]), more_is_better=False) for one in ratios_of_blocks]
    )


def test_these_decisions_are_those_of_a_table() -> None:
    drawn = with_size(ratios(NOISE[0], 3, (60, 3, LOOKS[-1])), 1.2, 2)
    found: Looked = looked(drawn)
    assert {*found.ended} > {len(LOOKS) - 1}, "some end early and some do not"
    for place, one in enumerate(drawn):
        family = _family(one[:, : LOOKS[found.ended[place]]], level_divisor(0, len(LOOKS)))
        assert [each.proven for each in family] == [*found.shown[place]]
        assert all(each.confidence and each.confidence >= 100 * (1 - ALPHA / len(LOOKS)) for each in family)


def _stopped(path: Path, *, looks_at: str | None = "table", repeats: int = 10) -> RunDocument:
    """A run that was to be looked at as often, and ended after so many repeats."""
    until: dict[str, Any] = {
        "spread": None,
        "looks": [*LOOKS],
        "at_least": LOOKS[0],
        "at_most": LOOKS[-1],
        "time": None,
    }
    until |= {"looks_at": looks_at} if looks_at else {}
    story = Story(path / "run.sqlite")
    story.begin({"cache": ["none", "writeback"], "tiles": [1]}, cells=2 * LOOKS[-1], said={"until": until})
    for repeat in range(1, repeats + 1):
        for cache, seconds in (("none", 10.0), ("writeback", 11.0)):
            story.cell({"cache": cache, "tiles": 1}, {"web": seconds + repeat / 100}, seconds, repeat)
    story.writer.append(
        RepeatsEnded(**story.now(), repeats=repeats, cells=2 * repeats, widest_percent=None, reached=True)
    )
    with RunReader(story.end()) as reader:
        return run_document(reader)


def _differences(run: RunDocument) -> list[Difference]:
    return [one.difference for table in run.tables for *_, one in table.each() if one.difference is not None]


def test_a_run_that_ended_at_a_look_has_intervals_at_its_level_and_says_why_it_ended(tmp_path: Path) -> None:
    run = _stopped(tmp_path)
    assert isinstance(run.run.until, UntilDocument)
    words = planned_words(run.run.until)
    assert words == (
        "planned interim analyses after 10, 14, 18 and 24 repeats, ended after 10, "
        "as more would prove no further difference: "
        "each judged at 1.25 %; over all 4 analyses a false positive has a chance of at most 5 %"
    )
    # By hand: 2 / 2^10 is below 5 % / 4 over two figures, and Holm has the second at 5 % / 4.
    found = _differences(run)
    assert [one.confidence for one in found] == [pytest.approx(100 - 5 / 8), 98.75]
    assert [one.proven for one in found] == [True, True]
    assert {one.needed for one in found} == {readings_needed(4 * 2)}
    assert " ".join(run_table(run).split()).count(words) == 1
    assert "at 98.75 % confidence at least" in " ".join(run_table(run).split())
    until = jsonable(run)["run"]["until"]
    assert (until["looks_at"], until["looks"], until["repeats"], until["reached"]) == ("table", [*LOOKS], 10, True)


def test_so_says_a_comparison_within_it(tmp_path: Path) -> None:
    _stopped(tmp_path / "a")
    with RunReader(tmp_path / "a" / "run.sqlite") as reader:
        run = compared_document(reader)
    assert run.run.until is not None
    words = planned_words(run.run.until)
    assert words in comparison_notes(compare(sides_by_axis(run)))


def test_looks_at_claims_leave_tables_as_they_were(tmp_path: Path) -> None:
    run = _stopped(tmp_path, looks_at=None)
    assert [one.confidence for one in _differences(run)] == [97.5, 95.0]
    assert "planned interim analyses" not in run_table(run)
    assert "looks_at" not in jsonable(run)["run"]["until"]
