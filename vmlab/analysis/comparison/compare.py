"""Compares runs, or cells of runs, and lists what else differs between them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.comparison import INDEX, Comparison, Row
from vmlab.analysis.comparison.conditions import Differing, differing
from vmlab.analysis.comparison.difference import Difference, Sides, differences
from vmlab.analysis.comparison.noise import Noise
from vmlab.analysis.figures.counted_cells import was_switched
from vmlab.analysis.figures.figure import (
    WALL_CLOCK,
    WALL_SECONDS,
    Figure,
    RunCells,
    Value,
    figure_of_runs,
    over_tiles,
    wall_seconds,
    workloads_of,
)
from vmlab.analysis.figures.table_layout import in_written_order, varied_axis
from vmlab.analysis.figures.workload_outcome import as_of
from vmlab.analysis.record.accelerators import accelerator_of
from vmlab.analysis.record.bound import idle_disk_words
from vmlab.analysis.shape import RunDocument, RunPart
from vmlab.analysis.speed_spans import at_best_speed, speed_span, wall_at_best_speed
from vmlab.analysis.tiles.over_hosts import cells_of_all_hosts
from vmlab.analysis.tiles.target_results import following_of, timed_of
from vmlab.analysis.tiles.tile_index import TILE_INDEX, Indexed, Reference, index_figures, reference_of
from vmlab.model.axes import axes_words
from vmlab.model.errors import UsageError
from vmlab.model.ordered import all_ordered_words
from vmlab.model.results import NeighbourUse
from vmlab.model.run import RUN_TIME, WARM_UP, AxisValue, Outcome
from vmlab.telemetry.domains.neighbours import mean_uses

Place = tuple[tuple[str, AxisValue], ...]
Groups = Sequence[Sequence[RunCells]]
"""The runs of each side, with their cells at one place."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a run, or one cell of it, under the label that the user gave it.

    `others` are further runs of the same side, each of which counts once.
    """

    label: str
    run: RunPart
    cells: tuple[CellDocument, ...]
    others: tuple[Side, ...] = ()

    @property
    def parts(self) -> tuple[Side, ...]:
        """Each run of the side by itself."""
        first = replace(self, label=self.label.partition(",")[0], others=())
        return (first, *self.others) if self.others else (self,)

    @classmethod
    def of_runs(cls, label: str, parts: Sequence[Side]) -> Side:
        """One side of several runs."""
        first, *others = parts
        return cls(label, first.run, first.cells, tuple(others)) if others else first

    @classmethod
    def of(cls, label: str, document: RunDocument, cell: int | None = None) -> Side:
        """All cells of a run that count, or the one numbered `cell`. Raises UsageError where there is no such cell."""
        cells = [c for c in in_written_order(document) if cell is None or c.cell == cell]
        if cell is None:
            cells = [*cells_of_all_hosts(document), *cells]
        if cell is not None and cells and cells[0].repeat == WARM_UP:
            raise UsageError(f"{label}: cell {cell} is the warm-up, which is never counted")
        if cell is not None and cells and cells[0].looped:
            raise UsageError(f"{label}: cell {cell} is a loop, whose figures do not count")
        if cell is not None and cells and was_switched(cells[0]):
            raise UsageError(f"{label}: cell {cell} was switched mid-run, which invalidates it")
        cells = [c for c in cells if c.repeat != WARM_UP and not c.looped]
        if not cells:
            raise UsageError(f"{label}: has no cell" + (f" {cell}" if cell is not None else " yet"))
        return cls(label, document.run, tuple(cells))


def compare(sides: Sequence[Side], noise: Noise | None = None) -> Comparison:
    """The first side is the baseline. Cells with the same axis values are compared; single cells are compared in any
    case. No difference is called real that is not beyond the `noise` of its figure.

    Raises UsageError for less than two sides, and where no cells meet.
    """
    if len(sides) < 2:
        raise UsageError("a comparison needs two runs or cells; `vmlab ls` lists the runs")
    parts = [part for side in sides for part in side.parts]
    single = all(len(part.cells) == 1 for part in parts)
    places: list[Place] = [()] if single else _common_places(parts)
    if not places:
        raise UsageError("the runs have no cell with the same axes; name cells to compare, such as last:1 last:2")
    grouped = [
        (place, [[(part.run.id, _cells(part, place, single)) for part in side.parts] for side in sides])
        for place in places
    ]
    counted = [cell for _, groups in grouped for cell in _counted(groups)]
    speed = speed_span(counted)
    rows: list[Row] = []
    fixed: list[Row] = []
    indexed: list[Indexed] = []
    for place, groups in grouped:
        timed = timed_of(_every(groups), sides[0].run.throughput)
        follow = following_of(_every(groups)) if speed_span(_counted(groups)) else frozenset()
        here = list(_rows(place, groups, follow - timed.keys()))
        reference = _reference(sides[0], place, single)
        indices = index_figures(reference, groups) if reference else None
        if reference is not None and indices is not None:
            here.append(Row(dict(place), INDEX, TILE_INDEX, "1", indices, more_is_better=True))
            indexed.append(Indexed.of(dict(place), reference, groups))
        told = _with_differences(_marked(here, timed), asked_metrics(sides[0].run), noise, timed)
        rows += [row for row in told if not row.fixed]
        fixed += [row for row in told if row.fixed]
    timed_everywhere = timed_of([cell for _, those in grouped for cell in _every(those)], sides[0].run.throughput)
    met = [(dict(place), [_cells(part, place, single) for part in parts]) for place in places]
    differs = tuple(differing([part.run for part in parts], met))
    doubts = noise.doubts(sides[0].label, sides[0].run) if noise else ()
    return Comparison(
        labels=tuple(side.label for side in sides),
        rows=tuple(rows),
        warnings=(*_warnings(parts, places, differs, single), *doubts),
        differs=differs,
        noise=noise,
        workloads=tuple(workloads_of([cell for part in parts for cell in part.cells])),
        alone=() if single else tuple(_alone(sides, places)),
        indexed=tuple(indexed),
        speed=speed,
        ordered=all_ordered_words(part.run.host for part in parts),
        accelerators=tuple(_accelerator(part, places, single) for part in parts),
        bound=tuple(_bound(side, places, single) for side in sides),
        neighbours=tuple(_neighbours(side, places, single) for side in sides),
        asked=_asked_here(sides[0].run, rows, timed_everywhere),
        timed=timed_everywhere,
        fixed=tuple(fixed),
    )


def _marked(rows: Sequence[Row], timed: Mapping[str, str]) -> list[Row]:
    """The rows of one place: throughput is the first figure of a workload of fixed duration, and its run time fixed.

    A fixed time is the same however fast the host was, so nothing is taken out of it.
    """
    fixed = (RUN_TIME, WALL_SECONDS)
    marked = [
        replace(row, fixed=True, figures_at_best_speed=()) if row.workload in timed and row.metric in fixed else row
        for row in rows
    ]
    order = {workload: number for number, workload in enumerate(dict.fromkeys(row.workload for row in rows))}
    return sorted(marked, key=lambda row: (order[row.workload], row.metric != timed.get(row.workload), row.fixed))


def _accelerator(part: Side, places: Sequence[Place], single: bool) -> str | None:
    """That of the guests in those of its cells that are compared; None where only the host worked."""
    compared = (cell for place in places for cell in _cells(part, place, single))
    return accelerator_of(part.run, compared)


def _bound(side: Side, places: Sequence[Place], single: bool) -> tuple[str, ...]:
    """The resource at its limit in each compared cell of a side that passed and was watched."""
    cells = (cell for part in side.parts for place in places for cell in _cells(part, place, single))
    known = (cell.bound_by for cell in cells if cell.outcome == Outcome.PASSED)
    return tuple(one.resource for one in known if one is not None)


def _neighbours(side: Side, places: Sequence[Place], single: bool) -> tuple[NeighbourUse, ...] | None:
    """What the host's own guests took of each compared cell of a side that passed, the mean; None where unknown."""
    cells = (cell for part in side.parts for place in places for cell in _cells(part, place, single))
    known = (cell.neighbours for cell in cells if cell.outcome == Outcome.PASSED)
    counted = [one for one in known if one is not None]
    return mean_uses(counted) if counted else None


