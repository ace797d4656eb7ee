"""Scores of a run over its tiles: how fairly they share the host, how they scale, and where a further one adds little.

All of them are of throughput, by `throughput.rates_of`. What they mean is in docs/explanation/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.figures.counted_cells import counts
from vmlab.analysis.figures.figure import MISSING, Figure, OneReading, figure_of, workloads_of
from vmlab.analysis.figures.pairing import pairing_of
from vmlab.analysis.figures.reading import NOT_TOGETHER, ran_apart
from vmlab.analysis.figures.table_layout import in_written_order
from vmlab.analysis.figures.undelivered import undelivered_of, undelivered_words
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.descriptive import compared, jain, mean, spread, total, variation
from vmlab.analysis.tiles.knee import SHARE_PERCENT, Knee, Step, knee_of
from vmlab.analysis.tiles.over_hosts import cells_with_hosts, summed_rates
from vmlab.analysis.tiles.throughput import TILES, Rates, rates_of, tile_rates, tiles_of, together_of
from vmlab.model.axes import without
from vmlab.model.grouping import grouped
from vmlab.model.jsonable import fields_of, key
from vmlab.model.run import AxisValue, Outcome

_NOTHING = Figure(MISSING)


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One workload in the cells of so many tiles; `workload` is None for all together, by `throughput.tile_rates`.

    `throughput` is that of all tiles together, `efficiency` that over as many times what one tile does alone, and
    `gain` what each further tile added to the next smaller number of tiles in `before`, in percent of what one tile
    does alone. `jain` (Jain's index), `cv` (the standard deviation with n - 1, in percent of the mean) and `worst` (the
    slowest tile, in percent of the mean) are over the tiles. Each is a figure over the repeats that passed, calculated
    in each of them. `worst_tile` is None where it was another tile in another repeat, `together` the smallest share of
    their span in which all tiles ran, None where that is not known.
    """

    workload: str | None
    tiles: int
    before: int | None = field(metadata=key("tiles_before"))
    throughput: Figure
    efficiency: Figure
    gain: Figure = field(metadata=key("gain_percent"))
    jain: Figure
    cv: Figure = field(metadata=key("cv_percent"))
    worst: Figure = field(metadata=key("worst_percent"))
    worst_tile: int | None
    together: float | None

    @property
    def apart(self) -> bool:
        """Whether the tiles' rates are of different spans, so that their sum is not what the host did at any time."""
        return ran_apart(self.together)

    def json_fields(self) -> dict[str, Any]:
        """The row as it stands in ``vmlab.run/1``."""
        # Of all workloads together the throughput is in no unit, and only its ratios mean something.
        throughput = self.throughput if self.workload is not None else None
        return {**fields_of(self), "throughput": throughput, "one_span": not self.apart}


@dataclass(frozen=True, slots=True)
class PlaceScores:
    """The scores at one place of all axes but that of the tiles; `knee` is None unless one tile and more were run."""

    axes: dict[str, AxisValue]
    rows: tuple[ScoreRow, ...]
    knee: Knee | None


def scores_of(document: RunDocument, share: float = SHARE_PERCENT) -> list[PlaceScores]:
    """The scores of a run's cells of several tiles, in the order of its axes; [] for a run without one that passed.

    The knee is where a further tile adds less than `share` percent.
    """
    metrics = document.run.throughput
    # Of hosts that ran together a tile is one on every host, and its rates are their sums.
    whole = {cell.cell: (cell, summed_rates(hosts, metrics)) for cell, hosts in cells_with_hosts(document)}
    alone = {cell.cell: (cell, rates_of(cell, metrics)) for cell in in_written_order(document)}
    found = []
    for rated in (whole, alone):
        counted = (cell for cell, _ in rated.values() if counts(cell))
        places = grouped((tuple(without(cell.axes, TILES).items()), cell) for cell in counted)
        rates = {number: one for number, (_, one) in rated.items()}
        found += [_place(dict(place), cells, metrics, share, rates) for place, cells in places.items()]
    return [one for one in found if one.rows]


def _place(
    axes: dict[str, AxisValue],
    cells: Sequence[CellDocument],
    metrics: Mapping[str, str],
    share: float,
    rates: Mapping[int, Rates],
) -> PlaceScores:
    names = workloads_of(cells)
    every = _Scored(cells, metrics, rates, names)
    parts = [_Scored(cells, metrics, rates, [name]) for name in names]
    scored = [*parts, every] if len(parts) > 1 else parts
    rows = tuple(row for one in scored for row in one.rows(one.workloads[0] if one in parts else None))
    return PlaceScores(axes, rows, every.knee(share) if rows else None)


