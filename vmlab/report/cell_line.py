"""A cell that has ended in one line: its number, its axis values, its times, its outcome, and what disturbed it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmlab.analysis.record.cell_timeline import CellTimeline, WorkloadTimeline
from vmlab.model.axes import axis_word
from vmlab.model.grouping import grouped
from vmlab.model.run import DONE, WARM_UP, Outcome
from vmlab.report.run.notice_text import brief_notice
from vmlab.report.words import MARK, NOT_MEASURED
from vmlab.report.writers.text import paragraph
from vmlab.system.text_width import WIDTH, left, shortened, width_of

_GAP = "  "


class CellLines:
    """The lines of a run's cells, in columns that are as wide as was needed until now."""

    def __init__(self) -> None:
        self._widths: dict[str, int] = {}

    def lines(
        self, cell: CellTimeline, planned: int, notices: Sequence[str] = (), again_of: int = 0, width: int = WIDTH
    ) -> list[str]:
        """The line of a cell, one of `planned`; below it in full why it did not pass, if that does not fit behind it.

        `notices` are the run's about this cell, and `again_of` is the cell that it measures again.
        """
        head, tail = self._head(cell, planned), f"{cell.told.outcome}{_kind_of(cell, again_of)}"
        passed = cell.told.outcome == Outcome.PASSED
        notes = list(dict.fromkeys(map(brief_notice, notices))) if passed else []
        room = width - width_of(head) - len(_GAP) - width_of(tail)
        line = _GAP.join([head, *self._times(cell, room - width_of(_behind(notes[:1]))), tail])
        if passed:
            return [_noted(line, notes, width)]
        reasons = list(dict.fromkeys(cell.told.reasons))
        behind = f"{line}{_behind(reasons)}"
        if width_of(behind) <= width:
            return [behind]
        return [line, *(one for text in reasons for one in paragraph(f"  {MARK} {text}", width, "    "))]

    def _head(self, cell: CellTimeline, planned: int) -> str:
        count = f"{cell.told.cell:>{len(str(planned))}}/{planned}" if planned else str(cell.told.cell)
        values = [self._padded(name, text) for name, text in _values(cell)]
        wall = cell.told.wall_seconds
        took = self._padded(" ", NOT_MEASURED if wall is None else f"{seconds_word(wall)} s", to_the_right=True)
        return _GAP.join([count, *values, took])

    def _padded(self, column: str, text: str, *, to_the_right: bool = False) -> str:
        width = self._widths[column] = max(self._widths.get(column, 0), width_of(text))
        return f"{' ' * (width - width_of(text))}{text}" if to_the_right else left(text, width)

    def _times(self, cell: CellTimeline, room: int) -> Iterator[str]:
        """Each workload's time, as many as fit into `room`."""
        by_name = grouped((name, workload) for (_, name), workload in sorted(cell.workloads.items()))
        for place, (name, those) in enumerate(by_name.items()):
            text = self._padded(f"time {name}", f"{name} {_time_of(those)}")
            rest = len(by_name) - place
            room -= width_of(text) + len(_GAP)
            if room < (4 if rest > 1 else 0):
                yield f"+{rest}"
                return
            yield text


def _behind(notes: Sequence[str]) -> str:
    return f"{_GAP}{MARK} {'; '.join(notes)}" if notes else ""


def _noted(line: str, notes: Sequence[str], width: int) -> str:
    """The line of a cell that passed with as many of `notes` as fit, and the number of the others."""
    for count in range(len(notes), 0, -1):
        rest = [f"+{len(notes) - count}"] if count < len(notes) else []
        noted = f"{line}{_behind([*notes[:count], *rest])}"
        if width_of(noted) <= width or count == 1:
            return shortened(noted, width)
    return line


def _values(cell: CellTimeline) -> Iterator[tuple[str, str]]:
    """The host of a fleet and the axis values, by name; a number or a boolean has the name of its axis before it."""
    axes = cell.told.axes
    if cell.host and cell.host not in axes.values():
        yield "host", cell.host
    for name, value in axes.items():
        yield f"axis {name}", value if isinstance(value, str) else f"{name} {axis_word(value)}"


def _kind_of(cell: CellTimeline, again_of: int) -> str:
    """What a cell is, if it is no plain one."""
    if cell.told.repeat == WARM_UP:
        return " (warm-up)"
    return f" (cell {again_of} again)" if again_of else ""


def _time_of(those: Sequence[WorkloadTimeline]) -> str:
    """How long a workload took, of several tiles the least and the most; its outcome where it did not complete."""
    ends = [one.end for one in those if one.end is not None]
    bad = next((end.outcome for end in ends if end.outcome not in (Outcome.PASSED, DONE)), None)
    if bad is not None or not ends:
        return str(bad or NOT_MEASURED)
    seconds = [end.seconds for end in ends]
    return "-".join(dict.fromkeys(seconds_word(end) for end in (min(seconds), max(seconds))))


def seconds_word(seconds: float) -> str:
    """``7.4``, ``112``, ``0.031``: seconds as one compares them down a column."""
    return f"{seconds:.0f}" if seconds >= 100 else f"{seconds:.1f}" if seconds >= 1 else f"{seconds:.2g}"
