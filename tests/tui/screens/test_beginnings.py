"""A run whose store is not written yet, a plan that is not made yet, a scenario that is nobody's but the user's."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest
from textual.widgets import Input

from tests.tui.pictures import screen_text
from tests.tui.screens.test_screens import ROOMY, StillConsole, scenario
from tests.waiting import until
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.event import RunStarted
from vmlab.model.places import runs_folder, shipped_scenarios
from vmlab.plan.scenario_file.loading import ScenarioFile
from vmlab.plan.terms import Overrides
from vmlab.store.run_summary import summarise
from vmlab.store.writer import RunWriter
from vmlab.tui.feed.live_feed import LiveFeed, Remarked, RunFound
from vmlab.tui.feed.planner import Planned, planned
from vmlab.tui.screens.scenarios_screen import ScenariosScreen

RUN = "20261121-080000-tile-0new"


async def test_a_store_that_has_nothing_in_it_yet_is_waited_for(state: Path) -> None:
    folder = RunFolder(RUN, runs_folder() / RUN)
    folder.path.mkdir(parents=True)
    lock = folder.take_lock()
    # The writer makes the file before it has written what tells it from any other.
    folder.store.touch()
    told: list[object] = []
    looked = threading.Event()
    feed = LiveFeed(lambda message: told.append(message))
    over = feed._over

    def seen() -> bool:
        looked.set()
        return over()

    feed._over = seen  # type: ignore[method-assign]
    feed.start()
    try:
        assert looked.wait(30), "the feed has seen the empty file"
        assert told == []
        assert (summarise(folder.store).outcome, summarise(folder.store).problem) == ("running", None)
        writer = RunWriter(folder.store)
        writer.append(RunStarted(run=RUN, scenario="tile", size="smoke", seed=1, cells=1, expected_seconds=60))
        await until(lambda: any(isinstance(one, RunFound) for one in told), "the run is found")
        assert not any(isinstance(one, Remarked) for one in told)
        writer.close()
    finally:
        feed.stop()
        os.close(lock)
    folder.store.unlink()
    folder.store.touch()
    assert "is not the store of a run" in str(summarise(folder.store).problem)


async def test_nothing_starts_before_the_plan_of_what_is_chosen_is_made(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmlab.tui.feed.planner.shipped_names", lambda: ["cpu-priority", "tile"])
    started: list[str] = []

    def begin(file: ScenarioFile, overrides: object) -> Path:
        started.append(file.scenario.name)
        return runs_folder() / RUN

    monkeypatch.setattr("vmlab.tui.screens.scenarios_screen.start", begin)
    may_go_on = threading.Event()

    def slowly(name: str, overrides: object) -> Planned:
        if name == "cpu-priority":
            may_go_on.wait(60)
        return planned(name, overrides)  # type: ignore[arg-type]

    monkeypatch.setattr("vmlab.tui.screens.scenarios_screen.planned", slowly)
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await scenario(app, monkeypatch, ROOMY)
        await until(lambda: "Press s to start it" in screen_text(app), "the first plan")
        await pilot.press("down", "s")
        await until(lambda: "still being made" in screen_text(app), "why nothing starts")
        assert started == []
        may_go_on.set()
        await until(lambda: started, "what was chosen starts when its plan is made")
        assert started == ["cpu-priority"]


async def test_keys_pressed_while_a_plan_is_made_choose_in_the_row_that_they_mean(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule: rows that the next plan has too stay where they are, and no older plan takes back a choice."""
    may_go_on = threading.Event()

    def slowly(name: str, overrides: Overrides) -> Planned:
        if overrides.size == "smoke":
            may_go_on.wait(60)
        return planned(name, overrides)

    monkeypatch.setattr("vmlab.tui.screens.scenarios_screen.planned", slowly)
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await scenario(app, monkeypatch, ROOMY)
        await until(lambda: "Press s to start it" in screen_text(app), "the first plan")
        await pilot.press("tab", "left", "space", "up", "right", "space")
        assert all(word in screen_text(app) for word in ("[smoke]", "[2]"))
        may_go_on.set()
        screen = app.screen
        assert isinstance(screen, ScenariosScreen)
        await until(lambda: not screen._is_planning, "the plan of what was chosen")
        assert screen._planned is not None
        assert (screen._planned.plan.size, screen._planned.plan.scenario.repeats) == ("smoke", 2)


async def test_a_scenario_file_of_ones_own_is_planned(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "mine.yaml"
    shutil.copy(shipped_scenarios() / "tile.yaml", own)
    monkeypatch.setattr("vmlab.tui.feed.planner.shipped_names", lambda: ["cpu-priority"])
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await scenario(app, monkeypatch, ROOMY)
        await until(lambda: "Press s to start it" in screen_text(app), "the first plan")
        await pilot.press("f", *f"{tmp_path}/none.yaml", "enter")
        await until(lambda: "Not opened: there is no file" in screen_text(app), "a file that is not there")
        await pilot.press("escape")
        await until(lambda: "Not opened" not in screen_text(app), "the screen without the prompt")
        await pilot.press("f")
        await until(lambda: isinstance(app.focused, Input), "the prompt")
        await pilot.press(*str(own), "enter")
        await until(lambda: "mine.yaml" in screen_text(app) and "filecopy" in screen_text(app), "its plan")
        screen = app.screen
        assert isinstance(screen, ScenariosScreen)
        await until(lambda: screen.table_text().count("cache writeback") == 1, "the cells of its plan")
