"""The yardsticks of cells in words, and what a comparison makes of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vmlab.analysis.shape import CellDocument
from vmlab.analysis.yardstick import YardstickSpan, yardstick_of
from vmlab.report.words import number, plural

TAKEN_OUT = "without yardstick"
"""The heading of differences with the yardstick taken out."""
_NOISE = {
    "the host's speed, by the yardstick, moved by {among} around {cells}; 10 % is the limit": re.compile(
        r"cell (?P<cell>\d+): the yardstick took .*: the host's speed moved by (?P<percent>\d+) %; 10 % is the limit"
    ),
    "the host's other work took {among} of the CPUs while the workloads of {cells} ran": re.compile(
        r"cell (?P<cell>\d+): the host's other work took (?P<percent>\d+) % of the CPUs while the workloads ran"
    ),
}
"""Notices on noise as runs record them, by the line that takes the place of many."""
_LEAST_FOLDED = 3


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


def short_notices(notices: Sequence[str]) -> list[str]:
    """A run's notices with those on noise, of which there is one or more a cell, as one line of each kind.

    A line has the place of its first notice, the number of cells, and the range. One or two of a kind stay as they are.
    """
    for words, pattern in _NOISE.items():
        found = [match for one in notices if (match := pattern.fullmatch(one))]
        if len(found) < _LEAST_FOLDED:
            continue
        shares = [int(match["percent"]) for match in found]
        cells = plural(len({match["cell"] for match in found}), "cell")
        among = f"{min(shares)} %" if min(shares) == max(shares) else f"{min(shares)} to {max(shares)} %"
        line = f"{words.format(among=among, cells=cells)} ({plural(len(found), 'notice')}, all in `vmlab show --json`)"
        folded = {match.string for match in found}
        at = notices.index(found[0].string)
        notices = [*notices[:at], line, *(one for one in notices[at:] if one not in folded)]
    return list(notices)
