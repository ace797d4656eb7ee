"""A comparison in plain text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from vmlab.analysis.compare import WALL_CLOCK, Comparison, Row
from vmlab.analysis.figure import RUN_TIME
from vmlab.report.grid import WIDTH, Column, grid, paragraph, shorten
from vmlab.report.heading import place_text
from vmlab.report.words import MARK, difference_text, figure_text

_LONGEST_NAME = 24


def comparison_table(comparison: Comparison, width: int = WIDTH) -> str:
    """A table for each place of the axes, differences in percent of the baseline, then everything that is doubtful."""
    names = _names(comparison.labels)
    lines: list[str] = []
    for name, label in zip(names, comparison.labels, strict=True):
        role = "baseline" if label == comparison.labels[0] else "candidate"
        lines += paragraph(f"{name}: {label}, {role}" if name != label else f"{label}: {role}", width, "  ")
    for axes, rows in groupby(comparison.rows, key=lambda row: row.axes):
        lines += ["", *([place_text(axes)] if axes else []), *_block(names, list(rows), width)]
    warnings = [line for text in comparison.warnings for line in paragraph(f"{MARK} {text}", width, "  ")]
    lines += ["", *warnings] if warnings else []
    return "\n".join(lines) + "\n"


def _names(labels: Sequence[str]) -> list[str]:
    """Headings of columns: the labels, or letters where these are too long to stand side by side."""
    if all(len(label) <= _LONGEST_NAME for label in labels):
        return list(labels)
    return [chr(ord("A") + place) if place < 26 else str(place + 1) for place in range(len(labels))]


def _block(names: Sequence[str], rows: Sequence[Row], width: int) -> list[str]:
    columns = [Column(names[0], [figure_text(row.figures[0]) for row in rows])]
    for place, name in enumerate(names[1:]):
        columns.append(Column(name, [figure_text(row.figures[place + 1]) for row in rows]))
        differences = [_difference(row, place) for row in rows]
        columns.append(Column("difference", differences, beside=True))
    return grid("figure", [_label(row) for row in rows], columns, width)


def _difference(row: Row, place: int) -> str:
    """The difference, with ``~`` before it where the confidence intervals of both sides overlap."""
    before, after = row.figures[0].comparable, row.figures[place + 1].comparable
    text = difference_text(row.differences[place])
    return f"~ {text}" if before and after and before.overlaps(after) else text


def _label(row: Row) -> str:
    name = row.workload if row.metric in (RUN_TIME, "wall_seconds") else f"{row.workload} {row.metric}"
    unit = "" if row.unit == "1" else f" ({row.unit})"
    return f"{shorten(name, 30 - len(unit))}{unit}" if row.workload != WALL_CLOCK else f"{WALL_CLOCK} (s)"
