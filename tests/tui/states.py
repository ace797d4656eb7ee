"""The screens of the console in every state in which a user may meet them, for tests that walk over all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from textual.screen import Screen
from textual.widgets import Input

from tests.tui.conftest import RECORDED, RUN, first_execution
from tests.tui.pictures import screen_text
from tests.tui.screens.test_own_guests import sampled
from tests.tui.screens.test_screens import ROOMY, TIGHT, StillConsole, failing, replayed, shown_live
from tests.tui.state.test_coming import Commands
from tests.waiting import until
from vmlab.model.places import runs_folder
from vmlab.report.demo.chapters import load_demo
from vmlab.tui.console_requests import Pick
from vmlab.tui.feed.live_feed import RunLost
from vmlab.tui.feed.recorded_run import RecordedRun
from vmlab.tui.screens.compare_screen import CompareScreen
from vmlab.tui.screens.demo_screen import DemoScreen
from vmlab.tui.screens.domain_screen import DomainScreen
from vmlab.tui.screens.guest_screen import GuestScreen
from vmlab.tui.screens.live_screen import LiveScreen
from vmlab.tui.screens.modals import HelpModal, QuestionModal
from vmlab.tui.screens.replay_screen import ReplayScreen
from vmlab.tui.screens.results_screen import ResultsScreen
from vmlab.tui.screens.runs_screen import RunsScreen
from vmlab.tui.screens.scenarios_screen import ScenariosScreen

LOW, HIGH = (80, 24), (160, 48)


class Place(NamedTuple):
    """What makes a state: the console, and what is changed around it."""

    app: StillConsole
    patch: pytest.MonkeyPatch

    async def shows(self, *words: str) -> None:
        await until(lambda: all(word in screen_text(self.app) for word in words), f"{words} on the screen")


class State(NamedTuple):
    """A state of `screen`, made by `make`."""

    make: Callable[[Place], Awaitable[None]]
    screen: type[Screen[Any]]
    panes: str
    """What can have the focus, by id and in order."""
    room: str = ""
    """Those of `panes` in which keys move something."""
    folder: str = ""
    """The fixture that fills the state folder, if any."""
    size: tuple[int, int] = LOW

    @property
    def name(self) -> str:
        return f"{self.make.__name__}-{self.folder or 'empty'}-{self.size[0]}x{self.size[1]}"


def store() -> Path:
    """The only run's."""
    return next(runs_folder().iterdir()) / "run.sqlite"


async def no_run(at: Place) -> None:
    await at.shows("How many guests")


async def own_guests(at: Place) -> None:
    await at.shows("How many guests")
    at.app.screen.post_message(sampled())
    await at.shows("sda 78 %", "web")


async def one_guest(at: Place) -> None:
    await own_guests(at)
    await _in_full(at, "db  2 vCPUs", "vda")


async def running(at: Place) -> None:
    recording = RecordedRun(RECORDED)
    await shown_live(at.app, recording.events, first_execution(recording) + 8)
    await at.shows("cell 1/2", "● running")


async def guest_of_the_run(at: Place) -> None:
    await running(at)
    await _in_full(at, "tile 1", "Disk wait ms")


async def _in_full(at: Place, *words: str) -> None:
    screen = at.app.screen
    assert isinstance(screen, LiveScreen)
    screen.action_domain()
    await at.shows(*words)


async def ended(at: Place) -> None:
    await shown_live(at.app, RecordedRun(RECORDED).events, float("inf"))
    await at.shows("run ✓ passed")
    await _over(at)


async def failed(at: Place) -> None:
    await shown_live(at.app, failing(RecordedRun(RECORDED)), float("inf"))
    await at.shows("run ✗ failed")
    await _over(at)


async def _over(at: Place) -> None:
    screen = at.app.screen
    assert isinstance(screen, LiveScreen)
    screen.post_message(RunLost(RUN, ""))
    await until(lambda: screen.watched is None, "the run is over")


async def aborted(at: Place) -> None:
    await running(at)
    at.app.screen.post_message(RunLost(RUN, "its processes are gone"))
    await at.shows("its processes are gone")


async def coming(at: Place) -> None:
    await _listed(at, Commands())
    await at.shows("skipped")


async def coming_of_none(at: Place) -> None:
    await _listed(at, Commands(cells=[]))
    await at.shows("no cell is to come")


