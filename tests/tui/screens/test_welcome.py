"""What Live shows where no run goes on: what the program is for, and where to begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.pictures import screen_text
from tests.tui.screens.test_screens import ROOMY, StillConsole
from tests.waiting import until
from vmlab.hypervisor.checks import Check
from vmlab.model.places import runs_folder
from vmlab.tui.feed import planner
from vmlab.tui.screens.demo_screen import DemoScreen
from vmlab.tui.screens.scenarios_screen import ScenariosScreen

MISSING = Check(name="qemu-img", ok=False, required=True, detail="not found", remedy="apt-get install qemu-utils")


@pytest.mark.usefixtures("state")
async def test_d_plays_the_demo() -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(lambda: "d  watch the demo" in screen_text(app), "the panel")
        await pilot.press("d")
        await until(lambda: isinstance(app.screen, DemoScreen) and "RECORDING" in screen_text(app), "the demo")


async def test_s_plans_a_first_run_and_starts_nothing(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.lab.provision.host_support.read_host_facts", lambda folder: ROOMY)
    app = StillConsole()
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press("s")
        await until(lambda: isinstance(app.screen, ScenariosScreen), "the screen that plans")
        await until(lambda: "[smoke]" in screen_text(app) and "Press s to start it" in screen_text(app), "the plan")
        assert not runs_folder().exists()


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize(("missing", "told"), [([MISSING], "missing: qemu-img; `vmlab doctor`"), ([], "is ready")])
def test_the_panel_says_what_this_host_lacks(monkeypatch: pytest.MonkeyPatch, missing: list[Check], told: str) -> None:
    monkeypatch.setattr("vmlab.lab.provision.host_support.read_host_facts", lambda folder: ROOMY)
    monkeypatch.setattr(planner, "checks", lambda: missing)
    assert told in planner.readiness()
