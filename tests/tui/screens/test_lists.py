"""The lists of scenarios and of runs: groups, filters with their counts, and the result of the run under the cursor."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from textual.geometry import Offset
from textual.widgets import Input

from tests.store.stories import Story
from tests.tui.conftest import RUN
from tests.tui.pictures import screen_text, settled
from tests.tui.screens.test_screens import ROOMY, StillConsole
from tests.tui.states import Place, runs
from tests.waiting import until
from vmlab.model.places import runs_folder
from vmlab.store.life import write_note
from vmlab.store.run_list import RunList
from vmlab.store.runs import RunSummary
from vmlab.system.text_width import width_of
from vmlab.tui.feed.kept_verdicts import _verdict
from vmlab.tui.feed.run_tables import results_of
from vmlab.tui.screens.runs_screen import _VERDICT, RunsScreen
from vmlab.tui.screens.scenarios_screen import ScenariosScreen
from vmlab.tui.widgets.row_list import RowList
from vmlab.tui.widgets.tables.result_board import ResultBoard

OTHER = "20261122-070000-tile-0b0b"


async def listed(app: StillConsole, monkeypatch: pytest.MonkeyPatch) -> RowList:
    monkeypatch.setattr("vmlab.lab.provision.host_support.read_host_facts", lambda folder: ROOMY)
    await app.switch_mode("scenarios")
    await until(lambda: "Press s to start it" in screen_text(app), "a plan")
    return app.screen.query_one(RowList)


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_scenarios_stand_in_groups_with_their_question_and_what_was_published(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        names = await listed(app, monkeypatch)
        assert names.key == "tile", "the first one is the one to start with"
        lines = names.text().splitlines()
        assert lines.index("Start here") < lines.index(" tile") < lines.index("CPU") < lines.index(" cpu-overhead")
        await until(lambda: "Four guests that benchmark each other" in screen_text(app), "its question")
        await until(lambda: "KVM scalability and consolidation ratio" in screen_text(app), "what was published")
        # A click goes by what is drawn, titles of groups included, and opens nothing.
        at = lines.index(" cpu-overhead")
        await pilot.click(names, offset=Offset(3, at + names.styles.gutter.top))
        assert names.key == "cpu-overhead"
        await pilot.click(names, offset=Offset(3, lines.index("CPU") + names.styles.gutter.top))
        assert names.key == "cpu-overhead"
        await pilot.press("G")
        await until(lambda: names.key == "system-overhead", "the last")
        await until(lambda: " system-overhead" in screen_text(app), "it is in sight")
        await pilot.press("g")
        await until(lambda: "Start here" in screen_text(app), "with the title of its group")


@pytest.mark.usefixtures("state")
async def test_a_filter_of_scenarios_says_how_many_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    app = StillConsole()
    async with app.run_test(size=(100, 30)) as pilot:
        names = await listed(app, monkeypatch)
        screen = app.screen
        assert isinstance(screen, ScenariosScreen)
        # Questions are searched too, once they are all read.
        await until(lambda: all(screen._summaries.values()), "the questions")
        known = len(screen._summaries)
        await pilot.press("slash")
        await until(lambda: isinstance(app.focused, Input), "the prompt")
        assert f"{known} of {known}" in screen_text(app)
        await pilot.press(*"merges")
        await until(lambda: f"1 of {known}" in screen_text(app), "what is left")
        assert names.text().splitlines()[-1] == " memory-sharing"
        await pilot.press("enter")
        await until(lambda: app.focused is names, "the list")
        assert f"1 of {known}" in screen_text(app), "it is seen that a filter is set"
        await until(lambda: "what KSM merges" in screen_text(app), "its plan")
        await pilot.press("escape")
        await until(lambda: f"of {known}" not in screen_text(app), "no filter")
        assert " tile" in names.text().splitlines()
        await pilot.press("slash")
        await until(lambda: isinstance(app.focused, Input), "the prompt")
        await pilot.press(*"nothing")
        await until(lambda: "no scenario has all of these words" in " ".join(names.text().split()), "the hint")
        await pilot.press("escape")
        await until(lambda: " tile" in names.text().splitlines(), "all of them")


async def test_each_run_has_its_verdict_which_is_read_once(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(recorded, runs_folder() / OTHER)
    for size in ((80, 24), (160, 48)):
        app = StillConsole()
        async with app.run_test(size=size):
            await runs(Place(app, monkeypatch))
            screen = app.screen
            assert isinstance(screen, RunsScreen)
            for _ in range(2):
                screen._read_facts()
                await settled(app)
            listed = screen.query_one(RowList).text()
            assert listed.count("Cannot tell yet") == 2 and "verdict" in listed.splitlines()[0]
        # What was kept of them is enough from now on.
        monkeypatch.setattr("vmlab.tui.feed.kept_verdicts._verdict", lambda store: "read again")


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        (("invalid", "invalid"), "No cell is valid"),
        (("failed", "invalid"), "No cell passed"),
        (("passed", "passed"), "One configuration"),
    ],
)
def test_a_run_that_compares_nothing_says_why_in_its_line(tmp_path: Path, outcomes: tuple[str, ...], said: str) -> None:
    story = Story(tmp_path / "run.sqlite").begin({"cache": ["none"]}, cells=2)
    for outcome in outcomes:
        story.start_cell({"cache": "none"})
        story.measure("web", 10.0)
        story.end_cell(outcome, wall=10.0)
    assert _verdict(story.end()) == said and len(said) <= _VERDICT


async def test_runs_reads_its_list_in_one_thread_at_a_time(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(recorded, runs_folder() / OTHER)
    read, under_way, most = RunList.read, 0, 0

    def slowly(runs: RunList) -> list[RunSummary]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        time.sleep(0.2)
        under_way -= 1
        return read(runs)

    monkeypatch.setattr(RunList, "read", slowly)
    app = StillConsole()
    async with app.run_test(size=(160, 48)):
        await runs(Place(app, monkeypatch))
        await until(lambda: "Cannot tell yet" in app.screen.query_one(RowList).text(), "the list, and the verdicts")
    assert most == 1, "two reads at once take three times as long"


async def test_runs_has_the_result_of_the_run_under_the_cursor_in_its_lower_half(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(recorded, runs_folder() / OTHER)
    app = StillConsole()
    async with app.run_test(size=(100, 30)) as pilot:
        await runs(Place(app, monkeypatch))
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        await until(lambda: f"Result of {OTHER}" in screen_text(app), "of the newest")
        await until(lambda: "total wall clock" in screen_text(app), "its figures")
        await pilot.press("j")
        await until(lambda: f"Result of {RUN}" in screen_text(app), "of the one before")
        board = screen.query_one(ResultBoard)
        assert board not in screen.focus_chain, "keys stay with the list"
        await pilot.press("slash")
        await until(lambda: isinstance(app.focused, Input), "the prompt")
        await pilot.press(*"nothing")
        await until(lambda: "0 of 2" in screen_text(app), "what is left")
        assert "total wall clock" not in screen_text(app)
        await pilot.press("escape")
        await until(lambda: "Result of" in screen_text(app) and "0 of 2" not in screen_text(app), "all of them")


@pytest.mark.parametrize("size", [(80, 24), (150, 40)])
async def test_runs_has_a_note_in_its_line_and_all_of_it_in_the_result(
    size: tuple[int, int], recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = "性能 after the BIOS update, power profile performance, fans replaced, \u202edoor closed"
    write_note(recorded, "before")
    app = StillConsole()
    async with app.run_test(size=size):
        await runs(Place(app, monkeypatch))
        await until(lambda: "note: before" in screen_text(app), "the note in the result")
        write_note(recorded, note)
        app.screen.query_one(RowList).focus()
        assert isinstance(app.screen, RunsScreen)
        app.screen.on_screen_resume()
        await until(lambda: "closed" in screen_text(app), "the note of now, to its end")
        board = " ".join(app.screen.query_one(ResultBoard).text().split())
        assert note.replace("\u202e", "\\u202e") in board
        (line,) = [line for line in app.screen.query_one(RowList).text().splitlines() if "tile" in line]
        assert "性能" in line and width_of(line) <= size[0]


def test_results_of_runs_that_are_over_are_read_once(recorded: Path) -> None:
    store = recorded / "run.sqlite"
    first = results_of(store)
    assert results_of(store, over=True) is not first
    assert results_of(store, over=True) is results_of(store, over=True)
    assert "no" in results_of(recorded / "none.sqlite", over=True).tables(80)
