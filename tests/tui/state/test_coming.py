"""The list of coming cells on Live: what it shows, what its keys ask the run for, and what a replay says instead."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.tui.conftest import RECORDED, RUN, first_execution
from tests.tui.pictures import check_golden, screen_text
from tests.tui.screens.test_screens import StillConsole, replayed, shown_live
from tests.tui.screens.test_switch import FIRST, events, opened_live, said, samples
from tests.waiting import until
from vmlab.model.errors import UsageError
from vmlab.model.event import CellsReplanned
from vmlab.model.event_fields import CellToCome
from vmlab.tui.feed.live_feed import RunArrived, RunFound, RunLost
from vmlab.tui.feed.recorded_run import RecordedRun
from vmlab.tui.screens.live_screen import LiveScreen
from vmlab.tui.screens.modals import listed_keys
from vmlab.tui.widgets.tables.coming_list import ComingList

pytestmark = pytest.mark.usefixtures("state")


def cell(number: int, state: str = "planned", **axes: Any) -> CellToCome:
    planned = {"tiles": 1, "cache": "none"}
    return {"cell": number, "axes": planned | axes, "repeat": 1, "state": state, "planned": planned}


def set_event() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@dataclass
class Commands:
    """A run that does what it is asked for and tells what is to come, or refuses with `failure`."""

    cells: list[CellToCome] = field(
        default_factory=lambda: [cell(2), cell(3, "changed", cache="writeback"), cell(4, "skipped")]
    )
    asked: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    listed: int = 0
    failure: str = ""
    answers: threading.Event = field(default_factory=set_event)

    def of(self, folder: Path) -> Commands:
        assert folder.name == RUN
        return self

    def __getattr__(self, name: str) -> Any:
        """All else that a run can be asked for, which this one does not do."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self._refuse

    def _refuse(self, *asked: Any) -> str:
        raise UsageError("this run has only cells to come")

    def coming(self) -> list[CellToCome]:
        self.listed += 1
        if self.failure:
            raise UsageError(self.failure)
        return self.cells

    def change_coming(self, change: dict[str, Any]) -> str:
        assert self.answers.wait(60)
        if (number := change.pop("cell", None)) is None:
            return f"{len(self.cells)} cells to come"
        self.asked.append((number, change))
        if self.failure:
            raise UsageError(self.failure)
        state = "skipped" if change.get("skip") else "changed"
        axes = {axis: value for axis, value in change.items() if axis in ("cache", "tiles")}
        self.cells = [
            {**one, "state": state, "axes": one["axes"] | axes} if one["cell"] == number else one for one in self.cells
        ]
        return f"cell {number} was asked for"

    def change_now(self, change: dict[str, Any]) -> str:
        return f"changed: {change}"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    made = Commands()
    monkeypatch.setattr("vmlab.tui.commands.RunCommands", made.of)
    return made


async def opened(app: StillConsole, pilot: Any) -> LiveScreen:
    """Live with a run, and the list open."""
    screen = await opened_live(app)
    screen.post_message(RunFound(RUN, {}))
    screen.post_message(RunArrived(events(), samples(4)))
    await until(lambda: screen.watched == RUN and screen.view().cell is not None, "the run is watched")
    await pilot.press("e")
    await until(lambda: "skipped" in screen_text(app), "the list is there")
    return screen


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_the_list_has_each_cell_to_come_and_its_keys(size: tuple[int, int], commands: Commands) -> None:
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        screen = await opened(app, pilot)
        assert screen.query_one(ComingList).text().splitlines() == [
            " CELL  AXES                      REPEAT    AS PLANNED",
            " 2     tiles 1, cache none       repeat 1  yes",
            " 3     tiles 1, cache writeback  repeat 1  no: cache none was planned",
            " 4     tiles 1, cache none       repeat 1  skipped",
        ]
        help_text = "\n".join(f"{one.description}: {one.tooltip}" for one in listed_keys(screen))
        for words in ("leave it out", "as it was planned", "This cell: cache", "This cell: one tile more", "Close"):
            assert words in help_text


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_the_list_has_its_place_beside_the_charts(size: tuple[int, int], commands: Commands) -> None:
    app = StillConsole()
    recording = RecordedRun(RECORDED)
    async with app.run_test(size=size) as pilot:
        await shown_live(app, recording.events, first_execution(recording) + 8)
        await until(lambda: "cell 1/2" in screen_text(app), "the run")
        await pilot.press("e")
        await until(lambda: "skipped" in screen_text(app), "the list is there")
        await check_golden(f"live-coming-{size[0]}x{size[1]}", app)


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        (["b"], [(2, {"cache": "writeback"})]),
        (["down", "b"], [(3, {"cache": "none"})]),
        (["plus"], [(2, {"tiles": 2})]),
        (["s"], [(2, {"skip": True})]),
        (["enter"], [(2, {"skip": True})]),
        (["down", "p"], [(3, {"as_planned": True})]),
        (["down", "down", "enter"], [(4, {"as_planned": True})]),
        (["plus", "plus", "minus"], [(2, {"tiles": 2}), (2, {"tiles": 3}), (2, {"tiles": 2})]),
        (["b", "b"], [(2, {"cache": "writeback"}), (2, {"cache": "none"})]),
        (["plus", "p", "plus"], [(2, {"tiles": 2}), (2, {"as_planned": True}), (2, {"tiles": 2})]),
    ],
)
async def test_a_key_asks_for_the_cell_under_the_cursor_and_says_what_came_of_it(
    keys: list[str], asked: list[tuple[int, dict[str, Any]]], commands: Commands
) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(app, pilot)
        # Keys are pressed before the run has answered any.
        commands.answers.clear()
        await pilot.press(*keys)
        commands.answers.set()
        await until(lambda: len(commands.asked) == len(asked), "all is asked for")
        await until(lambda: said(app) == f"Cells to come: cell {asked[0][0]} was asked for", "it is told")
    assert commands.asked == asked


