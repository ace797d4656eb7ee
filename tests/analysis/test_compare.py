"""Comparisons: figures meet where their axes do, and nothing doubtful is compared silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import HOST, Story
from vmlab.analysis.compare import Comparison, Side, compare
from vmlab.analysis.document import run_document
from vmlab.analysis.shape import RunDocument
from vmlab.model.errors import UsageError
from vmlab.store.reader import RunReader


def _told(path: Path, times: dict[str, list[float]], **beginning: Any) -> RunDocument:
    """A run with a cell for each cache mode and repeat, whose one workload took `times`."""
    story = Story(path / "run.sqlite", run=path.name).begin({"cache": list(times)}, **beginning)
    for cache, repeats in times.items():
        for repeat, seconds in enumerate(repeats, start=1):
            story.cell({"cache": cache}, {"web": seconds}, seconds + 1, repeat)
    with RunReader(story.end()) as reader:
        return run_document(reader)


def _compared(*documents: RunDocument) -> Comparison:
    return compare([Side.of(document["run"]["id"], document) for document in documents])


def test_cells_meet_where_their_axes_agree(tmp_path: Path) -> None:
    before = _told(tmp_path / "before", {"none": [10.0], "writeback": [4.0]})
    after = _told(tmp_path / "after", {"writeback": [5.0], "none": [9.0]})
    rows = {(row.axes["cache"], row.workload): row for row in _compared(before, after).rows}
    assert rows["none", "web"].differences == [pytest.approx(-10.0)]
    assert rows["writeback", "web"].differences == [pytest.approx(25.0)]
    assert rows["none", "total wall clock"].differences == [pytest.approx(-100 / 11)]


def test_repeats_become_a_spread(tmp_path: Path) -> None:
    before = _told(tmp_path / "before", {"none": [10.0, 12.0, 14.0]})
    after = _told(tmp_path / "after", {"none": [11.0, 13.0, 15.0]})
    body = _compared(before, after).to_json()
    (row, _) = body["rows"]
    assert row["baseline"]["count"] == 3
    assert row["baseline"]["half_width_95"] == pytest.approx(4.968, abs=1e-3)
    assert row["candidates"][0]["intervals_overlap"] is True
    assert row["candidates"][0]["difference_percent"] == pytest.approx(100 / 12)


def test_what_else_differs_is_told(tmp_path: Path) -> None:
    before = _told(tmp_path / "before", {"none": [10.0]})
    host = {**HOST, "kernel": "6.12.0", "qemu": "9.0.0"}
    after = _told(tmp_path / "after", {"none": [9.0]}, size="full", accelerator="kvm", seed=7, host=host)
    warnings = _compared(before, after).warnings
    assert warnings == (
        "size differs: before smoke, after full",
        "accelerator differs: before tcg, after kvm",
        "seed differs: before 1, after 7",
        "host kernel differs: before 6.1.0-18-amd64, after 6.12.0",
        "host qemu differs: before 7.2.22, after 9.0.0",
    )


def test_what_did_not_pass_is_shown_and_never_compared(tmp_path: Path) -> None:
    before = _told(tmp_path / "before", {"none": [10.0], "writeback": [4.0]})
    story = Story(tmp_path / "after" / "run.sqlite", run="after").begin({"cache": ["none", "writeback"]})
    story.start_cell({"cache": "none"})
    story.measure("web", 1.0)
    story.end_cell("failed", ["tile 1 mail: 3 of 8 mails were lost"])
    story.start_cell({"cache": "writeback"})
    story.measure("web", 5.0)
    story.end_cell("invalid", ["clients started 700 ms apart"], wall=6.0)
    with RunReader(story.end("failed", 1)) as reader:
        comparison = _compared(before, run_document(reader))
    web = {row.axes["cache"]: row for row in comparison.rows if row.workload == "web"}
    assert (web["none"].figures[1].state, web["none"].figures[1].spread) == ("failed", None)
    assert web["writeback"].figures[1].state == "invalid"
    assert web["writeback"].figures[1].spread is not None
    assert [row.differences for row in web.values()] == [[None], [None]]
    assert "after: cell 1 is failed: tile 1 mail: 3 of 8 mails were lost" in comparison.warnings
    assert "after: cell 2 is invalid: clients started 700 ms apart" in comparison.warnings


def test_single_cells_meet_whatever_their_axes_say(tmp_path: Path) -> None:
    document = _told(tmp_path / "run", {"none": [10.0], "writeback": [4.0]})
    comparison = compare([Side.of("last:1", document, 1), Side.of("last:2", document, 2)])
    assert comparison.rows[0].differences == [pytest.approx(-60.0)]
    assert comparison.warnings == ()


def test_a_cell_without_a_counterpart_is_told(tmp_path: Path) -> None:
    before = _told(tmp_path / "before", {"none": [10.0], "writeback": [4.0]})
    after = _told(tmp_path / "after", {"none": [9.0], "unsafe": [1.0]})
    assert _compared(before, after).warnings == (
        "before: cell 2 has no counterpart and is left out",
        "after: cell 2 has no counterpart and is left out",
    )


def test_nothing_to_compare_is_one_line(tmp_path: Path) -> None:
    before = _told(tmp_path / "before", {"none": [10.0], "writeback": [4.0]})
    after = _told(tmp_path / "after", {"unsafe": [1.0], "directsync": [2.0]})
    with pytest.raises(UsageError, match="no cell with the same axes"):
        _compared(before, after)
    with pytest.raises(UsageError, match="needs two"):
        _compared(before)
    with pytest.raises(UsageError, match="last:9: has no cell 9"):
        Side.of("last:9", before, 9)
