"""Every key of every screen, in every state, does something or says why not."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Button, Input

from tests.tui.bound import LEAVES, MOVES, bound, name_of
from tests.tui.pictures import screen_text
from tests.tui.screens.test_screens import StillConsole, living
from tests.tui.states import (
    STATES,
    Place,
    State,
    cells_compared,
    choices,
    help_shown,
    no_run,
    no_scenario,
    replay,
    results,
    runs,
)
from tests.waiting import until
from vmlab.tui import screens
from vmlab.tui.screens import compare_screen
from vmlab.tui.screens.live_screen import LiveScreen
from vmlab.tui.screens.modals import listed_keys
from vmlab.tui.state.compared import compared_sides
from vmlab.tui.widgets.painted import Painted
from vmlab.tui.widgets.row_list import RowList
from vmlab.tui.widgets.tables.choice_form import ChoiceForm

__all__ = ["living"]

FAR = 100_000
ANOTHER_STATE = ("pause",)
"""Actions after which all changes by itself."""


@pytest.fixture
def made(
    request: pytest.FixtureRequest, state: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[StillConsole], Place]:
    """What makes the place of a state, in the folder that it asks for."""
    wanted: State = request.param
    if wanted.folder:
        request.getfixturevalue(wanted.folder)
    return lambda app: Place(app, monkeypatch)


EACH = pytest.mark.parametrize(
    ("made", "wanted"), [(one, one) for one in STATES], ids=[one.name for one in STATES], indirect=["made"]
)


def test_every_screen_is_among_them() -> None:
    modules = [
        importlib.import_module(f"{screens.__name__}.{one.name}") for one in pkgutil.iter_modules(screens.__path__)
    ]
    bare = {"CommandingScreen", "ConsoleScreen", "FilteredScreen", "OneGuestScreen", "Palette", "WatchScreen"}
    known = {
        found.__name__
        for module in modules
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, Screen) and found.__module__ == module.__name__
    }
    assert known - bare <= {one.screen.__name__ for one in STATES}


@EACH
async def test_every_key_does_something_or_says_why_not(made: Callable[[StillConsole], Place], wanted: State) -> None:
    expected, pressed = set[str](), set[str]()
    while True:
        app = StillConsole()
        async with app.run_test(size=wanted.size) as pilot:
            await wanted.make(made(app))
            base, mode, focused = app.screen, app.current_mode, app.focused
            assert isinstance(base, wanted.screen)
            # A field edits its text by the framework's own keys.
            edits = bound(type(focused)).keys() if isinstance(focused, Input) else ()
            expected = {
                key for key, action in keys_of(app).items() if key not in edits and name_of(action) not in LEAVES
            }
            for key, active in list(base.active_bindings.items()):
                if key in pressed or key not in expected:
                    continue
                app.say_nothing()
                # What the key before did is drawn first: a key that takes it back would change nothing otherwise.
                await until(lambda: not owes_a_picture(base), "no picture is owed")  # noqa: B023
                await pilot.pause()
                before = seen(app)
                await pilot.press(key)
                await until(lambda: seen(app) != before, f"{key} ({active.binding.action}) does something or says why")  # noqa: B023
                pressed.add(key)
                if name_of(active.binding.action) in ANOTHER_STATE:
                    break
                if not base.is_attached or (focused is not None and not focused.is_attached):
                    break  # The key has closed the screen or its pane; the others are tried on a new one.
                if app.current_mode != mode:
                    await app.switch_mode(mode)
                while app.screen is not base:
                    await app.pop_screen()
                base.set_focus(focused)
                if app.focused is not focused:
                    break  # What had the focus is out of sight.
            else:
                break
    assert pressed == expected


def owes_a_picture(screen: Screen[object]) -> bool:
    """Whether something has changed on it that is not drawn yet."""
    return bool(getattr(screen, "_due", None) or screen._layout_required or screen._dirty_widgets or screen._callbacks)


def keys_of(app: StillConsole) -> dict[str, str]:
    """The action of each key that works now: all that the classes bind, without what a field takes as text."""
    focused, screen = app.focused, app.screen
    panes = [] if focused is None else [type(focused)]
    everywhere = [] if isinstance(screen, ModalScreen) else [type(app)]
    typed = isinstance(focused, Input)
    known = bound(*panes, type(screen), *everywhere)
    return {key: action for key, action in known.items() if not (typed and is_text(key))}


def is_text(key: str) -> bool:
    return len(key) == 1 or key in ("colon", "question_mark", "space")


def moves_of(pane: Widget) -> dict[str, str]:
    """The keys that move something in `pane`, with their actions."""
    if not isinstance(pane, Painted):
        return {}
    return {key: action for key, action in bound(type(pane)).items() if name_of(action) in MOVES}


@EACH
async def test_keys_are_those_bound_the_focus_is_seen_and_what_moves_does_so_wherever_there_is_room(
    made: Callable[[StillConsole], Place], wanted: State
) -> None:
    app = StillConsole()
    async with app.run_test(size=wanted.size) as pilot:
        await wanted.make(made(app))
        assert {key: one.binding.action for key, one in app.screen.active_bindings.items()} == keys_of(app)
        await focus_is_seen(app.screen)
        base, moved = app.screen, list[str]()
        assert [pane.id for pane in base.focus_chain] == wanted.panes.split()
        for pane in base.focus_chain:
            # What the moves before began, such as a plan of another scenario, is over: it may set a cursor back.
            await until(lambda: all(one.is_finished for one in app.workers), "nothing is being made")
            base.set_focus(pane)
            moves = moves_of(pane)
            assert moves.items() <= {key: one.binding.action for key, one in base.active_bindings.items()}.items()
            if pane.id not in wanted.room.split():
                await until(lambda: not any(has_room(pane, action) for action in moves.values()), "all is in sight")  # noqa: B023
                continue
            for key, action in moves.items():
                await until(lambda: has_room(pane, action), f"{pane} has something to move")  # noqa: B023
                await make_room(pane, action)
                before = where(pane)
                await pilot.press(key)
                await until(lambda: where(pane) != before, f"{key} ({action}) moves in {pane}")  # noqa: B023
                moved.append(str(pane.id))
        assert list(dict.fromkeys(moved)) == wanted.room.split()


async def focus_is_seen(base: Screen[object]) -> None:
    """Where there are several panes, the one with the focus looks another; Textual's own draw it themselves."""
    panes = base.focus_chain

    def has_focus(pane: Widget) -> bool:
        base.set_focus(pane)
        return pane.has_focus

    for pane, other in zip(panes, [*panes[1:], *panes[:1]], strict=True) if len(panes) > 1 else ():
        assert isinstance(pane, Painted | Input | Button)
        if isinstance(pane, Painted):
            await until(lambda: has_focus(other), f"{other} has the focus")  # noqa: B023
            before = pane.ground
            await until(lambda: has_focus(pane) and pane.ground != before, f"{pane} with the focus looks another")  # noqa: B023


