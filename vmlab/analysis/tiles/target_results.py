"""Whether the tiles of a cell delivered what the scenario's targets ask.

A missed target makes no cell invalid: that it was missed is what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vmlab.analysis.cell_shape import CellDocument, TargetDocument
from vmlab.analysis.figures.counted_cells import was_switched
from vmlab.analysis.figures.figure import WALL_CLOCK
from vmlab.analysis.statistics.descriptive import finite
from vmlab.analysis.tiles.throughput import tiles_of
from vmlab.model.grouping import grouped
from vmlab.model.jsonable import fields_of
from vmlab.model.run import RUN_TIME, Outcome
from vmlab.workloads.registry import kinds
from vmlab.workloads.target_limits import Configured, Said, Target, targets_of
from vmlab.workloads.workload_steps import AnyWorkload


def target_documents(cell: CellDocument, said: Mapping[str, Mapping[str, Said]]) -> list[TargetDocument]:
    """Each target in each tile of a cell, by the settings that the cell had; [] for records without settings."""
    values = {(one.workload, one.tile, one.metric): one.value for one in cell.measurements}
    tiles = range(1, tiles_of(cell) + 1)
    return [
        _document(target, tile, values.get((target.workload, tile, target.metric)))
        for target in targets_of(said, configured(cell))
        for tile in tiles
    ]


def configured(cell: CellDocument) -> dict[str, Configured]:
    """The workloads of each tile of a cell, by the settings that it had; {} for records without settings."""
    workloads: Mapping[str, Mapping[str, Any]] = cell.settings.get("workloads") or {}
    return {name: Configured(str(one.get("kind", "")), _params(one)) for name, one in workloads.items()}


def timed_of(cells: Sequence[CellDocument], throughput: Mapping[str, str]) -> dict[str, str]:
    """The workloads that work for a fixed time in all of `cells`, by name, each with its metric of `throughput`.

    With them the total wall clock, where all workloads of all cells do.
    """
    timed = _of_kinds(cells, lambda kind, params: kind.is_timed(params))
    found = {name: throughput.get(name, "") for name, is_timed in timed.items() if is_timed}
    return {**found, **({WALL_CLOCK: ""} if found and all(timed.values()) else {})}


def following_of(cells: Sequence[CellDocument]) -> frozenset[str]:
    """The workloads whose times follow the CPUs' speed in all of `cells`, by name."""
    follows = _of_kinds(cells, lambda kind, _: kind.follows_speed)
    return frozenset(name for name, does in follows.items() if does)


def _of_kinds(
    cells: Sequence[CellDocument], says: Callable[[type[AnyWorkload], Mapping[str, Any]], bool]
) -> dict[str, bool]:
    """By workload, whether its kind says so of its parameters in all of `cells`; an unknown kind does not."""
    every = [pair for cell in cells for pair in configured(cell).items()]
    known = ((name, kinds().get(one.kind), one.params) for name, one in every)
    said = grouped((name, kind is not None and says(kind, params)) for name, kind, params in known)
    return {name: all(answers) for name, answers in said.items()}


def first_metric(metric: str, workload: str, timed: Mapping[str, str]) -> str:
    """What a figure of `metric` of a workload is: of its run time the throughput, where `timed` has the workload."""
    return (timed.get(workload) or metric) if metric == RUN_TIME else metric


def _params(workload: Mapping[str, Any]) -> Mapping[str, Any]:
    params = workload.get("params")
    return params if isinstance(params, dict) else {}


def delivered(cell: CellDocument) -> bool | None:
    """Whether every tile of a cell delivered what its targets ask.

    None where that is not known: the cell is not to be believed, has no target that applies to it, or a figure was not
    measured and none that was is missed.
    """
    verdicts = [one.met for one in cell.targets if one.applicable]
    if cell.outcome != Outcome.PASSED or was_switched(cell) or not verdicts:
        return None
    if False in verdicts:
        return False
    return None if None in verdicts else True


def load_of(target: TargetDocument) -> float:
    """How much of its limit a measured target took; infinite for nothing of what should be much."""
    return math.inf if target.load is None else target.load


def _document(target: Target, tile: int, value: float | None) -> TargetDocument:
    return TargetDocument(
        **fields_of(target),
        tile=tile,
        value=value,
        load=None if value is None else finite(target.load(value)),
        met=None if value is None else target.met_by(value),
    )
