"""Enter on Live while a run goes on shows one of its guests in full."""

from __future__ import annotations

import pytest

from tests.tui.conftest import RECORDED, first_execution
from tests.tui.pictures import SIZES, screen_text
from tests.tui.screens.test_screens import StillConsole, shown_live
from tests.waiting import until
from vmlab.tui.feed.recorded_run import RecordedRun
from vmlab.tui.screens.guest_screen import GuestScreen
from vmlab.tui.screens.live_screen import LiveScreen

pytestmark = pytest.mark.usefixtures("state")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_enter_shows_a_guest_of_the_run_and_arrows_go_to_the_others(size: tuple[int, int]) -> None:
    app = StillConsole()
    recording = RecordedRun(RECORDED)
    async with app.run_test(size=size) as pilot:
        await shown_live(app, recording.events, first_execution(recording) + 8)
        await until(lambda: "● running" in screen_text(app), "workloads run")
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, GuestScreen) and "tile 1" in screen_text(app), "a guest")
        text = screen_text(app)
        assert "database" in text.splitlines()[0] and "● running" in text and "web " in text
        assert all(title in text for title in ("CPU %", "Memory", "Disk rate MB/s", "Disk wait ms", "Network MB/s"))
        await pilot.press("right")
        await until(lambda: "file-a" in screen_text(app).splitlines()[0] and "filecopy" in screen_text(app), "the next")
        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, LiveScreen) and "cell 1/2" in screen_text(app), "the run again")


async def test_before_its_guests_are_there_that_is_said() -> None:
    app = StillConsole()
    recording = RecordedRun(RECORDED)
    async with app.run_test(size=SIZES[0]) as pilot:
        await shown_live(app, recording.events[:1], float("inf"))
        await until(lambda: "tile" in screen_text(app) and getattr(app.screen, "watched", None) is not None, "the run")
        await pilot.press("enter")
        await until(lambda: "its guests are not there yet" in "".join(app.told), "why not")
