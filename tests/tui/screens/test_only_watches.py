"""A console that only watches changes nothing, whichever key is pressed, and says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tui.bound import LEAVES, name_of
from tests.tui.pictures import screen_text
from tests.tui.screens.test_keys import keys_of
from tests.tui.screens.test_screens import StillConsole, living
from tests.tui.states import Place, State, listed_scenarios, running, runs_with_one_that_lives
from tests.waiting import until
from vmlab.model.errors import UsageError
from vmlab.tui.console_options import ConsoleOptions
from vmlab.tui.screens.base_screen import CHANGING, WATCHES
from vmlab.tui.screens.live_screen import LiveScreen
from vmlab.tui.screens.runs_screen import RunsScreen
from vmlab.tui.screens.scenarios_screen import ScenariosScreen

__all__ = ["living"]


async def scenarios(at: Place) -> None:
    await listed_scenarios(at, "cpu-overhead", "tile")
    await at.shows("only watches", "What a run costs")


PLACES = (
    State(running, LiveScreen, "", folder="recorded"),
    State(scenarios, ScenariosScreen, "", folder="state"),
    State(runs_with_one_that_lives, RunsScreen, "", folder="living"),
)


class Refused:
    """In place of whatever changes a run: notes that it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __call__(self, *what: Any) -> Refused:
        self.asked.append(what)
        return self


def watching() -> StillConsole:
    return StillConsole(options=ConsoleOptions(control=False))


KEPT = ("run-list.json", "run-verdicts.json")
"""What is kept of runs, so that it need not be read again."""


def files(folder: Path) -> set[Path]:
    """All that a key might write; what is read of runs leaves files of SQLite, and the list of runs is kept."""
    return {path for path in folder.rglob("*") if "run.sqlite-" not in path.name and path.name not in KEPT}


@pytest.mark.parametrize("place", PLACES, ids=[one.make.__name__ for one in PLACES])
async def test_no_key_changes_a_run_or_writes_a_file_and_each_that_would_says_why_not(
    place: State, request: pytest.FixtureRequest, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue(place.folder)
    app, changed = watching(), Refused()
    async with app.run_test(size=(160, 48)) as pilot:
        await place.make(Place(app, monkeypatch))
        for what in ("commands.RunCommands", "screens.scenarios_screen.start"):
            monkeypatch.setattr(f"vmlab.tui.{what}", changed)
        base, mode, before = app.screen, app.current_mode, files(state)
        would = set()
        for key, action in keys_of(app).items():
            if name_of(action) in LEAVES:
                continue
            app.say_nothing()
            await pilot.press(key)
            if name_of(action) in CHANGING:
                would.add(name_of(action))
                assert app.said is not None and app.said.text == WATCHES, key
            await app.switch_mode(mode)
            while app.screen is not base:
                await app.pop_screen()
        assert would == CHANGING & {name_of(action) for action in keys_of(app).values()}
        assert len(would) > 1
    assert changed.asked == []
    assert files(state) == before


async def test_also_what_no_key_reaches_asks_first(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would stop a run, should a screen come to it all the same."""
    changed = Refused()
    monkeypatch.setattr("vmlab.tui.commands.RunCommands", changed)
    app = watching()
    async with app.run_test(size=(100, 30)):
        with pytest.raises(UsageError, match="only watches"):
            app.require_control()
        app._stop(state)
        await until(lambda: app.said is not None and "only watches" in app.said.text, "it is refused")
    assert changed.asked == []


@pytest.mark.usefixtures("state")
async def test_scenarios_does_not_tell_to_press_a_key_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    app = watching()
    async with app.run_test(size=(160, 48)):
        monkeypatch.setattr("vmlab.tui.feed.planner.shipped_names", lambda: ["cpu-overhead"])
        await app.switch_mode("scenarios")
        await until(lambda: "only watches" in screen_text(app), "the plan")
        assert "Press s" not in screen_text(app)


@pytest.mark.usefixtures("state")
async def test_a_copy_goes_to_the_clipboard_alone(state: Path) -> None:
    app = watching()
    async with app.run_test(size=(100, 30)):
        app.action_copy_table()
        assert app.said is not None and "to the clipboard" in app.said.text
    assert not list(state.rglob("copied.txt"))


@pytest.mark.usefixtures("state")
async def test_a_console_that_controls_is_refused_nothing() -> None:
    app = StillConsole()
    assert not any(map(app.forbids, CHANGING))
    app.require_control()
