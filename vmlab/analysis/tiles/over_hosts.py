"""Cells that all hosts of a fleet ran together, as one: sums over the hosts, and the worst of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from vmlab.analysis.cell_shape import (
    BoundDocument,
    CellDocument,
    TargetDocument,
)
from vmlab.analysis.figures.figure import WALL_CLOCK, WALL_SECONDS
from vmlab.analysis.figures.over_tiles import of_values
from vmlab.analysis.record.fleet_hosts import HOST_AXIS
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.analysis.shape import (
    OverHostsDocument,
    RunDocument,
    TogetherDocument,
)
from vmlab.analysis.statistics.descriptive import finite, smallest_known, total
from vmlab.analysis.tiles.target_results import load_of
from vmlab.analysis.tiles.throughput import rates_of
from vmlab.model.axes import without
from vmlab.model.grouping import grouped
from vmlab.model.jsonable import carried
from vmlab.model.results import Measurement

ALL_HOSTS = "all"
"""The value of the axis host that stands for all of them; no host has that name."""


def together_documents(known: RunTimeline, cells: Sequence[CellDocument]) -> list[TogetherDocument]:
    """Those that have ended, in the order in which they did; [] for a run whose hosts did not run together."""
    numbered = {cell.cell: cell for cell in cells}
    found: list[TogetherDocument] = []
    for ended in known.together:
        own = [numbered[number] for number in ended.cells if number in numbered]
        if own:
            found.append(
                carried(
                    TogetherDocument,
                    ended,
                    cells=[cell.cell for cell in own],
                    axes=without(own[0].axes, HOST_AXIS),
                    repeat=own[0].repeat,
                    start_skew_ms=finite(ended.skew_ms),
                    over_hosts=list(_over_hosts(own)),
                )
            )
    return found


def _over_hosts(cells: Sequence[CellDocument]) -> Iterator[OverHostsDocument]:
    """Each metric of which every host has a figure. Rates add up over tiles and hosts; a host is as bad as its worst
    tile.
    """
    metrics = dict.fromkeys((one.workload, one.metric, one.unit) for cell in cells for one in cell.over_tiles)
    for workload, metric, unit in metrics:
        of_hosts = [
            (str(cell.hypervisor), one)
            for cell in cells
            for one in cell.over_tiles
            if (one.workload, one.metric) == (workload, metric)
        ]
        if len(of_hosts) == len(cells):
            more = of_hosts[0][1].more_is_better
            worsts = [(one.worst, host) for host, one in of_hosts if one.worst is not None]
            worst, host = (max, min)[bool(more)](worsts) if worsts else (None, None)
            sums = [one.sum for _, one in of_hosts if one.sum is not None and unit.endswith("/s")]
            whole = finite(total(sums)) if len(sums) == len(cells) else None
            yield OverHostsDocument(workload, metric, unit, more, whole, worst, host)
    walls = [(cell.wall_seconds, str(cell.hypervisor)) for cell in cells]
    known = [(seconds, host) for seconds, host in walls if seconds is not None]
    if len(known) == len(cells):
        yield OverHostsDocument(WALL_CLOCK, WALL_SECONDS, "s", False, None, *max(known))


def cells_of_all_hosts(document: RunDocument) -> list[CellDocument]:
    """A cell for each that hosts ran together, which has rates as their sum, and other figures and targets as those of
    the worst host; its axis host is `ALL_HOSTS`.
    """
    return [whole for whole, _ in cells_with_hosts(document)]


def cells_with_hosts(document: RunDocument) -> list[tuple[CellDocument, list[CellDocument]]]:
    """The same, each with the cells of the hosts."""
    numbered = {cell.cell: cell for cell in document.cells}
    found = ((one, [numbered[at] for at in one.cells if at in numbered]) for one in document.together)
    return [(_cell(cells, one), cells) for one, cells in found if cells]


def summed_rates(cells: Sequence[CellDocument], metrics: Mapping[str, str]) -> dict[str, dict[int, float]]:
    """The throughput of each workload in each tile, added up over the hosts' `cells`: a tile is one on every host.

    Only workloads that `throughput.rates_of` has of every host.
    """
    rates = [rates_of(cell, metrics) for cell in cells]
    common = [name for name in rates[0] if all(one.get(name, {}).keys() == rates[0][name].keys() for one in rates)]
    return {name: {tile: sum(one[name][tile] for one in rates) for tile in rates[0][name]} for name in common}


def _worst_targets(cells: Sequence[CellDocument]) -> list[TargetDocument]:
    """Each target in each tile, as it is on the host that is nearest to its limit, or beyond.

    One that was missed on some host is missed; where none is known to be, but not all are known, nothing is known.
    """
    every = (one for cell in cells for one in cell.targets)
    found = grouped(((one.workload, one.metric, one.tile, one.limit, one.at_least), one) for one in every)
    return [_worst(those) for those in found.values()]


def _worst(targets: Sequence[TargetDocument]) -> TargetDocument:
    known = [one for one in targets if one.met is not None]
    worst = max(known, key=load_of, default=targets[0])
    if worst.met is not False and len(known) < len(targets):
        return next(one for one in targets if one.met is None)
    return worst


def _bound_of_worst(cells: Sequence[CellDocument], targets: Sequence[TargetDocument]) -> BoundDocument | None:
    """What bound the host whose target is the worst of all; None where no target was measured."""
    worst = max((one for one in targets if one.met is not None), key=load_of, default=None)
    return next((cell.bound_by for cell in cells if worst is not None and worst in cell.targets), None)


def _overlap(cells: Sequence[CellDocument], one: OverHostsDocument) -> float | None:
    """The smallest share of their span in which the tiles of any host ran; None where one is not known."""
    place = one.workload, one.metric
    overs = (over for cell in cells for over in cell.over_tiles if (over.workload, over.metric) == place)
    return smallest_known([over.overlap for over in overs])


def _cell(cells: Sequence[CellDocument], together: TogetherDocument) -> CellDocument:
    first, targets = cells[0], _worst_targets(cells)
    figures = [(one, one.worst if one.sum is None else one.sum) for one in together.over_hosts]
    taken = [(one, value) for one, value in figures if value is not None and one.metric != WALL_SECONDS]
    wall = next((value for one, value in figures if one.metric == WALL_SECONDS), None)
    return replace(
        first,
        axes={**together.axes, HOST_AXIS: ALL_HOSTS},
        hypervisor=None,
        outcome=together.outcome,
        reasons=[together.reason] if together.reason else [],
        wall_seconds=wall,
        start_skew_ms=together.start_skew_ms,
        skew_uncertainty_ms=together.skew_uncertainty_ms,
        workloads=[],
        measurements=[Measurement(one.workload, 1, "", one.metric, value, one.unit) for one, value in taken],
        over_tiles=[
            of_values(one.workload, one.metric, one.unit, [value], one.more_is_better, _overlap(cells, one))
            for one, value in taken
        ],
        targets=targets,
        host={},
        bound_by=_bound_of_worst(cells, targets),
        disk_latency=None,
        neighbours=None,
    )
