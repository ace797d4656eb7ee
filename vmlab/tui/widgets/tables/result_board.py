"""A text that is made for the width that there is, and scrolls."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vmlab.tui.widgets.painted import Line, Painted
from vmlab.tui.widgets.struck import struck_pieces

_LEAST = 60
"""Columns that tables need at least; what is narrower cuts them off."""
_READING = "Reading the run …"


class ResultBoard(Painted):
    """Shows the text that a function makes for its width."""

    can_focus = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._made: Callable[[int], str] = lambda width: _READING

    def show(self, made: Callable[[int], str]) -> None:
        """Draw what `made` gives, from its beginning."""
        self._made = made
        self.scroll_home(animate=False)
        self.repaint()

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The text; its first line is the run's name."""
        for number, text in enumerate(self._made(max(_LEAST, width)).splitlines()):
            yield struck_pieces(text, "title" if number == 0 else "warning" if text.startswith("! ") else "plain")
