"""A run whose guests are on two hosts in the console: which guest is where, and either host in full."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui.fleet_store import GUESTS, going_on, linked_store
from tests.tui.pictures import screen_text, settled
from tests.tui.screens.test_screens import StillConsole, replayed
from tests.waiting import until
from vmlab.model.event import CellLinked, GuestStateChanged
from vmlab.model.names import guest_key
from vmlab.model.places import runs_folder
from vmlab.tui.feed.live_feed import LiveFeed
from vmlab.tui.feed.messages import RunArrived, RunFound
from vmlab.tui.screens.replay_screen import ReplayScreen
from vmlab.tui.state.history import guest_figures
from vmlab.tui.widgets.tables.guest_table import METRICS, GuestTable
from vmlab.tui.widgets.tables.host_strip import HostStrip

RUN = "20261125-120000-tile-11a5"
AT_WORK = 0.4
"""Share of the recording at which the workloads of the first cell run."""
SIZES = [(80, 24), (120, 40), (190, 55)]


@pytest.fixture
def folder(state: Path) -> Path:
    found = runs_folder() / RUN
    found.mkdir(parents=True)
    linked_store(found / "run.sqlite", RUN)
    return found


async def at(app: StillConsole, folder: Path, share: float) -> ReplayScreen:
    screen = await replayed(app, folder / "run.sqlite")
    assert screen.playback is not None
    screen.seek_to(share * screen.playback.recording.length)
    await until(lambda: bool(app.screen.query(HostStrip)), "the strip")
    await settled(app)
    return screen


@pytest.mark.parametrize("size", SIZES)
async def test_each_guest_has_its_host_beside_it(folder: Path, size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size):
        screen = await at(app, folder, AT_WORK)
        assert {guest.key: guest.host for guest in screen.view().guests} == GUESTS
        await until(lambda: "file-a" in app.screen.query_one(GuestTable).text(), "the guests")
        table = app.screen.query_one(GuestTable).text()
        for key, host in GUESTS.items():
            name = key.partition("-")[2]
            assert any(name in line and host in line for line in table.splitlines()), table
        lines = app.screen.query_one(HostStrip).text()
        assert lines.count("execute") == 2 or lines.count("none") == 2, "both hosts are at the cell"
        assert max(map(len, screen_text(app).splitlines())) <= size[0]


@pytest.mark.parametrize("size", SIZES)
async def test_a_key_shows_either_host_with_the_whole_cell(folder: Path, size: tuple[int, int]) -> None:
    """The cell, its phases and all guests stay; charts and guests' figures are those of the host."""
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        screen = await at(app, folder, AT_WORK)
        first = screen.view()
        assert first.cell is not None and first.cell.phase
        for key, host in (("f", "hv2"), ("F", "hv1")):
            await pilot.press(key)
            await until(lambda host=host: screen.host == host, host)  # type: ignore[misc]
            await settled(app)
            view = screen.view()
            assert view.cell == first.cell
            assert {guest.key: guest.state for guest in view.guests} == {one.key: one.state for one in first.guests}
            assert screen.history.last is not None
            known = guest_figures(screen.history.last, METRICS)
            assert {key for key in GUESTS if key in known} == {key for key, where in GUESTS.items() if where == host}
            if size[1] >= 40:
                await until(lambda host=host: f"Host {host}" in screen_text(app), host)  # type: ignore[misc]


async def test_both_hosts_have_done_a_cell_when_it_has_ended(folder: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(120, 40)):
        await at(app, folder, 1.0)
        await until(lambda: screen_done(app) == [2, 2], "both cells")


def screen_done(app: StillConsole) -> list[int]:
    """How many cells each host has done."""
    hosts = app.screen.hosts  # type: ignore[attr-defined]
    return [view.done for view in hosts.views(app.screen.now())]  # type: ignore[attr-defined]


@pytest.fixture
def living(state: Path) -> Iterator[Path]:
    """Such a run that goes on, in its first cell."""
    with going_on(linked_store, RUN, AT_WORK) as folder:
        yield folder


async def test_a_live_run_is_followed_with_the_guests_of_both(living: Path) -> None:
    """Whichever host is chosen; each time from the beginning."""
    told: list[object] = []
    feed = LiveFeed(told.append)
    feed.start()
    try:
        await until(lambda: _guests(told, "hv1") == set(GUESTS), "all guests, with the figures of the first host")
        feed.choose("hv2")
        await until(lambda: _guests(told, "hv2") == set(GUESTS), "all guests, with the figures of the second host")
    finally:
        feed.stop()


def _guests(told: list[object], host: str) -> set[str]:
    """The guests that were told of since this host was found last, once it is known where they are."""
    found: set[str] = set()
    followed, linked = "", False
    for one in told:
        if isinstance(one, RunFound):
            followed, linked, found = one.host, False, set()
        if isinstance(one, RunArrived) and followed == host:
            linked = linked or any(isinstance(event, CellLinked) for event in one.events)
            states = (event for event in one.events if isinstance(event, GuestStateChanged))
            found |= {guest_key(event.tile, event.guest) for event in states}
    return found if linked else set()