async def coming_unanswered(at: Place) -> None:
    await _listed(at, Commands(failure="the run takes no commands yet"))
    await at.shows("the run takes no commands yet")


async def _listed(at: Place, commands: Commands) -> None:
    at.patch.setattr("vmlab.tui.commands.RunCommands", commands.of)
    await running(at)
    assert isinstance(at.app.screen, LiveScreen)
    await at.app.screen.action_edit_coming()


async def runs(at: Place) -> None:
    await at.app.switch_mode("runs")
    await at.shows("✓ passed" if any(runs_folder().glob("*")) else "No runs yet")


async def runs_with_one_that_lives(at: Place) -> None:
    await at.app.switch_mode("runs")
    await at.shows("● running", "✓ passed")


async def a_cell_of_a_run(at: Place) -> None:
    await runs(at)
    screen = at.app.screen
    assert isinstance(screen, RunsScreen)
    screen.action_unfold()
    await at.shows("tiles 1, cache none")
    screen.query_one("RowList").action_move(1)  # type: ignore[attr-defined]
    await until(lambda: screen._current() is not None and screen._current().cell is not None, "the cell")  # type: ignore[union-attr]


async def a_run_without_a_store(at: Place) -> None:
    broken = runs_folder() / "20261121-070000-tile-0bad"
    broken.mkdir(parents=True)
    (broken / "run.sqlite").write_bytes(b"this is no store" * 100)
    await at.app.switch_mode("runs")
    await at.shows("? damaged")


async def filtered_to_none(at: Place) -> None:
    await runs(at)
    screen = at.app.screen
    screen.query_one("Input").value = "nothing like that"  # type: ignore[attr-defined]
    await at.shows("No run has all of these words")


async def filter_being_typed(at: Place) -> None:
    await runs(at)
    assert isinstance(at.app.screen, RunsScreen)
    at.app.screen.action_filter()
    await _typed_in(at)


async def scenarios(at: Place) -> None:
    await listed_scenarios(at, "cpu-overhead", "tile")
    await at.shows("Press s to start it")


async def choices(at: Place) -> None:
    await scenarios(at)
    form = at.app.screen.query_one("#choices")
    form.focus()
    await until(lambda: form.has_focus, "the choices have the focus")


async def refused(at: Place) -> None:
    at.patch.setattr("vmlab.tui.feed.planner.shipped_names", lambda: ["tile"])
    at.patch.setattr("vmlab.lab.provision.host_support.read_host_facts", lambda folder: TIGHT)
    await at.app.switch_mode("scenarios")
    await at.shows("MORE than")


async def no_scenario(at: Place) -> None:
    await listed_scenarios(at)
    await at.shows("none is shipped")


async def path_being_typed(at: Place) -> None:
    await scenarios(at)
    assert isinstance(at.app.screen, ScenariosScreen)
    at.app.screen.action_file()
    await _typed_in(at)


async def _typed_in(at: Place) -> None:
    """A field takes the focus when the screen has laid it out, and until then the keys are those of a list."""
    await until(lambda: isinstance(at.app.focused, Input), "a field has the focus")


async def listed_scenarios(at: Place, *names: str) -> None:
    at.patch.setattr("vmlab.tui.feed.planner.shipped_names", lambda: list(names))
    at.patch.setattr("vmlab.lab.provision.host_support.read_host_facts", lambda folder: ROOMY)
    at.patch.setattr("vmlab.tui.screens.scenarios_screen.start", lambda file, overrides: runs_folder() / "none")
    await at.app.switch_mode("scenarios")


async def nothing_compared(at: Place) -> None:
    await at.app.switch_mode("compare")
    await at.shows("Nothing to compare")


async def cells_compared(at: Place) -> None:
    await _compared(at, Pick(store()))
    await at.shows("since the workloads started")


async def picks_compared(at: Place) -> None:
    await _compared(at, Pick(store(), 1), Pick(store(), 2))
    await at.shows("since the workloads started")


async def compare_of_what_is_gone(at: Place) -> None:
    await _compared(at, Pick(runs_folder() / "20261121-070000-tile-0bad/run.sqlite"))
    await at.shows("20261121-070000-tile-0bad")


async def _compared(at: Place, *picks: Pick) -> None:
    await at.app.switch_mode("compare")
    assert isinstance(at.app.screen, CompareScreen)
    at.app.screen.compare(picks)


