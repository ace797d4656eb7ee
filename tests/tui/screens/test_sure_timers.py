"""Timers that fire once do so, also where their task is preempted before it has begun to wait.

The rule stands at `tui.screens.base_screen.SureTimers`.
"""

from __future__ import annotations

import asyncio
import itertools
import time

import pytest

from tests.tui.screens.test_screens import StillConsole
from tests.waiting import until

_PREEMPTED_SECONDS = 30.0


@pytest.fixture(autouse=True)
def preempted(state: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock in the task of a timer with the name of `delay_update`, or of a number, comes late."""
    late = itertools.count(0.0, _PREEMPTED_SECONDS)

    def now() -> float:
        task = asyncio.current_task()
        once = task is not None and task.get_name().startswith(("delay_update", "set_timer#"))
        return time.monotonic() + (next(late) if once else 0.0)

    monkeypatch.setattr("textual._time.get_time", now)


@pytest.mark.parametrize("key", ["", "?", "colon", "3"])
async def test_a_timer_of_the_console_and_of_a_screen_fires_though_it_is_late(key: str) -> None:
    app = StillConsole()
    async with app.run_test() as pilot:
        before = app.screen
        if key:
            await pilot.press(key)
            await until(lambda: app.screen is not before, "another screen")
        for owner in (app, app.screen):
            fired = asyncio.Event()
            owner.set_timer(0.001, fired.set)
            await asyncio.wait_for(fired.wait(), 60)


async def test_a_new_screen_and_a_new_size_are_drawn_though_their_timers_are_late() -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.switch_mode("runs")
        await until(lambda: not app._batch_count, "updates are no longer delayed")
        await pilot.resize_terminal(100, 30)
        await until(lambda: app.screen.size == (100, 30), "the screen has its new size")