def _alone(sides: Sequence[Side], places: Sequence[Place]) -> Iterator[tuple[dict[str, AxisValue], tuple[str, ...]]]:
    """The places that are not compared, and the sides that have no cell there."""
    every = dict.fromkeys(_place(cell) for side in sides for part in side.parts for cell in part.cells)
    for place in every:
        if place not in places:
            without = (side.label for side in sides if not all(_at(part, place) for part in side.parts))
            yield dict(place), tuple(without)


def _reference(baseline: Side, place: Place, single: bool) -> Reference | None:
    """What a tile of the baseline does at a place, whatever the number of tiles there."""
    rest = [(name, value) for name, value in place if name != "tiles"]
    cells = [cell for part in baseline.parts for cell in part.cells if single or _is_at(cell, rest)]
    return reference_of(cells, baseline.run.throughput)


def _is_at(cell: CellDocument, rest: Sequence[tuple[str, AxisValue]]) -> bool:
    return [(name, value) for name, value in _place(cell) if name != "tiles"] == list(rest)


def _every(groups: Groups) -> list[CellDocument]:
    return [cell for group in groups for _, cells in group for cell in cells]


def _counted(groups: Groups) -> list[CellDocument]:
    """The cells whose figures are compared."""
    return [cell for group in groups for _, cells in group for cell in cells if cell.outcome == Outcome.PASSED]


