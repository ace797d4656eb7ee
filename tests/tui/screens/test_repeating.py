"""From a comparison that proves nothing to a run that can."""

from __future__ import annotations

import re
from pathlib import Path

from tests.tui.pictures import screen_text
from tests.tui.screens.test_screens import StillConsole, compared
from tests.waiting import until
from vmlab.model.places import runs_folder
from vmlab.tui.console_requests import Pick
from vmlab.tui.screens.scenarios_screen import ScenariosScreen


async def test_too_few_repeats_lead_to_a_plan_with_enough(recorded: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(160, 48)) as pilot:
        text = await compared(app, [Pick(recorded / "run.sqlite")])
        said = re.search(r"CANNOT TELL YET: 1 repeat, needs (\d+), .*; r plans a new run of \1", text)
        assert said is not None, text
        await pilot.press("r")
        await until(lambda: isinstance(app.screen, ScenariosScreen), "the screen that plans")
        await until(lambda: f"[{said[1]}]" in screen_text(app), "so many repeats are chosen")
        assert not [path for path in runs_folder().iterdir() if path.name != recorded.name], "nothing was started"
