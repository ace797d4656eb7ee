"""Signs for states and bars, in Unicode and in plain ASCII, and tones: names for what a piece of text means.

Tones are the colours of the theme and of the palette. Component classes would do the same; resolving fifteen of them
for every widget cost half of the time to the first picture, so the theme's variables are read once for all.
"""

from __future__ import annotations

import codecs
import locale
import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.style import Style
from textual.color import Color

from vmlab.system.text_width import width_of
from vmlab.telemetry import palette
from vmlab.telemetry.palette import Hue

_STATES = {
    "running": ("●", "*", "good"),
    "passed": ("✓", "+", "good"),
    "incomplete": ("!", "!", "warning"),
    "invalid": ("!", "!", "warning"),
    "failed": ("✗", "x", "bad"),
    "aborted": ("■", "#", "bad"),
    "damaged": ("?", "?", "bad"),
    "created": ("◔", ".", "plain"),
    "booted": ("◑", "o", "plain"),
    "identified": ("◑", "o", "plain"),
    "connected": ("◕", "o", "plain"),
    "prepared": ("◕", "O", "plain"),
    "gone": ("○", "-", "quiet"),
}
"""A sign for each state and outcome, the same in ASCII, and a tone."""
_OTHER = ("·", ".", "plain")
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_SPARK = "▁▂▃▄▅▆▇█"
_PLAIN_SPARK = "_.-=+*#"


class Glyphs(NamedTuple):
    """The signs that the terminal can show. `plain` is True where only ASCII may be written."""

    plain: bool

    def sign(self, state: str) -> str:
        """One character for a state or an outcome."""
        return _STATES.get(state, _OTHER)[self.plain]

    def line(self, sign: str) -> str:
        """A sign that is a line from top to bottom."""
        return "|" if self.plain else sign

    def bar(self, fraction: float, width: int) -> tuple[str, str]:
        """A progress bar of `width` characters: what is done, and the rest."""
        share = max(0.0, min(1.0, fraction))
        if self.plain:
            done = int(share * width)
            return "#" * done, "." * (width - done)
        whole, rest = divmod(round(share * width * 8), 8)
        done_text = "█" * whole + _EIGHTHS[rest]
        return done_text, "░" * (width - len(done_text))

    def spark(self, values: Sequence[float], top: float, rows: int = 1) -> list[str]:
        """A small chart of so many `rows`, a character for each value from 0 to `top`; blank where there is none."""
        steps = _PLAIN_SPARK if self.plain else _SPARK
        last = len(steps) - 1
        most = rows * last
        levels = [-1 if v != v else min(most, max(0, math.ceil(v / top * most - 0.01))) for v in values]
        # The lowest row is there for all that is known, and so for 0.
        belows = ((row * last, row * last if row else -1) for row in range(rows - 1, -1, -1))
        return [
            "".join([" " if level <= least else steps[min(last, level - below)] for level in levels])
            for below, least in belows
        ]

    def ascii(self, text: str) -> str:
        """`text` as this terminal can show it, as wide as it was: a question mark for each column of a letter."""
        if not self.plain:
            return text
        told = text.translate(_TO_ASCII)
        return told if told.isascii() else "".join(sign if sign.isascii() else "?" * width_of(sign) for sign in told)


_FEW_SIGNS = re.compile(r"(linux|vt\d+|ansi|cons\d+|dumb)(-|\.|$)")
"""Kinds of terminals (``TERM``) whose fonts have neither braille nor most of our signs, whatever the locale is.

The Linux console has 256 or 512 characters, those of real terminals are older than Unicode.
"""
_TO_ASCII = str.maketrans("\N{EN DASH}\N{EM DASH}…·→←\N{MULTIPLICATION SIGN}±µ▸◂│─", "--~|><x+u><|-")


def tone_of(state: str) -> str:
    """The tone of a state or an outcome: ``good``, ``warning``, ``bad``, ``quiet`` or ``plain``."""
    return _STATES.get(state, _OTHER)[2]


def glyphs_for(environment: Mapping[str, str] = os.environ) -> Glyphs:
    """The signs for a terminal, by its kind and the locale of the environment; ``VMLAB_ASCII=1`` asks for ASCII."""
    if environment.get("VMLAB_ASCII") or _FEW_SIGNS.match(environment.get("TERM", "")):
        return Glyphs(plain=True)
    language = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "")
    encoding = language.partition(".")[2].partition("@")[0] or ("ascii" if language in ("", "C", "POSIX") else "")
    try:
        return Glyphs(plain=codecs.lookup(encoding or locale.getpreferredencoding(False)).name != "utf-8")
    except LookupError:
        return Glyphs(plain=True)


