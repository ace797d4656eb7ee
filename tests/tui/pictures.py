"""What stands on a console's screen, as text; and golden files of it."""

from __future__ import annotations

import os
import time
from difflib import unified_diff
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from tests.waiting import until
from vmlab.model.places import shipped_scenarios
from vmlab.tui.feed.planner import grouped

GOLDEN = Path(__file__).parent / "golden"
_PATIENCE_SECONDS = 60.0
SIZES = ((80, 24), (160, 48))


def screen_text(app: App[Any]) -> str:
    """The whole screen, line by line, without blanks at the ends of lines."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


async def settled(app: App[Any]) -> str:
    """The screen's text when nothing is under way that would change it."""
    pilot = Pilot(app)
    before: str | None = None
    while True:
        await until(lambda: all(worker.is_finished for worker in app.workers), "no worker is at work")
        # All messages are handled, nothing moves, and what they have changed is laid out and drawn.
        await pilot.wait_for_animation()
        await pilot.pause()
        now = screen_text(app)
        if now == before and all(worker.is_finished for worker in app.workers):
            return now
        before = now


async def check_golden(name: str, app: App[Any]) -> None:
    """Wait until the settled screen is that of ``golden/NAME.txt``: parts of it may come late on a busy machine.

    ``VMLAB_GOLDEN=write`` writes it instead, for a look at the difference.
    """
    path = GOLDEN / f"{name}.txt"
    text = await settled(app)
    if os.environ.get("VMLAB_GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text)
    end = time.monotonic() + _PATIENCE_SECONDS
    while text != path.read_text() and time.monotonic() < end:
        text = await settled(app)
    difference = "\n".join(unified_diff(path.read_text().splitlines(), text.splitlines(), path.name, "screen", n=0))
    assert not difference, difference


def keys_to(scenario: str) -> list[str]:
    """The keys that lead from anywhere in the list of shipped scenarios to `scenario`."""
    shipped = (path.stem for path in shipped_scenarios().glob("*.yaml"))
    names = [name for _, members in grouped(shipped) for name in members]
    return ["g", *["j"] * names.index(scenario)]
