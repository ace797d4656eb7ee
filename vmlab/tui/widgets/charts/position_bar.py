"""A recording's time line: the position, and when each cell ran."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textual.events import Click
from textual.message import Message

from vmlab.system.text_width import wrapped
from vmlab.tui.feed.recorded_run import Mark
from vmlab.tui.widgets.charts.axis_scale import clock
from vmlab.tui.widgets.glyphs import tone_of
from vmlab.tui.widgets.painted import Line, Piece, Shown


class Position(NamedTuple):
    """Where a recording is, how long it takes, both in seconds, and when its cells ran."""

    at: float = 0.0
    length: float = 1.0
    marks: Sequence[Mark] = ()


class Timeline(Shown[Position]):
    """One line: position, a bar with a number at each cell's beginning, length. A click seeks."""

    @dataclass(eq=False)
    class SeekRequested(Message):
        """The user clicked on a moment, in seconds from the beginning."""

        position: float

    shown = Position()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """One line."""
        before, after = f"{clock(self.shown.at):>7} ", f" {clock(self.shown.length)}"
        room = max(1, width - len(before) - len(after))
        cells: list[Piece] = [("·", "quiet")] * room
        for mark in self.shown.marks:
            first, last = self._place(mark.began, room), self._place(mark.ended, room)
            for place in range(first, last + 1):
                cells[place] = ("━" if not self.glyphs.plain else "=", tone_of(mark.outcome))
            for offset, digit in enumerate(str(mark.cell)):
                if first + offset < room:
                    cells[first + offset] = (digit, "plain")
        cells[self._place(self.shown.at, room)] = ("▼" if not self.glyphs.plain else "V", "accent")
        return [[(before, "accent"), *cells, (after, "quiet")]]

    def _place(self, position: float, room: int) -> int:
        return min(room - 1, max(0, int(position / max(self.shown.length, 0.001) * room)))

    def on_click(self, event: Click) -> None:
        """Seek to the moment under the pointer."""
        room = max(1, self.size.width - 8 - len(clock(self.shown.length)) - 1)
        self.post_message(self.SeekRequested(max(0.0, (event.x - 8) / room) * self.shown.length))


ROWS = 2


class Caption(Shown[tuple[str, str]]):
    """A title and a sentence; what has no room in the lines ends with an ellipsis."""

    shown = ("", "")

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The title in a tone of its own, and the sentence as far as there is room."""
        title, sentence = self.shown
        if not title:
            return []
        first, *rest = wrapped(f"{title}: {sentence}", max(20, width), most=ROWS)
        return [
            [(first[: len(title)], "accent"), (first[len(title) :], "plain")],
            *([(line, "plain")] for line in rest),
        ]
