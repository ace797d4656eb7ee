"""Repeats that are added until something is proven: how often that is an alarm where nothing differs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.analysis.looks_page import NOISE, Array, chances
from tests.analysis.looks_page import ratios as ratios_of
from tests.store.stories import Story
from vmlab.analysis.comparison.difference import Sides, differences
from vmlab.analysis.document import run_document
from vmlab.analysis.figures.figure import Figure, OneReading, figure_of, wall_seconds
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.descriptive import spread
from vmlab.analysis.statistics.sample_size import ALPHA, MOST, STATED, level_divisor, readings_needed
from vmlab.model.event import RepeatsAdded
from vmlab.model.run import MOST_EXTENSIONS
from vmlab.report.run.run_page import run_table
from vmlab.report.verdicts import extended_words
from vmlab.store.reader import RunReader

FIRST, EXTENSIONS = 8, 6
TRIES, FEWER_TRIES = 10_000, 1_000


def _alarms(ratios: Array, step: int, *, divided: bool = True) -> float:
    """The share of tries of which one figure is proven at any look; their axes are tries, figures, blocks."""
    alarming = np.zeros(len(ratios), dtype=bool)
    for extensions in range(EXTENSIONS + 1):
        level = ALPHA / (level_divisor(extensions) if divided else 1)
        found = chances(ratios[:, :, : FIRST + extensions * step])
        # Holm proves something if and only if the smallest p is at most the level over the number of figures.
        alarming |= found.min(axis=1) <= level / ratios.shape[1]
    return float(alarming.mean())


def _shape(tries: int, figures: int, step: int) -> tuple[int, int, int]:
    return tries, figures, FIRST + EXTENSIONS * step


@pytest.mark.exhaustive
@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("figures", [1, 3, 6])
@pytest.mark.parametrize("step", [2, 4, 8])
def test_extended_until_proven_it_alarms_as_seldom_as_is_stated(step: int, figures: int, noise: str) -> None:
    assert _alarms(ratios_of(noise, 11, _shape(TRIES, figures, step)), step) <= STATED


@pytest.mark.parametrize("figures", [1, 3])
def test_so_it_does_in_fewer_tries_and_undivided_it_would_not(figures: int) -> None:
    ratios = ratios_of(NOISE[2], 5, _shape(FEWER_TRIES, figures, 4))
    assert _alarms(ratios, 4) <= STATED
    assert _alarms(ratios[:, :1], 4, divided=False) > STATED


@pytest.mark.parametrize("extensions", [0, 1, 2])
def test_these_decisions_are_those_of_a_table(extensions: int) -> None:
    ratios = ratios_of(NOISE[0], 3, (150, 3, 20)) + 0.01
    proven = chances(ratios).min(axis=1) <= ALPHA / level_divisor(extensions) / 3
    assert 0 < proven.sum() < len(proven)
    for one, expected in zip(ratios, proven, strict=True):
        found = differences([_sides(np.exp(figure), level_divisor(extensions)) for figure in one])
        assert any(each.proven for each in found) == expected
        assert all(each.proven == (each.p_adjusted is not None and each.p_adjusted <= ALPHA) for each in found)


def _sides(ratios: Array, divisor: int) -> Sides:
    sides = ([1.0] * len(ratios), [float(one) for one in ratios])
    before, after = (
        Figure(
            "passed", spread(side), 0, tuple(OneReading(one, at, level_divisor=divisor) for at, one in enumerate(side))
        )
        for side in sides
    )
    return Sides(before, after, more_is_better=False)


def _extended(path: Path, times: int) -> RunDocument:
    story = Story(path / "run.sqlite").begin({"cache": ["none", "writeback"], "tiles": [1]}, cells=16)
    for repeat in range(1, 9):
        for cache, seconds in (("none", 10.0), ("writeback", 11.0)):
            story.cell({"cache": cache, "tiles": 1}, {"web": seconds + repeat / 100}, seconds, repeat)
    for added in range(1, times + 1):
        story.writer.append(RepeatsAdded(**story.now(), repeats=8 + 2 * added, cells=16 + 4 * added))
    with RunReader(story.end()) as reader:
        return run_document(reader)


def test_a_run_that_was_extended_is_judged_at_the_narrower_level_and_says_so(tmp_path: Path) -> None:
    plain, twice = (_extended(tmp_path / str(times), times) for times in (0, 2))
    known = [
        next(one.difference for table in run.tables for *_, one in table.each() if one.difference is not None)
        for run in (plain, twice)
    ]
    assert known[0].proven
    assert not known[1].proven, "p = 2 / 2^8 is 0.8 %, which is above 5 % / 4 over two figures"
    assert known[1].needed == readings_needed(4 * known[1].family)
    words = run_table(twice)
    assert " ".join(words.split()).count(extended_words(4)) == 1
    assert "repeats were added" not in run_table(plain)
    assert "judged at 1.25 %; over all 3 analyses a false positive has a chance of at most 10 %" in extended_words(4)


def test_a_group_of_runs_is_judged_as_before_whatever_was_added_to_each(tmp_path: Path) -> None:
    cells = _extended(tmp_path, 1).cells
    alone = figure_of(cells, wall_seconds)
    assert alone.level_divisor == 2
    readings = tuple(OneReading(one.value, one.repeat, run, level_divisor=2) for run in "ab" for one in alone.readings)
    assert Figure("passed", alone.spread, 0, readings).level_divisor == 1


def test_a_record_from_elsewhere_may_say_that_it_was_extended_without_end() -> None:
    assert level_divisor(10**6) == level_divisor(MOST_EXTENSIONS)
    assert readings_needed(level_divisor(10**6)) < MOST
