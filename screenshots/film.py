"""The moving picture of README, and the moments of the switch and the knee: ``python -m screenshots.film``.

Every picture is the console's own export of the recording that comes with the program.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from textual.pilot import Pilot

from screenshots.make import COMPARED_WORDS, SIZES, picture, same_terminal, shows
from screenshots.moving import moving
from vmlab.report.demo.chapters import Demo, load_demo
from vmlab.tui.app import Console
from vmlab.tui.feed.recorded_run import Playback
from vmlab.tui.screens.demo_screen import DemoScreen

TARGET = Path(__file__).parent / "demo.svg"
SIZE = (110, 34)
SETTLE_SECONDS = 1.0
PATIENCE_SECONDS = 300.0
STEPS = (0.1, 0.5, 0.9)
"""The parts of a chapter that have passed, at each of which there is a picture."""
LEAD_SECONDS = 3.0
"""Recorded seconds that are played before a picture is taken."""
SHOWN_SECONDS = 1.5
LAST_SECONDS = 6.0
STILLS = {"switch": "The switch", "knee": "The answer"}
"""The chapters that have pictures of their own, at all sizes of the console's, by the names of these."""
STILL_STEP = 0.7
"""The part of its chapter that has passed in a picture of its own."""
MOST_BYTES = 1_500_000


def moments(demo: Demo) -> list[tuple[int, float]]:
    """The chapter and the position, in seconds, of every picture."""
    return [(number, moment(demo, number, step)) for number in range(len(demo.chapters)) for step in STEPS]


def moment(demo: Demo, number: int, step: float) -> float:
    """The position, in seconds, at which this part of what is played of a chapter has passed."""
    since = demo.chapters[number].position
    (until,) = (stretch.until for stretch in demo.stretches if stretch.place == number and stretch.until > since)
    return since + step * (until - since)


async def settled(app: Console, pilot: Pilot[int]) -> str:
    """The screen as SVG, when it has not changed for a while."""
    before, now = "", app.export_screenshot()
    while now != before:
        await pilot.pause(SETTLE_SECONDS)
        before, now = now, app.export_screenshot()
    return now


async def pictures(demo: Demo) -> list[str]:
    """The demo at its moments, the comparison that it leads to, and its answer."""
    app = Console(demo=demo)
    async with app.run_test(size=SIZE) as pilot, asyncio.timeout(PATIENCE_SECONDS):
        screen, playback = await begun(app, pilot)
        found: list[str] = []
        for _, position in moments(demo):
            screen.seek_to(max(0.0, position - LEAD_SECONDS))
            while playback.position < position:
                await pilot.pause(0.1)
            found.append(app.export_screenshot())
        await pilot.press("c")
        await shows(app, pilot, COMPARED_WORDS)
        found.append(await settled(app, pilot))
        await pilot.press("1")
        screen.seek_to(demo.ending.position)
        found.append(await settled(app, pilot))
    return found


async def begun(app: Console, pilot: Pilot[int]) -> tuple[DemoScreen, Playback]:
    """The demo, when its recording has been read."""
    while not isinstance(app.screen, DemoScreen) or app.screen.playback is None:
        await pilot.pause(0.2)
    return app.screen, app.screen.playback


async def stills(demo: Demo, size: tuple[int, int]) -> None:
    """Save what stands on the screen in the chapters `STILLS`, at one size."""
    titles = [chapter.title for chapter in demo.chapters]
    app = Console(demo=demo)
    async with app.run_test(size=size) as pilot, asyncio.timeout(PATIENCE_SECONDS):
        screen, playback = await begun(app, pilot)
        for name, title in STILLS.items():
            playback.paused = True
            screen.seek_to(moment(demo, titles.index(title), STILL_STEP))
            await picture(app, pilot, name)


def main() -> None:
    """Write the pictures."""
    same_terminal()
    demo = load_demo()
    for size in SIZES:
        asyncio.run(stills(demo, size))
    taken = asyncio.run(pictures(demo))
    seconds = [SHOWN_SECONDS] * (len(taken) - 2) + [LAST_SECONDS, LAST_SECONDS]
    text = moving(taken, seconds, still=len(taken) - 1)
    if len(text.encode()) > MOST_BYTES:
        raise SystemExit(f"{TARGET} would have {len(text.encode())} B, which is more than {MOST_BYTES}")
    TARGET.write_text(text)
    sys.stderr.write(f"{TARGET}: {len(taken)} pictures of {demo.store}\n")


if __name__ == "__main__":
    main()
