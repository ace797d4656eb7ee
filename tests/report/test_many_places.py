"""Comparisons over three axes: each figure can be told to its side and place, and what matters most stands first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import Comparison
from vmlab.analysis.comparison.meetings import Side, sides_by_axis
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.speed_spans import SpeedSpan
from vmlab.model.visible import visible_values
from vmlab.report.blocks import Section, Table
from vmlab.report.comparison_text import comparison_blocks, comparison_table
from vmlab.report.page.answer import answered_metrics, answers, comparison_answers
from vmlab.report.page.content import comparison_charts, places_chart
from vmlab.store.reader import RunReader

CACHES = {"none": 1.0, "writeback": 0.5, "writethrough": 1.5}
TILES, AHEAD = (1, 2), ("128 KiB", "1 MiB")
REPEATS = 7
WIDTH = 100


def _document(path: Path, slower: float) -> RunDocument:
    story = Story(path / "run.sqlite", run=path.name)
    story.begin({"cache": list(CACHES), "tiles": list(TILES), "read_ahead": list(AHEAD)}, cells=12 * REPEATS)
    for repeat in range(1, REPEATS + 1):
        for cache, tiles, ahead in product(CACHES, TILES, AHEAD):
            seconds = 100.0 * CACHES[cache] * tiles * slower * (1 + 0.01 * repeat)
            story.start_cell({"cache": cache, "tiles": tiles, "read_ahead": ahead}, repeat)
            story.measure("filecopy", seconds)
            story.measure("filecopy", 3e9 / seconds, "throughput_bytes_per_second", "B/s")
            story.end_cell(wall=seconds * (1 + 0.001 * CACHES[cache] * (-1) ** repeat))
    with RunReader(story.end()) as reader:
        return run_document(reader)


def compared(sides: Sequence[Side]) -> Comparison:
    """A comparison that has differences at the best speed in each row, as where that was traced."""
    found = compare(sides)
    rows = tuple(replace(row, at_best_speed=row) for row in found.rows)
    return replace(found, rows=rows, speed=SpeedSpan(mean=70.0, lowest=60.0, highest=80.0))


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> RunDocument:
    return _document(tmp_path_factory.mktemp("one") / "before", 1.0)


@pytest.fixture(scope="module")
def two_runs(document: RunDocument, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    after = _document(tmp_path_factory.mktemp("other") / "after", 1.2)
    return compared([Side.of("before", document), Side.of("after", after)])


def _tables(text: str) -> list[list[str]]:
    return [part.splitlines() for part in text.split("\n\n")]


def test_the_wall_clock_at_each_place_stands_first(document: RunDocument) -> None:
    text = comparison_table(compared(sides_by_axis(document)), WIDTH)
    assert max(map(len, text.splitlines())) <= WIDTH
    _, overview, more, *_ = _tables(text)
    assert overview[0] == "total wall clock (s)"
    places = [f"{ahead} / {tiles}" for tiles, ahead in product(TILES, AHEAD)]
    assert [row.split("  ")[0] for row in overview[2:]] == ["read_ahead / tiles", *places]
    assert [row.split("  ")[0] for row in more[1:]] == ["read_ahead / tiles", *places]
    assert overview[3].split()[4:7] == ["104.0", "±", "2.0"]


def test_each_column_has_its_side_above_it(document: RunDocument) -> None:
    sides = [f"cache {name}" for name in CACHES]
    seen: set[str] = set()
    for table in _tables(comparison_table(compared(sides_by_axis(document)), WIDTH))[1:-1]:
        for above, head in pairwise(table):
            columns = head.count("difference") + head.count("at best speed")
            if columns:
                named = {side for side in sides[1:] if side in above}
                assert len(named) <= columns <= 2 * len(named)
                seen |= named
    assert seen == set(sides[1:])


def test_places_of_two_runs_have_labels_of_their_own(two_runs: Comparison) -> None:
    for width in (80, WIDTH):
        _, overview, *_ = _tables(comparison_table(two_runs, width))
        labels = [row.split("  ")[0] for row in overview[3:]]
        wanted = [" / ".join((cache, ahead, str(tiles))) for cache, tiles, ahead in product(CACHES, TILES, AHEAD)]
        assert labels == wanted


def test_many_places_have_one_sentence(two_runs: Comparison, document: RunDocument) -> None:
    assert list(comparison_answers(visible_values(two_runs))) == [
        "after against before in 12 configurations: total wall clock +20.0 %."
    ]
    by_cache = list(comparison_answers(compared(sides_by_axis(document))))
    assert [text.split(" in ")[0] for text in by_cache] == [
        f"cache {name} against cache none" for name in list(CACHES)[1:]
    ]
    assert by_cache[0].endswith("; better, difference proven at 4 of 4.")
    assert by_cache[1].endswith("; worse, difference proven at 4 of 4.")


def test_a_run_at_many_places_has_one_sentence_a_side_and_one_picture(document: RunDocument) -> None:
    verdict, other, first, second, *_ = answers(document)
    assert verdict.startswith("WRITEBACK IS FASTER THAN NONE: ") and other.startswith(
        "WRITETHROUGH IS SLOWER THAN NONE: "
    )
    assert first.startswith("writeback against none in 4 configurations: total wall clock -50.")
    assert first.endswith(" %; better, difference proven at 4 of 4.")
    assert second.startswith("writethrough against none in 4 configurations: total wall clock +50.")
    chart = places_chart(document.tables)
    assert chart is not None and chart.title == "total wall clock (s) by tiles / read_ahead"
    drawn = ["".join(map(str, text.itertext())) for text in chart.draw("x").iter("{*}text")]
    assert {"1 / 128 KiB", "2 / 1 MiB", *CACHES} <= set(drawn)
    assert sum("±" in text for text in drawn) == 12


def test_the_picture_of_two_runs_has_all_places(two_runs: Comparison) -> None:
    drawn = ["".join(map(str, text.itertext())) for text in comparison_charts(two_runs)[0].draw("x").iter("{*}text")]
    assert {"none / 128 KiB / 1", "writethrough / 1 MiB / 2", "before", "after"} <= set(drawn)


def test_the_page_has_the_wall_clock_of_all_places_before_all_figures(two_runs: Comparison) -> None:
    whole, *places = [
        block for block in comparison_blocks(two_runs, answered_metrics(two_runs)) if isinstance(block, Section)
    ][:-1]
    assert whole.title == "total wall clock (s)"
    assert [len(block.labels) for one in (whole, *places) for block in one.blocks if isinstance(block, Table)] == [
        12,
        *([3] * 12),
    ]
