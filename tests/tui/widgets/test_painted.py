"""Painted lines: what is sent to the terminal again, and in which colours."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from vmlab.tui.screens.base_screen import ConsoleScreen
from vmlab.tui.widgets.painted import Line, TextBoard


class _Boards(App[None]):
    """One board of four rows on a screen of the console's."""

    CSS = "TextBoard { height: 4; }"

    def get_default_screen(self) -> ConsoleScreen:
        return _Screen()


class _Screen(ConsoleScreen):
    def compose(self) -> ComposeResult:
        yield TextBoard()


def _lines(*texts: str) -> list[Line]:
    return [[(text, "good")] for text in texts]


async def test_only_lines_that_changed_are_sent_again() -> None:
    app = _Boards()
    async with app.run_test(size=(20, 6)) as pilot:
        board = app.screen.query_one(TextBoard)
        board.show(_lines("a", "b", "c", "d"))
        await pilot.pause()
        board._exchange_repaint_regions()
        board.show(_lines("a", "B", "C", "d"))
        assert set(board._exchange_repaint_regions()) == {Region(0, 1, 20, 2)}
        board.show(_lines("A", "B", "C", "D"))
        assert set(board._exchange_repaint_regions()) == {Region(0, 0, 20, 1), Region(0, 3, 20, 1)}
        board.show(_lines("A", "B", "C", "D"))
        assert set(board._exchange_repaint_regions()) == set()
        board.show(_lines("A"))
        assert set(board._exchange_repaint_regions()) == {board.size.region}, "another number of lines"


async def test_lines_are_found_where_the_user_has_scrolled_to() -> None:
    app = _Boards()
    async with app.run_test(size=(20, 6)) as pilot:
        board = app.screen.query_one(TextBoard)
        board.show(_lines(*"abcdefgh"))
        await pilot.pause()
        board.scroll_to(y=3, animate=False)
        await pilot.pause()
        assert [line.text.strip() for line in board.render_lines(Region(0, 0, 20, 4))] == list("defg")
        assert [line.text.strip() for line in board.render_lines(Region(0, 2, 20, 2))] == list("fg")
        board._exchange_repaint_regions()
        board.show(_lines(*"abcdeFgh"))
        assert {region.y for region in board._exchange_repaint_regions()} == {2}


async def test_the_same_title_sends_nothing_again_and_another_one_does() -> None:
    app = _Boards()
    async with app.run_test(size=(20, 6)) as pilot:
        board = app.screen.query_one(TextBoard).titled("Guests  3 more")
        board.show(_lines("a", "b"))
        await pilot.pause()
        board._exchange_repaint_regions()
        board.retitle("Guests  3 more")
        assert set(board._exchange_repaint_regions()) == set()
        board.retitle("Guests  2 more")
        assert set(board._exchange_repaint_regions()) != set()


async def test_the_edge_is_kept_until_its_title_its_width_or_its_style_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_Boards, "CSS", "TextBoard { height: 4; border-top: heavy red; }")
    app, drawn = _Boards(), list[int]()
    draw = Widget.render_lines

    def counted(widget: Widget, crop: Region) -> list[Strip]:
        drawn.append(crop.width)
        return draw(widget, crop)

    async with app.run_test(size=(20, 6)) as pilot:
        board = app.screen.query_one(TextBoard).titled("one")
        board.show(_lines("a", "b"))
        await pilot.pause()
        monkeypatch.setattr(Widget, "render_lines", counted)

        def shown(width: int = 20) -> list[str]:
            return [line.text.strip("━ ") for line in board.render_lines(Region(0, 0, width, 4))]

        assert shown() == shown() == ["one", "a", "b", ""]
        before = len(drawn)
        assert shown() == ["one", "a", "b", ""] and len(drawn) == before
        board.retitle("two")
        assert shown() == ["two", "a", "b", ""] and len(drawn) == before + 1
        assert [len(line.text) for line in board.render_lines(Region(0, 0, 12, 4))] == [12] * 4
        assert drawn[-1] == 12
        # A new theme, or the focus, is a new style.
        old = len(drawn)
        board.notify_style_update()
        shown(12)
        assert len(drawn) > old


@pytest.mark.parametrize("without_colour", [False, True])
async def test_without_colour_every_tone_is_grey(monkeypatch: pytest.MonkeyPatch, *, without_colour: bool) -> None:
    if without_colour:
        monkeypatch.setenv("NO_COLOR", "1")
    app = _Boards()
    async with app.run_test(size=(20, 6)) as pilot:
        board = app.screen.query_one(TextBoard)
        board.show(_lines("a"))
        await pilot.pause()
        style = board.render_lines(Region(0, 0, 20, 1))[0]._segments[0].style
        assert style is not None
        assert style.color is not None
        color = style.color.get_truecolor()
        assert (len(set(color)) == 1) is without_colour
