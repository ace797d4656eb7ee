"""How a figure is written for people, the same wherever it stands; `model/quantities.py` has the units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from vmlab.analysis.figures.figure import MISSING, Figure
from vmlab.model.quantities import Written, written
from vmlab.model.run import Outcome
from vmlab.report.words import MARK, NOT_MEASURED, number

INVALID = "(invalid)"
"""Stands behind a figure of invalid cells alone, which is struck through wherever that can be shown."""
UNDELIVERED = "(not delivered)"
"""The same of cells that did not get what was set."""
_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_BEHIND = "|".join(map(re.escape, (INVALID, UNDELIVERED)))
_STRUCK = re.compile(rf"(?<!\S)({_NUMBER}(?: ± {_NUMBER})?(?: [^\s()]+)?)(?= (?:{_BEHIND}))")


def form_of(unit: str, figures: Iterable[Figure]) -> Written:
    """How figures are written that stand under one heading and were measured in `unit`."""
    return written(unit, [figure.spread.mean for figure in figures if figure.spread])


def figure_text(figure: Figure, unit: str = "", form: Written | None = None, *, named: bool = False) -> str:
    """The mean with its half width, or the word for why there is none, of a figure that was measured in `unit`.

    It is written in the `form` of those under the same heading, or else in its own, whose unit stands behind it where
    it is `named`. A figure of invalid cells alone has the word for that, and one from which repeats are left out a
    mark.
    """
    spread = figure.spread
    if spread is None:
        return NOT_MEASURED if figure.state == MISSING else figure.state
    form = form or (form_of(unit, [figure]) if named else written(unit))
    half = spread.half_width
    if unit == "1" and half is None and 0 < abs(spread.mean) <= 1:
        # An index from 0 to 1 needs more than two digits.
        text = f"{spread.mean:.4f}"
    else:
        text = spread_text(spread.mean * form.factor, None if half is None else half * form.factor)
    if named:
        text = f"{text} {form.unit}".rstrip()
    return doubted(text, figure)


def spread_text(mean: float, half: float | None = None) -> str:
    """``5.16 ± 0.09``: a mean in the unit in which it is written, with its half width where it has one.

    Both have as many digits after the point as the larger of them has by itself, and up to two more where the half
    width would be zero. What is too large or too small for that has an exponent.
    """
    if half is None:
        return number(mean)
    larger = number(max(abs(mean), half))
    if "e" in larger:
        return f"{number(mean)} ± {number(half)}"
    digits = len(larger.partition(".")[2])
    digits = next((more for more in range(digits, digits + 3) if round(half, more)), digits)
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def doubted(text: str, figure: Figure) -> str:
    """The `text` of a figure, behind it the word or the mark for what makes it doubtful."""
    if figure.state == Outcome.INVALID:
        return f"{text} {INVALID}"
    if figure.undelivered:
        return f"{text} {UNDELIVERED}"
    return f"{text} {MARK}" if is_marked(figure) else text


def is_marked(figure: Figure) -> bool:
    """Whether the mark stands behind it: not all of its cells count, and no word says more."""
    partial = figure.left_out > 0 or figure.state != Outcome.PASSED
    return partial and figure.state != Outcome.INVALID and not figure.undelivered


def mark_words(figures: Iterable[Figure]) -> Iterator[str]:
    """What the mark behind some of these `figures` means; nothing where none has it."""
    if any(one.spread and is_marked(one) for one in figures):
        yield f"{MARK} not all cells count"


def value_text(value: float | None, unit: str, outcome: str = Outcome.PASSED, form: Written | None = None) -> str:
    """One measured value of a cell that had this `outcome`, in its own form unless one is given.

    Whole counts have no digits after the point.
    """
    if value is None:
        return NOT_MEASURED
    factor = (form or written(unit, [value])).factor
    text = f"{value:.0f}" if unit == "1" and abs(value) < 1e15 and value == round(value) else number(value * factor)
    return f"{text} {INVALID}" if outcome == Outcome.INVALID else text


def value_words(value: float | None, unit: str) -> str:
    """``20.0 ms``: one value with the unit in which it is written."""
    return value_text(value, unit) if value is None else f"{value_text(value, unit)} {unit_word(unit, value)}".rstrip()


def unit_word(unit: str, value: float | None = None) -> str:
    """The unit in which a figure of this `value` is written that was measured in `unit`; empty for plain numbers."""
    return written(unit, [value]).unit


def with_unit(name: str, unit: str, form: Written | None = None) -> str:
    """``run time (s)``: a name with the unit in which figures are written that were measured in `unit`."""
    shown = (form or written(unit)).unit
    return f"{name} ({shown})" if shown else name


def struck_parts(text: str) -> list[str]:
    """`text` in parts, of which every second one is a figure to be struck through; together they are `text`."""
    return _STRUCK.split(text)
