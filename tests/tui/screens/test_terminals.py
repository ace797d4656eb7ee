"""Terminals of few colours, of none, and too small ones: nothing is lost that a user would miss."""

from __future__ import annotations

import colorsys
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem
from rich.style import Style
from textual.color import Color as Ground
from textual.theme import BUILTIN_THEMES

from tests.tui.conftest import RECORDED
from tests.tui.pictures import screen_text
from tests.tui.screens.test_screens import StillConsole, compared, replayed
from tests.waiting import until
from vmlab.tui.console_requests import Pick
from vmlab.tui.screens.base_screen import SMALLEST
from vmlab.tui.state.charts import CPU
from vmlab.tui.widgets.charts.chart_board import ChartBoard
from vmlab.tui.widgets.charts.side_charts import OverlayChart
from vmlab.tui.widgets.glyphs import LEAST_CONTRAST, contrast, tones_on
from vmlab.tui.widgets.status_strip import StatusStrip

SENTENCE = "This terminal has {} columns and {} rows; the console needs 60 and 16."


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("key", ["1", "2", "3", "4"])
@pytest.mark.parametrize("size", [(59, 40), (200, 15), (24, 8)])
async def test_a_screen_without_room_is_one_sentence_until_there_is(key: str, size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size) as pilot:
        await pilot.press(key)
        await until(
            lambda: " ".join(screen_text(app).split()) == SENTENCE.format(*size), "it is said, and nothing else"
        )
        await pilot.resize_terminal(*SMALLEST)
        await until(
            lambda: "This terminal" not in screen_text(app) and "q Quit" in screen_text(app), "the screen is back"
        )
        await pilot.resize_terminal(*size)
        await until(lambda: " ".join(screen_text(app).split()) == SENTENCE.format(*size), "it is said again")


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
async def test_sixteen_colours_keep_their_meaning(monkeypatch: pytest.MonkeyPatch, theme: str) -> None:
    monkeypatch.setattr("textual.constants.COLOR_SYSTEM", "standard")
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        app.theme = theme
        await pilot.pause()
        for widget in (app.screen.query_one(ChartBoard), app.screen.query_one(StatusStrip)):
            series = [one.tone for one in CPU.series if one.drawn]
            for tones in (series, ["plain", "good", "warning", "bad", "accent"]):
                styles = [widget.tone(tone) for tone in tones]
                fronts = [one.color.downgrade(ColorSystem.STANDARD).number for one in styles if one.color]
                grounds = {one.bgcolor.downgrade(ColorSystem.STANDARD).number for one in styles if one.bgcolor}
                assert len(set(fronts)) == len(tones), f"{tones} are told apart"
                assert not grounds & set(fronts)


THEMES = sorted(name for name in BUILTIN_THEMES if "ansi" not in name)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("ground", ["background", "surface", "panel"])
def test_every_text_can_be_read_in_every_theme(theme: str, ground: str) -> None:
    variables = BUILTIN_THEMES[theme].to_color_system().generate()
    behind = Ground.parse(variables[ground])
    for tone, style in tones_on(Style(bgcolor=behind.hex6), variables).items():
        under = Ground.from_rich_color(style.bgcolor) if style.bgcolor else behind
        assert contrast(Ground.from_rich_color(style.color), under) >= LEAST_CONTRAST, (tone, style)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("sixteen", [False, True])
def test_colours_of_limits_are_of_nothing_else(theme: str, sixteen: bool) -> None:
    variables = BUILTIN_THEMES[theme].to_color_system().generate()
    ground = Style(color=variables["foreground"], bgcolor=variables["background"])
    tones = tones_on(ground, variables, sixteen=sixteen)
    limits = {tone: _hue(tones[tone].color) for tone in ("good", "warning", "bad")}
    for tone in ("one", "two", "three", "four", "five"):
        color = tones[tone].color
        assert color is not None
        if len({*color.get_truecolor()}) > 1:
            near = {limit for limit, hue in limits.items() if _apart(hue, _hue(color)) < 15}
            assert near == set(), tone


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
@pytest.mark.usefixtures("state")
async def test_the_pane_with_the_focus_is_seen(theme: str) -> None:
    app = StillConsole()
    async with app.run_test(size=(120, 40)) as pilot:
        app.theme = theme
        await pilot.press("tab")
        await pilot.pause()
        pane = app.focused
        assert pane is not None
        kind, color = pane.styles.border_top
        assert kind == "heavy"
        assert contrast(color, pane.background_colors[0]) >= 3


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize(("system", "sixteen"), [("truecolor", False), ("standard", True)])
async def test_widgets_have_the_tones_of_the_theme_and_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch, system: str, sixteen: bool
) -> None:
    monkeypatch.setattr("textual.constants.COLOR_SYSTEM", system)
    app = StillConsole()
    async with app.run_test(size=(80, 24)):
        strip = app.screen.query_one(StatusStrip)
        for theme in ("textual-light", "nord"):
            before, app.theme = strip.tone("good"), theme
            await until(lambda: strip.tone("good") != before, "the colours of the theme")  # noqa: B023
            known = tones_on(strip.rich_style, app.theme_variables, sixteen=sixteen)
            assert {tone: strip.tone(tone) for tone in known} == known


def _hue(color: Color | None) -> float:
    """Of a colour, in degrees."""
    assert color is not None
    return 360 * colorsys.rgb_to_hls(*(part / 255 for part in color.get_truecolor()))[0]


def _apart(one: float, other: float) -> float:
    return min(abs(one - other), 360 - abs(one - other))


async def test_without_colour_lines_are_told_apart_by_signs(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = StillConsole()
    async with app.run_test(size=(160, 48)):
        screen = await replayed(app, RECORDED, "space", "G")
        board = screen.query_one(ChartBoard)
        await until(lambda: "*read" in board.text() and "owrite" in board.text(), "the head has the signs")
        rows = board.text().splitlines()
        first = next(place for place, row in enumerate(rows) if "*read" in row)
        assert any("o" in row.replace("owrite", "") for row in rows[first:])


async def test_without_colour_sides_are_told_apart_by_signs(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = StillConsole()
    async with app.run_test(size=(160, 48)):
        await compared(app, [Pick(recorded / "run.sqlite")])
        chart = app.screen.query_one(OverlayChart)
        await until(lambda: "* cache none  o cache writeback" in chart.text(), "the legend has the signs")
        drawn = "".join(chart.text().splitlines()[1:-1])
        assert {"*", "o"} <= set(drawn)


@pytest.mark.usefixtures("state")
async def test_a_hint_is_read_to_its_end_where_it_has_no_room_on_a_line() -> None:
    app = StillConsole()
    async with app.run_test(size=SMALLEST) as pilot:
        await pilot.press("4")
        told = "mark two of them (or cells of one) with Space, and press c. c on a single run compares its own cells"
        await until(lambda: told in " ".join(screen_text(app).split()), "the hint is whole")