LEAST_CONTRAST = 4.5
"""Of a text to its ground: success criterion 1.4.3 of WCAG 2.1."""
_BOLD = Style(bold=True)
_VARIABLES: dict[str, tuple[str, str | None, Style | None]] = {
    "plain": ("foreground", None, None),
    "title": ("foreground", None, _BOLD),
    "quiet": ("foreground-muted", None, None),
    "accent": ("text-primary", None, _BOLD),
    "cursor": ("block-cursor-foreground", "block-cursor-background", _BOLD),
    "struck": ("foreground-muted", None, Style(strike=True)),
    "rest": ("foreground-muted", None, None),
    "ground": ("foreground-muted", "surface", None),
}
"""For each tone of the theme the variables for its colour and its background, and how it is set."""
_HUES: dict[str, tuple[Hue, Style | None]] = {
    "good": (palette.GOOD, None),
    "warning": (palette.NEAR, None),
    "bad": (palette.BEYOND, _BOLD),
    "one": (palette.BLUE, None),
    "two": (palette.TEAL, None),
    "three": (palette.PURPLE, None),
    "four": (palette.PINK, None),
    "five": (palette.SLATE, None),
}
"""The tones that mean the same in every theme."""
_FEW_ACCENT = ("#00aaaa", "#55ffff")
_STEPS = 20
_ENDS = (Color(0, 0, 0), Color(255, 255, 255))


def tones_on(ground: Style, variables: Mapping[str, str], *, sixteen: bool = False) -> dict[str, Style]:
    """The style of every tone on a widget whose own style is `ground`, each with `LEAST_CONTRAST` or more.

    On a terminal of `sixteen` colours those of the terminal, the bright ones on a dark ground.
    """
    behind = _color(variables.get("background", "#000000"), Color(0, 0, 0))
    if ground.bgcolor is not None and ground.bgcolor.triplet is not None:
        behind = Color(*ground.bgcolor.triplet)
    tones = {tone: _style(ground, behind, variables, *wanted) for tone, wanted in _VARIABLES.items()}
    dark = behind.brightness < 0.5
    for tone, (hue, how) in _HUES.items():
        color = legible(Color.parse(hue.dark if dark else hue.light), behind)
        tones[tone] = ground + Style(color=color.rich_color) + how
    if sixteen:
        few = {tone: hue.few for tone, (hue, _) in _HUES.items()} | {"accent": _FEW_ACCENT}
        tones |= {tone: tones[tone] + Style(color=colors[dark]) for tone, colors in few.items()}
    return tones


@lru_cache(maxsize=1024)
def legible(color: Color, behind: Color) -> Color:
    """`color`, as much lighter or darker as it takes to be read on `behind`; its hue stays."""
    end = max(_ENDS, key=lambda one: contrast(one, behind))
    steps = (color.blend(end, step / _STEPS, alpha=1.0) for step in range(_STEPS + 1))
    return next((one for one in steps if contrast(one, behind) >= LEAST_CONTRAST), end)


def contrast(one: Color, other: Color) -> float:
    """The contrast ratio of two colours, from 1 to 21, as WCAG 2.1 defines it."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: Color) -> float:
    parts = (part / 255 for part in color.rgb)
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _style(
    ground: Style, behind: Color, variables: Mapping[str, str], front: str, back: str | None, how: Style | None
) -> Style:
    under = behind if back is None else _color(variables.get(back, ""), behind)
    color = under + _color(variables.get(front, ""), under.get_contrast_text(0.87))
    bgcolor = None if back is None else under.rich_color
    return ground + Style(color=legible(color, under).rich_color, bgcolor=bgcolor) + how


def _color(text: str, otherwise: Color) -> Color:
    """A theme's colour; ``auto`` ones, which depend on what is behind them, are `otherwise`."""
    if not text or text.startswith("auto"):
        return otherwise
    name, _, share = text.partition(" ")
    color = Color.parse(name)
    return color.multiply_alpha(float(share.rstrip("%")) / 100) if share.endswith("%") else color
