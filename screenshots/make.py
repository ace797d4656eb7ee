"""Pictures of the console from a run that was really recorded: ``python -m screenshots.make [RUN]``.

RUN is as in ``vmlab show``; without one it is the newest tile run of two cells or more. Nothing is made up: the Live
screen is shown as Replay shows it, and says that it is a recording.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from vmlab.model.errors import UsageError
from vmlab.model.places import runs_folder
from vmlab.store.run_list import list_runs
from vmlab.store.runs import STORE, resolve_run
from vmlab.tui.app import Console
from vmlab.tui.feed.picks import Pick
from vmlab.tui.screens.compare import CompareScreen
from vmlab.tui.screens.replay import ReplayScreen
from vmlab.tui.widgets.row_list import RowList

FOLDER = Path(__file__).parent
SIZES = ((80, 24), (160, 48), (200, 60))
SETTLE_SECONDS = 2.5
PATIENCE_SECONDS = 120.0


def newest_tile_run() -> Path:
    """The store of the newest tile run that passed with two cells or more. Raises UsageError."""
    for run in list_runs():
        if run.scenario == "tile" and run.outcome == "passed" and run.cells_done >= 2:
            return runs_folder() / run.id / STORE
    raise UsageError("there is no tile run with two cells that passed; `vmlab run tile --size smoke` makes one")


async def shows(app: App[Any], pilot: Pilot[Any], words: str) -> None:
    """Wait until `words` stand on the screen. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while words not in "".join(strip.text for strip in app.screen._compositor.render_strips()):
            await pilot.pause(0.2)


async def picture(app: App[Any], pilot: Pilot[Any], name: str) -> None:
    """Save what stands on the screen when it has settled."""
    await pilot.pause(SETTLE_SECONDS)
    columns, rows = app.size
    app.save_screenshot(f"{name}-{columns}x{rows}.svg", str(FOLDER))


async def pictures(store: Path, size: tuple[int, int]) -> None:
    """All screens at one size."""
    app = Console()
    async with app.run_test(size=size) as pilot:
        await pilot.pause(SETTLE_SECONDS)
        replay = ReplayScreen(store)
        await app.push_screen(replay)
        await shows(app, pilot, "RECORDING")
        while replay.playback is None:
            await pilot.pause(0.2)
        replay.playback.paused = True
        # In the middle of the second cell's work every chart and every bar has something to show.
        second = replay.playback.recording.executions()[1]
        replay.seek_to((second[0] + second[1]) / 2)
        await picture(app, pilot, "live")
        await pilot.press("escape", "3")
        await shows(app, pilot, "passed")
        await picture(app, pilot, "runs")
        await pilot.press("2")
        await shows(app, pilot, "Press s to start it")
        app.screen.query_one(RowList).place("tile")
        await shows(app, pilot, "filecopy")
        await picture(app, pilot, "scenarios")
        await pilot.press("4")
        await pilot.pause(SETTLE_SECONDS)
        screen = app.screen
        assert isinstance(screen, CompareScreen)
        screen.compare([Pick(store)])
        await shows(app, pilot, "since the workloads started")
        await picture(app, pilot, "compare")


def main(arguments: list[str]) -> None:
    """Write all pictures."""
    store = resolve_run(arguments[0]) if arguments else newest_tile_run()
    for size in SIZES:
        asyncio.run(pictures(store, size))
    sys.stderr.write(f"{store.parent.name}: pictures are in {FOLDER}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
