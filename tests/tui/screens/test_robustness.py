"""What must not break the console: dead runs, busy stores, poor terminals, no terminal."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from tests.tui.conftest import RUN
from tests.tui.pictures import screen_text
from tests.waiting import until
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.cell_event import CellStarted, WorkloadStarted
from vmlab.model.errors import UsageError
from vmlab.model.event import (
    Notice,
    RunEnded,
    RunStarted,
)
from vmlab.model.places import runs_folder
from vmlab.store.writer import RunWriter
from vmlab.tui.app import COPIED, Console, open_console
from vmlab.tui.console_options import ConsoleOptions, console_options
from vmlab.tui.screens.live_screen import LiveScreen
from vmlab.tui.screens.modals import listed_keys
from vmlab.tui.screens.results_screen import ResultsScreen


def begun(name: str) -> tuple[RunFolder, RunWriter, int]:
    """A run that lives: its lock is held, and its first cell has begun."""
    folder = RunFolder(name, runs_folder() / name)
    folder.path.mkdir(parents=True)
    lock = folder.take_lock()
    writer = RunWriter(folder.store)
    writer.append(RunStarted(run=name, scenario="tile", size="smoke", seed=1, cells=1, expected_seconds=60))
    writer.append(CellStarted(cell=1, axes={"tiles": 1, "cache": "none"}, repeat=1, guests=4))
    return folder, writer, lock


async def test_a_run_that_dies_under_it_is_told_as_aborted_and_the_host_goes_on(state: Path) -> None:
    _, writer, lock = begun("20261121-080000-tile-dead")
    app = Console()
    async with app.run_test(size=(80, 24)):
        await until(lambda: "cell 1/1" in screen_text(app), "the run is found")
        writer.close()
        os.close(lock)
        await until(lambda: "aborted" in screen_text(app) and "vmlab clean" in screen_text(app), "its end is told")
        screen = app.screen
        assert isinstance(screen, LiveScreen)
        await until(lambda: len(screen.history) > 0, "the host is read from here")


async def test_what_a_thread_has_read_for_a_screen_that_is_gone_is_left_out(recorded: Path) -> None:
    app = Console()
    async with app.run_test(size=(80, 24)):
        screen = ResultsScreen(recorded)
        await app.push_screen(screen)
        received: list[str] = []
        await asyncio.to_thread(screen.hand_over, received.append, "while it is there")
        await app.pop_screen()
        await asyncio.to_thread(screen.hand_over, received.append, "after it")
        assert received == ["while it is there"]


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[" * 60_000,
        '{"kind":"CellStarted","cell":"x","axes":[],"repeat":null,"guests":{}}',
        '{"kind":"Notice","level":"info","text":"\\u001b[2J' + "x" * 2**20 + '"}',
        '{"kind":"CellEnded","cell":-7,"outcome":"passed","reasons":[]}',
    ],
    ids=["no JSON", "nested", "wrong types", "escapes", "no such cell"],
)
async def test_a_live_store_that_turns_hostile_leaves_the_console_at_work(state: Path, body: str) -> None:
    folder, writer, lock = begun("20261121-080000-tile-evil")
    app = Console()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(lambda: "cell 1/1" in screen_text(app), "the run is found")
        writer.close()
        kind = body.partition('"kind":"')[2].partition('"')[0] or "Notice"
        with closing(sqlite3.connect(folder.store)) as connection, connection:
            connection.execute("INSERT INTO events (wall, mono, kind, body) VALUES (1, 1, ?, ?)", (kind, body))
        screen = app.screen
        assert isinstance(screen, LiveScreen)
        before = len(screen.history)
        await until(lambda: len(screen.history) > before + 1, "the host is still read")
        assert "\x1b" not in screen_text(app)
        for key in ("question_mark", "escape", "3", "1"):
            await pilot.press(key)
        await pilot.pause()
    os.close(lock)


async def test_a_run_that_ends_is_told_and_the_next_one_is_found(state: Path) -> None:
    _, writer, lock = begun("20261121-080000-tile-aaaa")
    app = Console()
    async with app.run_test(size=(80, 24), notifications=True):
        await until(lambda: "cell 1/1" in screen_text(app), "the run is found")
        writer.append(RunEnded(outcome="passed", exit_code=0))
        writer.close()
        os.close(lock)
        await until(lambda: "✓ passed after" in screen_text(app), "its end is told")
        _, writer, lock = begun("20261121-080100-tile-bbbb")
        await until(
            lambda: "cell 1/1" in screen_text(app) and "passed after" not in screen_text(app), "the next one is found"
        )
        writer.close()
        os.close(lock)


async def test_two_consoles_watch_one_run(state: Path) -> None:
    _, writer, lock = begun("20261121-080000-tile-both")
    first, second = Console(), Console()
    async with first.run_test(size=(80, 24)), second.run_test(size=(80, 24)):
        await until(lambda: "cell 1/1" in screen_text(first), "the first watches")
        await until(lambda: "cell 1/1" in screen_text(second), "the second watches")
    writer.close()
    os.close(lock)


async def test_a_damaged_recording_is_refused_in_words(state: Path) -> None:
    store = state / "run.sqlite"
    store.write_bytes(b"no store at all" * 100)
    app = Console(ConsoleOptions(), store)
    async with app.run_test(size=(80, 24), notifications=True):
        await until(lambda: "Cannot play it" in screen_text(app), "the refusal")
        await until(lambda: isinstance(app.screen, LiveScreen), "back on the Live screen")


@pytest.mark.parametrize("variable", ["VMLAB_ASCII", "NO_COLOR"])
async def test_a_poor_terminal_is_served(recorded: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    app = Console(ConsoleOptions(), recorded / "run.sqlite")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(lambda: "RECORDING" in screen_text(app), "it plays")
        await pilot.press("space", "n", "n", "l", "l")
        await until(lambda: "cell 2/2" in screen_text(app) and "file-a" in screen_text(app), "it is wound")
        text = screen_text(app)
        assert "user" in text and "file-a" in text
        assert text.isascii() is (variable == "VMLAB_ASCII")


async def test_copying_goes_to_the_clipboard_and_into_a_file(recorded: Path, state: Path) -> None:
    app = Console()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("3")
        await until(lambda: "✓ passed" in screen_text(app), "the runs")
        await pilot.press("y")
        await until(lambda: (state / "vmlab" / COPIED).exists(), "the file")
        copied = (state / "vmlab" / COPIED).read_text()
        assert "tile" in copied and "✓ passed" in copied
        assert app.clipboard == copied


async def test_help_tells_every_key_of_the_screen(state: Path) -> None:
    app = Console()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.screen
        wanted = {active.binding.description for active in screen.active_bindings.values() if not active.binding.system}
        lines = "\n".join(one.description for one in listed_keys(screen))
        assert {word for word in wanted if word and word not in lines} == set()
        await pilot.press("question_mark")
        await until(lambda: "This screen" in screen_text(app), "the help")
        await pilot.press("escape")
        await until(lambda: app.screen is screen, "back")


async def test_nothing_is_asked_of_a_run_while_there_is_none(state: Path) -> None:
    app = Console()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("X", "b", "plus")
        assert isinstance(app.screen, LiveScreen)


def test_without_a_terminal_there_is_one_clear_line(state: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "vmlab"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr == "vmlab: the console needs a terminal; `vmlab --help` lists the commands\n"


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ([], ConsoleOptions()),
        (["--no-mouse"], ConsoleOptions(mouse=False)),
        (["--theme", "nord"], ConsoleOptions(theme="nord")),
        (["replay", RUN], ConsoleOptions(replay=RUN)),
        (["replay"], ConsoleOptions(replay="last")),
        (["demo"], ConsoleOptions(demo=True)),
        (["demo", "--no-mouse", "--theme", "nord"], ConsoleOptions(mouse=False, theme="nord", demo=True)),
        (["demo", "--list"], None),
        (["demo", "--help"], None),
        (["demo", "replay"], None),
        (["replay", RUN, "demo"], None),
        (["--help"], None),
        (["run", "tile"], None),
        (["replay", "--help"], None),
    ],
)
def test_the_command_line_says_whether_the_console_is_meant(arguments: list[str], asked: ConsoleOptions | None) -> None:
    assert console_options(arguments) == asked


HOSTILE = (
    "\x1b]0;title\x07\x9b2J\u202e[bold red]x[/] [link=https://example.org]y[/link] [/] [@click=app.quit]q[/]\nforged"
)


def _screen(app: Console) -> str:
    text = screen_text(app)
    assert [sign for sign in text if sign != "\n" and not sign.isprintable() and not sign.isspace()] == []
    return text


def test_a_theme_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"there is no theme 'nonsense'; there are: .*nord.*textual-light"):
        open_console(ConsoleOptions(theme="nonsense"))
    assert open_console(ConsoleOptions(theme="nord")).options.theme == "nord"


async def test_hostile_texts_are_shown_and_not_obeyed(state: Path) -> None:
    folder, writer, lock = begun("20261121-080000-tile-evil")
    writer.append(Notice(level="error", text=HOSTILE))
    writer.append(
        WorkloadStarted(cell=1, workload=HOSTILE, tile=1, guest=HOSTILE, benchmark=HOSTILE, late_ms=1, uncertainty_ms=1)
    )
    app = Console()
    async with app.run_test(size=(160, 48), notifications=True) as pilot:
        await until(lambda: "\\x1b]0;title\\x07\\u009b2J\\u202e[bold red]x[/] [link=" in _screen(app), "it is shown")
        app.notify(HOSTILE, title=HOSTILE)
        await until(lambda: _screen(app).count("[@click=app.quit]") >= 1, "the toast shows it as well")
        app.ask_to_stop(folder.path.with_name(HOSTILE.replace("/", "|")))
        await until(lambda: "Stop run \\x1b]0;title" in _screen(app), "so does a question")
        await pilot.press("escape", "3")
        await until(lambda: "tile" in _screen(app), "the runs")
    writer.append(RunEnded(outcome=HOSTILE, exit_code=1, reason=HOSTILE))
    writer.close()
    os.close(lock)
    replay = Console(ConsoleOptions(), folder.store)
    async with replay.run_test(size=(160, 48)) as pilot:
        await until(lambda: "RECORDING" in _screen(replay), "it plays")
        await pilot.press("end")
        await until(lambda: "at its end" in _screen(replay), "to its end")


async def test_a_damaged_run_is_a_line_of_the_list_and_refused_by_the_others(recorded: Path) -> None:
    damaged = recorded.with_name("20261121-090000-tile-bad") / "run.sqlite"
    damaged.parent.mkdir()
    shutil.copy(recorded / "run.sqlite", damaged)
    with closing(sqlite3.connect(damaged)) as connection:
        connection.execute("UPDATE events SET body = CAST(x'7b22ff' AS TEXT) WHERE id > 5")
        connection.commit()
    app = Console()
    async with app.run_test(size=(160, 24), notifications=True) as pilot:
        await pilot.press("3")
        await until(lambda: "cannot read" in _screen(app) and "✓ passed" in _screen(app), "both are listed")
        assert "? damaged" in _screen(app) and "aborted" not in _screen(app)
        await pilot.press("home", "enter")
        await until(lambda: "Cannot play it" in _screen(app), "the replay is refused")
        await pilot.press("e")
        await until(lambda: "not UTF-8" in _screen(app), "so are its cells")
        await pilot.press("c")
        await until(lambda: "cannot read" in _screen(app), "and comparing it")


async def test_runs_that_nobody_may_list_are_told_of(state: Path) -> None:
    runs_folder().parent.mkdir()
    runs_folder().touch()
    app = Console()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("3")
        await until(lambda: "Not a directory" in _screen(app), "why there is no list")


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("key", ["3", "question_mark"])
@pytest.mark.parametrize(
    ("severity", "title", "stays"),
    [
        ("warning", "", False),
        ("information", "", False),
        ("information", "Started", True),
        ("error", "", True),
    ],
)
async def test_why_a_key_does_nothing_is_for_its_screen_and_news_stay_to_be_read(
    severity: Literal["warning", "information", "error"], title: str, key: str, *, stays: bool
) -> None:
    app = Console()
    async with app.run_test(size=(80, 24)) as pilot:
        app.notify("words of Live", title=title, severity=severity, timeout=3600)
        await until(lambda: "words of Live" in screen_text(app), "it is said")
        live = app.screen
        await pilot.press(key)
        await until(lambda: app.screen is not live, "another screen")
        await until(lambda: (app.said is not None) is stays, "it stays or goes")
        await pilot.press("escape" if key == "question_mark" else "1")
        await until(lambda: app.screen is live and ("words of Live" in screen_text(app)) is stays, "it is there or not")
