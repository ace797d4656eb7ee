"""The key m: a heat map of the latency of guests' disks in place of the charts, live and replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.conftest import RECORDED, first_execution
from tests.tui.pictures import screen_text
from tests.tui.screens.test_screens import StillConsole, replayed, shown_live
from tests.waiting import until
from vmlab.model.cell_event import DiskLatencyRead
from vmlab.model.event import Event
from vmlab.telemetry.latency_bins import BINS
from vmlab.tui.feed.recorded_run import RecordedRun

HEAD = "p50 / p95 / p99 in ms, ± 12 %"
NOTHING = "Guests' disks: no latency has been read yet."


def with_latency(recording: RecordedRun) -> tuple[list[Event], float]:
    """The recorded run with two readings of one guest in its first cell, and a moment after them."""
    since = first_execution(recording)
    counts = {"root": {"read": [21, 60, 40], "flush": [41, 3]}}
    readings = [
        DiskLatencyRead(
            wall=recording.events[0].wall,
            mono=since + after,
            cell=1,
            tile=1,
            guest="front",
            since=since,
            scale=list(BINS.scale),
            counts=counts,
        )
        for after in (4.0, 7.0)
    ]
    return sorted([*recording.events, *readings], key=lambda event: event.mono), since + 8


async def test_live_has_the_map_in_place_of_the_charts_and_back(state: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        events, moment = with_latency(RecordedRun(RECORDED))
        await shown_live(app, events, moment)
        await until(lambda: "cell 1/2" in screen_text(app), "the first cell")
        assert "Memory" in screen_text(app)
        await pilot.press("m")
        await until(lambda: HEAD in screen_text(app), "the map")
        text = screen_text(app)
        assert "Memory" not in text
        assert "Columns: up to 10 s, newest right. Share of requests: ░ any ▒ 5% ▓ 15% █ 40%" in text
        assert "read 200 requests" in text and "1.1 / 1.4 / 1.4" in text
        assert "flush 6 requests" in text and "110 / 110 / 110" in text
        await pilot.press("m")
        await until(lambda: "Memory" in screen_text(app), "the charts")
        assert HEAD not in screen_text(app)


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (150, 40), (160, 48)])
async def test_the_legend_is_whole(state: Path, size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        await shown_live(app, *with_latency(RecordedRun(RECORDED)))
        await pilot.press("m")
        await until(lambda: "Share of requests: ░ any ▒ 5% ▓ 15% █ 40%" in screen_text(app), "all shares")


async def test_what_is_read_meanwhile_is_drawn(state: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("m")
        await until(lambda: NOTHING in screen_text(app), "that there is nothing yet")
        await shown_live(app, *with_latency(RecordedRun(RECORDED)))
        await until(lambda: "read 200 requests" in screen_text(app), "the readings")


async def test_a_recording_from_before_says_that_it_has_none(recorded: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await replayed(app, recorded / "run.sqlite")
        screen.seek_to(screen.playback.recording.length if screen.playback else 0.0)
        await pilot.press("m")
        await until(lambda: NOTHING in screen_text(app), "that there is nothing")
        assert NOTHING in screen.table_text()