@dataclass(eq=False)
class _Scored:
    """`workloads` together, in the cells of one place."""

    cells: Sequence[CellDocument]
    metrics: Mapping[str, str]
    of_cells: Mapping[int, Rates]
    workloads: Sequence[str]

    @cached_property
    def by_count(self) -> dict[int, list[CellDocument]]:
        """The cells by their number of tiles, from the smallest."""
        return dict(sorted(grouped((tiles_of(cell), cell) for cell in self.cells).items()))

    def rates(self, cell: CellDocument) -> dict[int, float] | None:
        return tile_rates(self.of_cells[cell.cell], self.workloads)

    def figure(self, tiles: int, value: Callable[[Sequence[float]], float | None]) -> Figure:
        """A figure of the rates of all tiles; only of cells that passed. What was not delivered is said of the knee."""

        def of(cell: CellDocument) -> float | None:
            rates = self.rates(cell)
            return None if rates is None else value(list(rates.values()))

        found = figure_of(self.by_count.get(tiles, []), of)
        return replace(found, undelivered=()) if found.measured else _NOTHING

    def rows(self, workload: str | None) -> Iterator[ScoreRow]:
        """A row for each number of tiles above one that has a cell that passed."""
        one, before = self.figure(1, total), None
        for tiles in self.by_count:
            figure = self.figure(tiles, total)
            if tiles > 1 and figure.spread is not None:
                yield ScoreRow(
                    workload=workload,
                    tiles=tiles,
                    before=before,
                    throughput=figure,
                    efficiency=_of_repeats([figure, one], lambda many, alone, n=tiles: many / (n * alone)),
                    gain=self.gain(before, tiles) if before is not None else _NOTHING,
                    jain=self.figure(tiles, jain),
                    cv=self.figure(tiles, variation),
                    worst=self.figure(tiles, lambda rates: 100 * min(rates) / mean(rates)),
                    worst_tile=self.slowest(tiles),
                    together=self.together(tiles),
                )
            before = tiles

    def gain(self, before: int, tiles: int) -> Figure:
        """What each of the further tiles added, in percent of what one tile does alone in the same repeat."""
        figures = [self.figure(count, total) for count in (tiles, before, 1)]
        return _of_repeats(figures, lambda many, fewer, alone: 100 * (many - fewer) / ((tiles - before) * alone))

    def slowest(self, tiles: int) -> int | None:
        """The tile that was the slowest in every repeat that passed."""
        found = set()
        for cell in self.by_count.get(tiles, []):
            rates = self.rates(cell)
            if rates is not None and cell.outcome == Outcome.PASSED:
                found |= {tile for tile, rate in rates.items() if compared(rate, min(rates.values())) == 0}
        return found.pop() if len(found) == 1 else None

    def together(self, tiles: int) -> float | None:
        return together_of(self.by_count.get(tiles, []), self.metrics, self.workloads)

    def knee(self, share: float) -> Knee | None:
        """The knee of all workloads together; None without cells of one tile, with which all are compared."""
        counts = list(self.by_count)
        if len(counts) < 2 or counts[0] != 1:
            return None
        return knee_of([self.step(*pair) for pair in pairwise(counts)], share)

    def step(self, before: int, after: int) -> Step:
        fewer, many = self.figure(before, total), self.figure(after, total)
        pairing = pairing_of(fewer, many)
        apart = any(ran_apart(self.together(count)) for count in (before, after))
        obstacle = NOT_TOGETHER if apart and pairing else pairing.obstacle if pairing else ""
        cells = [cell for count in (before, after) for cell in self.by_count[count] if cell.outcome == Outcome.PASSED]
        if levers := undelivered_words(undelivered_of(cells)):
            obstacle = f"not delivered: {levers}"
        gains = tuple(one.value for one in self.gain(before, after).readings)
        return Step(before, after, gains, obstacle, many.level_divisor)


def _of_repeats(figures: Sequence[Figure], value: Callable[..., float]) -> Figure:
    """A figure that is calculated in each repeat in which all of `figures` passed; they are of one run."""
    by_repeat = [{one.repeat: one for one in figure.readings} for figure in figures]
    common = sorted(set.intersection(*map(set, by_repeat)))
    taken = [(value(*(those[repeat].value for those in by_repeat)), repeat) for repeat in common]
    readings = tuple(OneReading(one, repeat) for one, repeat in taken if math.isfinite(one))
    if not readings:
        return _NOTHING
    left_out = len(set.union(*map(set, by_repeat))) - len(readings)
    return Figure(str(Outcome.PASSED), spread([one.value for one in readings]), left_out, readings)
