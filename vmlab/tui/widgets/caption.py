"""What a speaker would say at this moment of a recording: two lines of their own, which cover no chart."""

from __future__ import annotations

from collections.abc import Iterable

from vmlab.system.text_width import wrapped
from vmlab.tui.widgets.painted import Line, Painted

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