async def replay_at_its_beginning(at: Place) -> None:
    await at.app.switch_mode("runs")
    await replayed(at.app, store())
    await at.shows("RECORDING paused")


async def replay(at: Place) -> None:
    await at.app.switch_mode("runs")
    (await replayed(at.app, store())).seek_to(60.0)
    await at.shows("RECORDING paused")


async def replay_at_its_end(at: Place) -> None:
    await at.app.switch_mode("runs")
    (await replayed(at.app, store())).seek_to(1e9)
    await at.shows("at its end")


async def demo(at: Place) -> None:
    await _demo(at, 1)
    await at.shows("RECORDING paused", "[2 ")


async def demo_at_its_first_chapter(at: Place) -> None:
    await _demo(at, 0)
    await at.shows("RECORDING paused", "[1 ")


async def _demo(at: Place, chapter: int) -> None:
    screen = DemoScreen(load_demo())
    await at.app.push_screen(screen)
    await until(lambda: screen.playback is not None, "the recording is read")
    assert screen.playback is not None
    screen.playback.paused = True
    screen.seek_to(screen.demo.chapters[chapter].position)


async def results(at: Place) -> None:
    await at.app.push_screen(ResultsScreen(store()))
    await at.shows("filecopy")


async def results_of_what_is_gone(at: Place) -> None:
    await at.app.push_screen(ResultsScreen(runs_folder() / "20261121-070000-tile-0bad/run.sqlite"))
    await at.shows("20261121-070000-tile-0bad")


async def help_shown(at: Place) -> None:
    at.app.action_help()
    await until(lambda: isinstance(at.app.screen, HelpModal) and at.app.focused is not None, "the help")


async def question(at: Place) -> None:
    at.app.ask_to_stop(runs_folder() / "none")
    await at.shows("Let it run")


STATES = (
    State(no_run, LiveScreen, "log"),
    State(own_guests, LiveScreen, "domains log", "domains"),
    State(own_guests, LiveScreen, "domains log", "domains", "", HIGH),
    State(one_guest, DomainScreen, "disks"),
    State(running, LiveScreen, "guests log", "log", "recorded"),
    State(running, LiveScreen, "guests log", "log", "recorded", HIGH),
    State(guest_of_the_run, GuestScreen, "disks", "", "recorded"),
    State(ended, LiveScreen, "guests log", "log"),
    State(failed, LiveScreen, "guests log", "log"),
    State(aborted, LiveScreen, "guests log", "log"),
    State(coming, LiveScreen, "coming", "coming", "recorded"),
    State(coming_of_none, LiveScreen, "coming", "", "recorded"),
    State(coming_unanswered, LiveScreen, "coming", "", "recorded"),
    State(runs, RunsScreen, "runs"),
    State(runs, RunsScreen, "runs", "", "recorded"),
    State(runs_with_one_that_lives, RunsScreen, "runs", "runs", "living"),
    State(a_cell_of_a_run, RunsScreen, "runs", "runs", "recorded"),
    State(a_run_without_a_store, RunsScreen, "runs"),
    State(filtered_to_none, RunsScreen, "runs", "", "recorded"),
    State(filter_being_typed, RunsScreen, "runs filter", "", "recorded"),
    State(scenarios, ScenariosScreen, "names choices", "names choices"),
    State(choices, ScenariosScreen, "names choices", "names choices"),
    State(refused, ScenariosScreen, "names choices", "choices"),
    State(no_scenario, ScenariosScreen, "names choices"),
    State(path_being_typed, ScenariosScreen, "names choices file", "names choices"),
    State(nothing_compared, CompareScreen, "sides"),
    State(cells_compared, CompareScreen, "sides", "sides", "recorded"),
    State(picks_compared, CompareScreen, "bars sides", "", "recorded", HIGH),
    State(compare_of_what_is_gone, CompareScreen, "sides"),
    State(replay_at_its_beginning, ReplayScreen, "guests log", "", "recorded"),
    State(replay, ReplayScreen, "guests log", "log", "recorded"),
    State(replay_at_its_end, ReplayScreen, "guests log", "log", "recorded"),
    State(demo, DemoScreen, ""),
    State(demo_at_its_first_chapter, DemoScreen, ""),
    State(results, ResultsScreen, "results", "results", "recorded"),
    State(results_of_what_is_gone, ResultsScreen, "results"),
    State(help_shown, HelpModal, "help", "help"),
    State(question, QuestionModal, "keep deed"),
)
