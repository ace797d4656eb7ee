"""The yardsticks of cells in words, and what a comparison makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from vmlab.analysis.comparison.comparison import Comparison
from vmlab.analysis.notices import NOISE_NOTICES, Recognised
from vmlab.analysis.record.yardstick_spread import YardstickSpan, yardstick_of
from vmlab.analysis.shape import CellDocument
from vmlab.analysis.speed import SpeedSpan
from vmlab.report.words import LEAST_FOLDED, cells_words, folded, number, plural

TAKEN_OUT = "without yardstick"
"""The heading of differences with the yardstick taken out."""
AT_BEST = "at best speed"
"""The heading of differences with the CPUs' speed taken out."""
_ABOUT = re.compile(r"(?P<who>cell \d+|t\d+-[a-z0-9-]+): (?P<text>.*)", re.DOTALL)
"""A notice on a cell or a guest."""


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


def corrected_heading(comparison: Comparison) -> str:
    """The heading of the differences from which the host's speed is taken out (`Comparison.corrected`)."""
    return TAKEN_OUT if comparison.speed is None else AT_BEST


def corrected_how(comparison: Comparison) -> str:
    """The beginning of a sentence on these differences."""
    return "With the yardstick taken out" if comparison.speed is None else "At the CPUs' best speed"


def corrected_notes(comparison: Comparison) -> Iterator[str]:
    """How the host's speed is taken out of the differences, where it is."""
    if not any(any(comparison.corrected(row)) for row in comparison.rows):
        return
    if comparison.speed is not None:
        yield at_best_note(comparison.speed)
    elif comparison.yardstick is not None:
        yield taken_out_note(comparison.yardstick)


def at_best_note(span: SpeedSpan) -> str:
    """How the CPUs' speed is taken out of figures, and by how much it moved."""
    return (
        f"{AT_BEST}: the difference where each time is multiplied by, and each rate divided by, the CPUs' mean speed "
        "over the workload's own time, relative to their best in the run; in the cells compared they ran at "
        f"{span.mean:.0f} % on average, by cell {span.lowest:.0f} to {span.highest:.0f} %; what counts is the "
        "difference as it was measured"
    )


def short_notices(notices: Sequence[str]) -> list[str]:
    """A run's notices, those of which there are three or more of a kind as one line at the place of the first.

    A line on the host's noise has the number of cells and the range; one of another kind the cells or guests, and the
    range of each number.
    """
    said = {
        notice: (form.summary, one) for notice in notices for form in NOISE_NOTICES if (one := form.recognise(notice))
    }
    for summary in dict.fromkeys(form.summary for form in NOISE_NOTICES):
        those = {notice: one for notice, (of, one) in said.items() if of == summary}
        if len(those) < LEAST_FOLDED:
            continue
        line = _on_noise(summary, list(those.values()))
        at = notices.index(next(iter(those)))
        notices = [*notices[:at], line, *(one for one in notices[at:] if one not in those)]
    named = [(match["who"], match["text"]) if (match := _ABOUT.fullmatch(one)) else ("", one) for one in notices]
    return [
        ": ".join(filter(None, [_who(names), text])) + (f" {_all_notices(count)}" if count > 1 else "")
        for names, text, count in folded(named)
    ]


def _on_noise(summary: str, found: Sequence[Recognised]) -> str:
    shares = [one.percent for one in found]
    among = f"{min(shares)} %" if min(shares) == max(shares) else f"{min(shares)} to {max(shares)} %"
    cells = plural(len({one.cell for one in found}), "cell")
    return f"{summary.format(among=among, cells=cells, limit=found[0].limit)} {_all_notices(len(found))}"


def _who(names: Sequence[str]) -> str:
    cells = [int(name.removeprefix("cell ")) for name in names if name.startswith("cell ")]
    return cells_words(cells) if cells and len(cells) == len(names) else ", ".join(names)


def _all_notices(count: int) -> str:
    return f"({plural(count, 'notice')}, all in `vmlab show --json`)"
