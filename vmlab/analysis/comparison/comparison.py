"""What a comparison of runs is: its rows, their differences, and the document ``vmlab.compare/2``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from vmlab.analysis.comparison.conditions import Differing
from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.comparison.gate import Answer
from vmlab.analysis.comparison.noise import Noise
from vmlab.analysis.figures.figure import WALL_SECONDS, Figure
from vmlab.analysis.speed_spans import SpeedSpan
from vmlab.analysis.tiles.tile_index import TILE_INDEX, Indexed
from vmlab.model.jsonable import jsonable
from vmlab.model.results import NeighbourUse
from vmlab.model.run import RUN_TIME, AxisValue

SCHEMA = "vmlab.compare/2"
INDEX = "tile index"
"""What stands in place of a workload in rows of it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure on every side, the baseline first; `axes` are the axis values common to all sides, {} for single
    cells. `differences` are those of every candidate from the baseline.

    `at_best_speed` are those of `figures_at_best_speed`, in which the CPUs' speed is taken out; None where a cell that
    counts has no trace, for kinds that do not follow it, and for what is neither a time nor a rate. A `fixed` row is a
    time that the scenario sets, which is no result: documents have it, and tables do not.
    """

    axes: dict[str, AxisValue]
    workload: str
    metric: str
    unit: str
    figures: tuple[Figure, ...]
    more_is_better: bool | None = None
    differences: tuple[Difference, ...] = ()
    figures_at_best_speed: tuple[Figure, ...] = ()
    at_best_speed: tuple[Difference | None, ...] = ()
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """The labels of the sides, the baseline first, the rows, and one line for everything that makes it doubtful.

    `differs` are those of the warnings that are conditions in which the sides differ. `workloads` are those of all
    cells, also without any figure. `alone` has the axes of each place at which a side has no cell, with the labels of
    these sides. `gate` has the answers of the conditions that a user set (`judging`). `indexed` are the places that
    have a tile index. `speed` is that of the CPUs in these cells; None unless it was traced in each.
    `bound` has for each side the resources that were at their limit, one for each of its cells of which that is known.
    `neighbours` has for each side what each guest of the host's own took, the mean of the side's cells of which that is
    known, and None where it is of none.
    `asked` are the metrics that the baseline's scenario asks for: the answer is about them.
    `ordered` has the words for parts of a host that were not its own, on any side, and `accelerators` are those of the
    guests of each run that is compared, None for a run in which only the host worked. `timed` has the throughput of
    each workload of fixed duration, and the total wall clock where all workloads are of one; their times are `fixed`
    rows, which no table has.
    """

    labels: tuple[str, ...]
    rows: tuple[Row, ...]
    warnings: tuple[str, ...]
    differs: tuple[Differing, ...] = ()
    noise: Noise | None = None
    workloads: tuple[str, ...] = ()
    alone: tuple[tuple[dict[str, AxisValue], tuple[str, ...]], ...] = ()
    gate: tuple[Answer, ...] = ()
    indexed: tuple[Indexed, ...] = ()
    speed: SpeedSpan | None = None
    ordered: tuple[str, ...] = ()
    accelerators: tuple[str | None, ...] = ()
    bound: tuple[tuple[str, ...], ...] = ()
    neighbours: tuple[tuple[NeighbourUse, ...] | None, ...] = ()
    asked: tuple[str, ...] = (RUN_TIME, WALL_SECONDS)
    timed: Mapping[str, str] = field(default_factory=dict)
    fixed: tuple[Row, ...] = ()

    def told(self, metrics: Collection[str] = ()) -> list[Row]:
        """The rows that people are shown, of `metrics` or all; the tile index is for documents and gates alone."""
        return [row for row in self.rows if row.metric != TILE_INDEX and (not metrics or row.metric in metrics)]

    def to_json(self) -> dict[str, Any]:
        """The document ``vmlab.compare/2``."""
        return {
            "schema": SCHEMA,
            "baseline": self.labels[0],
            "candidates": list(self.labels[1:]),
            "warnings": list(self.warnings),
            "ordered": list(self.ordered),
            "accelerators": [name for name in dict.fromkeys(self.accelerators) if name],
            "noise": self.noise.to_json() if self.noise else None,
            "differs": [one.to_json() for one in self.differs],
            "neighbours": [
                {"side": label, "neighbours": None if uses is None else [jsonable(one) for one in uses]}
                for label, uses in zip(self.labels, self.neighbours, strict=False)
            ],
            "yardstick": None,
            "speed": self.speed.to_json() if self.speed else None,
            "rows": [*(_row_json(row) for row in self.rows), *(_row_json(row) for row in self.fixed)],
            "gate": [answer.to_json() for answer in self.gate],
            "tile_index": [one.to_json() for one in self.indexed],
        }


def _row_json(row: Row) -> dict[str, Any]:
    baseline, *candidates = (figure.to_json() for figure in row.figures)
    for candidate, found, at_best in zip(candidates, row.differences, row.at_best_speed, strict=True):
        candidate["difference"] = found.to_json()
        candidate["without_yardstick"] = None
        candidate["at_best_speed"] = at_best.to_json() if at_best else None
    return {
        "axes": row.axes,
        "workload": row.workload,
        "metric": row.metric,
        "unit": row.unit,
        "more_is_better": row.more_is_better,
        "fixed": row.fixed,
        "baseline": baseline,
        "candidates": candidates,
    }
