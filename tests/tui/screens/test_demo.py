"""`vmlab demo`: a recording that tells its story, for who has no hypervisor, no root and no runs."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.tui.pictures import screen_text
from tests.tui.screens.test_screens import StillConsole
from tests.waiting import until
from vmlab.model.places import runs_folder
from vmlab.model.run import Phase
from vmlab.report.demo.chapters import Demo, load_demo
from vmlab.report.demo.duration import BOOK, FOLDER
from vmlab.report.demo.so_far import so_far
from vmlab.report.run.tiles_board import board_of
from vmlab.tui.app import Console
from vmlab.tui.feed.recorded_run import RecordedRun
from vmlab.tui.feed.run_tables import document_of
from vmlab.tui.screens import replay_screen
from vmlab.tui.screens.compare_screen import CompareScreen
from vmlab.tui.screens.demo_screen import DemoScreen
from vmlab.tui.widgets.charts.chart_head import PAUSED
from vmlab.tui.widgets.demo_stage import SoFarPane, Spoken, SpokenPane, StagePane
from vmlab.tui.widgets.tables.event_log import EventLog
from vmlab.tui.widgets.tables.guest_table import GuestTable
from vmlab.tui.widgets.tables.tiles_answer import TilesAnswer

pytestmark = pytest.mark.usefixtures("state")


async def shown(app: Console, *, paused: bool = True) -> DemoScreen:
    """The demo, when its recording has been read."""
    await until(lambda: isinstance(app.screen, DemoScreen) and app.screen.playback, "it is read")
    screen = app.screen
    assert isinstance(screen, DemoScreen) and screen.playback is not None
    if paused:
        screen.playback.paused = True
        screen.begin()
    return screen


def captioned(app: Console, title: str, sentence: str) -> Callable[[], bool]:
    """Whether the narration says this."""
    told = Spoken(title, sentence, app.size.height)

    def narrated() -> bool:
        if not isinstance(app.screen, DemoScreen):
            return False
        (pane,) = app.screen.query("#narration").results(SpokenPane)
        return pane.shown._replace(may=True, tone=told.tone) == told and pane.text().strip() != ""

    return narrated


def shows(app: Console, words: str) -> Callable[[], bool]:
    """Whether these words stand on the screen."""
    return lambda: words in screen_text(app)


def numbered(demo: Demo, place: int) -> tuple[str, str]:
    return demo.chapters[place].title, demo.chapters[place].sentence


STAGES = ((80, 24), (110, 34), (160, 48), (190, 55))


@pytest.mark.parametrize("size", STAGES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_keys_go_from_step_to_step_and_nothing_is_cut_or_moves(size: tuple[int, int]) -> None:
    demo = load_demo()
    app = StillConsole(demo=demo)
    async with app.run_test(size=size) as pilot:
        screen = await shown(app)
        places = set()
        for place in range(len(demo.chapters)):
            await until(captioned(app, *numbered(demo, place)), f"step {place + 1}")
            await until(
                shows(app, f"[{place + 1} {demo.chapters[place].title.lower()}]"), f"step {place + 1} in the line"
            )
            text = screen_text(app)
            assert "…" not in text and "N Next" in text and "P Previous" in text and "RECORDING" in text
            panes = [screen.query_one(name) for name in ("#question", "#state", "#charts", "#sofar", "#narration")]
            if not screen.has_class("-answered"):
                for pane in panes:
                    assert pane.virtual_size.height <= pane.size.height, pane
                places.add(tuple(pane.region for pane in panes))
                assert demo.about.split()[-1] in text, "the tile is defined in full"
                state = screen.query_one(StagePane).text()
                assert "disk" in state and "cpu" in state and ("full at" in state or size[0] == 80)
            await pilot.press("N" if place % 2 else "pagedown")
        assert len(places) == 1
        await until(captioned(app, demo.ending.title, demo.ending.sentence), "the end")
        await until(shows(app, "at its end"), "the end")
        await pilot.press("N")
        await until(lambda: "this is the end of the recording" in screen_text(app), "no step follows")
        for place in reversed(range(len(demo.chapters))):
            await pilot.press("P" if place % 2 else "pageup")
            await until(captioned(app, *numbered(demo, place)), f"step {place + 1} again")
        app.say_nothing()
        await pilot.press("P")
        await until(lambda: "this is the first chapter" in screen_text(app), "none is before")


async def test_a_key_for_a_step_is_kept_while_the_recording_is_read() -> None:
    demo = load_demo()
    app = StillConsole(demo=demo)
    async with app.run_test(size=(110, 34)):
        screen = await shown(app)
        for steps, place in (((1, 1, -1), 1), ((), 0)):
            screen.playback, read = None, screen.playback
            for step in steps:
                assert screen.reason("chapter") == ""
                screen.action_chapter(step)
            screen.playback = read
            screen.begin()
            await until(captioned(app, *numbered(demo, place)), f"step {place + 1}")
        assert "step 2 follows as soon as the recording is read" in app.told


def knows(table: SoFarPane, figures: int) -> bool:
    return sum(len(one.bars) for side in table.shown.sides for one in side.tiles) == figures


async def test_what_is_known_grows_with_each_cell_and_stays() -> None:
    demo = load_demo()
    known = so_far(document_of(demo.store), {1, 2, 3})
    assert [[one.met for one in side.tiles] for side in known] == [[True, False, None], [None, None, None]]
    assert known[0].tiles[2].switched and not known[0].tiles[2].bars
    app = StillConsole(demo=demo)
    async with app.run_test(size=(110, 34)):
        screen = await shown(app)
        table = screen.query_one(SoFarPane)
        await until(lambda: "now" in table.text(), "the first step")
        limits = [bar.limit for bar in so_far(document_of(demo.store), {1})[0].tiles[0].bars]
        assert limits and all(f"({limit})" in table.text() for limit in limits), "before anything is measured"
        seen = ""
        for place, values in ((1, 3), (2, 6), (4, 6), (5, 9), (6, 12)):
            screen.seek_to(demo.chapters[place].position + 1)
            await until(captioned(app, *numbered(demo, place)), "the step")
            await until(partial(knows, table, values), "its figures")
            assert table.text() != seen and "now" in table.text()
            seen = table.text()
        for bar in so_far(document_of(demo.store), {5})[1].tiles[1].bars:
            assert bar.value in seen and bar.limit in seen


async def test_g_shows_all_charts_guests_and_events_and_the_stage_again() -> None:
    app = StillConsole(demo=load_demo())
    async with app.run_test(size=(110, 34)) as pilot:
        screen = await shown(app)
        await pressed(pilot, "m", shows(app, "g shows all charts"))
        await pressed(pilot, "g", lambda: all(word in screen_text(app) for word in ("Events", "Guests", "cell 1/6")))
        assert not screen.query_one(SoFarPane).display
        await pressed(pilot, "g", lambda: "Events" not in screen_text(app) and screen.query_one(SoFarPane).display)


HELD_SECONDS = 6.0
"""Every chapter stands for at least so long."""


def test_each_chapter_is_held_until_it_can_be_read_and_all_take_some_two_minutes() -> None:
    demo = load_demo()
    for place, chapter in enumerate(demo.chapters):
        held = demo.onward(chapter.position, HELD_SECONDS)
        assert demo.stretch(chapter.position).place == demo.stretch(held).place == place, chapter.title
        assert held < demo.ending.position
    assert 60 < demo.seconds <= 130


async def test_the_answer_has_the_whole_screen_at_its_end_and_stays() -> None:
    app = StillConsole(demo=load_demo())
    async with app.run_test(size=(100, 30)):
        screen = await shown(app, paused=False)
        assert screen.playback is not None
        screen.seek_to(1e9)
        await until(lambda: "at its end" in screen_text(app) and screen.has_class("-answered"), "the end")
        for _ in range(3):
            screen.playback.advance(60)
            screen.draw()
        assert screen.has_class("-answered") and screen.playback.at_end
        await until(shows(app, "stopped by the"), "the board")
        assert "Recorded on 2 x AMD EPYC" in screen_text(app) and "invalid" not in screen_text(app)
        assert "Guests" not in screen_text(app) and "Events" not in screen_text(app)


async def test_it_begins_without_the_words_of_a_qemu_that_ended() -> None:
    demo = load_demo()
    app = StillConsole(demo=demo)
    async with app.run_test(size=(160, 48)):
        screen = await shown(app)
        for _ in range(2):
            await until(lambda: screen.query_one("#narration", SpokenPane).shown.title == "One tile", "it begins")
            assert "Assertion" not in screen_text(app) and "QEMU ended" not in screen_text(app)
            screen.action_stage()


@pytest.mark.parametrize(("width", "height"), [(60, 16), (100, 30), (160, 40), (200, 52)])
def test_the_board_fills_its_room_and_its_rows_stand_under_each_other(width: int, height: int) -> None:
    demo = load_demo()
    board = board_of(document_of(demo.store))
    assert board is not None and len(board.rows) == 2
    answer = TilesAnswer()
    answer.show(board)
    drawn = ["".join(text for text, _ in line) for line in answer.lines(width, height)]
    assert len(drawn) <= height and all(len(line) <= width for line in drawn)
    said = [line for line in drawn if "stopped by the" in line]
    assert len(said) == len(board.rows)
    assert len({line.index("stopped by") for line in said}) == 1
    if width >= 100:
        shares = [
            line[line.index("stopped by") + len(row.stopped) :] for line, row in zip(said, board.rows, strict=True)
        ]
        assert all(set(share) & set("█▀▄") for share in shares), "the use is in large letters"
        assert len(drawn) > height / 2, "half of the screen would be empty"


async def test_a_screen_that_was_left_is_not_drawn_by_what_it_was_told_before() -> None:
    """Its panes are gone by then."""
    app = StillConsole(demo=load_demo())
    async with app.run_test(size=(100, 30)):
        screen = await shown(app)
        await app.pop_screen()
        assert not screen.query("ChartBoard")
        screen.on_screen_resume()
        screen.changed()


async def test_caption_strip_and_charts_are_of_the_same_cell() -> None:
    demo = load_demo()
    told = tomllib.loads((FOLDER / BOOK).read_text())["chapters"]
    app = StillConsole(demo=demo)
    async with app.run_test(size=(100, 30)):
        screen = await shown(app)
        screen.action_stage()
        for place, (chapter, entry) in enumerate(zip(demo.chapters, told, strict=True)):
            for seconds in (0.5, HELD_SECONDS):
                screen.seek_to(demo.onward(chapter.position, seconds))
                await until(
                    shows(app, f"{place + 1}/{len(demo.chapters)} {chapter.title}"), f"{chapter.title}: its caption"
                )
                await until(shows(app, f"cell {entry['cell']}/6"), f"{chapter.title}: its cell")
                if entry["at"] == Phase.EXECUTE and seconds == HELD_SECONDS:
                    await until(
                        lambda: not any(words in screen_text(app) for words in PAUSED),
                        f"{chapter.title}: the disk's figures",
                    )


async def test_guests_come_before_the_log_where_rows_are_few_and_those_out_of_sight_are_counted() -> None:
    demo = load_demo()
    app = StillConsole(demo=demo)
    async with app.run_test(size=(100, 30)):
        screen = await shown(app)
        screen.action_stage()
        screen.seek_to(demo.chapters[1].position + 10)
        await until(shows(app, "2/8 Two tiles"), "two tiles")
        table = screen.query_one(GuestTable)
        await until(lambda: table.size.height > 1 and len(table.shown.guests) == 6, "its guests")
        # A row that begins with the number of a tile is that of a guest; others are further workloads.
        rows = screen_text(app).splitlines()[table.region.y : table.region.bottom]
        seen = sum(row[:2] in ("1 ", "2 ") for row in rows)
        hidden = 6 - seen
        assert seen >= 3 and screen.query_one(EventLog).size.height <= 3
        assert str(table.border_title).endswith(f"▼ {hidden} more") is (hidden > 0)


async def test_it_goes_on_to_the_next_chapter_by_itself() -> None:
    demo = load_demo()
    app = StillConsole(demo=demo)
    async with app.run_test(size=(80, 24)):
        screen = await shown(app)
        assert screen.playback is not None and screen.playback.speed == 1
        screen.seek_to(demo.chapters[2].position - 2)
        await until(captioned(app, *numbered(demo, 1)), "the second stands until the third")
        screen.playback.paused = False
        await until(captioned(app, *numbered(demo, 2)), "the third")


async def test_the_keys_of_a_replay_work_in_it() -> None:
    demo = load_demo()
    app = StillConsole(demo=demo)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await shown(app)
        play = screen.playback
        assert play is not None
        await pressed(pilot, "right", lambda: play.position > demo.chapters[0].position + 9)
        began = [mark.began for mark in play.recording.marks]
        await pressed(pilot, "n", lambda: began[1] <= play.position < began[1] + 1)
        await pressed(pilot, "p", lambda: play.position < began[1])
        await pressed(pilot, "right_square_bracket", lambda: play.speed > 1)
        await pressed(pilot, "home", lambda: play.position == 0)
        # What is before the first chapter belongs to it.
        await until(captioned(app, *numbered(demo, 0)), "the first chapter")
        await pressed(pilot, "end", lambda: play.at_end)
        await pressed(pilot, "space", lambda: demo.chapters[0].position <= play.position < play.recording.length)
        await pressed(pilot, "space", lambda: play.paused)
        await pressed(pilot, "c", lambda: isinstance(app.screen, CompareScreen))
        await until(lambda: "cell 5" in screen_text(app), "both cache modes are side by side")
        await pressed(pilot, "1", lambda: app.screen is screen)


async def test_it_begins_paused_where_that_was_asked_while_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = threading.Event()

    def read(store: Path) -> RecordedRun:
        assert reading.wait(60)
        return RecordedRun(store)

    monkeypatch.setattr(replay_screen, "RecordedRun", read)
    app = StillConsole(demo=load_demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(lambda: "RECORDING is read" in screen_text(app), "it is read")
        await pressed(pilot, "space", lambda: "RECORDING paused" in screen_text(app))
        reading.set()
        screen = app.screen
        assert isinstance(screen, DemoScreen)
        await until(lambda: screen.playback is not None, "it was read")
        assert screen.playback is not None and screen.playback.paused


async def pressed(pilot: Pilot[int], key: str, effect: Callable[[], object]) -> None:
    await pilot.press(key)
    await until(effect, f"{key} has its effect")


async def test_runs_of_the_user_have_no_part_in_it(recorded: Path) -> None:
    app = StillConsole(demo=load_demo())
    async with app.run_test(size=(160, 48)) as pilot:
        screen = await shown(app)
        assert screen.playback is not None and screen.past_of(screen.playback.recording) == {}
        await pilot.press("3")
        await until(lambda: "✓ passed" in screen_text(app), "the list has the user's run")
        assert screen_text(app).count("✓ passed") == 1
    assert [folder.name for folder in runs_folder().iterdir()] == [recorded.name]


UNPRIVILEGED = ("unshare", "--user", "--net")
"""Without any privilege, and without a network: root's files can be read all the same."""


