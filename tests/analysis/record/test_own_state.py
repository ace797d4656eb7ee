"""In a cell that failed, each workload has the state in which it ended itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.document import run_document
from vmlab.analysis.figures.reading import Asked, read
from vmlab.store.reader import RunReader


@pytest.fixture
def cells(tmp_path: Path) -> list[CellDocument]:
    """A cell of two tiles: web passed in both, mail failed in the second, database was broken off, backup never began;
    and one that failed before any workload."""
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none", "unsafe"]})
    story.start_cell({"cache": "none"})
    for tile in (1, 2):
        story.measure("web", 4.0 * tile, tile=tile)
    story.measure("mail", 4.0)
    story.fail("mail", "3 of 600 mails were not delivered", tile=2)
    story.fail("database", "broken off", tile=1, outcome="aborted")
    story.end_cell("failed", ["tile 2 mail: 3 of 600 mails were not delivered"])
    story.start_cell({"cache": "unsafe"})
    story.end_cell("failed", ["no guest answered"])
    with RunReader(story.end("failed", 1)) as reader:
        return run_document(reader).cells


@pytest.mark.parametrize(
    ("workload", "state", "mean"),
    [("web", "invalid", 6.0), ("mail", "failed", None), ("database", "aborted", None), ("backup", "failed", None)],
)
def test_each_workload_of_a_failed_cell_has_its_own_state(
    cells: list[CellDocument], workload: str, state: str, mean: float | None
) -> None:
    figure = read(cells[:1], Asked("run_time", workload)).figure
    assert (figure.state, figure.spread and figure.spread.mean) == (state, mean)
    assert figure.comparable is None


def test_a_cell_that_failed_before_its_workloads_is_failed_for_all(cells: list[CellDocument]) -> None:
    assert read(cells[1:], Asked("run_time", "web")).figure.state == "failed"


def test_the_total_wall_clock_is_the_cells_own(cells: list[CellDocument]) -> None:
    assert read(cells[:1], Asked("wall_seconds")).figure.state == "failed"
