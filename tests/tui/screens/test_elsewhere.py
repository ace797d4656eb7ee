"""Runs of others on this host, and what is said of one screen alone."""

from __future__ import annotations

import pytest

from tests.tui.pictures import screen_text
from tests.tui.screens.test_screens import StillConsole
from tests.waiting import until
from vmlab.lab.process.measuring_runs import HostQueue, MeasuringRun
from vmlab.lab.process.waiting_runs import in_queue
from vmlab.tui.feed import live_feed
from vmlab.tui.feed.live_feed import LiveFeed, OthersFound

OTHER = MeasuringRun("20261124-101010-tile-0abc", "ann", 4711, "/home/ann/runs")


@pytest.mark.usefixtures("state")
async def test_a_run_of_another_state_folder_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_feed, "host_queue", lambda: HostQueue((OTHER,)))
    told: list[object] = []
    feed = LiveFeed(told.append)
    feed.start()
    try:
        await until(lambda: bool(told), "it was found")
    finally:
        feed.stop()
    (found,) = told
    assert isinstance(found, OthersFound)
    app = StillConsole()
    async with app.run_test(size=(80, 24)):
        await until(lambda: "no run is going on" in screen_text(app), "the strip")
        app.screen.post_message(found)
        words = "the host, on which run 20261124-101010-tile-0abc of ann (process 4711) measures"
        await until(lambda: words[:70] in screen_text(app), "the run")
        assert "no run is going on" not in screen_text(app)


@pytest.mark.usefixtures("recorded")
async def test_the_list_of_runs_says_how_many_wait_for_their_turn() -> None:
    app = StillConsole()
    async with app.run_test(size=(120, 40)) as pilot:
        with in_queue("tile") as waiter:
            waiter.note(planned=60.0)
            with in_queue("disk"):
                await pilot.press("3")
                await until(lambda: "2 wait for their turn, the first begins" in screen_text(app), "the queue")
        await until(lambda: "wait for" not in screen_text(app), "its end")


@pytest.mark.usefixtures("recorded")
async def test_what_is_said_of_a_screen_goes_with_it() -> None:
    app = StillConsole()
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("3")
        await until(lambda: "passed" in screen_text(app), "the runs")
        await pilot.press("3")
        await until(lambda: "this is the screen Runs already" in screen_text(app), "it is said")
        await pilot.press("enter")
        await until(lambda: "RECORDING" in screen_text(app), "the recording")
        assert "this is the screen Runs already" not in screen_text(app)
