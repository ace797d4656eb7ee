"""The rows of a comparison in words: the same in text, on the page, in Markdown and on the console's screen."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from vmlab.analysis.comparison.comparison import Comparison, Row
from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.figures.figure import WALL_SECONDS, Figure
from vmlab.analysis.tiles.tile_index import TILE_INDEX
from vmlab.model.axes import axes_words
from vmlab.model.run import RUN_TIME, AxisValue
from vmlab.report.figures import figure_text, form_of


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One figure on every side, the baseline first, at a place of the axes.

    `differences` are those of every candidate, as are those `at_best_speed` of the CPUs, None where
    these are not known.
    """

    axes: Mapping[str, AxisValue]
    name: str
    unit: str
    figures: tuple[str, ...]
    differences: tuple[Difference, ...]
    at_best_speed: tuple[Difference | None, ...]

    @property
    def place(self) -> str:
        """``cache none, tiles 1``; empty where there are no axes."""
        return axes_words(self.axes) if self.axes else ""

    @property
    def label(self) -> str:
        """``web (s)``: the name with the unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


def compared_rows(comparison: Comparison, metrics: Collection[str] = ()) -> list[ComparedRow]:
    """The rows in order; only those of `metrics`, or all. A figure has one unit at all places."""
    rows = [row for row in comparison.rows if not metrics or row.metric in metrics]
    alike: dict[tuple[str, str], list[Figure]] = {}
    for row in rows:
        alike.setdefault(_written_alike(row), []).extend(row.figures)
    forms = {key: form_of(key[1], figures) for key, figures in alike.items()}
    return [
        ComparedRow(
            axes=row.axes,
            name=row_name(row),
            unit=forms[_written_alike(row)].unit,
            figures=tuple(figure_text(figure, _unit(row), forms[_written_alike(row)]) for figure in row.figures),
            differences=row.differences,
            at_best_speed=row.at_best_speed,
        )
        for row in rows
    ]


def _written_alike(row: Row) -> tuple[str, str]:
    """The name of what is written in one form, and its unit: all run times, or one other figure."""
    return "" if row.metric in (RUN_TIME, WALL_SECONDS) else row_name(row), row.unit


def _unit(row: Row) -> str:
    """The unit that tells how the row is written. A tile index counts tiles, and is no share of anything."""
    return "" if row.metric == TILE_INDEX else row.unit


def row_name(row: Row) -> str:
    """``web`` for its run time, ``web latency_p95`` for another figure, as conditions of a gate name it."""
    return row.workload if row.metric in (RUN_TIME, WALL_SECONDS, TILE_INDEX) else f"{row.workload} {row.metric}"