async def test_after_a_change_the_list_is_as_the_run_tells_it_and_the_cursor_stays(commands: Commands) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(app, pilot)
        await pilot.press("down", "s")
        await until(lambda: screen_text(app).count("skipped") == 2, "the cell is skipped")
        assert screen.query_one(ComingList).key == "3"


async def test_fewer_than_one_tile_is_not_asked_for(commands: Commands) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(app, pilot)
        await pilot.press("minus")
        await until(lambda: said(app) == "a cell has at least one tile", "that is said")
    assert commands.asked == []


async def test_a_refusal_is_said_and_the_list_stays(commands: Commands) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(app, pilot)
        commands.failure = "cell 4 is the same; one of the two can be skipped"
        await pilot.press("b")
        await until(lambda: said(app) == f"Cells to come: not changed: {commands.failure}", "the refusal is told")
        assert "no: cache none was planned" in screen_text(app)


async def test_what_another_viewer_changes_is_in_the_list(commands: Commands) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(app, pilot)
        commands.cells = [cell(5, tiles=7)]
        changed = CellsReplanned(wall=0.0, mono=FIRST + 1, cells=5, next_axes={"tiles": 7}, expected_seconds=1)
        screen.post_message(RunArrived((changed,), ()))
        await until(lambda: "tiles 7" in screen.query_one(ComingList).text(), "the list is the new one")


async def test_a_run_that_does_not_answer_is_a_sentence_and_its_keys_say_that_nothing_is_listed(
    commands: Commands,
) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened_live(app)
        screen.post_message(RunFound(RUN, {}))
        await until(lambda: screen.watched == RUN, "the run is watched")
        commands.failure = "the run takes no commands yet"
        await pilot.press("e")
        await until(lambda: commands.failure in screen_text(app), "the reason is there")
        for key in ("b", "plus", "minus", "s", "p", "enter"):
            app.say_nothing()
            await pilot.press(key)
            await until(lambda: said(app) == "no cell is listed here", key)
    assert commands.asked == []


@pytest.mark.parametrize("key", ["escape", "e"])
async def test_the_list_is_closed_and_opened_again(key: str, commands: Commands) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(app, pilot)
        before = commands.listed
        await pilot.press(key)
        await until(lambda: not screen.query(ComingList), "it is closed")
        assert screen.query_one("#log").display
        await pilot.press("e")
        await until(lambda: "skipped" in screen_text(app), "it is open again")
    assert commands.listed > before


async def test_the_list_closes_with_its_run(commands: Commands) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(app, pilot)
        screen.post_message(RunLost(RUN, "its processes are gone"))
        await until(lambda: not screen.query(ComingList), "it is closed")
        await pilot.press("e")
        await until(lambda: "no run is going on" in said(app), "there is none to list")


async def test_in_a_replay_each_key_of_a_run_says_why_not(recorded: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.switch_mode("runs")
        screen = await replayed(app, recorded / "run.sqlite")
        for key in ("b", "B", "plus", "minus", "u", "e", "X"):
            app.say_nothing()
            await pilot.press(key)
            await until(lambda: said(app).startswith("this is a recording: only a run that goes on"), key)
        assert not screen.query(ComingList)
        assert any(one.why.startswith("this is a recording") for one in listed_keys(screen))
