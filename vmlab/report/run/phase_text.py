"""Where the time of a run went, in plain text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vmlab.analysis.record.phases import CellTime, RunTime, StepTime
from vmlab.model.axes import axes_words, repeat_words
from vmlab.model.run import Part
from vmlab.model.visible import visible_values
from vmlab.report.blocks import Block, Column, Notes, Section, Table
from vmlab.report.heading import behind_notes
from vmlab.report.words import NOT_MEASURED
from vmlab.report.writers.text import text_lines
from vmlab.system.text_width import WIDTH

_SUM = "sum"
_SHARE = "share"
_ALL = "all"
_SMALLEST = 0.005
"""Seconds between phases of which a table of hundredths shows nothing."""
_NOTHING = "the run has no cell yet"


def phases_text(time: RunTime, width: int = WIDTH) -> str:
    """Each cell's parts in seconds, and their sums. Of a single cell, its steps too."""
    time = visible_values(time)
    cells = time.cells
    if not cells:
        return f"{_NOTHING}\n"
    blocks: list[Block] = [Notes(list(_heading(time)), indent=""), Section("", [_parts(cells, time.parts)])]
    if len(cells) == 1:
        blocks += [Section("", [_steps(cells[0].steps)]), Section("", [Notes(list(_facts(cells[0])), indent="")])]
    return "\n".join(text_lines(blocks, width)) + "\n"


def _heading(time: RunTime) -> Iterator[str]:
    outside = f"{_seconds(time.outside_seconds)} s of them outside its cells"
    accelerators = [time.accelerator if cell.guests else None for cell in time.cells]
    yield from behind_notes(accelerators, time.ordered, "some of the cells")
    yield f"run {time.run}: {_seconds(time.seconds)} s, {outside}; seconds of each part of its cells:"


def _facts(cell: CellTime) -> Iterator[str]:
    yield f"cell {cell.cell} ({axes_words(cell.axes)}), {repeat_words(cell.repeat)}: {cell.outcome}"
    if cell.steps:
        yield "steps of one part may overlap; at: seconds after the beginning of the cell"


def _parts(cells: Sequence[CellTime], sums: Mapping[str, float]) -> Table:
    """Cells down, parts across; with several cells their sums and shares below."""
    rows = {str(cell.cell): {**cell.parts, _ALL: cell.seconds} for cell in cells}
    total = sum(sums.values())
    whole = {**sums, _ALL: total}
    if len(cells) > 1:
        rows[_SUM] = whole
    columns = [
        Column(name, [*(_seconds(row.get(name)) for row in rows.values()), _share(seconds, total)])
        for name, seconds in whole.items()
        if name != Part.OTHER or seconds >= _SMALLEST
    ]
    return Table("cell", [*rows, _SHARE], columns)


def _share(seconds: float, total: float) -> str:
    return f"{100 * seconds / total:.0f} %" if total > 0 else NOT_MEASURED


def _steps(steps: Sequence[StepTime]) -> Table:
    columns = [
        Column("step", [step.step for step in steps], beside=True),
        Column("tile", [str(step.tile) if step.tile else "" for step in steps], beside=True),
        Column("place", [step.place for step in steps], beside=True),
        Column("at", [_seconds(step.began) for step in steps], beside=True),
        Column("s", [_seconds(step.seconds) for step in steps], beside=True),
    ]
    return Table("part", [step.part for step in steps], columns)


def _seconds(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.2f}"
