"""A fleet's run in the console: a strip of all hosts, and any one of them in full."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui.fleet_store import LOST, fleet_store, going_on
from tests.tui.pictures import screen_text, settled
from tests.tui.screens.test_screens import StillConsole, replayed
from tests.waiting import until
from vmlab.model.cell_event import CellStarted
from vmlab.model.places import runs_folder
from vmlab.tui.feed.live_feed import HostsArrived, LiveFeed, RunArrived, RunFound
from vmlab.tui.screens.replay_screen import ReplayScreen
from vmlab.tui.state.hosts_of_run import JOINS
from vmlab.tui.widgets.tables.host_strip import HostStrip

RUN = "20261125-120000-tile-f1ee"
IN_FIRST_CELL, LATER = 0.4, 0.8
"""Shares of the recording: all hosts work, and the third is lost."""


@pytest.fixture
def folder(state: Path) -> Path:
    found = runs_folder() / RUN
    found.mkdir(parents=True)
    fleet_store(found / "run.sqlite", RUN)
    return found


def strip(app: StillConsole) -> str:
    return app.screen.query_one(HostStrip).text()


async def at(app: StillConsole, folder: Path, share: float) -> ReplayScreen:
    screen = await replayed(app, folder / "run.sqlite")
    assert screen.playback is not None
    screen.seek_to(share * screen.playback.recording.length)
    # Before that moment is read, the strip has its hosts as they join.
    await until(lambda: bool(app.screen.query(HostStrip)) and "hv3" in strip(app), "the strip")
    await until(lambda: JOINS not in strip(app), "the moment")
    await settled(app)
    return screen


@pytest.mark.parametrize("size", [(120, 40), (190, 55)])
async def test_each_host_has_a_line_with_what_it_does(folder: Path, size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size):
        await at(app, folder, IN_FIRST_CELL)
        lines = strip(app).splitlines()
        assert [line.split()[1] for line in lines] == ["hv1", "hv2", "hv3"]
        for line, cell in zip(lines, (1, 3, 5), strict=True):
            assert f"cell {cell} " in line, line
            assert all(word in line for word in ("cache none", "CPU", "DISK", "0 done")), line
        assert "Host hv1" in screen_text(app), "whose charts these are"


async def test_a_host_that_was_lost_says_why_in_the_colour_of_limits(folder: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(120, 40)):
        await at(app, folder, LATER)
        await until(lambda: "left out" in strip(app), "the end of the third host")
        shown = app.screen.query_one(HostStrip)
        first, _, third = strip(app).splitlines()
        assert LOST in third
        assert "CPU" not in third, "no figures of a host that has none"
        assert "left out" not in first
        segments = [segment for segment in shown._painted[2] if LOST in segment.text]
        assert [segment.style for segment in segments] == [shown.tone("bad")]


async def test_a_small_screen_has_all_hosts_on_one_line(folder: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)):
        await at(app, folder, IN_FIRST_CELL)
        (line,) = strip(app).splitlines()
        assert [line.count(name) for name in ("hv1", "hv2", "hv3")] == [1, 1, 1]
        assert line.count("none") == 3, "the cache mode of each"
        assert len(line) <= 80


async def test_a_key_and_a_click_show_another_host_in_full(folder: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await at(app, folder, IN_FIRST_CELL)
        assert screen.playback is not None
        moment = screen.playback.moment
        for key, host, cell in (("f", "hv2", 3), ("f", "hv3", 5), ("f", "hv1", 1), ("F", "hv3", 5)):
            await pilot.press(key)
            await until(lambda host=host: screen.host == host, host)  # type: ignore[misc]
            view = screen.view()
            assert view.cell is not None and view.cell.number == cell
            assert dict(view.cell.axes)["host"] == host
            assert screen.playback.moment == pytest.approx(moment)
        await pilot.click(HostStrip, offset=(5, 2))
        await until(lambda: screen.host == "hv2", "the second line, under the edge and the first")


async def test_the_key_says_why_it_does_nothing(recorded: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(120, 40)) as pilot:
        await replayed(app, recorded / "run.sqlite")
        await pilot.press("f")
        assert "this is one host; a run of a fleet has several" in app.told
        assert not app.screen.query(HostStrip)


@pytest.fixture
def living(state: Path) -> Iterator[Path]:
    """A fleet's run that goes on: all hosts are in their first cells."""
    with going_on(fleet_store, RUN, IN_FIRST_CELL) as folder:
        yield folder


async def test_a_live_run_is_followed_by_host(living: Path) -> None:
    """The first host until another one is chosen, which is then told from its beginning; and what all of them do."""
    told: list[object] = []
    feed = LiveFeed(told.append)
    feed.start()
    try:
        await until(lambda: any(isinstance(one, HostsArrived) for one in told), "the hosts")
        hosts = next(one for one in told if isinstance(one, HostsArrived))
        assert (hosts.names, hosts.anew) == (("hv1", "hv2", "hv3"), True)
        cells = [event.cell for event in hosts.events if isinstance(event, CellStarted)]
        assert sorted(cells) == [1, 3, 5]
        assert _followed(told) == [("hv1", 1)]
        feed.choose("hv3")
        await until(lambda: len(_followed(told)) == 2, "the other host")
        assert _followed(told)[1] == ("hv3", 5)
    finally:
        feed.stop()


def _followed(told: list[object]) -> list[tuple[str, int]]:
    """Each host that was followed, and the first cell that was told of it."""
    found: list[tuple[str, int]] = []
    host = ""
    for one in told:
        if isinstance(one, RunFound):
            host = one.host
        if isinstance(one, RunArrived):
            found += [(host, event.cell) for event in one.events if isinstance(event, CellStarted)]
    return found