def has_room(pane: Widget, action: str) -> bool:
    """Whether there is anything that this action could move to."""
    if isinstance(pane, RowList):
        return len(pane._keys) > 1
    if isinstance(pane, ChoiceForm):
        return len(pane._choices if action.startswith("row") else pane._values) > 1
    return pane.max_scroll_y > 0


async def make_room(pane: Widget, action: str, *, other: bool = False) -> None:
    """Go to where the action has something to move to; or to the `other` end, where it has nothing."""
    name, _, step = action.partition("(")
    back = step.startswith("-") is not other
    if isinstance(pane, RowList | ChoiceForm):
        await pane.run_action(f"{name}({FAR if back else -FAR})")
        return

    def stands() -> bool:
        target = pane.max_scroll_y if back else 0
        pane.scroll_to(y=target, animate=False, immediate=True)
        return pane.scroll_offset.y == target == pane.scroll_target_y

    await until(stands, f"{pane} stands at an end")


def where(pane: Widget) -> tuple[object, ...]:
    """Where a cursor or a pane stands."""
    if isinstance(pane, RowList):
        return (pane.key,)
    if isinstance(pane, ChoiceForm):
        return (pane._row, pane._column)
    return (pane.scroll_offset,)


def seen(app: StillConsole) -> tuple[object, ...]:
    """All that a user could notice."""
    fields = [(one.value, one.has_focus) for one in app.screen.query(Input)]
    return app.screen, app.focused, app.focused and where(app.focused), len(app.told), screen_text(app), fields


@pytest.mark.parametrize(
    ("made", "wanted"),
    [(one, one) for one in STATES if one.make in (no_run, runs, choices, no_scenario, results, help_shown)],
    indirect=["made"],
)
async def test_a_key_that_moves_says_so_where_nothing_lies_further_on(
    made: Callable[[StillConsole], Place], wanted: State
) -> None:
    app = StillConsole()
    async with app.run_test(size=wanted.size) as pilot:
        await wanted.make(made(app))
        for pane in app.screen.focus_chain:
            app.screen.set_focus(pane)
            # Behind the last row of choices is the first.
            turns = len(getattr(pane, "_choices", ())) > 1
            moves = [key for key, action in moves_of(pane).items() if not (turns and action.startswith("row"))]
            assert len(moves) >= 4
            for key in moves:
                active = app.screen.active_bindings[key]
                assert active.node is pane
                action = active.binding.action
                await make_room(pane, action, other=True)
                before, told = where(pane), len(app.told)
                await pilot.press(key)
                await until(lambda: len(app.told) > told, f"{key} ({action}) in {pane} says why it moves nothing")  # noqa: B023
                assert where(pane) == before


async def test_help_tells_no_key_of_the_framework(state: Path) -> None:
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        for key in "1234":
            await pilot.press(key)
            lines = "\n".join(f"{one.keys} {one.description}: {one.tooltip}" for one in listed_keys(app.screen))
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
        await replay(Place(app, pytest.MonkeyPatch()))
        await pilot.press("1")
        await until(lambda: isinstance(app.screen, LiveScreen), "Live")
        await pilot.press("3")
        await until(lambda: "RECORDING" in screen_text(app), "where one was")
        await pilot.press("3")
        await until(lambda: "✓ passed" in screen_text(app) and "RECORDING" not in screen_text(app), "the list")


@pytest.mark.usefixtures("recorded")
async def test_the_key_for_all_figures_says_so_where_these_are_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_screen, "compared_sides", lambda sides, **_: compared_sides(sides))
    app = StillConsole()
    async with app.run_test(size=(120, 40)) as pilot:
        await cells_compared(Place(app, monkeypatch))
        for _ in range(2):
            app.told.clear()
            await pilot.press("a")
            await until(lambda: app.told == ["there are no other metrics to compare"], "it is said")