def unprivileged() -> tuple[str, ...]:
    try:
        made = subprocess.run([*UNPRIVILEGED, "true"], check=False, capture_output=True, timeout=60)
    except OSError:
        return ()
    return UNPRIVILEGED if made.returncode == 0 else ()


def command(*words: str) -> list[str]:
    return [*unprivileged(), sys.executable, "-m", "vmlab", *words]


def test_its_chapters_are_printed_without_root_network_or_state(state: Path) -> None:
    done = subprocess.run(command("demo", "--list"), capture_output=True, text=True, timeout=240, check=True)
    demo = load_demo()
    # Lines are cut at words, and only those of a terminal.
    for chapter in (*demo.chapters, demo.ending):
        assert chapter.title in done.stdout and chapter.sentence in done.stdout
    assert list(state.iterdir()) == []


def test_it_plays_on_a_terminal_without_root_network_or_state(state: Path, tmp_path: Path) -> None:
    """Also where standard error goes to a file."""
    near, far = pty.openpty()
    errors = tmp_path / "errors"
    env = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    with (
        errors.open("wb") as error,
        subprocess.Popen(command("demo"), stdin=far, stdout=far, stderr=error, env=env) as console,
    ):
        os.close(far)
        written = b""
        try:
            while part := os.read(near, 65536):
                written += part
                if b"A tile is" in written and b"RECORDING" in written:
                    os.write(near, b"q")
        except OSError:  # The last writer has closed the terminal.
            pass
        finally:
            os.close(near)
            console.wait(240)
    assert b"A tile is" in written and b"RECORDING" in written
    assert (console.returncode, errors.read_bytes()) == (0, b"")
    assert list(state.rglob("*.sqlite")) == []


def test_without_a_terminal_it_names_what_works_there(state: Path) -> None:
    done = subprocess.run(command("demo"), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "vmlab: the console needs a terminal; `vmlab demo --list` prints its story\n"


@pytest.mark.parametrize("words", [("demo", "RUN"), ("demo", "--list", "x"), ("demo", "--json"), ("demo", "replay")])
def test_what_it_does_not_take_is_wrong_usage(words: tuple[str, ...], state: Path) -> None:
    done = subprocess.run(command(*words), capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
