"""A list of thousands of rows draws those in sight, and shows and copies all of them."""

from __future__ import annotations

from functools import partial

from textual.app import App, ComposeResult

from vmlab.tui.screens.base_screen import ConsoleScreen
from vmlab.tui.widgets.painted import Line
from vmlab.tui.widgets.row_list import RowList

ROWS, HEIGHT = 5000, 10


class _Lists(App[None]):
    """One list on a screen of the console's."""

    CSS = f"RowList {{ height: {HEIGHT}; }}"

    def get_default_screen(self) -> ConsoleScreen:
        return _Screen()


class _Screen(ConsoleScreen):
    def compose(self) -> ComposeResult:
        yield RowList()


def _shown(rows: RowList) -> list[str]:
    """The lines in sight, as the terminal gets them."""
    return [strip.text.rstrip() for strip in rows.render_lines(rows.size.region)]


async def test_lines_are_made_as_they_come_into_sight() -> None:
    made: list[int] = []

    def line(number: int) -> Line:
        made.append(number)
        return [(f"row {number}", "plain")]

    app = _Lists()
    async with app.run_test(size=(20, HEIGHT)) as pilot:
        rows = app.screen.query_one(RowList)
        rows.focus()
        rows.show([("head", "quiet")], [(str(number), partial(line, number)) for number in range(ROWS)])
        await pilot.pause()
        assert _shown(rows) == ["head", *(f"row {number}" for number in range(HEIGHT - 1))]
        assert set(made) == set(range(2 * HEIGHT - 1)), "a screen and the one below, without the heading"
        await pilot.press("G")
        await pilot.pause()
        assert _shown(rows) == [f"row {number}" for number in range(ROWS - HEIGHT, ROWS)]
        assert len(set(made)) <= 6 * HEIGHT
        rows.scroll_to(y=2001, animate=False, force=True)
        await pilot.pause()
        assert _shown(rows) == [f"row {number}" for number in range(2000, 2000 + HEIGHT)]
        assert len(set(made)) <= 9 * HEIGHT
        assert rows.text().splitlines() == ["head", *(f"row {number}" for number in range(ROWS))]


async def test_titles_keep_their_places_over_rows_out_of_sight() -> None:
    app = _Lists()
    async with app.run_test(size=(20, HEIGHT)) as pilot:
        rows = app.screen.query_one(RowList)
        listed: list[tuple[str, Line]] = [(str(number), [(f"row {number}", "plain")]) for number in range(100)]
        rows.show((), listed, titles={"0": "first", "60": "later"})
        await pilot.pause()
        rows.place("60")
        await pilot.pause()
        shown = _shown(rows)
        assert shown.index("later") + 1 == shown.index("row 60")
        assert rows.text().splitlines()[:2] == ["first", "row 0"] and len(rows.text().splitlines()) == 102
