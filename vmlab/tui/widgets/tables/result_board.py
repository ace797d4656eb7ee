"""A text that is made for the width that there is, and scrolls."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from vmlab.report.figures import struck_parts
from vmlab.tui.widgets.painted import Line, Piece, Shown, line_width

_LEAST = 60
"""Columns that tables need at least; what is narrower cuts them off."""
_COLUMN, _GAP = 76, 3
"""Columns from which on a text may stand beside its beginning, and between the two."""
_BAR = 1
"""The column that the scroll bar would cover."""
_READING = "Reading the run …"
OfWidth = Callable[[int], str]
"""A text for a width."""


class ResultBoard(Shown[OfWidth]):
    """Shows the text that a function makes for its width; where it does not scroll, in two columns if it needs them."""

    can_focus = True

    def __init__(self, *, id: str | None = None, in_two: bool = False) -> None:
        super().__init__(id=id)
        self._in_two = in_two
        self.shown = lambda width: _READING

    def show(self, shown: OfWidth) -> None:
        """Draw what `shown` gives, from its beginning."""
        self.scroll_home(animate=False)
        super().show(shown)

    def lines(self, width: int, height: int) -> Iterable[Line]:
        """The text; its first line is the run's name."""
        if self._in_two:
            return in_two(self.shown, width, height)
        return _lines(self.shown(max(_LEAST, width - _BAR)).splitlines())


def in_two(made: OfWidth, width: int, height: int) -> Iterable[Line]:
    """What `made` gives; where it has more than `height` lines, the first in two columns if these are wide enough."""
    texts = made(max(_LEAST, width - _BAR)).splitlines()
    half = (width - _GAP) // 2
    return _lines(texts) if len(texts) <= height or half < _COLUMN else _beside(made(half).splitlines(), half, height)


def _lines(texts: Sequence[str]) -> Iterable[Line]:
    return (_line(text, first=number == 0) for number, text in enumerate(texts))


def _line(text: str, *, first: bool) -> list[Piece]:
    return list(struck_pieces(text, "title" if first else "warning" if text.startswith("! ") else "plain"))


def _beside(texts: Sequence[str], half: int, height: int) -> Iterable[Line]:
    """The first two times `height` lines in two columns; the first ends between two parts, if one ends in its half."""
    end = next((place for place in range(min(height, len(texts)), height // 2, -1) if not texts[place - 1]), height)
    left, right = texts[:end], texts[end : end + height]
    for place, (one, other) in enumerate(itertools.zip_longest(left, right, fillvalue="")):
        pieces = _line(one[:half], first=place == 0)
        used = line_width(pieces)
        yield [*pieces, (" " * (half + _GAP - used), "plain"), *_line(other, first=False)]


_STRUCK = "struck"


def struck_pieces(text: str, tone: str) -> list[Piece]:
    """`text` in its `tone`, with the figures of invalid cells struck through."""
    return [(part, _STRUCK if place % 2 else tone) for place, part in enumerate(struck_parts(text))]
