"""Figures and values in words: the same everywhere in the reports."""

from __future__ import annotations

from datetime import datetime

from vmlab.analysis.figure import MISSING, Figure
from vmlab.model.run import AxisValue, Outcome

NOT_MEASURED = "-"
MARK = "!"
"""Stands beside a figure that is not to be taken at its word; the reason is told below the table."""


def number(value: float) -> str:
    """A figure with three or four digits, as one reads it in a column: ``0.0123``, ``1.23``, ``12.3``, ``1234``."""
    size = abs(value)
    if size >= 1000:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 or value == 0 else f"{value:.3g}"


def figure_text(figure: Figure) -> str:
    """The mean with its half width, or the word for why there is none; marked where repeats are left out."""
    if figure.spread is None:
        return NOT_MEASURED if figure.state == MISSING else figure.state
    text = number(figure.spread.mean)
    if figure.spread.half_width is not None:
        text += f" ± {number(figure.spread.half_width)}"
    doubtful = figure.state != Outcome.PASSED or figure.left_out > 0
    return f"{text} {MARK}" if doubtful else text


def difference_text(percent: float | None) -> str:
    """``-61.4 %``, or a dash where there is nothing to compare."""
    return NOT_MEASURED if percent is None else f"{percent:+.1f} %"


def ratio_text(value: float | None) -> str:
    """``0.996``, or a dash where there is nothing to compare."""
    return NOT_MEASURED if value is None else f"{value:.3f}"


def axis_word(value: AxisValue) -> str:
    """An axis value as YAML has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def plural(count: int, noun: str) -> str:
    """``1 tile``, ``3 tiles``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def moment(stamp: str | None) -> str:
    """A time of day of a document as ``2026-11-21 14:30 UTC``."""
    if stamp is None:
        return "at an unknown time"
    return datetime.fromisoformat(stamp).strftime("%Y-%m-%d %H:%M %Z")
