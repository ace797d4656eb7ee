"""The throughput of workloads, tile by tile: what all scores of a run are made of, and the tile index.

That is how many tiles' worth of work a cell does, by what a tile of the baseline does. As in VMmark: the geometric mean
over the workloads of a tile of their throughput over the reference's, summed over the tiles (Makhija and others,
VMmark: A Scalable Benchmark for Virtualized Systems, VMware TR 2006-002).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.figures.counted_cells import counts
from vmlab.analysis.figures.figure import MISSING, Figure, RunCells, Value, figure_of_runs
from vmlab.analysis.figures.reading import ran_apart
from vmlab.analysis.statistics.descriptive import smallest_known, total
from vmlab.model.run import RUN_TIME, AxisValue, Outcome
from vmlab.workloads.registry import kinds

TILES = "tiles"
"""The axis of the number of tiles."""
TILE_INDEX = "tile_index"
"""The metric of a cell that the index is."""
Rates = Mapping[str, Mapping[int, float]]
"""By workload and tile, in the unit per second that the workload's metric has, or in runs a second."""


def throughput_metrics(kind_of: Mapping[str, str]) -> dict[str, str]:
    """The metric that is the throughput of each workload, whose kinds `kind_of` has; nothing for an unknown kind."""
    known = kinds()
    return {name: known[kind].throughput for name, kind in kind_of.items() if kind in known}


def tiles_of(cell: CellDocument) -> int:
    """The number of tiles that a cell was to have, by its axes or its settings; else those that were measured."""
    said = cell.axes.get(TILES, cell.settings.get(TILES))
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
    passed = (cell for cell in cells if cell.outcome == Outcome.PASSED)
    return smallest_known([_together(cell, metrics, workloads) for cell in passed])


def _together(cell: CellDocument, metrics: Mapping[str, str], workloads: Sequence[str]) -> float | None:
    if tiles_of(cell) == 1:
        return 1.0
    overlaps = [
        over.overlap
        for over in cell.over_tiles
        if over.workload in workloads and over.metric == metrics.get(over.workload, RUN_TIME)
    ]
    return smallest_known(overlaps)


@dataclass(frozen=True, slots=True)
class Reference:
    """What a tile of the baseline does at one place: the throughput of each workload, by its metric in `metrics`.

    It is the geometric mean over the repeats and tiles of the cells that passed, of those with the fewest `tiles`.
    `work` is the kind and the parameters of each workload, as far as the cells' settings have them.
    """

    metrics: Mapping[str, str]
    tiles: int
    values: Mapping[str, float]
    work: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Indexed:
    """A place that has a tile index, and what it is measured by.

    `together` is the smallest share of their span in which all tiles of a cell ran, None where one is not known.
    """

    axes: dict[str, AxisValue]
    reference: Reference
    together: float | None

    @classmethod
    def of(cls, axes: dict[str, AxisValue], reference: Reference, groups: Sequence[Sequence[RunCells]]) -> Indexed:
        """The place of the cells in `groups`."""
        cells = [cell for group in groups for _, those in group for cell in those]
        return cls(axes, reference, together_of(cells, reference.metrics, list(reference.values)))

    @property
    def apart(self) -> bool:
        """Whether tiles' rates are of different spans, so that their sum is not what the host did at any time."""
        return ran_apart(self.together)

    def json_fields(self) -> dict[str, Any]:
        """The place as it stands in ``vmlab.compare/2``."""
        return {
            "axes": self.axes,
            "reference_tiles": self.reference.tiles,
            "reference": [
                {"workload": name, "metric": self.reference.metrics[name], "throughput": value}
                for name, value in self.reference.values.items()
            ],
            "one_span": not self.apart,
        }


def reference_of(cells: Sequence[CellDocument], metrics: Mapping[str, str]) -> Reference | None:
    """The reference that `cells` of a baseline give, which differ by their repeat and number of tiles alone.

    None where none passed, and where they have not the same workloads in all tiles.
    """
    passed = [cell for cell in cells if cell.outcome == Outcome.PASSED and counts(cell)]
    if not passed:
        return None
    fewest = min(map(tiles_of, passed))
    chosen = [cell for cell in passed if tiles_of(cell) == fewest]
    rates = [rates_of(cell, metrics) for cell in chosen]
    names = list(rates[0])
    if not names or any(
        set(_names(cell)) != set(names) or one.keys() != rates[0].keys()
        for cell, one in zip(chosen, rates, strict=True)
    ):
        return None
    values = {name: geometric_mean(rate for one in rates for rate in one[name].values()) for name in names}
    named = {name: metrics.get(name, RUN_TIME) for name in names}
    return Reference(named, fewest, values, {name: _work(chosen[0], name) for name in names})


def index_of(reference: Reference) -> Value:
    """The tile index of a cell; None where its tiles have not the workloads of the reference, or other ones.

    A workload of which the run time is compared has to do the same work: kind and parameters are the reference's.
    """

    def value(cell: CellDocument) -> float | None:
        rates = rates_of(cell, reference.metrics)
        if set(_names(cell)) != reference.values.keys() or not all(_same_work(reference, cell, name) for name in rates):
            return None
        ratios = {
            name: {tile: rate / reference.values[name] for tile, rate in those.items()} for name, those in rates.items()
        }
        tiles = tile_rates(ratios, list(reference.values))
        return None if tiles is None else total(list(tiles.values()))

    return value


def index_figures(reference: Reference, groups: Sequence[Sequence[RunCells]]) -> tuple[Figure, ...] | None:
    """The index of each side; None where there is nothing to sum up: one workload in cells of one tile.

    Only cells that passed count. Each side's ± is the spread of its own repeats: the reference is a unit here, and the
    ratio of two indices does not depend on it.
    """
    cells = [cell for group in groups for _, those in group for cell in those]
    if len(reference.values) == 1 and max(map(tiles_of, cells), default=1) == 1:
        return None
    figures = tuple(figure_of_runs(group, index_of(reference)) for group in groups)
    found = tuple(figure if figure.measured else Figure(MISSING) for figure in figures)
    return found if any(figure.spread for figure in found) else None


def _names(cell: CellDocument) -> list[str]:
    return [one.workload for one in cell.workloads] or [one.workload for one in cell.measurements]


def _work(cell: CellDocument, name: str) -> Any:
    said = cell.settings.get("workloads", {}).get(name)
    return {key: said.get(key) for key in ("kind", "params")} if isinstance(said, dict) else None


def _same_work(reference: Reference, cell: CellDocument, name: str) -> bool:
    known, own = reference.work.get(name), _work(cell, name)
    if known is None or own is None:
        return True
    return bool(known == own if reference.metrics[name] == RUN_TIME else known["kind"] == own["kind"])
