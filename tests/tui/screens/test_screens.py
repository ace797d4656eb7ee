"""Every screen while it is empty, while things run, and when something failed, small and large.

The words that matter are asserted; the whole picture is held against a golden file.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import pytest

from tests.store.stories import Story
from tests.tui.conftest import RECORDED, RUN
from tests.tui.pictures import SIZES, check_golden, screen_text
from tests.waiting import until
from vmlab.lab.process.measuring_runs import claim
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.cell_event import CellEnded, WorkloadEnded
from vmlab.model.event import (
    Event,
    RunEnded,
    RunStarted,
)
from vmlab.model.places import runs_folder
from vmlab.plan.terms import HostFacts
from vmlab.store.life import LOCK
from vmlab.store.writer import RunWriter
from vmlab.tui.app import Console
from vmlab.tui.console_requests import Pick
from vmlab.tui.feed.live_feed import RunArrived, RunFound
from vmlab.tui.feed.recorded_run import RecordedRun
from vmlab.tui.screens.compare_screen import CompareScreen
from vmlab.tui.screens.live_screen import LiveScreen
from vmlab.tui.screens.replay_screen import ReplayScreen
from vmlab.tui.state.run_state import RunState
from vmlab.tui.widgets.row_list import RowList
from vmlab.tui.widgets.tables.result_board import _READING, ResultBoard

GIB = 2**30
ROOMY = HostFacts(20 * GIB, 24 * GIB, 100 * GIB, 2, "tcg")
TIGHT = HostFacts(1 * GIB, 2 * GIB, 100 * GIB, 2, "tcg")

pytestmark = [
    pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}"),
    pytest.mark.usefixtures("state"),
]


# In full for classes that stand here: Textual looks beside the file of the class itself.
SHEETS: list[str | PurePath] = [Path(inspect.getfile(Console)).parent / sheet for sheet in Console.CSS_PATH]


class StillLiveScreen(LiveScreen):
    """Reads neither this host nor any run by itself, and its clock stands still."""

    CSS_PATH = str(SHEETS[-1])

    def begin(self) -> None:
        self.state = RunState()

    def now(self) -> float:
        return self.history.last.mono if self.history.last else 0.0


class StillConsole(Console):
    """The console, whose pictures are of nothing but what it is given."""

    CSS_PATH = SHEETS

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.told: list[str] = []
        """All that was said, also what has made room for the keys again."""

    def notify(self, message: str, **how: Any) -> None:
        self.told.append(message)
        super().notify(message, **how)

    def get_default_screen(self) -> StillLiveScreen:
        return StillLiveScreen()


def failing(recording: RecordedRun) -> list[Event]:
    """The recorded run as it would be if its second cell had failed."""
    events: list[Event] = []
    for event in recording.events:
        if isinstance(event, WorkloadEnded) and event.cell == 2 and event.workload == "filecopy":
            event = replace(event, outcome="failed", reason="3 of 150 files differ")
        if isinstance(event, CellEnded) and event.cell == 2:
            event = replace(event, outcome="failed", reasons=["tile 1 filecopy: 3 of 150 files differ"])
        if isinstance(event, RunEnded):
            event = replace(event, outcome="failed", exit_code=1, reason="")
        events.append(event)
    return events


def store_of(folder: Path, events: list[Event], run: str) -> Path:
    folder.mkdir(parents=True)
    writer = RunWriter(folder / "run.sqlite")
    for event in events:
        writer.append(replace(event, run=run) if isinstance(event, RunStarted) else event)
    writer.close()
    return folder


@pytest.fixture
def living(recorded: Path) -> Iterator[Path]:
    """A run whose lock is held: the recorded one up to the middle of its first cell, a minute younger."""
    recording = RecordedRun(RECORDED)
    events, _ = recording.before(recording.began + recording.length * 0.4)
    folder = store_of(recorded.parent / "20261121-064000-tile-beef", events, "20261121-064000-tile-beef")
    lock = RunFolder(folder.name, folder).take_lock()
    assert (folder / LOCK).exists()
    yield folder
    os.close(lock)


async def shown_live(app: Console, events: list[Event], moment: float) -> None:
    """Let the Live screen have what a feed would have told it until `moment`."""
    recording = RecordedRun(RECORDED)
    screen = app.screen
    assert isinstance(screen, LiveScreen)
    await until(lambda: screen.state is not None, "the screen is ready")
    told = tuple(event for event in events if event.mono <= moment)
    samples = tuple(sample for sample in recording.samples if sample.mono <= moment)
    screen.post_message(RunFound(RUN, recording.intent))
    screen.post_message(RunArrived(told, samples))


async def test_live_is_empty(size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        words = (
            "How many guests does this host",
            "no run is going on",
            "user",
            "iowait",
            "await",
            "cached",
            "ressure",
        )
        await until(lambda: all(word in screen_text(pilot.app) for word in words), "hint and charts are there")
        await check_golden(f"live-empty-{size[0]}x{size[1]}", app)


async def test_live_is_running(size: tuple[int, int]) -> None:
    app = StillConsole()
    recording = RecordedRun(RECORDED)
    execute = next(e.mono for e in recording.events if type(e).__name__ == "WorkloadProgressed")
    async with app.run_test(size=size):
        await shown_live(app, recording.events, execute + 6)
        where = ("tile smoke", "cell 1/2", "tiles 1, cache none", "TCG", "● LIVE", "execute 0:0")
        words = (*where, "● running", "filecopy", "serves filecopy")
        await until(lambda: all(word in screen_text(app) for word in words), "workloads run")
        await check_golden(f"live-running-{size[0]}x{size[1]}", app)


async def test_live_has_failed(size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size):
        await shown_live(app, failing(RecordedRun(RECORDED)), float("inf"))
        words = ("✗ failed", "run failed", "run ✗ failed after")
        await until(lambda: all(word in screen_text(app) for word in words), "the failure is told")
        await check_golden(f"live-failed-{size[0]}x{size[1]}", app)


async def previewed(app: Console) -> None:
    """Wait until the lower half shows what is known of the run under the cursor."""
    board = app.screen.query_one(ResultBoard)
    await until(
        lambda: str(board.border_title).startswith("Result of") and board.text() not in ("", _READING), "a preview"
    )


async def test_runs_are_none(size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        await pilot.press("3")
        await until(lambda: "No runs yet" in screen_text(pilot.app), "the hint is there")
        await check_golden(f"runs-empty-{size[0]}x{size[1]}", app)


async def test_runs_are_running_and_passed(living: Path, size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        await pilot.press("3")
        await until(lambda: "● running" in screen_text(pilot.app), "the run that lives")
        text = screen_text(pilot.app)
        assert "✓ passed" in text and "11-21 06:36" in text and ("2/2" in text) is (size[0] > 100)
        await previewed(app)
        await check_golden(f"runs-running-{size[0]}x{size[1]}", app)


async def test_runs_have_failed(recorded: Path, size: tuple[int, int]) -> None:
    store_of(recorded.parent / "20261121-065000-tile-dead", failing(RecordedRun(RECORDED)), "20261121-065000-tile-dead")
    broken = recorded.parent / "20261121-070000-tile-0bad"
    broken.mkdir()
    (broken / "run.sqlite").write_bytes(b"this is no store" * 100)
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        await pilot.press("3")
        await until(lambda: "✗ failed" in screen_text(pilot.app), "the run that failed")
        await pilot.press("down", "e")
        await until(lambda: "tiles 1, cache writeback" in screen_text(pilot.app), "its cells")
        listed = pilot.app.screen.query_one(RowList)
        await until(lambda: listed.text().count(" tcg") >= 3, "what stands behind the times")
        await previewed(app)
        text = screen_text(pilot.app)
        assert "? damaged" in text
        await check_golden(f"runs-failed-{size[0]}x{size[1]}", app)


async def scenario(app: Console, monkeypatch: pytest.MonkeyPatch, host: HostFacts) -> None:
    monkeypatch.setattr("vmlab.lab.provision.host_support.read_host_facts", lambda folder: host)
    await app.switch_mode("scenarios")
    await until(lambda: "cpu-priority" in screen_text(app) or "none is shipped" in screen_text(app), "the list")


async def test_scenarios_are_none(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.tui.feed.planner.shipped_names", list)
    app = StillConsole()
    async with app.run_test(size=size):
        await scenario(app, monkeypatch, ROOMY)
        await until(lambda: "none is shipped" in screen_text(app), "the hint")
        await check_golden(f"scenarios-empty-{size[0]}x{size[1]}", app)


async def test_a_scenario_is_planned(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.tui.feed.planner.shipped_names", lambda: ["cpu-overhead", "cpu-priority", "tile"])
    app = StillConsole()
    async with app.run_test(size=size):
        await scenario(app, monkeypatch, ROOMY)
        await until(lambda: "Press s to start it" in screen_text(app) and "filecopy" in screen_text(app), "a plan")
        text = screen_text(app)
        for word in ("Who loads whom", "[demo]", "[none]", "[writeback]", "memory", "available", "free"):
            assert word in text
        await check_golden(f"scenarios-planned-{size[0]}x{size[1]}", app)


async def test_a_scenario_does_not_fit(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmlab.tui.feed.planner.shipped_names", lambda: ["cpu-overhead", "cpu-priority", "tile"])
    app = StillConsole()
    async with app.run_test(size=size, notifications=True) as pilot:
        await scenario(app, monkeypatch, TIGHT)
        await until(lambda: "MORE than the 1 GiB available" in screen_text(app), "the refusal")
        assert "Press s to start it" not in screen_text(app)
        await check_golden(f"scenarios-refused-{size[0]}x{size[1]}", app)
        await pilot.press("s")
        await until(lambda: "Not started" in screen_text(app), "starting is refused too")


async def test_a_scenario_is_not_started_while_another_run_measures(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vmlab.lab.provision.host_support.read_host_facts", lambda folder: ROOMY)
    first = claim(RunFolder.of("20261121-143000-tile-7f3a"))
    app = StillConsole()
    async with app.run_test(size=size, notifications=True) as pilot:
        await scenario(app, monkeypatch, ROOMY)
        await until(lambda: "Press s to start it" in screen_text(app), "a plan")
        await pilot.press("s")
        await until(lambda: "Not started" in screen_text(app), "the refusal")
        assert "20261121-143000-tile-7f3a" in screen_text(app)
        assert [path.name for path in runs_folder().iterdir()] == []
    os.close(first)


async def test_nothing_is_compared(size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        await pilot.press("4")
        await until(lambda: "Nothing to compare yet" in screen_text(pilot.app), "the hint")
        await check_golden(f"compare-empty-{size[0]}x{size[1]}", app)


async def compared(app: Console, picks: list[Pick]) -> str:
    await app.switch_mode("compare")
    screen = app.screen
    assert isinstance(screen, CompareScreen)
    screen.compare(picks)
    await until(lambda: "total wall clock" in screen_text(app), "the table")
    await until(lambda: "since the workloads started" in screen_text(app), "the chart")
    return screen_text(app)


async def test_the_cells_of_a_run_are_compared(recorded: Path, size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size):
        text = await compared(app, [Pick(recorded / "run.sqlite")])
        for word in ("cache none (base)", "cache writeback", "filecopy", "overall", "CPU user %", " %"):
            assert word in text
        rows = [row.strip("─━ ") for row in text.splitlines()]
        first = rows[1] if rows[0] == "Compare" else rows[0]
        assert "CANNOT TELL YET" in first, "the answer is the first that is read"
        assert "plans a new run of 8" in text and "TCG" in first
        await check_golden(f"compare-cells-{size[0]}x{size[1]}", app)


async def test_a_failed_run_is_compared(recorded: Path, size: tuple[int, int]) -> None:
    bad = store_of(recorded.parent / "20261121-065000-tile-dead", failing(RecordedRun(RECORDED)), "tile-dead")
    app = StillConsole()
    async with app.run_test(size=size):
        text = await compared(app, [Pick(recorded / "run.sqlite", 2), Pick(bad / "run.sqlite", 2)])
        assert "failed" in text
        await check_golden(f"compare-failed-{size[0]}x{size[1]}", app)


async def test_sides_without_room_are_named(tmp_path: Path, size: tuple[int, int]) -> None:
    modes = ["none", "writeback", "writethrough", "directsync", "unsafe"]
    story = Story(tmp_path / "run.sqlite").begin({"cache": modes}, cells=5)
    for place, mode in enumerate(modes):
        story.cell({"cache": mode}, {"web": 10.0 + place}, 20.0 + place)
    app = StillConsole()
    async with app.run_test(size=size):
        text = await compared(app, [Pick(story.end())])
        assert "not shown here: cache unsafe" in text
        assert "14.0" not in text and "24.0" not in text


async def replayed(app: Console, store: Path, *keys: str) -> ReplayScreen:
    screen = ReplayScreen(store)
    await app.push_screen(screen)
    await until(lambda: screen.playback is not None, "the recording is read")
    assert screen.playback is not None
    screen.playback.paused = True
    # It may have played for a while before it was paused.
    screen.seek_to(0.0)
    return screen


async def test_a_recording_stands_at_its_beginning(recorded: Path, size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size):
        await replayed(app, recorded / "run.sqlite")
        await until(lambda: "● RECORDING paused" in screen_text(app), "it is paused")
        await check_golden(f"replay-beginning-{size[0]}x{size[1]}", app)


async def test_a_recording_is_wound_into_its_second_cell(recorded: Path, size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        screen = await replayed(app, recorded / "run.sqlite")
        await pilot.press("n", "n", "L", "h")
        await until(lambda: "cell 2/2" in screen_text(app) and " 2:19 " in screen_text(app), "ten seconds back")
        text = screen_text(app)
        assert screen.playback is not None and screen.playback.position > screen.playback.recording.length / 2
        assert "cache writeback" in text and "▼" in text
        await check_golden(f"replay-middle-{size[0]}x{size[1]}", app)


async def test_a_recording_of_a_failed_run_ends(recorded: Path, size: tuple[int, int]) -> None:
    bad = store_of(recorded.parent / "20261121-065000-tile-dead", failing(RecordedRun(RECORDED)), "tile-dead")
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        await replayed(app, bad / "run.sqlite")
        await pilot.press("end")
        await until(lambda: "at its end" in screen_text(app) and "✗ failed" in screen_text(app), "the end")
        await check_golden(f"replay-failed-{size[0]}x{size[1]}", app)
