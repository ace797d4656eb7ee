"""Tones of text: names for what a piece means, in the colours of the theme.

Component classes would do the same; resolving fifteen of them for every widget cost half of the time to the first
picture, so the theme's variables are read once for all.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.color import Color

_BOLD = Style(bold=True)
_VARIABLES: dict[str, tuple[str, str | None, Style | None]] = {
    "plain": ("foreground", None, None),
    "title": ("foreground", None, _BOLD),
    "quiet": ("foreground-muted", None, None),
    "good": ("text-success", None, None),
    "warning": ("text-warning", None, None),
    "bad": ("text-error", None, _BOLD),
    "accent": ("text-primary", None, _BOLD),
    "cursor": ("block-cursor-foreground", "block-cursor-background", _BOLD),
    "struck": ("foreground-muted", None, Style(strike=True)),
    "one": ("primary", None, None),
    "two": ("success", None, None),
    "three": ("warning", None, None),
    "four": ("error", None, None),
    "five": ("accent", None, None),
    "rest": ("foreground-muted", None, None),
    "ground": ("foreground-muted", "surface", None),
}
"""For each tone the theme's variables for its colour and its background, and how it is set."""
_RED, _GREEN, _YELLOW = ("#aa0000", "#ff5555"), ("#00aa00", "#55ff55"), ("#aa5500", "#ffff55")
_BLUE, _MAGENTA, _CYAN = ("#0000aa", "#5555ff"), ("#aa00aa", "#ff55ff"), ("#00aaaa", "#55ffff")
_SIXTEEN = {
    "good": _GREEN,
    "warning": _YELLOW,
    "bad": _RED,
    "accent": _CYAN,
    "one": _BLUE,
    "two": _CYAN,
    "three": _YELLOW,
    "four": _MAGENTA,
    "five": _GREEN,
    "third side": _CYAN,
    "fourth side": _MAGENTA,
}
"""Colours of a terminal that has 16, on a light ground and on a dark one. Of a theme's, the nearest is often grey."""
_SIDES = ("third side", "fourth side")
_TAKEN = ("one", "three", "good", "bad")
_FREE = (
    ("#00797d", "#56d4dd"),
    ("#7a3fb8", "#b392f0"),
    ("#b0307f", "#f472b6"),
    ("#5c7a00", "#b8d432"),
    ("#1f5fbf", "#5b9bff"),
)
"""Colours for `_SIDES`, grounds as above: all that a theme has left are those of better and worse.

Two of them are taken, whose hues are the furthest from those of `_TAKEN` in the theme.
"""


def tones_on(ground: Style, variables: Mapping[str, str], *, sixteen: bool = False) -> dict[str, Style]:
    """The style of every tone on a widget whose own style is `ground`, in the colours of a theme where it has any.

    On a terminal of `sixteen` colours those of the terminal, the bright ones on a dark ground.
    """
    behind = _color(variables.get("background", "#000000"), Color(0, 0, 0))
    if ground.bgcolor is not None and ground.bgcolor.triplet is not None:
        behind = Color(*ground.bgcolor.triplet)
    tones = {tone: _style(ground, behind, variables, *wanted) for tone, wanted in _VARIABLES.items()}
    dark = behind.brightness < 0.5
    taken = [tones[tone] for tone in _TAKEN]
    for tone in _SIDES:
        free = [ground + Style(color=colors[dark]) for colors in _FREE]
        tones[tone] = max(free, key=lambda style: min(_hues_apart(style, other) for other in taken))
        taken.append(tones[tone])
    if sixteen:
        tones |= {tone: tones[tone] + Style(color=colors[dark]) for tone, colors in _SIXTEEN.items()}
    return tones


def _hues_apart(one: Style, other: Style) -> float:
    """How far apart the hues of two foregrounds are, as a part of the circle; 0.5 at most."""
    between = abs(_hue(one) - _hue(other))
    return min(between, 1 - between)


def _hue(style: Style) -> float:
    return Color.from_rich_color(style.color).hsl.h


def _style(
    ground: Style, behind: Color, variables: Mapping[str, str], front: str, back: str | None, how: Style | None
) -> Style:
    under = behind if back is None else _color(variables.get(back, ""), behind)
    color = under + _color(variables.get(front, ""), _contrast(under))
    return ground + Style(color=color.rich_color, bgcolor=None if back is None else under.rich_color) + how


def _contrast(under: Color) -> Color:
    return under.get_contrast_text(0.87)


def _color(text: str, otherwise: Color) -> Color:
    """A theme's colour; ``auto`` ones, which depend on what is behind them, are `otherwise`."""
    if not text or text.startswith("auto"):
        return otherwise
    name, _, share = text.partition(" ")
    color = Color.parse(name)
    return color.multiply_alpha(float(share.rstrip("%")) / 100) if share.endswith("%") else color
