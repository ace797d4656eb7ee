"""The yardsticks of cells in words, and what a comparison makes of them."""

from __future__ import annotations

from collections.abc import Sequence

from vmlab.analysis.notices import NOISE_NOTICES, Recognised
from vmlab.analysis.shape import CellDocument
from vmlab.analysis.yardstick import YardstickSpan, yardstick_of
from vmlab.report.words import number, plural

TAKEN_OUT = "without yardstick"
"""The heading of differences with the yardstick taken out."""
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
    said = {
        notice: (form.summary, one) for notice in notices for form in NOISE_NOTICES if (one := form.recognise(notice))
    }
    for summary in dict.fromkeys(form.summary for form in NOISE_NOTICES):
        folded = {notice: one for notice, (of, one) in said.items() if of == summary}
        if len(folded) < _LEAST_FOLDED:
            continue
        line = _folded(summary, list(folded.values()))
        at = notices.index(next(iter(folded)))
        notices = [*notices[:at], line, *(one for one in notices[at:] if one not in folded)]
    return list(notices)


def _folded(summary: str, found: Sequence[Recognised]) -> str:
    shares = [one.percent for one in found]
    among = f"{min(shares)} %" if min(shares) == max(shares) else f"{min(shares)} to {max(shares)} %"
    cells = plural(len({one.cell for one in found}), "cell")
    line = summary.format(among=among, cells=cells, limit=found[0].limit)
    return f"{line} ({plural(len(found), 'notice')}, all in `vmlab show --json`)"
