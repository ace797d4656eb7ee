"""What a person does with the keyboard alone, from the first start to the replay."""

import math
from pathlib import Path

import pytest

from tests.tui.pictures import keys_to, screen_text
from tests.tui.played import launcher_played
from tests.waiting import until
from vmlab.model.cell_event import CellEnded, CellStarted
from vmlab.model.event import CommandReceived
from vmlab.model.places import runs_folder
from vmlab.store.reader import RunReader
from vmlab.tui.app import Console
from vmlab.tui.screens.compare_screen import CompareScreen
from vmlab.tui.screens.live_screen import LiveScreen
from vmlab.tui.screens.replay_screen import ReplayScreen
from vmlab.tui.screens.runs_screen import RunsScreen
from vmlab.tui.screens.scenarios_screen import ScenariosScreen
from vmlab.tui.widgets.charts.chart_board import ChartBoard
from vmlab.tui.widgets.row_list import RowList
from vmlab.tui.widgets.tables.guest_table import METRICS


async def test_start_watch_switch_stop_compare_and_replay_with_the_keyboard_alone(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Console()
    with launcher_played(monkeypatch) as started:
        async with app.run_test(size=(80, 24)) as pilot:

            def on_screen(*words: str) -> bool:
                text = screen_text(app)
                return all(word in text for word in words)

            # Start the tile scenario.
            await pilot.press("2")
            await until(
                lambda: on_screen("cpu-overhead", "cpu-priority", "tile", "What a run costs"),
                "the scenarios are listed",
            )
            await pilot.press(*keys_to("tile"))
            await until(lambda: on_screen("filecopy", "Press s to start it"), "the tile's plan is shown")
            assert isinstance(app.screen, ScenariosScreen)
            # Size smoke, two repeats: the cursor stands on the chosen size, and the repeats are the row above it.
            await pilot.press("tab", "left", "space")
            await until(lambda: on_screen("[smoke]", "2, up to 4 guests"), "size smoke is planned")
            await pilot.press("up", "right", "space")
            await until(lambda: on_screen("4, up to 4 guests"), "two repeats are planned")
            await pilot.press("s")

            # Watch it.
            await until(lambda: isinstance(app.screen, LiveScreen) and app.screen.watched, "the run is watched")
            await until(lambda: on_screen("● LIVE", "cell 1/4", "cache none", "TCG"), "the strip tells of cell 1")
            await until(lambda: on_screen("file-a", "filecopy", "● running"), "workloads run")
            (folder,) = runs_folder().iterdir()
            await until(lambda: reads_back(app, folder), "each figure is that of the newest sample")

            # Switch the cache mode of the cells to come; the running one stays as it is.
            await pilot.press("b")
            await until(lambda: on_screen("next cell: tiles 1, cache writeback"), "the strip tells the next cell")
            assert on_screen("cell 1/3", "tiles 1, cache none")
            (played,) = started
            played.released = 1
            await until(lambda: on_screen("cell 2/3", "tiles 1, cache writeback"), "the next cell runs")
            played.released = 2
            await until(lambda: on_screen("cell 3/3"), "the last cell runs")

            # Stop it: one key only asks, and the safe answer has the focus.
            await pilot.press("X")
            await until(lambda: on_screen("Stop run", "Let it run"), "the question is asked")
            await pilot.press("enter")
            await until(lambda: isinstance(app.screen, LiveScreen), "the question is gone")
            assert not commands(folder, "stop")
            await pilot.press("X")
            await until(lambda: on_screen("Stop the run"), "the question is asked again")
            await pilot.press("right", "enter")
            await until(lambda: on_screen("aborted"), "the run has been stopped")
            assert commands(folder, "stop") == ["the console"]

            # Compare both finished cells.
            await pilot.press("3")
            await until(lambda: isinstance(app.screen, RunsScreen) and on_screen("■ aborted"), "it is listed")
            await pilot.press("e")
            await until(lambda: on_screen("tiles 1, cache none", "tiles 1, cache writeback"), "its cells are unfolded")
            await pilot.press("down", "space", "space", "c")
            await until(
                lambda: isinstance(app.screen, CompareScreen) and on_screen("filecopy", "total wall"), "a table"
            )
            assert on_screen("cell 1: tiles 1", "cell 2: tiles 1", "overall", "CPU user %", "(base)")
            await until(lambda: on_screen("since the workloads started"), "the time series are drawn")
            compared_with_the_store(app, folder)

            # Replay the run.
            await pilot.press("escape")
            await until(lambda: isinstance(app.screen, RunsScreen), "back at the runs")
            app.screen.query_one(RowList).place(folder.name)
            await pilot.press("enter")
            await until(lambda: isinstance(app.screen, ReplayScreen) and on_screen("RECORDING", "cell 1/"), "it plays")
            await pilot.press("space", "end")
            await until(lambda: on_screen("RECORDING at its end", "aborted"), "it has been wound to its end")
            await pilot.press("home", "n")
            await until(lambda: on_screen("cell 2/3", "paused", "cache writeback"), "it has been wound back")
    with RunReader(folder / "run.sqlite") as reader:
        seen = [event for _, event in reader.events(kinds=(CellStarted, CellEnded))]
    assert [e.axes["cache"] for e in seen if isinstance(e, CellStarted)] == ["none", "writeback", "writeback"]
    assert [e.outcome for e in seen if isinstance(e, CellEnded)] == ["passed", "passed", "aborted"]


def reads_back(app: Console, folder: Path) -> bool:
    """Every figure of the Live screen against the newest sample in the store; it may be drawn a moment later."""
    screen = app.screen
    assert isinstance(screen, LiveScreen)
    board = screen.query_one(ChartBoard)
    last = board.shown.history.last
    assert last is not None
    with RunReader(folder / "run.sqlite") as reader:
        from vmlab.store.samples import samples

        stored = {sample.mono: sample for _, sample in samples(reader)}[last.mono]
    text = screen_text(app)
    expected = {
        f"user {stored.get('cpu_user_percent'):3.0f}",
        f"system {stored.get('cpu_system_percent'):3.0f}",
        f"iowait {stored.get('cpu_iowait_percent'):3.0f}",
        f"steal {stored.get('cpu_steal_percent'):3.0f}",
        f"cached {short(stored.get('memory_cached_bytes') / 2**30)}",
        f"dirty {short(stored.get('memory_dirty_bytes') / 2**30)}",
        f"buffers {short(stored.get('memory_buffers_bytes') / 2**30)}",
        f"free {short(stored.get('memory_free_bytes') / 2**30)}",
        f"await {short(stored.get('disk_await_ms'))}",
        f"read {short(stored.get('disk_read_bytes_per_second') / 1e6)}",
        f"write {short(stored.get('disk_write_bytes_per_second') / 1e6)}",
    }
    assert {one for one in expected if one not in text} == set(), text
    lines = text.splitlines()
    of_resources = {
        "CPU": (math.nan, "pressure_cpu_some_percent"),
        "Disk": (stored.get("disk_util_percent"), "pressure_io_some_percent"),
        "Memory": (stored.get("memory_used_bytes") / 2**30, "pressure_memory_some_percent"),
    }
    for name, (value, pressure) in of_resources.items():
        place = next(place for place, line in enumerate(lines) if line.startswith(f"{name} "))
        if not math.isnan(value):
            shown = lines[place].split()[1]
            assert shown == (f"{value:.0f}" if name == "Disk" else short(value).strip()), lines[place]
        # They stand below the sparkline, which is higher where there is room.
        facts = " ".join(lines[place + 1 : place + 5])
        assert f"pressure {stored.get(pressure):3.0f}" in facts, facts
    table = screen.query_one("#guests").text()  # type: ignore[attr-defined]
    for guest in stored.instances(METRICS[0]):
        # Of guests that were not read in this tick, `last` has what the ticks before have.
        cpu, delay, read, written = (last.get(f"{metric}[{guest}]") for metric in METRICS)
        line = next(line for line in table.splitlines() if line.startswith(f"{guest[1]} {guest[3:11]}"))
        told = [word for word in line.split() if word[0].isdigit() or word[0] == "\N{EN DASH}"][1:4]
        wanted = [f"{cpu:.0f}", f"{delay:.0f}", f"{(read + written) / 1e6:.1f}"]
        assert told == ["\N{EN DASH}" if "nan" in word else word for word in wanted], line
    return True


def short(value: float) -> str:
    """A figure as the screen has it: about three digits, four columns."""
    if value >= 99.95 or value == 0:
        return f"{value:.0f}".rjust(4)
    return (f"{value:.1f}" if value >= 0.995 else f"{value:.2f}").rjust(4)


def commands(folder: Path, command: str) -> list[str]:
    """Who asked the run for `command`."""
    with RunReader(folder / "run.sqlite") as reader:
        told = [event for _, event in reader.events(kinds=(CommandReceived,))]
    return [event.origin for event in told if isinstance(event, CommandReceived) and event.command == command]


def compared_with_the_store(app: Console, folder: Path) -> None:
    """The wall clocks of both cells stand in the table as the store has them."""
    with RunReader(folder / "run.sqlite") as reader:
        ended = [event for _, event in reader.events(kinds=(CellEnded,)) if isinstance(event, CellEnded)][:2]
    line = next(line for line in screen_text(app).splitlines() if line.startswith("total wall clock"))
    for cell in ended:
        assert cell.wall_seconds is not None and math.isfinite(cell.wall_seconds)
        assert f"{cell.wall_seconds:.1f}" in line
