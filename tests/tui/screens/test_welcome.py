"""What Live shows where no run goes on: what the program is for, and where to begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.pictures import screen_text
from tests.tui.screens.test_screens import ROOMY, StillConsole
from tests.waiting import until
from vmlab.hypervisor.checks import Check
from vmlab.model.places import runs_folder
from vmlab.model.quantities import about_seconds
from vmlab.plan.scenario_file.loading import shipped_names
from vmlab.report.demo.chapters import load_demo
from vmlab.report.demo.duration import longest_seconds
from vmlab.tui.feed import planner
from vmlab.tui.screens.demo_screen import DemoScreen
from vmlab.tui.screens.live_screen import QUESTION, welcome_lines
from vmlab.tui.screens.scenarios_screen import ScenariosScreen

MISSING = Check(name="qemu-img", ok=False, required=True, detail="not found", remedy="apt-get install qemu-utils")


@pytest.mark.usefixtures("state")
async def test_d_plays_the_demo() -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(lambda: "d  watch the demo" in screen_text(app), "the panel")
        await pilot.press("d")
        await until(lambda: isinstance(app.screen, DemoScreen) and "RECORDING" in screen_text(app), "the demo")


@pytest.mark.parametrize(("key", "title"), [("s", "tile"), ("c", "cache-modes")])
async def test_a_key_plans_a_first_run_and_starts_nothing(
    key: str, title: str, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmlab.lab.provision.host_support.read_host_facts", lambda folder: ROOMY)
    app = StillConsole()
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press(key)
        await until(lambda: isinstance(app.screen, ScenariosScreen), "the screen that plans")
        await until(lambda: "[smoke]" in screen_text(app) and "Press s to start it" in screen_text(app), "the plan")
        assert title in screen_text(app)
        assert not runs_folder().exists()


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize(("missing", "told"), [([MISSING], "missing: qemu-img; `vmlab doctor`"), ([], "ready: 2 CPUs")])
def test_the_panel_says_what_this_host_lacks(monkeypatch: pytest.MonkeyPatch, missing: list[Check], told: str) -> None:
    monkeypatch.setattr("vmlab.lab.provision.host_support.read_host_facts", lambda folder: ROOMY)
    monkeypatch.setattr(planner, "checks", lambda: missing)
    found = planner.readiness()
    assert told in found.words and found.is_ready is not bool(missing)
    lines = ["".join(text for text, _ in line) for line in welcome_lines(found, airy=True)]
    assert lines[0].strip() == QUESTION and any(found.words in line for line in lines)
    assert max(map(len, lines)) <= 80, "nothing is cut"
    assert set(found.needs) == {"demo", *planner.TRIED}
    for name, needs in found.needs.items():
        (line,) = (line for line in lines if line.endswith(needs))
        assert name in line
    assert f"all {len(shipped_names())} scenarios" in "".join(lines)


def test_the_demo_takes_about_as_long_as_is_said() -> None:
    assert about_seconds(longest_seconds()) == about_seconds(load_demo().seconds)


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("size", [(60, 16), (80, 24), (110, 34), (160, 48), (190, 55)], ids=str)
async def test_the_question_is_above_and_the_host_below(size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size):
        words = (QUESTION[:50], "now", "CPU", "Memory")
        await until(lambda: all(word in screen_text(app) for word in words), "the question, and the whole host")
        rows = screen_text(app).splitlines()
        question, host = (next(place for place, row in enumerate(rows) if word in row) for word in (words[0], "CPU "))
        assert question == 2 and question < host <= 15
