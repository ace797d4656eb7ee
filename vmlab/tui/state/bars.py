"""A comparison as bars: for each figure a bar a side, with the interval of its mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vmlab.analysis.comparison.comparison import Comparison, Row
from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.figures.figure import WALL_SECONDS
from vmlab.model.run import RUN_TIME
from vmlab.report.compared_rows import ComparedRow, compared_rows
from vmlab.report.verdicts import long_text

_IN_SECONDS = (RUN_TIME, WALL_SECONDS)


class Bar(NamedTuple):
    """One side of a figure: its `mean`, None where there is none, and the half width of its 95 % interval.

    `difference` is that from the baseline, in the tone `tone`: a colour only where it is proven. One that
    does not count is of cells that did not pass.
    """

    text: str
    mean: float | None = None
    half: float | None = None
    difference: str = ""
    tone: str = "quiet"
    counts: bool = True


class BarRow(NamedTuple):
    """A figure with its bars, which end at `top`; a heading has no bars."""

    label: str
    bars: tuple[Bar, ...] = ()
    top: float = 0.0


def bar_rows(comparison: Comparison, metrics: Sequence[str] = ()) -> tuple[BarRow, ...]:
    """The figures of `metrics`, or all; run times share one scale within a place, so that they compare by eye."""
    rows = [row for row in comparison.rows if not metrics or row.metric in metrics]
    found: list[BarRow] = []
    place = ""
    for row, told in zip(rows, compared_rows(comparison, metrics), strict=True):
        if told.place != place:
            place = told.place
            found.append(BarRow(place))
        beside = [one for one in rows if one.axes == row.axes and one.metric in _IN_SECONDS]
        tops = [_top(one) for one in (beside if row.metric in _IN_SECONDS else [row])]
        found.append(BarRow(told.label, tuple(_bars(row, told)), max(tops, default=0.0)))
    return tuple(found)


def _top(row: Row) -> float:
    spreads = [figure.spread for figure in row.figures if figure.spread]
    return max((abs(spread.mean) + (spread.half_width or 0.0) for spread in spreads), default=0.0)


def _bars(row: Row, told: ComparedRow) -> list[Bar]:
    differences: list[Difference | None] = [None, *row.differences]
    return [
        Bar(
            text,
            figure.spread.mean if figure.spread else None,
            figure.spread.half_width if figure.spread else None,
            "" if found is None else long_text(found),
            "quiet" if found is None or found.better is None else "good" if found.better else "bad",
            figure.comparable is not None,
        )
        for text, figure, found in zip(told.figures, row.figures, differences, strict=True)
    ]
