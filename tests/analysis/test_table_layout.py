"""How results are laid out: as the planner decided, and by no rule of the reader's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.analysis.document import laid_out, run_document
from vmlab.analysis.figures.table_layout import layout_of, varied_axis
from vmlab.analysis.shape import RunDocument
from vmlab.model.errors import StoreError
from vmlab.model.run import AxisValue
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader

AXES: dict[str, list[AxisValue]] = {"tiles": [1, 2], "cache": ["none"]}


def _document(path: Path, table: Mapping[str, Any]) -> RunDocument:
    story = Story(path / "run.sqlite").begin(AXES, table)
    for tiles in (1, 2):
        story.cell({"tiles": tiles, "cache": "none"}, {"web": 10.0 * tiles}, wall=30.0)
    with RunReader(story.end()) as reader:
        return run_document(reader)


@pytest.mark.parametrize(
    ("columns", "rows", "main", "groups"),
    [
        ("tiles", "workloads", "tiles", ["1", "2"]),
        ("workloads", "tiles", "tiles", ["1", "2"]),
        ("cache", "tiles", "cache", ["none"]),
        ("nothing", "workloads", None, ["all cells"]),
        ("workloads", "nothing", None, ["all cells"]),
    ],
)
def test_the_sides_are_those_that_were_planned(
    columns: str, rows: str, main: str | None, groups: list[str], tmp_path: Path
) -> None:
    layout = layout_of(_document(tmp_path, {"columns": columns, "rows": rows, "baseline": None}))
    assert layout.main_axis == main
    assert list(layout.groups(layout.blocks[0])) == groups
    assert sorted(layout.axes) == ["cache", "tiles"]


def test_cells_are_set_side_by_side_by_the_first_axis_that_varies(tmp_path: Path) -> None:
    document = _document(tmp_path, {"columns": "cache", "rows": "workloads", "baseline": "none"})
    assert layout_of(document).axes == ("cache", "tiles")
    assert varied_axis(document) == "tiles"
    assert varied_axis(replace(document, cells=document.cells[:1])) is None


def test_without_a_table_every_place_stands_alone(tmp_path: Path) -> None:
    document = _document(tmp_path, {"columns": "cache"})
    document = laid_out(replace(document, run=replace(document.run, table=None)))
    text = run_table(document)
    assert text.count("all cells") == 2
    assert "tiles 1" in text and "tiles 2" in text


@pytest.mark.parametrize(
    "table", [{"rows": "tiles"}, {"columns": 4}, {"columns": "cache", "baseline": ["none"]}, ["cache"]]
)
def test_a_table_of_another_form_is_one_line(table: Any, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the stored scenario has a table of an unknown form"):
        _document(tmp_path, table)
