"""Pictures of the console from runs that were really recorded: ``python -m screenshots.make [RUN [COMPARED]]``.

Both are as in ``vmlab show``. Without them, RUN is the newest tile run of two cells or more, and COMPARED, for the
Compare screen with its intervals, the newest of `copies.yaml`, or RUN where there is none. Nothing is made up: the
Live screen is shown as Replay shows it, and says that it is a recording.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from vmlab.analysis.record.timeline import RunTimeline
from vmlab.model.errors import UsageError
from vmlab.store.run_list import list_runs
from vmlab.store.runs import resolve_run, store_of
from vmlab.tui.app import Console
from vmlab.tui.console_requests import Pick
from vmlab.tui.screens.compare_screen import CompareScreen
from vmlab.tui.screens.replay_screen import ReplayScreen
from vmlab.tui.widgets.row_list import RowList

FOLDER = Path(__file__).parent
SIZES = ((80, 24), (110, 34), (160, 48), (200, 60))
SETTLE_SECONDS = 2.5
PATIENCE_SECONDS = 120.0


COMPARED_WORDS = "since the workloads started"
"""They stand below the charts of Compare when these are drawn."""
COMPARED = "copies"
"""The scenario beside this file: eight readings of each side, as intervals take them."""


def same_terminal() -> None:
    """Pictures are the same from whatever terminal they are made."""
    os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
    os.environ.pop("NO_COLOR", None)


def newest_run(scenario: str, cells: int = 2) -> Path | None:
    """The store of the newest run of a scenario that passed with so many cells or more; None where there is none."""
    for run in list_runs():
        if run.scenario == scenario and run.outcome == "passed" and run.cells_done >= cells:
            return store_of(run.id)
    return None


def shown_run() -> Path:
    """The store of the newest tile run. Raises UsageError where there is none."""
    if (found := newest_run("tile")) is None:
        raise UsageError("there is no tile run with two cells that passed; `vmlab run tile --size smoke` makes one")
    return found


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


async def pictures(store: Path, compared: Path, size: tuple[int, int]) -> None:
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
        recording = replay.playback.recording
        spans = (cell.execution for cell in RunTimeline.of(recording.events).cells.values())
        second = [span for span in spans if span is not None][1]
        replay.seek_to(sum(second) / 2 - recording.began)
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
        screen.compare([Pick(compared)])
        await shows(app, pilot, COMPARED_WORDS)
        await picture(app, pilot, "compare")


def main(arguments: list[str]) -> None:
    """Write all pictures."""
    same_terminal()
    store = resolve_run(arguments[0]) if arguments else shown_run()
    compared = resolve_run(arguments[1]) if arguments[1:] else newest_run(COMPARED) or store
    for size in SIZES:
        asyncio.run(pictures(store, compared, size))
    sys.stderr.write(f"{store.parent.name}, {compared.parent.name}: pictures are in {FOLDER}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