def _cells(part: Side, place: Place, single: bool) -> tuple[CellDocument, ...]:
    return part.cells if single else _at(part, place)


def _place(cell: CellDocument) -> Place:
    return tuple(sorted(cell.axes.items()))


def _at(side: Side, place: Place) -> tuple[CellDocument, ...]:
    return tuple(cell for cell in side.cells if _place(cell) == place)


def _common_places(sides: Sequence[Side]) -> list[Place]:
    places = dict.fromkeys(_place(cell) for cell in sides[0].cells)
    return [place for place in places if all(_at(side, place) for side in sides[1:])]


def cells_alike(sides: Sequence[Side]) -> list[tuple[CellDocument, ...]]:
    """For each side its cells that passed, where every side has one with the same axes; all that passed where none is.

    Sides of one cell each need no axes in common.
    """
    passed = [
        replace(side, cells=tuple(cell for cell in side.cells if cell.outcome == Outcome.PASSED)) for side in sides
    ]
    places = [] if all(len(side.cells) == 1 for side in sides) else _common_places(passed)
    return [tuple(cell for cell in side.cells if not places or _place(cell) in places) for side in passed]


def sides_by_axis(document: RunDocument) -> list[Side]:
    """A side for each value of the first axis that a run varies, which is then no part of their cells' places.

    They are in the order in which the scenario has them, whatever ran first, and without the warm-up. Empty where the
    run varies no axis.
    """
    axis = varied_axis(document)
    if axis is None:
        return []
    found: list[Side] = []
    counted = [cell for cell in in_written_order(document) if cell.repeat != WARM_UP]
    for value in dict.fromkeys(cell.axes.get(axis) for cell in counted):
        cells = [cell for cell in counted if cell.axes.get(axis) == value]
        rest = tuple(replace(cell, axes=_without(cell, axis)) for cell in cells)
        label = f"no {axis}" if value is None else axes_words({axis: value})
        found.append(Side(label, document.run, rest))
    return found


def _without(cell: CellDocument, axis: str) -> dict[str, AxisValue]:
    return {name: value for name, value in cell.axes.items() if name != axis}


def asked_metrics(run: RunPart) -> frozenset[str]:
    """The metrics that a run's scenario asks for, all other figures being further ones; run times unless it says so.

    The total wall clock belongs to the run times.
    """
    table = run.table
    return asked_of(table.metrics if table else ())


def asked_of(metrics: Sequence[str]) -> frozenset[str]:
    """The metrics that a table of `metrics`, or of none by name, asks for."""
    asked = {*metrics} or {RUN_TIME}
    return frozenset({*asked, WALL_SECONDS} if RUN_TIME in asked else asked)


def _asked_here(run: RunPart, rows: Sequence[Row], timed: Mapping[str, str]) -> tuple[str, ...]:
    """The metrics that a run asks for, where there are any such rows; run times else.

    The throughput of workloads of fixed duration stands for their run times.
    """
    asked = asked_metrics(run)
    rates = [rate for rate in timed.values() if rate] if RUN_TIME in asked else []
    found = dict.fromkeys(row.metric for row in rows if row.metric in asked or row.metric in rates)
    return tuple(found) or (RUN_TIME, WALL_SECONDS)


def family_of(metric: str, has_better_end: bool, asked: frozenset[str], rate: str | None) -> object:
    """What a figure is corrected together with; `rate` is the throughput of a workload of fixed duration, else None.

    Figures that are asked for are one family, further ones of which an end is better another, and those of which
    neither is, such as amounts of work, a third. The tile index sums up the first ones and is a family by itself.
    Where run times are asked for, the throughput takes the place of one that is fixed.
    """
    if metric == TILE_INDEX:
        return metric
    return "asked" if metric in asked or (metric == rate and RUN_TIME in asked) else has_better_end


