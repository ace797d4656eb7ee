"""Keys for the cells to come that are pressed before the run has answered: each goes on from the one before."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.tui.conftest import RUN
from tests.tui.screens.test_screens import StillConsole
from tests.tui.screens.test_switch import FIRST, events, opened_live, said, samples
from tests.waiting import until
from vmlab.lab.commands.verbs import ChangeComing, ChangeRunning
from vmlab.model.errors import UsageError
from vmlab.model.event import CellsReplanned
from vmlab.tui.commands import RunCommands
from vmlab.tui.feed.live_feed import RunArrived, RunFound
from vmlab.tui.screens.live_screen import LiveScreen

pytestmark = pytest.mark.usefixtures("state")


@dataclass
class SlowCommands:
    """A run that answers when `answers` is set, and refuses with `failure`."""

    asked: list[str] = field(default_factory=list)
    answers: threading.Event = field(default_factory=threading.Event)
    failure: str = ""

    def of(self, folder: Path) -> SlowCommands:
        return self

    def change_coming(self, change: dict[str, Any]) -> str:
        assert self.answers.wait(60)
        self.asked += ["as planned" if name == "as_planned" else f"{name} {value}" for name, value in change.items()]
        if self.failure:
            raise UsageError(self.failure)
        return "2 cells to come"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> SlowCommands:
    made = SlowCommands()
    monkeypatch.setattr("vmlab.tui.commands.RunCommands", made.of)
    return made


async def watching(app: StillConsole) -> LiveScreen:
    screen = await opened_live(app)
    screen.post_message(RunFound(RUN, {}))
    screen.post_message(RunArrived(events(), samples(4)))
    await until(lambda: screen.watched == RUN and screen.view().cell is not None, "the run is watched")
    return screen


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        (["plus", "plus", "plus"], ["tiles 2", "tiles 3", "tiles 4"]),
        (["plus", "minus"], ["tiles 2", "tiles 1"]),
        (["b", "b", "b"], ["cache none", "cache writeback", "cache none"]),
        (["plus", "b", "plus"], ["tiles 2", "cache none", "tiles 3"]),
        (["plus", "u", "plus"], ["tiles 2", "as planned", "tiles 2"]),
    ],
)
async def test_keys_go_on_from_what_was_asked_before_and_are_asked_in_their_order(
    keys: list[str], asked: list[str], commands: SlowCommands
) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await watching(app)
        await pilot.press(*keys)
        commands.answers.set()
        await until(lambda: len(commands.asked) == len(asked), "all is asked for")
    assert commands.asked == asked


async def test_after_a_refusal_what_went_on_from_it_is_not_asked_for(commands: SlowCommands) -> None:
    commands.failure = "no cell is to come"
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await watching(app)
        for count in (1, 2):
            app.say_nothing()
            commands.answers.clear()
            await pilot.press("plus", "plus")
            commands.answers.set()
            await until(lambda: said(app) == f"Cells to come: not changed: {commands.failure}", "the refusal is said")
            await until(lambda: all(one.is_finished for one in app.workers), "the second key was answered, too")
            assert commands.asked == ["tiles 2"] * count


def replanned(**axes: Any) -> CellsReplanned:
    return CellsReplanned(wall=0.0, mono=FIRST + 1, cells=2, next_axes=axes, expected_seconds=1)


async def test_what_another_viewer_asks_for_after_the_run_has_told_counts(commands: SlowCommands) -> None:
    commands.answers.set()
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await watching(app)
        await pilot.press("plus")
        await until(lambda: commands.asked == ["tiles 2"], "it is asked for")
        screen.post_message(RunArrived((replanned(tiles=2), replanned(tiles=5)), ()))
        await until(lambda: dict(screen.view().next_axes or ()) == {"tiles": 5}, "the other one's is told")
        await pilot.press("plus")
        await until(lambda: commands.asked == ["tiles 2", "tiles 6"], "it goes on from there")


async def test_what_was_asked_counts_until_the_run_has_told_all_of_it(commands: SlowCommands) -> None:
    commands.answers.set()
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await watching(app)
        await pilot.press("b", "b")
        await until(lambda: len(commands.asked) == 2, "both are asked for")
        for told in ((), (replanned(cache="none"),)):
            screen.post_message(RunArrived(told, samples(1)))
        await until(lambda: dict(screen.view().next_axes or ()) == {"cache": "none"}, "the first change is told")
        await pilot.press("b")
        await until(lambda: len(commands.asked) == 3, "it is asked for")
    assert commands.asked == ["cache none", "cache writeback", "cache none"]


def test_what_came_of_a_change_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coming = {"cell": 3, "axes": {"cache": "none"}, "repeat": 1, "state": "changed", "planned": {}}
    monkeypatch.setattr(ChangeComing, "ask", lambda *asked: {"cells": [coming], "coming": [coming]})
    switched = {"what": "cache", "before": "none", "after": "writeback"}
    monkeypatch.setattr(ChangeRunning, "ask", lambda *asked: switched)
    run = RunCommands(tmp_path)
    stays = "1 cell to come; the running cell stays as it is"
    assert run.change_coming({"cache": "none"}) == f"cache none, {stays}"
    assert run.change_coming({"tiles": 2}) == f"2 tiles, {stays}"
    assert run.change_coming({"as_planned": True}) == f"as planned, {stays}"
    assert run.change_coming({"cell": 3, "cache": "none"}).startswith("cell 3 has cache none; 1 cell to come, the next")
    assert run.change_now({"cache": "writeback"}) == "cache none to writeback; invalidates this cell"
