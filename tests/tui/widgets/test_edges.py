"""Edges with titles, where a screen is high enough for them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.tui.conftest import RECORDED
from tests.tui.pictures import screen_text
from tests.tui.screens.test_screens import ROOMY, StillConsole, compared, replayed, store_of
from tests.waiting import until
from vmlab.model.places import runs_folder
from vmlab.tui.console_requests import Pick
from vmlab.tui.feed.recorded_run import RecordedRun
from vmlab.tui.widgets.charts.side_charts import SideBars
from vmlab.tui.widgets.painted import Painted
from vmlab.tui.widgets.row_list import RowList
from vmlab.tui.widgets.tables.choice_form import ChoiceForm


def titles(app: StillConsole) -> set[str]:
    """The titles that stand in edges on the screen."""
    parts = {str(one.border_title) for one in app.screen.query(Painted) if one.border_title and one.display}
    text = screen_text(app)
    return {part for part in parts if any(f"{edge}{part}{edge}" in text for edge in "─━")}


async def planned_tile(app: StillConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenarios with the tile's plan."""
    monkeypatch.setattr("vmlab.tui.feed.planner.shipped_names", lambda: ["tile"])
    monkeypatch.setattr("vmlab.lab.provision.host_support.read_host_facts", lambda folder: ROOMY)
    await app.switch_mode("scenarios")
    await until(lambda: "Press s to start it" in screen_text(app), "a plan")


@pytest.mark.parametrize(("size", "there"), [((160, 48), True), ((80, 24), False)])
async def test_a_high_screen_has_titles_and_a_low_one_has_its_rows_for_figures(
    recorded: Path, size: tuple[int, int], *, there: bool
) -> None:
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        await pilot.press("3")
        await until(lambda: "passed" in screen_text(app), "the runs are listed")
        heads = {"Runs", "Result"} if there else set()
        await until(lambda: {title.partition(" ")[0] for title in titles(app)} == heads, "Runs and the result of one")
        await compared(app, [Pick(recorded / "run.sqlite")])
        await until(lambda: titles(app) == ({"Compare", "Over time"} if there else set()), "Compare")
        app.open_results(recorded / "run.sqlite")
        await until(lambda: titles(app) == ({"Results"} if there else set()), "Results")
        await replayed(app, RECORDED)
        await until(lambda: titles(app) == ({"Host", "Guests", "Events"} if there else set()), "Replay")


async def test_where_bars_have_no_room_the_table_has_the_title_of_the_comparison(recorded: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(100, 32)):
        await compared(app, [Pick(recorded / "run.sqlite")])
        await until(lambda: titles(app) == {"Compare", "Over time"}, "Compare")
        assert not app.screen.query_one(SideBars).display
        assert screen_text(app).count("─Compare─") == 1


@pytest.mark.parametrize(("size", "there"), [((160, 48), True), ((80, 24), False)])
async def test_scenarios_have_their_titles_in_edges_or_in_lines(
    state: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], *, there: bool
) -> None:
    app = StillConsole()
    parts = {"Scenarios", "tile", "Choices", "What a run costs"}
    async with app.run_test(size=size) as pilot:
        await planned_tile(app, monkeypatch)
        await until(lambda: titles(app) == (parts if there else set()), "the edges")
        assert screen_text(app).splitlines()[0].strip(" ─━").startswith("Scenarios")
        assert screen_text(app).count("What a run costs") == 1
        await pilot.resize_terminal(*((80, 24) if there else (160, 48)))
        await until(lambda: titles(app) == (set() if there else parts), "the edges of the other size")
        await until(lambda: screen_text(app).splitlines()[0].strip(" ─━").startswith("Scenarios"), "the list's title")
        assert screen_text(app).count("What a run costs") == 1


async def test_a_click_meets_its_choice_below_the_edge(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = StillConsole()
    async with app.run_test(size=(160, 48)) as pilot:
        await planned_tile(app, monkeypatch)
        await until(lambda: "[demo]" in screen_text(app), "the choices")
        # Below the edge the first row is the size, and its first value is smoke.
        async with asyncio.timeout(120):
            while "[smoke]" not in screen_text(app):
                # A click that comes before the edges are drawn meets another row, and does nothing.
                await pilot.click(ChoiceForm, offset=(12, 1))
                await pilot.pause(0.1)


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
        async with asyncio.timeout(120):
            while listed.key == newest:
                # As above: a click may come before the edges are drawn.
                await pilot.click(RowList, offset=(10, 3))
                await pilot.pause(0.1)
        assert listed.key is not None
        assert other in listed.key