def _with_differences(
    rows: Sequence[Row], asked: frozenset[str], noise: Noise | None, timed: Mapping[str, str]
) -> list[Row]:
    """The rows of one place with their differences. What is fixed has none that means anything, and no family."""
    families: dict[object, list[int]] = {}
    for number, row in enumerate(rows):
        family = family_of(row.metric, row.more_is_better is not None, asked, timed.get(row.workload))
        families.setdefault("fixed" if row.fixed else family, []).append(number)
    found: list[list[Difference]] = [[] for _ in rows]
    at_best: list[list[Difference | None]] = [[] for _ in rows]
    for family in families.values():
        for place in range(1, len(rows[0].figures)):
            asked_of = [rows[number] for number in family]
            raw = [_sides(row, place, noise) for row in asked_of]
            steady = _corrected(raw, [_sides_at_best(row, place, noise) for row in asked_of])
            for number, one, other in zip(family, differences(raw), steady, strict=True):
                found[number].append(one)
                at_best[number].append(other)
    return [
        replace(row, differences=tuple(those), at_best_speed=tuple(others))
        for row, those, others in zip(rows, found, at_best, strict=True)
    ]


def _corrected(raw: Sequence[Sides], corrected: Sequence[Sides | None]) -> list[Difference | None]:
    """The differences of the corrected sides of a family, None for what has none.

    What has none is in the family as it was measured, so that the family keeps its size.
    """
    if not any(corrected):
        return [None] * len(raw)
    found = differences([one or other for one, other in zip(corrected, raw, strict=True)])
    return [one if sides else None for one, sides in zip(found, corrected, strict=True)]


def _sides(row: Row, place: int, noise: Noise | None) -> Sides:
    of_figure = noise.percents.get((row.workload, row.metric)) if noise else None
    return Sides(row.figures[0], row.figures[place], row.more_is_better, of_figure, row.more_is_better is None)


def _sides_at_best(row: Row, place: int, noise: Noise | None) -> Sides | None:
    """The sides at the CPUs' best speed."""
    figures = row.figures_at_best_speed
    of_figure = noise.at_best_speed.get((row.workload, row.metric)) if noise else None
    return Sides(figures[0], figures[place], row.more_is_better, of_figure) if figures else None


def _rows(place: Place, groups: Groups, follow: Collection[str]) -> Iterator[Row]:
    """The rows of one place; `groups` has each side's runs with their cells there.

    `follow` are the workloads whose times follow the CPUs' speed, where that was traced in all these cells.
    """
    axes = dict(place)
    cells = [cell for group in groups for _, those in group for cell in those]
    for workload in workloads_of(cells):
        taken = [over for cell in cells for over in cell.over_tiles if over.workload == workload]
        metrics = {(over.metric, over.unit): over.more_is_better for over in taken}
        its_own = [[(run, as_of(workload, those)) for run, those in group] for group in groups]
        for (metric, unit), more in metrics.items():
            raw = over_tiles(workload, metric)
            steady = at_best_speed(workload, metric, unit) if workload in follow else None
            figures = [_figures(its_own, value) for value in (raw, steady)]
            yield Row(
                axes,
                workload,
                metric,
                unit,
                figures[0],
                more,
                figures_at_best_speed=_complete(*figures),
            )
    walls = _figures(groups, wall_seconds)
    at_best = _figures(groups, wall_at_best_speed(follow) if follow else None)
    yield Row(
        axes,
        WALL_CLOCK,
        WALL_SECONDS,
        "s",
        walls,
        more_is_better=False,
        figures_at_best_speed=_complete(walls, at_best),
    )


def _figures(groups: Groups, value: Value | None) -> tuple[Figure, ...]:
    """A figure of each side; () without a value."""
    return () if value is None else tuple(figure_of_runs(group, value) for group in groups)


def _complete(raw: Sequence[Figure], corrected: tuple[Figure, ...]) -> tuple[Figure, ...]:
    """The corrected figures; () where one of them lacks a reading that the raw one has."""
    lacking = any(len(one.readings) != len(other.readings) for one, other in zip(raw, corrected, strict=False))
    return () if lacking else corrected


def _warnings(
    sides: Sequence[Side], places: Sequence[Place], differs: Sequence[Differing], single: bool
) -> Iterator[str]:
    labels = [side.label for side in sides]
    yield from (one.line(labels) for one in differs)
    idle = idle_disk_words([cell for side in sides for cell in side.cells])
    yield from [idle] if idle else []
    for side in sides:
        yield from _doubts(side, places, single)


def _doubts(side: Side, places: Sequence[Place], single: bool) -> Iterator[str]:
    for other in side.run.measured_beside:
        yield f"{side.label}: run {other.run} of {other.user} measured on its host at the same time"
    for cell in side.cells:
        if not single and _place(cell) not in places:
            yield f"{side.label}: cell {cell.cell}: left out, as it has no counterpart"
        elif cell.outcome != Outcome.PASSED:
            reasons = "; ".join(cell.reasons)
            yield f"{side.label}: cell {cell.cell}: {cell.outcome}" + (f", {reasons}" if reasons else "")
