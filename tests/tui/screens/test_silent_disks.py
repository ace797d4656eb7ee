"""A disk of a running guest that answers nothing is said on Live and Replay, and as news on every other screen."""

from __future__ import annotations

import pytest

from tests.tui.conftest import RUN
from tests.tui.screens.test_screens import StillConsole
from tests.tui.screens.test_switch import events, opened_live
from tests.waiting import until
from vmlab.model.cell_event import DiskSilent
from vmlab.tui.feed.live_feed import RunArrived, RunFound
from vmlab.tui.state.views import RunView
from vmlab.tui.widgets.status_strip import LIVE, StatusStrip, Strip

SILENT = DiskSilent(wall=0.0, mono=100.0, cell=1, tile=1, guest="vm", disk="root", seconds=30.0, requests=4)
WORDS = "t1-vm: no answer from its root disk for"


@pytest.mark.parametrize("width", [80, 120])
def test_the_strip_of_live_and_replay_says_it_before_all_else(width: int) -> None:
    strip = StatusStrip()
    strip.show(Strip(RunView(id="r", silent=(SILENT,), coming=(("cache", "none"),)), 145.0, LIVE, 34.4))
    (_, line) = strip.lines(width, 2)
    assert f"! {WORDS} 75 s" in "".join(text for text, _ in line)
    assert (f"! {WORDS} 75 s", "bad") in line


async def test_who_is_on_another_screen_hears_of_it_too() -> None:
    app = StillConsole()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened_live(app)
        screen.post_message(RunFound(RUN, {}))
        await pilot.press("2")
        await until(lambda: app.current_mode == "scenarios", "the other screen")
        screen.post_message(RunArrived(events(SILENT), ()))
        await until(lambda: app.told, "the news")
        assert app.told == [f"{WORDS} 30 s"]
