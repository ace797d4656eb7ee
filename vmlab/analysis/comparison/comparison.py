"""What a comparison of runs is: its rows, their differences, and the document ``vmlab.compare/2``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vmlab.analysis.comparison.conditions import Differing, differing
from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.comparison.gate import Answer
from vmlab.analysis.comparison.overall import OVERALL, Overall
from vmlab.analysis.figures.figure import WALL_SECONDS, Figure
from vmlab.analysis.shape import RunPart
from vmlab.analysis.speed_spans import SpeedSpan
from vmlab.analysis.tiles.throughput import TILE_INDEX, Indexed
from vmlab.model.jsonable import picked
from vmlab.model.results import NeighbourUse
from vmlab.model.run import RUN_TIME, AxisValue

SCHEMA = "vmlab.compare/2"
INDEX = "tile index"
"""What stands in place of a workload in rows of it."""
AT_BEST = "at best speed"
"""The label of rows in which the CPUs' speed is taken out."""
Key = tuple[str, str, str]
"""A workload (or the total wall clock), a metric, and the label of the row."""
Named = tuple[str, str]
"""A workload (or the total wall clock) and a metric."""
_WITHOUT_MEANING = ("seed",)
"""Conditions that may differ between a control run and those that its noise is used for."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure on every side, the baseline first; `axes` are the axis values common to all sides, {} for single
    cells. `differences` are those of every candidate from the baseline.

    `at_best_speed` is the same figure with the CPUs' speed taken out, labelled so; None where a cell that counts has no
    trace, for kinds that do not follow it, and for what is neither a time nor a rate. A `fixed` row is a time that the
    scenario sets, which is no result: documents have it, and tables do not.
    """

    axes: dict[str, AxisValue]
    workload: str
    metric: str
    unit: str
    figures: tuple[Figure, ...]
    more_is_better: bool | None = None
    differences: tuple[Difference, ...] = ()
    fixed: bool = False
    at_best_speed: Row | None = None
    label: str = ""

    @property
    def key(self) -> Key:
        """What its noise is known by."""
        return self.workload, self.metric, self.label

    @property
    def differences_at_best(self) -> tuple[Difference | None, ...]:
        """Those at the CPUs' best speed; None for each candidate where there are none."""
        return self.at_best_speed.differences if self.at_best_speed else (None,) * len(self.differences)

    def json_fields(self) -> dict[str, Any]:
        """The row as it stands in ``vmlab.compare/2``."""
        candidates = [
            {**figure.json_fields(), "difference": found, "without_yardstick": None, "at_best_speed": best}
            for figure, found, best in zip(self.figures[1:], self.differences, self.differences_at_best, strict=True)
        ]
        named = picked(self, "axes", "workload", "metric", "unit", "more_is_better", "fixed")
        return {**named, "baseline": self.figures[0], "candidates": candidates}


@dataclass(frozen=True, slots=True)
class Noise:
    """Up to how many percent figures differ where nothing does, and the run that showed it.

    `repeats` are the readings of each side, of so many `blocks` of the run. `percents` has figures also at the CPUs'
    best speed, as far as the run has them. `alike` is whether both sides are known to be configured alike.
    """

    of: RunPart
    repeats: int
    blocks: int
    percents: Mapping[Key, float]
    alike: bool = True

    @property
    def run(self) -> str:
        """The id of the run."""
        return self.of.id

    @property
    def what(self) -> str:
        """What the run is in words."""
        return "control run" if self.of.control else "run"

    def doubts(self, label: str, run: RunPart) -> Iterator[str]:
        """Why this may not be the noise of `run`, which is called `label`: a line for each reason."""
        if not self.alike:
            yield (
                f"run {self.run} is not known to have one configuration on both sides, as a control run has: "
                "what is taken for noise may be a difference"
            )
        for one in differing([run, self.of], []):
            if one.what not in _WITHOUT_MEANING:
                yield f"the noise was measured under other conditions: {one.line([label, self.run])}"

    def json_fields(self) -> dict[str, Any]:
        """Where the noise of a comparison comes from, as it stands in ``vmlab.compare/2``."""
        return {
            "run": self.run,
            "control": self.of.control,
            "started": self.of.started,
            "readings": self.repeats,
            "blocks": self.blocks,
            "figures": [
                {
                    "workload": workload,
                    "metric": metric,
                    "percent": percent,
                    "percent_without_yardstick": None,
                    "percent_at_best_speed": self.percents.get((workload, metric, AT_BEST)),
                }
                for (workload, metric, label), percent in self.percents.items()
                if not label
            ],
        }


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
    rows, which no table has. `chosen` are the names of the figures that a user asked for, instead of the scenario.
    `overall` has the figure over all workloads at each place that has several. `unlike` has the figures that are not
    compared, as their unit or their better end is another on another side, with the warning that says so. `within` is
    the run whose cells are compared with one another; None where there are several runs.
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
    chosen: tuple[str, ...] = ()
    overall: tuple[Overall, ...] = ()
    unlike: Mapping[Named, str] = field(default_factory=dict)
    within: RunPart | None = None

    @property
    def judged(self) -> list[Row]:
        """The rows that conditions are about: with those of the overall figure."""
        of_all = [
            Row(one.axes, OVERALL, OVERALL, "1", one.figures, more_is_better=True, differences=one.differences)
            for one in self.overall
        ]
        return [*self.rows, *of_all]

    def told(self, metrics: Collection[str] = ()) -> list[Row]:
        """The rows that people are shown, of `metrics` or all; the tile index is for documents and gates alone."""
        return [row for row in self.rows if row.metric != TILE_INDEX and (not metrics or row.metric in metrics)]

    def json_fields(self) -> dict[str, Any]:
        """The document ``vmlab.compare/2``."""
        known = zip(self.labels, self.neighbours, strict=False)
        return {
            "schema": SCHEMA,
            "baseline": self.labels[0],
            "candidates": self.labels[1:],
            **picked(self, "warnings", "ordered"),
            "accelerators": [name for name in dict.fromkeys(self.accelerators) if name],
            **picked(self, "noise", "differs"),
            "neighbours": [{"side": label, "neighbours": uses} for label, uses in known],
            "yardstick": None,
            "speed": self.speed,
            "rows": [*self.rows, *self.fixed],
            "gate": self.gate,
            "tile_index": self.indexed,
            **picked(self, "chosen", "overall"),
        }
