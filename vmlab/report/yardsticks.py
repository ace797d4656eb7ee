"""The yardsticks of cells in words, and what a comparison makes of them."""

from __future__ import annotations

from collections.abc import Sequence

from vmlab.analysis.shape import CellDocument
from vmlab.analysis.yardstick import YardstickSpan, yardstick_of
from vmlab.report.words import number

TAKEN_OUT = "without yardstick"
"""The heading of differences with the yardstick taken out."""


def yardstick_words(cell: CellDocument) -> str | None:
    """``yardstick 0.312 s before, 0.315 s after the cell: 0.96 % apart``; None where it was not measured."""
    taken = cell["yardstick"]
    if taken is None:
        return None
    readings = {"before": taken["before"], "after": taken["after"]}
    times = [f"{one['seconds']:.3f} s {when}" for when, one in readings.items() if one is not None]
    moved = taken["moved_percent"]
    return f"yardstick {', '.join(times)} the cell" + ("" if moved is None else f": {number(moved)} % apart")


def yardsticks_note(cells: Sequence[CellDocument]) -> str | None:
    """The yardstick of each cell by its number, on one line; None where no cell has one."""
    known = [(cell["cell"], one) for cell in cells if (one := yardstick_of(cell)) is not None]
    if not known:
        return None
    words = ", ".join(f"{cell}: {one:.3f}" for cell, one in known)
    return f"yardstick in s by the number of the cell, mean of before and after it: {words}"


def taken_out_note(span: YardstickSpan) -> str:
    """How the yardstick is taken out of figures, and by how much it moved."""
    ends = f"{span.shortest:.3f} to {span.longest:.3f} s, median {span.median:.3f} s"
    return (
        f"{TAKEN_OUT}: the difference where each time is divided by, and each rate multiplied by, its cell's yardstick "
        "(the mean of before and after) relative to the median of the cells compared; yardsticks took "
        f"{ends}; what counts is the difference as it was measured"
    )
