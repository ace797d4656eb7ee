"""The cells to come of a run that goes on, as lines of text: the same on the command line and in the console."""

from __future__ import annotations

from collections.abc import Sequence

from vmlab.model.axes import axes_words, repeat_words
from vmlab.model.event_fields import CellToCome
from vmlab.report.words import plural
from vmlab.system.text_width import left, width_of

HEADINGS = ("CELL", "AXES", "REPEAT", "AS PLANNED")
NONE_TO_COME = "no cell is to come; the running one stays as it is"


def coming_rows(cells: Sequence[CellToCome]) -> list[str]:
    """A heading, and a line for each cell: its number, axes and repeat, and whether it is as planned."""
    rows = [HEADINGS, *((str(one["cell"]), _axes(one), repeat_words(one["repeat"]), _planned(one)) for one in cells)]
    widths = [max(width_of(row[place]) for row in rows) for place in range(len(HEADINGS))]
    return ["  ".join(left(text, size) for text, size in zip(row, widths, strict=True)).rstrip() for row in rows]


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
