"""Bursts of keys: keys of all screens, one after the other without a pause, also while screens come and go.

The rule: whatever is pressed, and however fast, nothing looks for a pane that is not there yet or not there any more;
and where the program does fail, its exit code says so.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from textual import events
from textual.dom import DOMNode
from textual.widgets import Input

from tests.tui.bound import bound
from tests.tui.screens.test_keys import made
from tests.tui.screens.test_screens import StillConsole, living
from tests.tui.states import STATES, Place, State, help_shown, results_of_what_is_gone
from tests.waiting import until
from vmlab.tui.app import Console
from vmlab.tui.screens.modals import HelpModal
from vmlab.tui.widgets.row_list import RowList
from vmlab.tui.widgets.tables.choice_form import ChoiceForm

__all__ = ["living", "made"]

_SCREENS = {one.screen for one in STATES}
_OWNERS: tuple[type[DOMNode], ...] = (Console, *_SCREENS, RowList, ChoiceForm, Input)
KEYS = sorted({key for owner in _OWNERS for key in bound(owner)} | set("axz;ß日"))
LEAVE = ("q", "ctrl+q")
_BURSTS = 8
_LONGEST = 9


def type_at_once(app: Console, keys: list[str]) -> None:
    """Keys as the terminal hands them over, none of them waited for."""
    assert app._driver is not None
    for key in keys:
        app._driver.send_message(events.Key(key, key if len(key) == 1 else None))


async def mash(place: Callable[[StillConsole], Place], wanted: State, seed: int) -> None:
    """Bursts in this state, until one of them leaves the console. Raises what the console did."""
    chosen = random.Random(f"{wanted.name} {seed}")
    app, told = StillConsole(), list[str]()
    try:
        async with app.run_test(size=wanted.size) as pilot:
            await wanted.make(place(app))
            for burst in range(_BURSTS):
                keys = chosen.choices(KEYS, k=chosen.randint(1, _LONGEST))
                if burst == _BURSTS - 1:
                    keys += [chosen.choice(LEAVE), *chosen.choices(KEYS, k=2)]
                told.append(" ".join(keys))
                type_at_once(app, keys)
                if chosen.random() < 0.2 and not app.is_leaving:
                    await pilot.resize_terminal(chosen.choice((20, 80, 160)), chosen.choice((8, 24, 48)))
                await asyncio.sleep(chosen.choice((0, 0, 0, 0.01, 0.05)))
                if app.is_leaving:
                    break
            # The last burst may have been typed into a field.
            app.exit()
    except Exception as error:
        error.add_note(f"{wanted.name} {seed}: {' | '.join(told)}")
        raise


def states(chosen: Sequence[State]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("made", "wanted"), [(one, one) for one in chosen], ids=[one.name for one in chosen], indirect=["made"]
    )


@states(STATES[::6])
async def test_no_burst_of_keys_breaks_a_screen(made: Callable[[StillConsole], Place], wanted: State) -> None:
    await mash(made, wanted, 1)


@pytest.mark.exhaustive
@states(STATES)
@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (3, 4))])
async def test_no_burst_of_keys_breaks_any_screen(
    made: Callable[[StillConsole], Place], wanted: State, seed: int
) -> None:
    await mash(made, wanted, seed)


@pytest.mark.parametrize(
    "keys", ["s q", "2 q", "3 q", "4 q", "question_mark q q", "colon ctrl+q", "d q", "s ctrl+q x", "q q q"]
)
async def test_whoever_leaves_while_a_screen_comes_leaves_without_an_error(state: Path, keys: str) -> None:
    app = Console()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        type_at_once(app, keys.split())
        await until(lambda: app.is_leaving, "the console leaves")
    assert (app.return_code, app.has_crashed) == (0, False)


async def test_a_screen_that_is_dismissed_twice_takes_no_other_with_it(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        await results_of_what_is_gone(Place(app, monkeypatch))
        below = app.screen
        await help_shown(Place(app, monkeypatch))
        shown = app.screen
        assert isinstance(shown, HelpModal)
        # Both keys of a burst are handled before the first of them has taken the screen away.
        shown.dismiss()
        shown.dismiss()
        await pilot.pause()
        assert app.screen is below
