"""The Results screen: the tables of the command line, at the terminal's width, and what was published beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.matrix import tell_matrix
from tests.tui.pictures import SIZES, check_golden, screen_text
from tests.waiting import until
from vmlab.model.places import runs_folder
from vmlab.tui.app import Console
from vmlab.tui.screens.results_screen import ResultsScreen

RUN = "20261121-143000-disk-matrix-7f3a"
pytestmark = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


async def test_a_matrix_of_six_groups_and_its_publication(size: tuple[int, int], state: Path) -> None:
    tell_matrix(runs_folder() / RUN / "run.sqlite", windows=False)
    app = Console()
    async with app.run_test(size=size) as pilot:
        await pilot.press("3")
        await until(lambda: RUN[-4:] in screen_text(app) or "disk-matrix" in screen_text(app), "the run is listed")
        await pilot.press("t")
        await until(lambda: isinstance(app.screen, ResultsScreen), "the screen opens")
        await until(lambda: "4k-randread" in screen_text(app), "the table is there")
        await check_golden(f"results-{size[0]}x{size[1]}", app)
        await pilot.press("p")
        await until(lambda: "theirs" in screen_text(app), "the publication is there")
        await check_golden(f"results-published-{size[0]}x{size[1]}", app)
        assert "cannot tell: Writeback and 4 queues" in app.screen.table_text()  # type: ignore[attr-defined]
        await pilot.press("escape")
        await until(lambda: not isinstance(app.screen, ResultsScreen), "it is left")


async def test_a_recorded_tile_beside_its_publication(size: tuple[int, int], recorded: Path) -> None:
    app = Console()
    async with app.run_test(size=size) as pilot:
        await pilot.press("3")
        await until(lambda: "smoke" in screen_text(app), "the run is listed")
        await pilot.press("t")
        await until(lambda: "run time (s)" in screen_text(app), "the table is there")
        await pilot.press("p")
        await until(lambda: "published: " in screen_text(app), "what was published is there")
