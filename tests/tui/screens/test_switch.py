"""Running guests are switched by a key of Live, and the moment is a line in every chart."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from textual.geometry import Region

from tests.report.told import BUSY
from tests.store.stories import Story
from tests.tui.conftest import RUN
from tests.tui.pictures import screen_text
from tests.tui.screens.test_screens import StillConsole
from tests.waiting import until
from vmlab.model.cell_event import (
    CacheSwitched,
    CellStarted,
    KsmSwitched,
    PhaseStarted,
)
from vmlab.model.errors import CommandFailed
from vmlab.model.event import Event, RunStarted
from vmlab.model.places import runs_folder
from vmlab.model.sample import Sample, SampleNames
from vmlab.tui.console_requests import Pick
from vmlab.tui.feed.live_feed import RunArrived, RunFound
from vmlab.tui.screens.live_screen import LiveScreen
from vmlab.tui.widgets.charts.chart_board import _GUTTER, ChartBoard
from vmlab.tui.widgets.charts.side_charts import OverlayChart
from vmlab.tui.widgets.side_table import TONES

NAMES = SampleNames.of(["cpu_user_percent", "disk_util_percent", "memory_total_bytes", "memory_used_bytes"])
FIRST = 1000.0
"""The monotonic clock at the first sample; there is one a second, all alike."""


def samples(count: int) -> tuple[Sample, ...]:
    """All that is measured moves, as a chart that never moved is no chart but a line of words."""
    full = array("d", [100.0, 100.0, 2.0**30, 2.0**30])
    less = array("d", [99.0, 99.0, 2.0**30, 2.0**29])
    return tuple(Sample(FIRST + n, FIRST + n, 1.0, 0.0, NAMES, less if n % 2 else full) for n in range(count))


def events(*more: Event) -> tuple[Event, ...]:
    start = {"run": RUN, "scenario": "tile", "size": "smoke", "seed": 1, "cells": 2, "expected_seconds": 60.0}
    return (
        RunStarted(wall=0.0, mono=FIRST, **start),  # type: ignore[arg-type]
        CellStarted(wall=0.0, mono=FIRST, cell=1, axes={"cache": "writeback"}, repeat=1, guests=4),
        PhaseStarted(wall=0.0, mono=FIRST, cell=1, phase="execute"),
        *more,
    )


def switched(mono: float, after: str = "none") -> CacheSwitched:
    return CacheSwitched(
        wall=0.0,
        mono=mono,
        cell=1,
        origin="the console",
        before="writeback" if after == "none" else "none",
        after=after,
        pauses_ms={"t1-web": 5.0},
        drained_seconds=1.0,
    )


async def opened_live(app: StillConsole) -> LiveScreen:
    """The Live screen, when it can be told of a run."""
    screen = app.screen
    assert isinstance(screen, LiveScreen)
    await until(lambda: screen.state is not None, "the screen is ready")
    return screen


def marked_columns(screen: LiveScreen) -> list[set[int]]:
    """The columns of the line, for each row of the board that has one, without the lines at the left of charts."""
    board = screen.query_one(ChartBoard)
    each = board._grid(*board.size)[1]
    rows = [
        {place for place, sign in enumerate(row) if sign == "│" and place % (each + 1) >= _GUTTER}
        for row in board.text().splitlines()
    ]
    return [found for found in rows if found]


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("taken", [50, 51])
@pytest.mark.parametrize("back", [1, 2, 9])
async def test_the_switch_is_a_line_in_every_chart_at_the_first_sample_after_it(taken: int, back: int) -> None:
    app = StillConsole()
    async with app.run_test(size=(160, 48)):
        screen = await opened_live(app)
        screen.post_message(RunFound(RUN, {}))
        moment = FIRST + taken - back - 0.5
        screen.post_message(RunArrived(events(switched(moment)), samples(taken)))
        await until(lambda: marked_columns(screen), "the line is drawn")
        board = screen.query_one(ChartBoard)
        across, each, panels = board._grid(board.size.width, board.size.height)
        assert len(panels) == 8
        # Two samples a column; areas keep their pairs as time goes on, lines do not.
        stacked, line = each - 1 - (back - 1 + taken % 2) // 2, each - 1 - (back - 1) // 2
        allowed = {start + place for start in range(0, across * (each + 1), each + 1) for place in (stacked, line)}
        found = marked_columns(screen)
        assert set.union(*found) <= allowed
        assert sum(len(columns) < across for columns in found) <= 2, "all but the heads of the lower charts have each"
        assert len(found) >= board.size.height - 2 - 4, (
            "from top to bottom, apart from the upper heads and the words below"
        )
        assert "now cache none" in screen_text(app)
        assert "cell 1 was switched: cache writeback to none" in screen_text(app)


@pytest.mark.usefixtures("state")
async def test_a_switch_before_all_samples_is_not_drawn() -> None:
    app = StillConsole()
    async with app.run_test(size=(160, 48)):
        screen = await opened_live(app)
        screen.post_message(RunFound(RUN, {}))
        screen.post_message(RunArrived(events(switched(FIRST - 5)), samples(20)))
        await until(lambda: "now cache none" in screen_text(app), "the run is drawn")
        assert marked_columns(screen) == []


@dataclass
class Commands:
    """What `RunCommands` would do, for one run after the other."""

    asked: list[str] = field(default_factory=list)
    failure: str = ""

    def of(self, folder: Path) -> Commands:
        assert folder.name == RUN
        return self

    def change_now(self, change: dict[str, str]) -> str:
        ((what, state),) = change.items()
        self.asked.append(f"{what} {state}")
        if self.failure:
            raise CommandFailed(self.failure)
        return f"{what} to {state}"


def said(app: StillConsole) -> str:
    """What the bottom lines say at the moment."""
    return "" if app.said is None else app.said.text


@pytest.mark.usefixtures("state")
async def test_the_key_switches_to_and_fro_and_says_what_came_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands()
    monkeypatch.setattr("vmlab.tui.commands.RunCommands", commands.of)
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened_live(app)
        await pilot.press("B")
        assert commands.asked == [], "without a run there is nothing to switch"
        screen.post_message(RunFound(RUN, {}))
        screen.post_message(RunArrived(events(), samples(4)))
        await until(lambda: screen.watched == RUN and screen.view().cell is not None, "the run is watched")
        await pilot.press("B")
        await until(lambda: said(app) == "The running guests: cache to none", "told")
        screen.post_message(RunArrived((switched(FIRST + 2),), ()))
        await until(lambda: "now cache none" in screen_text(app), "the strip tells it")
        commands.failure = "still dirty pages; the cells to come can have it"
        await pilot.press("B")
        await until(lambda: "not changed: still dirty pages" in said(app), "the refusal is told")
    assert commands.asked == ["cache none", "cache writeback"]


@pytest.mark.usefixtures("state")
async def test_keys_go_on_from_what_was_asked_until_the_run_has_reported_it(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands()
    monkeypatch.setattr("vmlab.tui.commands.RunCommands", commands.of)
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened_live(app)
        screen.post_message(RunFound(RUN, {}))
        screen.post_message(RunArrived(events(), samples(4)))
        await until(lambda: screen.watched == RUN and screen.view().cell is not None, "the run is watched")
        await pilot.press("B", "B", "B")
        await until(lambda: len(commands.asked) == 3, "all were asked for")
        assert commands.asked == ["cache none", "cache writeback", "cache none"]
        for number, after in enumerate(("none", "writeback", "none")):
            screen.post_message(RunArrived((switched(FIRST + 2 + number, after),), ()))
        await until(lambda: "now cache none" in screen_text(app), "the strip shows the last")
        await pilot.press("B")
        await until(lambda: len(commands.asked) == 4, "the next was asked for")
        assert commands.asked[-1] == "cache writeback", "from what the run reported"


@pytest.mark.usefixtures("state")
async def test_the_key_for_ksm_begins_with_what_the_host_has_and_says_why_it_does_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commands = Commands()
    monkeypatch.setattr("vmlab.tui.commands.RunCommands", commands.of)
    app = StillConsole()
    async with app.run_test(size=(100, 24)) as pilot:
        screen = await opened_live(app)
        await pilot.press("K")
        assert commands.asked == [], "without a run there is nothing to switch"
        screen.post_message(RunFound(RUN, {}))
        first, cell, *more = events()
        assert isinstance(cell, CellStarted)
        cell = replace(cell, settings={"host": {"ksm": "on"}})
        screen.post_message(RunArrived((first, cell, *more), samples(4)))
        await until(lambda: screen.watched == RUN and screen.view().cell is not None, "the run is watched")
        await pilot.press("K")
        await until(lambda: said(app) == "The running guests: ksm to off", "told")
        off = KsmSwitched(wall=0.0, mono=FIRST + 2, cell=1, origin="the console", before="on", after="off")
        screen.post_message(RunArrived((off, switched(FIRST + 3)), ()))
        await until(lambda: "now ksm off" in screen_text(app), "the strip tells it")
        assert "now cache none" in screen_text(app)
        assert "cell 1 was switched: ksm on to off" in [line.text for line in screen.view().log]
        commands.failure = "KSM cannot be switched: /sys/kernel/mm/ksm/run is missing"
        await pilot.press("K")
        await until(lambda: "not changed: KSM cannot be switched: /sys" in said(app), "the reason is told")
    assert commands.asked == ["ksm off", "ksm on"]


async def test_compare_has_a_line_where_a_side_was_switched(state: Path) -> None:
    """Both cells run for 40 s; the guests of the second are switched after 10."""
    told = Story(runs_folder() / RUN / "run.sqlite").begin({"cache": ["none", "writeback"]})
    for cache in ("none", "writeback"):
        told.start_cell({"cache": cache})
        told.execute(40.0, [BUSY] * 40)
        if cache == "writeback":
            told.writer.append(replace(switched(told.mono - 30), cell=2))
        told.measure("web", 30.0)
        told.end_cell(wall=40.0)
    store = told.end()
    app = StillConsole()
    async with app.run_test(size=(120, 40)):
        app.compare([Pick(store)])
        await until(lambda: "guests switched while they ran" in screen_text(app), "the chart is drawn")
        chart = app.screen.query_one(OverlayChart)
        head, *rows, foot = chart.text().splitlines()
        assert head.startswith("CPU")
        # Of 40 s in 120 columns, the first value after 10 s is at the end of the thirtieth column.
        assert {row.index("│") for row in rows} == {29}
        assert all(row.count("│") == 1 for row in rows)
        drawn = [one for strip in chart.render_lines(Region(0, 0, 120, len(rows))) for one in strip]
        colors = {one.style.color for one in drawn if one.text == "│" and one.style}
        assert colors == {chart.tone(TONES[1]).color}, "in the colour of the second side"
        assert "│ guests switched while they ran" in foot
