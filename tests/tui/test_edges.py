"""Edges with titles, where a screen is high enough for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.conftest import RECORDED
from tests.tui.pictures import screen_text
from tests.tui.test_screens import StillConsole, compared, replayed, store_of
from tests.waiting import until
from vmlab.model.places import runs_folder
from vmlab.tui.feed.picks import Pick
from vmlab.tui.feed.recorded_run import RecordedRun
from vmlab.tui.widgets.painted import Painted
from vmlab.tui.widgets.row_list import RowList


def titles(app: StillConsole) -> set[str]:
    """The titles that stand in edges on the screen."""
    parts = {str(one.border_title) for one in app.screen.query(Painted) if one.border_title and one.display}
    edges = [line for line in screen_text(app).splitlines() if line.startswith("─")]
    return {part for part in parts if any(f"─{part}─" in line for line in edges)}


@pytest.mark.parametrize(("size", "there"), [((160, 48), True), ((80, 24), False)])
async def test_a_high_screen_has_titles_and_a_low_one_has_its_rows_for_figures(
    recorded: Path, size: tuple[int, int], *, there: bool
) -> None:
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        await pilot.press("3")
        await until(lambda: "passed" in screen_text(app), "the runs are listed")
        await until(lambda: titles(app) == ({"Runs"} if there else set()), "Runs")
        await compared(app, [Pick(recorded / "run.sqlite")])
        await until(lambda: titles(app) == ({"Compare", "Over time"} if there else set()), "Compare")
        app.open_results(recorded / "run.sqlite")
        await until(lambda: titles(app) == ({"Results"} if there else set()), "Results")
        await replayed(app, RECORDED)
        await until(lambda: titles(app) == ({"Host", "Guests", "Events"} if there else set()), "Replay")


async def test_a_click_meets_its_row_below_the_edge(recorded: Path) -> None:
    """The list of runs has an edge and a heading above its rows."""
    other = "20261121-063000-tile-aaaa"
    store_of(runs_folder() / other, RecordedRun(RECORDED).events, other)
    app = StillConsole()
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("3")
        await until(lambda: screen_text(app).count("passed") == 2, "both runs are listed")
        listed = app.screen.query_one(RowList)
        newest = listed.key
        await pilot.click(RowList, offset=(10, 3))
        await until(lambda: listed.key != newest, "the second row has the cursor")
        assert listed.key is not None
        assert other in listed.key
