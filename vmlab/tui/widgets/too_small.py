"""What stands on a terminal that is too small for any screen of the console."""

from __future__ import annotations

from collections.abc import Iterable

from vmlab.system.text_width import wrapped
from vmlab.tui.widgets.painted import Line, Painted


class TooSmall(Painted):
    """One sentence over the whole screen; it goes as soon as there is room, which is `needed` columns and rows."""

    def __init__(self, needed: tuple[int, int]) -> None:
        super().__init__()
        self.needed = needed

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The sentence on as many lines as it takes."""
        columns, rows = self.app.size
        needed = "the console needs {} and {}".format(*self.needed)
        sentence = f"This terminal has {columns} columns and {rows} rows; {needed}."
        return [[(line, "warning")] for line in wrapped(sentence, max(10, width))]
