"""Scales of charts and figures in few characters; the unit stands once, beside the chart's title."""

from __future__ import annotations

import math
from typing import NamedTuple

_NICE = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
_SMALLEST_TOP = {"B": 2.0**20, "B/s": 1e6, "ms": 1.0, "%": 100.0}
NO_FIGURE = "\N{EN DASH}"


class Scale(NamedTuple):
    """A chart's upper end and the unit of its figures, such as ``GiB`` with 2**30 to one."""

    top: float
    unit: str
    one: float

    def text(self, value: float) -> str:
        """A figure in this scale's unit, four characters wide where it fits."""
        return short(value / self.one)


def scale_for(unit: str, largest: float, top: float | None = None) -> Scale:
    """The scale of a chart in `unit` (``%``, ``ms``, ``B``, ``B/s``) that shows `largest`; `top` fixes its end."""
    end = nice_top(max(largest, _SMALLEST_TOP.get(unit, 1.0)), binary=unit == "B") if top is None else top
    if unit == "B":
        return Scale(end, "GiB", 2.0**30) if end >= 2.0**30 else Scale(end, "MiB", 2.0**20)
    if unit == "B/s":
        return Scale(end, "MB/s", 1e6)
    return Scale(end, unit, 1.0)


def nice_top(value: float, *, binary: bool = False) -> float:
    """The next round number at or above `value`; for bytes a power of two, so that it is round in MiB and GiB."""
    if not math.isfinite(value) or value <= 0:
        return 1.0
    if binary:
        return float(2.0 ** math.ceil(math.log2(value)))
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in _NICE if step * power >= value * 0.999999), 10 * power)


def short(value: float) -> str:
    """A number in about three figures: ``0``, ``0.03``, ``4.7``, ``98``, ``1234``; a dash where there is none."""
    if math.isnan(value):
        return NO_FIGURE
    size = abs(value)
    if size >= 99.95 or value == 0:
        return f"{value:.0f}"
    if size >= 9.95:
        return f"{value:.1f}"
    return f"{value:.1f}" if size >= 0.995 else f"{value:.2f}"


def whole(value: float) -> str:
    """A number without a fraction; a dash where there is none."""
    return NO_FIGURE if math.isnan(value) else f"{value:.0f}"


def figure(value: float, unit: str, scale: Scale) -> str:
    """A figure as it stands in a chart's head: whole percents, counts with k and M, the rest in the scale's unit."""
    if unit == "%" or math.isnan(value):
        return whole(value)
    if unit == "pages":
        return count(value)
    return scale.text(value)


def count(value: float) -> str:
    """A count: ``812``, ``31.4k``, ``2.1M``."""
    for limit, one, letter in ((1e4, 1.0, ""), (1e6, 1e3, "k"), (1e9, 1e6, "M")):
        if abs(value) < limit:
            return f"{value / one:.0f}" if not letter else f"{value / one:.1f}{letter}"
    return f"{value / 1e9:.1f}G"


def clock(seconds: float) -> str:
    """A duration as a clock: ``0:08``, ``12:05``, ``1:02:03``; ``-:--`` for what is no number."""
    if not math.isfinite(seconds):
        return "-:--"
    whole = max(0, int(seconds))
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
