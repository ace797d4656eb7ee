"""The colours that mean something, for console and report alike: a hue has one meaning.

Green, amber and red are for what is good, near a limit, or beyond it, and for nothing else. Series have the other hues,
which people with any common kind of colour blindness tell apart by their lightness too; signs, dashes and hatches
differ as well.
"""

from __future__ import annotations

from typing import NamedTuple


class Hue(NamedTuple):
    """One colour on a light ground and on a dark one; `few` are the same on a terminal of 16 colours."""

    light: str
    dark: str
    few: tuple[str, str]


BLUE = Hue("#0a62b5", "#5aaef2", ("#0000aa", "#5555ff"))
TEAL = Hue("#00777a", "#2fc6c0", ("#00aaaa", "#55ffff"))
PURPLE = Hue("#7440b8", "#b393f3", ("#aa00aa", "#ff55ff"))
PINK = Hue("#a82f86", "#f08ed2", ("#000000", "#ffffff"))
SLATE = Hue("#51606f", "#a3b1bf", ("#aa00aa", "#aa00aa"))
SKY = Hue("#2d7fa6", "#8fd0ee", ("#0000aa", "#5555ff"))
GREY = Hue("#6b6b6b", "#b4b4b4", ("#555555", "#aaaaaa"))
GOOD = Hue("#1c7a35", "#62d27c", ("#00aa00", "#55ff55"))
NEAR = Hue("#8a5700", "#ffb54a", ("#aa5500", "#ffff55"))
BEYOND = Hue("#b3202f", "#ff7d88", ("#aa0000", "#ff5555"))
SERIES = (BLUE, PURPLE, TEAL, PINK, SLATE, SKY, GREY)
"""Those of lines and areas, in order of use."""
