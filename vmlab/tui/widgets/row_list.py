"""A list with a cursor: arrows or hjkl move it, a click sets it, the row in sight stays in sight."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from vmlab.system.text_width import exactly, left
from vmlab.tui.widgets.painted import Line, Painted, hint_lines

_EMPTY = "nothing is listed here"


class RowList(Painted, inherit_bindings=False):
    """Lines by key under a heading. Rows are replaced at will; the cursor stays on its key.

    Of thousands of rows those in sight are drawn, and a screen's height above and below them.
    """

    can_focus = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, tooltip="To the row above"),
        Binding("down,j", "move(1)", "Down", show=False, tooltip="To the row below"),
        Binding("pageup", "move(-10)", "Page up", show=False, tooltip="Up by ten rows"),
        Binding("pagedown", "move(10)", "Page down", show=False, tooltip="Down by ten rows"),
        Binding("home,g", "move(-100000)", "First", show=False, tooltip="To the first row"),
        Binding("end,G", "move(100000)", "Last", show=False, tooltip="To the last row"),
        Binding("enter", "choose", "Open", show=False, tooltip="Open what the cursor is on"),
    ]

    @dataclass(eq=False)
    class OfRow(Message):
        """Something is of the row with this key."""

        key: str

    class Chosen(OfRow):
        """Enter, or a second click, on the row."""

    class Moved(OfRow):
        """The cursor stands on the row now."""

    class HeadingClicked(Message):
        """The user clicked on the heading."""

    _heading: Line = ()
    _rows: Mapping[str, Line | Callable[[], Line]] = MappingProxyType({})
    _drawn = range(0)
    """The places of the lines that are drawn; the others are blank."""
    _keys: Sequence[str] = ()
    _hint: Sequence[str] = ()
    _cursor = 0
    _titles: Mapping[str, str] = MappingProxyType({})

    @property
    def key(self) -> str | None:
        """The key that the cursor is on; None for an empty list."""
        return self._keys[self._cursor] if self._keys else None

    def show(
        self,
        heading: Line,
        rows: Iterable[tuple[str, Line | Callable[[], Line]]],
        hint: Sequence[str] = (),
        titles: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Draw `rows`, over some of them a title, by their keys; `hint` stands there when there are none.

        A row that is a function gives its line when it comes into sight.
        """
        before = self.key
        self._heading, self._hint, self._titles = heading, hint, titles
        self._rows = dict(rows)
        self._keys = list(self._rows)
        if before in self._rows:
            self._cursor = self._keys.index(before)
        self._cursor = min(self._cursor, max(0, len(self._keys) - 1))
        self.repaint()
        if self.key != before and self.key is not None:
            self.post_message(self.Moved(self.key))

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The heading, then the rows; the one under the cursor in the cursor's colours."""
        top = round(self.scroll_offset.y)
        self._drawn = range(max(0, top - height), top + 2 * height)
        return self._lines(width, self._drawn)

    def _lines(self, width: int, drawn: range) -> Iterable[Line]:
        """All lines, of which those at the places `drawn` are no blank ones."""
        if self._heading:
            yield self._heading
        if not self._rows:
            yield from hint_lines(self._hint, width)
        at = self._top
        for place, (key, row) in enumerate(self._rows.items()):
            if key in self._titles:
                yield [(exactly(self._titles[key], width), "title")]
                at += 1
            if at not in drawn:
                yield ()
            else:
                line = row() if callable(row) else row
                if place == self._cursor:
                    line = [(left("".join(piece for piece, _ in line), width), "cursor")]
                yield line
            at += 1

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines in sight, which are drawn now where the list was scrolled to blank ones."""
        top, end = round(self.scroll_offset.y), min(self.virtual_size.height, round(self.scroll_offset.y) + crop.height)
        if self._painted_for == self.size and top < end and not (top in self._drawn and end - 1 in self._drawn):
            self.repaint()
        return super().render_lines(crop)

    def text(self) -> str:
        """All lines as plain text, whether they are in sight or not."""
        width = self.size.width
        every = range(self._top + 2 * len(self._rows))
        return "\n".join(self._strip(tuple(line), width).text.rstrip() for line in self._lines(width, every))

    @property
    def _top(self) -> int:
        return 1 if self._heading else 0

    def place(self, key: str) -> None:
        """Put the cursor on `key`, where it is there."""
        if key in self._rows:
            self._go(self._keys.index(key))

    def _go(self, place: int) -> None:
        place = min(max(0, place), len(self._keys) - 1)
        if self._keys and place != self._cursor:
            self._cursor = place
            self.repaint()
            self.post_message(self.Moved(self._keys[place]))
        self._keep_in_sight()

    def _lines_of_rows(self) -> list[int]:
        """The line of each row."""
        titles = itertools.accumulate(int(key in self._titles) for key in self._keys)
        return [place + above + self._top for place, above in enumerate(titles)]

    def _keep_in_sight(self) -> None:
        if not self._keys:
            return
        line, top, height = self._lines_of_rows()[self._cursor], round(self.scroll_offset.y), self.size.height
        first = line - int(self._keys[self._cursor] in self._titles)
        if first < top + self._top:
            # With its title, and at the top with the heading of all.
            self.scroll_to(y=max(0, first - self._top), animate=False)
        elif line >= top + height:
            self.scroll_to(y=line - height + 1, animate=False)

    def move(self, step: int) -> bool:
        """Move the cursor by `step` rows, or as many as there are; returns whether there was one."""
        before = self._cursor
        self._go(before + step)
        return self._cursor != before

    def action_move(self, step: int) -> None:
        """Move the cursor; where it stays, say why."""
        if not self._keys:
            self.notify(_EMPTY)
        elif not self.move(step):
            self.notify(f"this is the {'first' if step < 0 else 'last'} row")

    def action_choose(self) -> None:
        """Open the row under the cursor."""
        if self.key is None:
            self.notify(_EMPTY)
        else:
            self.post_message(self.Chosen(self.key))

    def on_click(self, event: Click) -> None:
        """A click on a row moves the cursor there; on the row under the cursor it opens it."""
        line = event.y - self.styles.gutter.top + round(self.scroll_offset.y)
        lines = self._lines_of_rows()
        if line < self._top:
            self.post_message(self.HeadingClicked())
        elif line in lines:
            place = lines.index(line)
            if place == self._cursor:
                self.action_choose()
            else:
                self._go(place)
