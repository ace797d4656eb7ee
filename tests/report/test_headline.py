"""A comparison in one sentence."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.stories import Story
from tests.tui.state.test_compared import _store
from vmlab.analysis.cell_shape import BoundDocument
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import sides_by_axis
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.model.run import RUN_TIME
from vmlab.report.headline import explanation, headline, repeats_to_tell
from vmlab.store.reader import RunReader
from vmlab.tui.console_requests import Pick
from vmlab.tui.feed.sides import sides_of


def sentence(store: Path) -> str:
    return headline(compare([picked.side for picked in sides_of([Pick(store)])]), (RUN_TIME,))


def test_what_is_proven_is_named_and_the_rest_counted(tmp_path: Path) -> None:
    told = sentence(_store(tmp_path, 8))
    assert told == ("CACHE WRITEBACK IS FASTER: mail -50.0 % (not proven for web), under emulation (TCG)")


def test_a_figure_that_is_no_run_time_has_its_name(tmp_path: Path) -> None:
    sides = [picked.side for picked in sides_of([Pick(_store(tmp_path, 8))])]
    assert "and WORSE: mail mails -50.0 %" in headline(compare(sides))


@pytest.mark.parametrize("repeats", [1, 3])
def test_too_few_readings_prove_nothing(tmp_path: Path, repeats: int) -> None:
    told = sentence(_store(tmp_path, repeats))
    has = f"{repeats} repeat{'s' if repeats > 1 else ''}"
    assert told == f"cache writeback: CANNOT TELL YET: {has}, needs 7, under emulation (TCG)"


def test_where_enough_readings_prove_nothing_their_intervals_are_said(tmp_path: Path) -> None:
    sides = [picked.side for picked in sides_of([Pick(_store(tmp_path, 8))])]
    comparison = compare(sides)
    (web,) = [row for row in comparison.rows if (row.workload, row.metric) == ("web", RUN_TIME)]
    told = headline(replace(comparison, rows=(web,)))
    assert re.fullmatch(r"cache writeback: NO DIFFERENCE PROVEN \(web \S+ to \S+ %\), under emulation \(TCG\)", told)
    assert repeats_to_tell(replace(comparison, rows=(web,))) is None


def _bound(path: Path, repeats: int) -> RunDocument:
    """Writeback halves web's run time, db stays within its spread, and CPU or disk were at their limit."""
    story = Story(path / "run.sqlite").begin({"cache": ["none", "writeback"]}, cells=2 * repeats)
    for repeat in range(repeats):
        for cache, faster in (("none", 1.0), ("writeback", 0.5)):
            story.start_cell({"cache": cache}, repeat + 1)
            story.measure("web", (10.0 + 0.01 * repeat) * faster)
            story.measure("db", 10.0 + (repeat * 5 + len(cache)) % 7)
            story.end_cell(wall=20.0 + (repeat * 3 + len(cache)) % 5)
    with RunReader(story.end()) as reader:
        document = run_document(reader)
    bounds = {mode: BoundDocument(what, "host", "", {}) for mode, what in (("none", "cpu"), ("writeback", "disk"))}
    cells = [replace(cell, bound_by=bounds[str(cell.axes["cache"])]) for cell in document.cells]
    return replace(document, cells=cells)


def test_a_paragraph_says_what_differs_what_does_not_what_it_takes_and_why(tmp_path: Path) -> None:
    document = _bound(tmp_path, 8)
    (text,) = explanation(compare(sides_by_axis(document)))
    assert text.startswith(
        "cache writeback against cache none, under emulation (TCG): "
        "proven to be better for web (-50.0 % (-50.0 to -50.0))."
    )
    assert "No difference is proven for db (~ " in text and "total wall clock (~ " in text
    assert "would have been found in four of five cases." in text
    assert "Repeats that would prove a difference as large as seen: about " in text
    assert text.endswith(
        "The CPU was at its limit in 8 of 8 cells with cache none, in 0 of 8 with cache writeback; "
        "the disk in 0 of 8 cells with cache none, in 8 of 8 with cache writeback."
    )


def test_a_paragraph_says_where_no_resource_was_at_its_limit(tmp_path: Path) -> None:
    document = _bound(tmp_path, 3)
    none = BoundDocument(resource="none", where="", sentence="", evidence={})
    document = replace(document, cells=[replace(cell, bound_by=none) for cell in document.cells])
    (text,) = explanation(compare(sides_by_axis(document)))
    assert text.endswith("No resource was at its limit in any cell.")


def test_a_paragraph_of_too_few_readings_says_how_many_it_takes(tmp_path: Path) -> None:
    (text,) = explanation(compare(sides_by_axis(_bound(tmp_path, 3))))
    assert "no difference is proven. No verdict on web (? -50.0 %), db (? " in text
    assert (
        "too few measurements: 3 repeats; to prove a difference in one of 3 metrics takes 7 repeats at least." in text
    )
    assert text.count(":") < 8
