"""The help and the command palette: a sentence for each key on any terminal, and what is not possible now apart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.tui.pictures import screen_text
from tests.tui.screens.test_keys import made
from tests.tui.screens.test_screens import StillConsole, living
from tests.tui.states import STATES, Place, State, filter_being_typed, no_run, path_being_typed, runs
from tests.waiting import until
from vmlab.tui.console_options import ConsoleOptions
from vmlab.tui.screens.base_screen import CHANGING
from vmlab.tui.screens.modals import NOT_NOW, HelpModal, HelpText, ListedKey, QuestionModal, help_lines, listed_keys

__all__ = ["living", "made"]

LOW = (80, 24)


def text_of(keys: list[ListedKey], width: int, height: int) -> str:
    return "\n".join("".join(text for text, _ in line).rstrip() for line in help_lines(keys, width, height))


OVER_IT = (HelpModal, QuestionModal)
HELPED = [one for one in STATES if one.screen not in OVER_IT and one.make not in (filter_being_typed, path_being_typed)]
"""Those in which ``?`` opens the help."""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("made", "wanted"), [(one, one) for one in HELPED], ids=[one.name for one in HELPED], indirect=["made"]
)
async def test_each_key_has_its_sentence_on_80_by_24_in_every_state(
    made: Callable[[StillConsole], Place], wanted: State
) -> None:
    app = StillConsole()
    async with app.run_test(size=LOW):
        await wanted.make(made(app))
        keys = listed_keys(app.screen)
        width, height = LOW[0] - 4, LOW[1] - 2
        shown = " ".join(text_of(keys, width, height).split())
        assert all(one.tooltip and f"{one.description}: {one.tooltip}" in shown for one in keys)
        # What cannot be used now is at the foot, under its reason.
        why = [one.why for one in keys]
        assert why == sorted(why, key=bool)
        assert shown.count(NOT_NOW) == len({one for one in why if one})


@pytest.mark.parametrize("make", [no_run, runs], ids=["live", "runs"])
@pytest.mark.usefixtures("state")
async def test_a_console_that_only_watches_lists_what_it_does_and_says_at_the_foot_that_it_only_watches(
    make: Callable[[Place], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = StillConsole(options=ConsoleOptions(control=False))
    async with app.run_test(size=(160, 48)) as pilot:
        await make(Place(app, monkeypatch))
        keys = listed_keys(app.screen)
        assert not {one.action.partition("(")[0] for one in keys} & CHANGING
        assert len({one.why for one in keys if one.why}) <= 1
        await pilot.press("question_mark")
        await until(lambda: "This console only watches" in screen_text(app), "the help")
        assert "attach" not in screen_text(app)


@pytest.mark.usefixtures("state")
async def test_what_cannot_be_used_now_is_grey_under_its_reason_and_has_all_of_its_words_where_there_is_room() -> None:
    app = StillConsole()
    async with app.run_test(size=(160, 48)) as pilot:
        keys = listed_keys(app.screen)
        off = {one.description for one in keys if one.why}
        assert {"Stop", "Cache now", "Coming", "Domain"} <= off and "Scenarios" not in off
        (why,) = {one.why for one in keys if one.why}
        for width in (76, 140):
            assert text_of(keys, width, 22).count(NOT_NOW) == 1
        tones = {text: tone for line in help_lines(keys, 140, 44) for text, tone in line}
        titles = "".join(text for text, tone in tones.items() if tone == "title")
        assert f"{NOT_NOW}{why}".replace(" ", "") in titles.replace(" ", "")
        assert tones["Stop: Ask whether to stop the run that is shown"] == "quiet"
        assert tones["Scenarios: Choose a scenario, change it, start it"] == "plain"
        await pilot.press("question_mark")
        await until(lambda: "Stop: Ask whether to stop" in screen_text(app), "the help")
        assert screen_text(app).count(NOT_NOW) == 1
        text = app.screen.query_one(HelpText)
        assert text.max_scroll_y == 0


def test_keys_of_one_action_are_one_entry_and_a_title_stays_with_its_keys() -> None:
    keys = [ListedKey("One", "a", f"deed {place}", "", "x", "") for place in range(4)]
    keys += [ListedKey("Two", "b", f"other {place}", "", "y", "") for place in range(9)]
    rows = text_of(keys, 76, 22).splitlines()
    assert len(rows) < len(keys)
    assert any("Two" in row for row in rows) and "Two" not in rows[-3]
    left = [row[:36].rstrip() for row in rows]
    below = left[left.index("Two") + 1] if "Two" in left else "b         other 0"
    assert below.startswith("b")


@pytest.mark.usefixtures("state")
async def test_each_key_is_there_once() -> None:
    """The key bar shows ``+-`` for both; the help had it, and ``-`` once more."""
    app = StillConsole()
    async with app.run_test(size=(160, 48)):
        keys = [key for one in listed_keys(app.screen) for key in one.keys.split()]
        assert {"+", "-", "b", "B", "<", ">"} <= set(keys)
        assert not {"+-", "bB", "<>"} & set(keys)
        assert len(keys) == len(set(keys)), sorted(keys)


@pytest.mark.usefixtures("state")
async def test_the_palette_shows_keys_and_hides_what_is_impossible() -> None:
    app = StillConsole()
    async with app.run_test(size=(100, 30)):
        offered = [one.title for one in app.get_system_commands(app.screen)]
    assert "Scenarios  (2)" in offered and "Demo  (d)" in offered
    assert not any(name.startswith(("Stop", "Cache", "Coming", "Tiles", "Down", "Line")) for name in offered)
    assert all(name.endswith(")") for name in offered if name != "Theme")
    assert len(offered) == len(set(offered))
