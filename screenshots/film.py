"""The moving picture of README, taken from the demo as it plays: ``python -m screenshots.film``.

Every picture in it is the console's own export of the recording that comes with the program.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from textual.pilot import Pilot

from screenshots.make import same_terminal
from screenshots.moving import moving
from vmlab.report.demo.chapters import Demo, load_demo
from vmlab.tui.app import Console
from vmlab.tui.screens.compare import CompareScreen
from vmlab.tui.screens.demo import DemoScreen

TARGET = Path(__file__).parent / "demo.svg"
SIZE = (110, 34)
SETTLE_SECONDS = 1.0
PATIENCE_SECONDS = 300.0
STEPS = (0.1, 0.35, 0.6, 0.85)
"""The parts of a chapter that have passed, at each of which there is a picture."""
LEAD_SECONDS = 3.0
"""Recorded seconds that are played before a picture is taken."""
SHOWN_SECONDS = 1.5
LAST_SECONDS = 5.0
STILL = "The switch"
"""The chapter of which a picture is seen where nothing moves."""
MOST_BYTES = 1_500_000


def moments(demo: Demo) -> list[tuple[int, float]]:
    """The chapter and the position, in seconds, of every picture."""
    ends = [*(chapter.position for chapter in demo.chapters[1:]), demo.ending.position]
    return [
        (number, chapter.position + step * (end - chapter.position))
        for number, (chapter, end) in enumerate(zip(demo.chapters, ends, strict=True))
        for step in STEPS
    ]


async def settled(app: Console, pilot: Pilot[int]) -> str:
    """The screen as SVG, when it has not changed for a while."""
    before, now = "", app.export_screenshot()
    while now != before:
        await pilot.pause(SETTLE_SECONDS)
        before, now = now, app.export_screenshot()
    return now


async def pictures(demo: Demo) -> list[str]:
    """The demo at its moments, its end, and the comparison of its run."""
    app = Console(demo=demo)
    async with app.run_test(size=SIZE) as pilot, asyncio.timeout(PATIENCE_SECONDS):
        while not isinstance(app.screen, DemoScreen) or app.screen.playback is None:
            await pilot.pause(0.2)
        screen, playback = app.screen, app.screen.playback
        found: list[str] = []
        for _, position in moments(demo):
            screen.seek_to(max(0.0, position - LEAD_SECONDS))
            while playback.position < position:
                await pilot.pause(0.1)
            found.append(app.export_screenshot())
        await pilot.press("c")
        while not isinstance(app.screen, CompareScreen) or "(base)" not in app.export_screenshot():
            await pilot.pause(0.2)
        found.append(await settled(app, pilot))
        await pilot.press("1")
        screen.seek_to(demo.ending.position)
        found.append(await settled(app, pilot))
    return found


def main() -> None:
    """Write the picture."""
    same_terminal()
    demo = load_demo()
    taken = asyncio.run(pictures(demo))
    titles = [demo.chapters[number].title for number, _ in moments(demo)]
    still = titles.index(STILL) + len(STEPS) // 2
    seconds = [SHOWN_SECONDS] * len(titles) + [LAST_SECONDS, LAST_SECONDS]
    text = moving(taken, seconds, still)
    if len(text.encode()) > MOST_BYTES:
        raise SystemExit(f"{TARGET} would have {len(text.encode())} B, which is more than {MOST_BYTES}")
    TARGET.write_text(text)
    sys.stderr.write(f"{TARGET}: {len(taken)} pictures of {demo.store}\n")


if __name__ == "__main__":
    main()
