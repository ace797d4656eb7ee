"""Lists of runs and of scenarios in plain text."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from vmlab.model.quantities import format_bytes
from vmlab.model.visible import visible_line, visible_values
from vmlab.report.writers.text import UNCUT, WIDTH, shorten
from vmlab.store.runs import RunSummary
from vmlab.system.text_width import exactly, left, width_of

_HEADINGS = ("RUN", "SIZE", "OUTCOME", "CELLS", "STARTED (UTC)")
_LONGEST_TAGS = 16
"""Characters of the names of a run, where lines are cut."""


def runs_text(runs: Sequence[RunSummary], width: int = WIDTH, disk: Mapping[str, int] | None = None) -> str:
    """One line for each run, the newest first; errors of unreadable stores are below.

    `disk` is what each run takes on the disk, in bytes by its id.
    """
    taken = [] if disk is None else ["ON DISK", *(format_bytes(disk[run.id]) for run in runs)]
    rows = [_HEADINGS, *(_row(run) for run in runs)]
    if taken:
        rows = [(*row, size) for row, size in zip(rows, taken, strict=True)]
    if any(run.tags for run in runs):
        rows = [(*row, tags) for row, tags in zip(rows, _tags(runs, width), strict=True)]
    widths = [max(width_of(row[place]) for row in rows) for place in range(len(rows[0]))]
    widths[0] = min(widths[0], width - sum(widths[1:]) - 2 * (len(widths) - 1))
    lines = [_line(row, widths) for row in rows]
    lines += [visible_line(run.problem) for run in runs if run.problem and run.runner_pid is None]
    return "\n".join(lines) + "\n"


def _row(run: RunSummary) -> tuple[str, ...]:
    started = "-" if run.started is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(run.started))
    size = f"{run.size}, control" if run.control else run.size
    outcome = f"{run.outcome}, targets missed" if run.cells_missed else run.outcome
    return (visible_line(run.id), visible_line(size) or "-", visible_line(outcome), run.cells, started)


def _tags(runs: Sequence[RunSummary], width: int) -> list[str]:
    """The column with the names that users gave to runs."""
    longest = UNCUT if width == UNCUT else _LONGEST_TAGS
    return ["NAME", *(shorten(visible_line(", ".join(run.tags)), longest) for run in runs)]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(exactly(text, size) for text, size in zip(row, widths, strict=True)).rstrip()


def names_text(entries: Sequence[tuple[str, str]], width: int = WIDTH) -> str:
    """A line for each name with what it is, cut off at `width`."""
    entries = visible_values(list(entries))
    longest = max((width_of(name) for name, _ in entries), default=0)
    return "\n".join(shorten(f"{left(name, longest)}  {what}".rstrip(), width) for name, what in entries) + "\n"
