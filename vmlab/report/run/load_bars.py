"""Bars of how much of its limit something takes: the limit stands at a third, and a load beyond the end is marked."""

from __future__ import annotations

import math
from typing import NamedTuple

from vmlab.system.text_width import left

_TIMES = 3
"""A bar ends at so many times the limit."""
_MOST = 999.0


class Signs(NamedTuple):
    """What a bar is drawn with: `beyond` stands at its end where the load is larger than the bar."""

    full: str
    limit: str
    beyond: str


BLOCKS = Signs("█", "┃", "▶▶")
ASCII = Signs("=", "|", ">>")


class LoadBar(NamedTuple):
    """A bar of text with the sign of the limit between its two parts; their blanks are what is not taken."""

    within: str
    limit: str
    over: str

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self)


def load_bar(load: float, columns: int, signs: Signs, *, met: bool) -> LoadBar:
    """`load`, which is 1 at the limit, in so many `columns`.

    However little was missed, the bar goes beyond the sign of its limit, and where it was `met` it does not.
    """
    place = columns // _TIMES
    if load > columns / place:
        text = signs.full * (columns - len(signs.beyond)) + signs.beyond
    else:
        taken = math.floor(load * place)
        text = left(signs.full * (min(place, taken) if met else max(place + 2, taken)), columns)
    return LoadBar(text[:place], signs.limit, text[place + 1 :])


def factor_text(load: float) -> str:
    """``2.2x``: how many times the limit. Near the limit two digits follow the point, as they decide."""
    if load > _MOST:
        return f">{_MOST:.0f}x"
    digits = 2 if 0.9 <= load < 1.1 else 1 if load < 100 else 0
    return f"{load:.{digits}f}x"
