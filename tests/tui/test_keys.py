"""Every key of every screen, in every state, does something or says why not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.tui.conftest import RECORDED
from tests.tui.pictures import screen_text
from tests.tui.test_coming import Commands
from tests.tui.test_screens import ROOMY, TIGHT, StillConsole, replayed, shown_live
from tests.waiting import until
from vmlab.model.places import runs_folder
from vmlab.report.demo.chapters import load_demo
from vmlab.tui.app import Console
from vmlab.tui.feed.picks import Pick
from vmlab.tui.feed.recorded_run import RecordedRun
from vmlab.tui.screens.compare import CompareScreen
from vmlab.tui.screens.demo import DemoScreen
from vmlab.tui.screens.help import HelpModal, help_lines
from vmlab.tui.screens.live import LiveScreen
from vmlab.tui.screens.results import ResultsScreen

MOVES = ("move", "row", "value", "scroll_up", "scroll_down", "scroll_home", "scroll_end", "page_up", "page_down")
"""What a cursor or a pane does at its end is seen and need not be said."""
LEAVES = ("quit", "app.quit")
Made = Callable[[Console, pytest.MonkeyPatch], Awaitable[None]]


async def live_empty(app: Console, patch: pytest.MonkeyPatch) -> None:
    await until(lambda: "No guests" in screen_text(app), "the hint")


async def live_running(app: Console, patch: pytest.MonkeyPatch) -> None:
    recording = RecordedRun(RECORDED)
    await shown_live(app, recording.events, recording.began + recording.executions()[0][0] + 8)
    await until(lambda: "cell 1/2" in screen_text(app), "the run")


async def live_coming(app: Console, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("vmlab.tui.screens.live.run_commands", Commands().of)
    await live_running(app, patch)
    assert isinstance(app.screen, LiveScreen)
    await app.screen.action_edit_coming()
    await until(lambda: "skipped" in screen_text(app), "the list")


async def runs(app: Console, patch: pytest.MonkeyPatch) -> None:
    await app.switch_mode("runs")
    wanted = "✓ passed" if any(runs_folder().glob("*")) else "No runs yet"
    await until(lambda: wanted in screen_text(app), "the list")


async def scenarios(app: Console, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("vmlab.tui.feed.planner.shipped_names", lambda: ["cpu-overhead", "tile"])
    patch.setattr("vmlab.tui.feed.planner.read_host_facts", lambda folder: ROOMY)
    patch.setattr("vmlab.tui.screens.scenarios.start", lambda file, overrides: runs_folder() / "none")
    await app.switch_mode("scenarios")
    await until(lambda: "Press s to start it" in screen_text(app), "a plan")


async def choices(app: Console, patch: pytest.MonkeyPatch) -> None:
    await scenarios(app, patch)
    app.screen.query_one("#choices").focus()


async def refused(app: Console, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("vmlab.tui.feed.planner.shipped_names", lambda: ["tile"])
    patch.setattr("vmlab.tui.feed.planner.read_host_facts", lambda folder: TIGHT)
    await app.switch_mode("scenarios")
    await until(lambda: "MORE than" in screen_text(app), "the refusal")


async def compare_empty(app: Console, patch: pytest.MonkeyPatch) -> None:
    await app.switch_mode("compare")
    await until(lambda: "Nothing to compare" in screen_text(app), "the hint")


async def compare(app: Console, patch: pytest.MonkeyPatch) -> None:
    await app.switch_mode("compare")
    assert isinstance(app.screen, CompareScreen)
    store = next(runs_folder().iterdir()) / "run.sqlite"
    app.screen.compare([Pick(store, 1), Pick(store, 2)])
    await until(lambda: "since the workloads started" in screen_text(app), "the chart")


async def replay(app: Console, patch: pytest.MonkeyPatch) -> None:
    await app.switch_mode("runs")
    screen = await replayed(app, next(runs_folder().iterdir()) / "run.sqlite")
    screen.seek_to(60.0)
    await until(lambda: "RECORDING paused" in screen_text(app), "it stands still")


async def replay_at_its_end(app: Console, patch: pytest.MonkeyPatch) -> None:
    await replay(app, patch)
    app.screen.seek_to(1e9)  # type: ignore[attr-defined]
    await until(lambda: "at its end" in screen_text(app), "the end")


async def results(app: Console, patch: pytest.MonkeyPatch) -> None:
    await app.push_screen(ResultsScreen(next(runs_folder().iterdir()) / "run.sqlite"))
    await until(lambda: "filecopy" in screen_text(app), "the tables")


async def demo(app: Console, patch: pytest.MonkeyPatch) -> None:
    screen = DemoScreen(load_demo())
    await app.push_screen(screen)
    await until(lambda: screen.playback is not None, "the recording is read")
    assert screen.playback is not None
    screen.playback.paused = True
    screen.seek_to(screen.demo.chapters[1].position)
    await until(lambda: "RECORDING paused" in screen_text(app) and "2/" in screen_text(app), "it stands still")


async def help_shown(app: Console, patch: pytest.MonkeyPatch) -> None:
    app.action_help()
    await until(lambda: isinstance(app.screen, HelpModal), "the help")


async def question(app: Console, patch: pytest.MonkeyPatch) -> None:
    app.ask_to_stop(runs_folder() / "none")
    await until(lambda: "Let it run" in screen_text(app), "the question")


EMPTY: tuple[Made, ...] = (live_empty, runs, compare_empty, scenarios, choices, refused, help_shown, question, demo)
RECORDED_ONCE: tuple[Made, ...] = (live_running, live_coming, runs, compare, replay, replay_at_its_end, results)
STATES = [*((made, False) for made in EMPTY), *((made, True) for made in RECORDED_ONCE)]


@pytest.mark.parametrize(("made", "with_run"), STATES, ids=lambda value: getattr(value, "__name__", f"{value}"))
async def test_every_key_does_something_or_says_why_not(
    made: Made, with_run: bool, state: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if with_run:
        request.getfixturevalue("recorded")
    tried: set[str] = set()
    while True:
        app = StillConsole()
        async with app.run_test(size=(80, 24)) as pilot:
            await made(app, monkeypatch)
            base, mode, focused = app.screen, app.current_mode, app.focused
            for key, active in list(base.active_bindings.items()):
                if key in tried or active.binding.action.partition("(")[0] in (*MOVES, *LEAVES):
                    continue
                tried.add(key)
                app.say_nothing()
                # What the key before did is drawn first: a key that takes it back would change nothing otherwise.
                await until(lambda: getattr(base, "_due", None) is None, "no picture is owed")  # noqa: B023
                await pilot.pause()
                before = seen(app)
                await pilot.press(key)
                await until(lambda: seen(app) != before, f"{key} ({active.binding.action}) does something or says why")  # noqa: B023
                if not base.is_attached or (focused is not None and not focused.is_attached):
                    break  # The key has closed the screen or its pane; the others are tried on a new one.
                if app.current_mode != mode:
                    await app.switch_mode(mode)
                while app.screen is not base:
                    await app.pop_screen()
                base.set_focus(focused)
            else:
                return


def seen(app: Console) -> tuple[object, ...]:
    """All that a user could notice."""
    return app.screen, app.focused, app.said, screen_text(app)


async def test_help_tells_no_key_of_the_framework(state: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        for key in "1234":
            await pilot.press(key)
            lines = "\n".join(help_lines(app.screen))
            for word in ("Focus Next", "Scroll", "palette", "Copy selected", "^q"):
                assert word not in lines


async def test_a_command_without_a_run_says_so_and_asks_nothing(state: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        for key in ("b", "plus", "minus", "e", "u", "X"):
            app.say_nothing()
            await pilot.press(key)
            await until(lambda: "no run is going on" in screen_text(app), key)
        assert isinstance(app.screen, LiveScreen)


async def test_the_key_of_the_runs_leaves_a_recording_that_was_opened_there(recorded: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await replay(app, pytest.MonkeyPatch())
        await pilot.press("1")
        await until(lambda: isinstance(app.screen, LiveScreen), "Live")
        await pilot.press("3")
        await until(lambda: "RECORDING" in screen_text(app), "where one was")
        await pilot.press("3")
        await until(lambda: "✓ passed" in screen_text(app) and "RECORDING" not in screen_text(app), "the list")
