"""A recording's time line: the position, and when each cell ran."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.events import Click
from textual.message import Message

from vmlab.system.text_width import wrapped
from vmlab.tui.feed.recorded_run import Mark
from vmlab.tui.widgets.charts.axis_scale import clock
from vmlab.tui.widgets.glyphs import tone_of
from vmlab.tui.widgets.painted import Line, Painted, Piece


class Timeline(Painted):
    """One line: position, a bar with a number at each cell's beginning, length. A click seeks."""

    class SeekRequested(Message):
        """The user clicked on a moment, in seconds from the beginning."""

        def __init__(self, position: float) -> None:
            super().__init__()
            self.position = position

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._position = 0.0
        self._length = 1.0
        self._marks: Sequence[Mark] = ()

    def show(self, position: float, length: float, marks: Sequence[Mark]) -> None:
        """Draw the line with its position, all in seconds."""
        self._position, self._length, self._marks = position, max(length, 0.001), marks
        self.repaint()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """One line."""
        before, after = f"{clock(self._position):>7} ", f" {clock(self._length)}"
        room = max(1, width - len(before) - len(after))
        cells: list[Piece] = [("·", "quiet")] * room
        for mark in self._marks:
            first, last = self._place(mark.began, room), self._place(mark.ended, room)
            for place in range(first, last + 1):
                cells[place] = ("━" if not self.glyphs.plain else "=", tone_of(mark.outcome))
            for offset, digit in enumerate(str(mark.cell)):
                if first + offset < room:
                    cells[first + offset] = (digit, "plain")
        cells[self._place(self._position, room)] = ("▼" if not self.glyphs.plain else "V", "accent")
        return [[(before, "accent"), *cells, (after, "quiet")]]

    def _place(self, position: float, room: int) -> int:
        return min(room - 1, max(0, int(position / self._length * room)))

    def on_click(self, event: Click) -> None:
        """Seek to the moment under the pointer."""
        room = max(1, self.size.width - 8 - len(clock(self._length)) - 1)
        self.post_message(self.SeekRequested(max(0.0, (event.x - 8) / room) * self._length))


ROWS = 2


class Caption(Painted):
    """A title and a sentence; what has no room in the lines ends with an ellipsis."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._title = ""
        self._sentence = ""

    def show(self, title: str, sentence: str) -> None:
        """Draw `title`, and behind it `sentence`."""
        self._title, self._sentence = title, sentence
        self.repaint()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The title in a tone of its own, and the sentence as far as there is room."""
        if not self._title:
            return []
        first, *rest = caption_lines(self._title, self._sentence, width)
        return [
            [(first[: len(self._title)], "accent"), (first[len(self._title) :], "plain")],
            *([(line, "plain")] for line in rest),
        ]


def caption_lines(title: str, sentence: str, width: int) -> list[str]:
    """Title and sentence in lines of `width` columns, `ROWS` at most."""
    return wrapped(f"{title}: {sentence}", max(20, width), most=ROWS)
