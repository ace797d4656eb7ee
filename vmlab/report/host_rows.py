"""What the host went through while the workloads ran, below the run times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vmlab.analysis.figure import Value, figure_of
from vmlab.analysis.intent import WORKLOADS
from vmlab.analysis.shape import CellDocument, RunDocument
from vmlab.model.units import format_bytes
from vmlab.report.grid import Column, grid
from vmlab.report.layout import Block, Layout, axis_title
from vmlab.report.words import NOT_MEASURED, axis_word, number

_ROWS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("CPU user %", "cpu_user_percent", number),
    ("CPU system %", "cpu_system_percent", number),
    ("CPU iowait %", "cpu_iowait_percent", number),
    ("disk await ms", "disk_await_ms", number),
    ("disk busy %", "disk_util_percent", number),
    ("disk read MB/s", "disk_read_bytes_per_second", lambda value: number(value / 1e6)),
    ("disk write MB/s", "disk_write_bytes_per_second", lambda value: number(value / 1e6)),
    ("memory used", "memory_used_bytes", format_bytes),
    ("memory cached", "memory_cached_bytes", format_bytes),
    ("KSM saved", "ksm_saved_bytes", format_bytes),
)


def host_lines(document: RunDocument, layout: Layout, block: Block, width: int) -> list[str]:
    """Means over the execute phase, in a column for each value of the axis that is varied; [] without samples."""
    axis = layout.columns if layout.columns not in (None, WORKLOADS) else layout.rows
    values = layout.column_values or layout.row_values
    groups = {axis_word(value): [c for c in block.cells if c["axes"].get(str(axis)) == value] for value in values}
    groups = groups or {"all cells": list(block.cells)}
    rows = [row for row in _ROWS if any(row[1] in cell["host"] for cell in block.cells)]
    if not rows:
        return []
    columns = [Column(name, [_text(cells, key, written) for _, key, written in rows]) for name, cells in groups.items()]
    labels = [label for label, _, _ in rows]
    return ["host, mean while the workloads ran", *grid(axis_title(document, axis), labels, columns, width)]


def _text(cells: Sequence[CellDocument], key: str, written: Callable[[float], str]) -> str:
    figure = figure_of(cells, mean_of(key))
    return written(figure.spread.mean) if figure.spread else NOT_MEASURED


def mean_of(key: str) -> Value:
    """A host figure's mean, from a cell's document; None where the cell has none."""

    def value(cell: CellDocument) -> float | None:
        aggregate = cell["host"].get(key)
        return aggregate["mean"] if aggregate else None

    return value
