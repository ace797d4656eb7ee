"""Signs for states and bars, in Unicode and in plain ASCII."""

from __future__ import annotations

import codecs
import locale
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vmlab.system.text_width import width_of

_STATES = {
    "running": ("●", "*", "good"),
    "passed": ("✓", "+", "good"),
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

    def bar(self, fraction: float, width: int) -> tuple[str, str]:
        """A progress bar of `width` characters: what is done, and the rest."""
        share = max(0.0, min(1.0, fraction))
        if self.plain:
            done = int(share * width)
            return "#" * done, "." * (width - done)
        whole, rest = divmod(round(share * width * 8), 8)
        done_text = "█" * whole + _EIGHTHS[rest]
        return done_text, "░" * (width - len(done_text))

    def spark(self, values: Sequence[float], top: float) -> str:
        """A small chart of one row, a character for each value from 0 to `top`; blank where there is none."""
        steps = _PLAIN_SPARK if self.plain else _SPARK
        last = len(steps) - 1
        return "".join(
            " " if value != value else steps[min(last, max(0, math.ceil(value / top * last - 0.01)))]
            for value in values
        )

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
