"""What a recording knows of itself: its length, and where something begins to happen."""

from pathlib import Path

import pytest

from tests.tui.pictures import screen_text
from tests.waiting import until
from vmlab.model.cell_event import CellEnded, CellStarted
from vmlab.model.event import (
    Event,
    ImageReady,
    RunEnded,
    RunStarted,
)
from vmlab.store.writer import RunWriter
from vmlab.tui.app import Console
from vmlab.tui.console_options import ConsoleOptions
from vmlab.tui.feed.recorded_run import RecordedRun
from vmlab.tui.screens.replay_screen import ReplayScreen

BEGAN, BUILT, OVER = 1000.1, 1137.3, 1200.7
"""When the run began, its image was built, and it was over, on the monotonic clock."""
STARTED = RunStarted(run="a-run", scenario="tile", size="smoke", seed=1, cells=1, expected_seconds=60, mono=BEGAN)


def stored(folder: Path, *events: Event) -> Path:
    store = folder / "run.sqlite"
    writer = RunWriter(store)
    for event in events:
        writer.append(event)
    writer.close()
    return store


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A run that built an image for minutes before its only cell."""
    return stored(
        tmp_path,
        STARTED,
        ImageReady(image="vmlab-0", how="built", seconds=137, mono=BUILT - 0.1),
        CellStarted(cell=1, axes={"tiles": 1, "cache": "none"}, repeat=1, guests=4, mono=BUILT),
        CellEnded(cell=1, outcome="passed", reasons=[], wall_seconds=50, start_skew_ms=1, mono=OVER - 1),
        RunEnded(outcome="passed", exit_code=0, mono=OVER),
    )


async def test_a_replay_opens_where_the_first_cell_begins_and_knows_how_long_it_takes(built: Path, state: Path) -> None:
    app = Console(ConsoleOptions(), built)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(lambda: isinstance(app.screen, ReplayScreen) and app.screen.playback, "it is read")
        await until(lambda: "cell 1/1" in screen_text(app) and "of 3:20" in screen_text(app), "the first cell")
        screen = app.screen
        assert isinstance(screen, ReplayScreen) and screen.playback is not None
        assert screen.playback.position >= BUILT - BEGAN
        # What was before can still be seen, and at its end it plays again from where something happens.
        await pilot.press("space", "home")
        playback = screen.playback
        await until(lambda: playback.position == 0, "the beginning is played")
        await until(lambda: "run 0:00 of 3:20" in screen_text(app), "the beginning")
        await pilot.press("end", "space")
        await until(lambda: BUILT - BEGAN <= playback.position < OVER - BEGAN, "it plays again")


async def test_a_cell_that_was_measured_again_is_one_of_the_cells_of_its_recording(tmp_path: Path, state: Path) -> None:
    cells: list[Event] = []
    for cell, outcome in ((1, "invalid"), (2, "passed")):
        at = BEGAN + 20 * cell
        cells.append(CellStarted(cell=cell, axes={"cache": "none"}, repeat=1, guests=4, mono=at))
        ended = CellEnded(cell=cell, outcome=outcome, reasons=[], wall_seconds=9, start_skew_ms=1, mono=at + 10)
        cells.append(ended)
    store = stored(tmp_path, STARTED, *cells, RunEnded(outcome="passed", exit_code=0, mono=OVER))
    app = Console(ConsoleOptions(), store)
    async with app.run_test(size=(80, 24)):
        await until(lambda: "cell 1/2" in screen_text(app), "both are counted, though one was planned")


def test_a_run_without_cells_opens_at_its_beginning(tmp_path: Path) -> None:
    ended = RunEnded(outcome="failed", exit_code=3, reason="no image", mono=OVER)
    assert RecordedRun(stored(tmp_path, STARTED, ended)).opening == 0
