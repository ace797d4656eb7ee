"""The event log keeps its newest line in sight, also where other parts of the screen take rows from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tests.tui.pictures import screen_text
from tests.waiting import until
from vmlab.tui.screens.base_screen import ConsoleScreen
from vmlab.tui.state.views import LogLine
from vmlab.tui.widgets.tables.event_log import EventLog

LINES = [LogLine(1795271400.0 + number, "info", f"event {number}.") for number in range(20)]


def has_rows(log: EventLog, rows: int) -> bool:
    return log.size.height == rows


class _Screen(ConsoleScreen):
    CSS = "EventLog { height: 1fr; }"

    def compose(self) -> ComposeResult:
        yield EventLog()


class _Logs(App[None]):
    """One log on a screen of the console's."""

    def get_default_screen(self) -> ConsoleScreen:
        return _Screen()


async def shows(pilot: Pilot[None], log: EventLog, lines: list[LogLine]) -> None:
    """Show `lines`, and wait until the log has drawn them and gone to their end, or has not."""
    before = log._end
    log.show(lines)
    await until(lambda: log.virtual_size.height == len(lines) and log._end > before, "the new lines are drawn")
    await pilot.pause()


@asynccontextmanager
async def _shown() -> AsyncIterator[tuple[Pilot[None], EventLog]]:
    """A log with the focus and its newest line in sight."""
    app = _Logs()
    async with app.run_test(size=(80, 18)) as pilot:
        log = app.screen.query_one(EventLog)
        log.show(LINES)
        log.focus()
        await until(lambda: "event 19." in screen_text(app), "the end is in sight")
        await until(lambda: log.scroll_y == log.max_scroll_y == log.scroll_target_y, "the log stands still")
        await pilot.pause()
        yield pilot, log


async def test_the_last_line_stays_in_sight_where_rows_are_taken_away() -> None:
    app = _Logs()
    async with app.run_test(size=(80, 30)) as pilot:
        app.screen.query_one(EventLog).show(LINES)
        await until(lambda: "event 19." in screen_text(app), "all lines stand there")
        log = app.screen.query_one(EventLog)
        for rows in (24, 18, 28):
            other = log.size.height + rows - app.size.height
            await pilot.resize_terminal(80, rows)
            await until(partial(has_rows, log, other), "the log has another height")
            await until(lambda: "event 19." in screen_text(app), "the last line is in sight")


async def test_the_end_is_in_sight_before_a_scroll_bar_is() -> None:
    """Which of them comes first is chance on a busy machine, and nothing scrolls later."""
    app = _Logs()
    async with app.run_test(size=(80, 10)) as pilot:
        log = app.screen.query_one(EventLog)
        await pilot.pause()
        log.show(LINES)
        assert not log.show_vertical_scrollbar
        log._to_end()
        assert log.scroll_y == log.max_scroll_y > 0


async def test_who_has_scrolled_up_stays_there() -> None:
    async with _shown() as (pilot, log):
        app = pilot.app
        log.scroll_home(animate=False)
        await until(lambda: "event 0." in screen_text(app), "the first line is in sight")
        await shows(pilot, log, [*LINES, LogLine(1795271500.0, "info", "event 20.")])
        assert "event 0." in screen_text(app) and log.scroll_target_y == 0
        log.scroll_end(animate=False)
        await until(lambda: "event 20." in screen_text(app), "the new line is there below")


async def test_end_leads_to_the_newest_line_also_where_lines_come_meanwhile() -> None:
    async with _shown() as (pilot, log):
        app = pilot.app
        await pilot.press("home")
        await until(lambda: "event 0." in screen_text(app), "the first line is in sight")
        app.simulate_key("end")
        await until(lambda: log.scroll_y > 0, "it moves")
        log.show([*LINES, *(one._replace(text=f"more {number}.") for number, one in enumerate(LINES))])
        await until(lambda: "more 19." in screen_text(app), "the newest line is in sight")


@pytest.mark.parametrize(("key", "back"), [("down", "up"), ("pagedown", "pageup")])
async def test_who_glides_to_the_end_follows_also_where_lines_come_on_the_way(key: str, back: str) -> None:
    async with _shown() as (pilot, log):
        app = pilot.app
        await pilot.press(back)
        await until(lambda: "event 19." not in screen_text(app), "it is not")
        await until(lambda: log.scroll_y == log.scroll_target_y, "the log stands still")
        app.simulate_key(key)
        await until(lambda: log.scroll_target_y == log.max_scroll_y, "it glides to the end")
        log.show([*LINES, *(one._replace(text=f"more {number}.") for number, one in enumerate(LINES))])
        await until(lambda: "more 19." in screen_text(app), "the newest line is in sight")


async def test_one_line_up_is_enough_to_stay() -> None:
    async with _shown() as (pilot, log):
        app = pilot.app
        await pilot.press("up")
        await until(lambda: "event 19." not in screen_text(app), "it is a line further up")
        await shows(pilot, log, [*LINES, LogLine(1795271500.0, "info", "event 20.")])
        assert "event 19." not in screen_text(app)
