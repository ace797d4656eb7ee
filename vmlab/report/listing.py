"""Lists in plain text: of runs, of those that wait for their turn, of names, and of the cells to come."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vmlab.lab.process.measuring_runs import HostQueue
from vmlab.model.axes import axes_words, repeat_words
from vmlab.model.quantities import about_seconds, format_bytes
from vmlab.model.visible import visible_line, visible_values
from vmlab.report.words import plural
from vmlab.store.runs import RunSummary
from vmlab.system.text_width import UNCUT, WIDTH, all_exactly, left, shortened, widest, width_of

if TYPE_CHECKING:
    from vmlab.model.event_fields import CellToCome

_HEADINGS = ("RUN", "SIZE", "OUTCOME", "CELLS", "STARTED (UTC)")
_COMING = ("CELL", "AXES", "REPEAT", "AS PLANNED")
NONE_TO_COME = "no cell is to come; the running one stays as it is"
_LONGEST_TAGS = 16
"""Characters of the names of a run, where lines are cut."""


def runs_text(runs: Sequence[RunSummary], width: int = WIDTH, disk: Mapping[str, int] | None = None) -> str:
    """One line for each run, the newest first, where lines are cut with its note below; errors of unreadable stores
    are at the end.

    `disk` is what each run takes on the disk, in bytes by its id.
    """
    taken = [] if disk is None else ["ON DISK", *(format_bytes(disk[run.id]) for run in runs)]
    rows = [_HEADINGS, *(_row(run) for run in runs)]
    if taken:
        rows = [(*row, size) for row, size in zip(rows, taken, strict=True)]
    if any(run.tags for run in runs):
        rows = [(*row, tags) for row, tags in zip(rows, _tags(runs, width), strict=True)]
    notes = [visible_line(run.note) for run in runs]
    if any(notes) and width == UNCUT:
        rows = [(*row, note) for row, note in zip(rows, ["NOTE", *notes], strict=True)]
        notes = []
    lines = _in_columns(rows, width)
    # Beside the other columns a terminal has no room for it.
    for place in reversed([place for place, note in enumerate(notes, 2) if note]):
        lines.insert(place, shortened(f"  {notes[place - 2]}", width))
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
    return ["NAME", *(shortened(visible_line(", ".join(run.tags)), longest) for run in runs)]


def _in_columns(rows: Sequence[Sequence[str]], width: int = UNCUT) -> list[str]:
    """A line for each row, of which the first text is cut where they are wider than `width`."""
    columns = [*zip(*rows, strict=True)]
    widths = [*map(widest, columns)]
    widths[0] = min(widths[0], width - sum(widths[1:]) - 2 * (len(widths) - 1))
    filled = map(all_exactly, columns, widths)
    return ["  ".join(line).rstrip() for line in zip(*filled, strict=True)]


def names_text(entries: Sequence[tuple[str, str]], width: int = WIDTH) -> str:
    """A line for each name with what it is, cut off at `width`."""
    entries = visible_values(list(entries))
    longest = max((width_of(name) for name, _ in entries), default=0)
    return "\n".join(shortened(f"{left(name, longest)}  {what}".rstrip(), width) for name, what in entries) + "\n"


def begins_words(seconds: float | None) -> str:
    """When a run begins that waits, as an estimate."""
    if seconds is None:
        return "begins at an unknown time"
    return f"begins in {about_seconds(seconds)}" if seconds else "begins as soon as what is before it has ended"


def queue_lines(queue: HostQueue) -> list[str]:
    """A line for each run that waits, the next one first."""
    waiting = enumerate(queue.waiting, 1)
    return [visible_line(f"waiting: {place}. {one}, {begins_words(queue.begins(place))}") for place, one in waiting]


def queue_title(queue: HostQueue) -> str:
    """How many wait, for a list's title; empty where none does."""
    count = len(queue.waiting)
    if not count:
        return ""
    return (
        f"{count} {'waits for its' if count == 1 else 'wait for their'} turn, the first {begins_words(queue.begins(1))}"
    )


def coming_rows(cells: Sequence[CellToCome]) -> list[str]:
    """A heading, and a line for each cell: its number, axes and repeat, and whether it is as planned."""
    rows = ((str(one["cell"]), _axes(one), repeat_words(one["repeat"]), _planned(one)) for one in cells)
    return _in_columns([_COMING, *rows])


def coming_text(cells: Sequence[CellToCome]) -> str:
    """The list as lines of text; one line where it is empty."""
    return "\n".join(coming_rows(cells)) if cells else NONE_TO_COME


def changed_words(cells: Sequence[CellToCome], number: int | None = None) -> str:
    """What is to come after a change, of all cells or of the one with this number, as a sentence."""
    going = [one for one in cells if one["state"] != "skipped"]
    following = f", the next with {_axes(going[0])}" if going else ""
    told = f"{plural(len(going), 'cell')} to come{following}; the running cell stays as it is"
    for one in cells:
        if one["cell"] == number:
            return f"cell {number} {'is skipped' if one['state'] == 'skipped' else f'has {_axes(one)}'}; {told}"
    return told


def _axes(one: CellToCome) -> str:
    return axes_words(one["axes"])


def _planned(one: CellToCome) -> str:
    if one["state"] != "changed":
        return "yes" if one["state"] == "planned" else str(one["state"])
    before = {name: value for name, value in one["planned"].items() if one["axes"].get(name) != value}
    return f"no: {axes_words(before)} was planned" if before else "no"
