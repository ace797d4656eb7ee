"""In every state of every screen: each text can be read, the focus is seen, and a plain terminal gets ASCII alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from rich.segment import Segment
from textual.color import Color

from tests.tui.pictures import screen_text
from tests.tui.screens.test_keys import made
from tests.tui.screens.test_screens import StillConsole, living
from tests.tui.states import STATES, Place, State
from tests.waiting import until
from vmlab.tui.widgets.glyphs import LEAST_CONTRAST, contrast
from vmlab.tui.widgets.painted import Painted

__all__ = ["living", "made"]

FOCUS_CONTRAST = 3.0
"""Of a sign to its ground: success criterion 1.4.11 of WCAG 2.1."""
ROUNDED = 0.05
"""A colour of the theme that is given in percent is rounded once more when it is drawn."""

EACH = pytest.mark.parametrize(
    ("made", "wanted"), [(one, one) for one in STATES], ids=[one.name for one in STATES], indirect=["made"]
)


def drawn(app: StillConsole) -> Iterator[Segment]:
    """What is on the screen, as it goes to the terminal."""
    width = app.size.width
    for strip in app.screen._compositor.render_strips():
        yield from strip.crop(0, width)


@EACH
@pytest.mark.parametrize("theme", ["textual-dark", pytest.param("textual-light", marks=pytest.mark.exhaustive)])
async def test_each_text_can_be_read_and_the_focus_is_seen(
    made: Callable[[StillConsole], Place], wanted: State, theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("textual.constants.COLOR_SYSTEM", "truecolor")
    app = StillConsole()
    async with app.run_test(size=wanted.size) as pilot:
        app.theme = theme
        await wanted.make(made(app))
        await pilot.pause()
        faint = set()
        for text, style, _ in drawn(app):
            if style is None or style.color is None or style.bgcolor is None or not any(map(str.isalnum, text)):
                continue
            front, behind = (Color.from_rich_color(one) for one in (style.color, style.bgcolor))
            if contrast(front, behind) < LEAST_CONTRAST - ROUNDED:
                faint.add((text.strip(), front.hex, behind.hex, round(contrast(front, behind), 2)))
        assert not faint
        pane = app.focused
        if isinstance(pane, Painted):
            kind, color = pane.styles.border_top
            signs = [color] if kind not in ("", "none") else [pane.styles.scrollbar_color]
            assert all(contrast(sign, pane.background_colors[1]) >= FOCUS_CONTRAST for sign in signs)


@pytest.mark.exhaustive
@EACH
async def test_a_plain_terminal_gets_ascii_alone(
    made: Callable[[StillConsole], Place], wanted: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    app = StillConsole()
    async with app.run_test(size=wanted.size) as pilot:
        # The words that a state waits for have signs that a plain terminal has not.
        place = made(app)
        monkeypatch.setattr(Place, "shows", _settles)
        await wanted.make(place)
        await pilot.pause()
        beyond = {text for text, *_ in drawn(app) if not text.isascii()}
        assert not beyond


async def _settles(place: Place, *words: str) -> None:
    """Wait for the words without signs."""
    plain = [part for word in words for part in word.split() if part.isascii()]
    await until(lambda: all(word in screen_text(place.app) for word in plain), f"{plain} on the screen")
