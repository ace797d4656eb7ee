"""The throughput of workloads, tile by tile: what all scores of a run are made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import geometric_mean

from vmlab.analysis.cell_shape import CellDocument
from vmlab.model.run import RUN_TIME, Outcome
from vmlab.workloads.registry import kinds

Rates = Mapping[str, Mapping[int, float]]
"""By workload and tile, in the unit per second that the workload's metric has, or in runs a second."""


def throughput_metrics(kind_of: Mapping[str, str]) -> dict[str, str]:
    """The metric that is the throughput of each workload, whose kinds `kind_of` has; nothing for an unknown kind."""
    known = kinds()
    return {name: known[kind].throughput for name, kind in kind_of.items() if kind in known}


def tiles_of(cell: CellDocument) -> int:
    """The number of tiles that a cell was to have, by its axes or its settings; else those that were measured."""
    said = cell.axes.get("tiles", cell.settings.get("tiles"))
    if isinstance(said, int) and not isinstance(said, bool):
        return said
    return max((*(one.tile for one in cell.workloads), *(one.tile for one in cell.measurements)), default=1)


def rates_of(cell: CellDocument, metrics: Mapping[str, str]) -> dict[str, dict[int, float]]:
    """The throughput of each workload in each tile.

    It is the metric that `metrics` names, or the inverse of the run time for one that `metrics` has not, or for which
    it names that. Only workloads that were measured in every tile of the cell, with a positive figure.
    """
    found: dict[str, dict[int, float]] = {}
    for taken in cell.measurements:
        name, value = taken.workload, taken.value
        metric = metrics.get(name, RUN_TIME)
        if taken.metric == metric and value is not None and value > 0 and math.isfinite(1 / value):
            found.setdefault(name, {})[taken.tile] = 1 / value if metric == RUN_TIME else value
    every = set(range(1, tiles_of(cell) + 1))
    return {name: rates for name, rates in found.items() if rates.keys() == every}


def tile_rates(rates: Rates, workloads: Sequence[str]) -> dict[int, float] | None:
    """The geometric mean over `workloads` in each tile; None where the cell lacks one of them.

    Its unit is a mixture of theirs, so that only ratios of such figures over the same workloads have a meaning. Those
    ratios do not depend on the units: Fleming and Wallace (Communications of the ACM 29, 1986).
    """
    if not workloads or any(name not in rates for name in workloads):
        return None
    if len(workloads) == 1:
        # Unchanged to the last digit.
        return dict(rates[workloads[0]])
    return {tile: geometric_mean(rates[name][tile] for name in workloads) for tile in rates[workloads[0]]}


def together_of(cells: Iterable[CellDocument], metrics: Mapping[str, str], workloads: Sequence[str]) -> float | None:
    """The smallest share of their span in which all tiles of a cell ran one of `workloads`; None where one is unknown.

    Only of cells that passed; 1 for a cell of one tile.
    """
    shares = [_together(cell, metrics, workloads) for cell in cells if cell.outcome == Outcome.PASSED]
    known = [share for share in shares if share is not None]
    return min(known) if known and len(known) == len(shares) else None


def _together(cell: CellDocument, metrics: Mapping[str, str], workloads: Sequence[str]) -> float | None:
    if tiles_of(cell) == 1:
        return 1.0
    overlaps = [
        over.overlap
        for over in cell.over_tiles
        if over.workload in workloads and over.metric == metrics.get(over.workload, RUN_TIME)
    ]
    known = [overlap for overlap in overlaps if overlap is not None]
    return min(known) if known and len(known) == len(overlaps) else None
