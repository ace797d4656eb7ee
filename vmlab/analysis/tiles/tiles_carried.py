"""How many tiles a host carries: the most that all deliver what their targets ask, climbing one tile at a time.

Each repeat is a climb of its own: it ends at the first number of tiles at which a tile missed a target, and carries one
tile less. Tiles offer a fixed load, so a host that misses with n tiles carries no more than n - 1. What all repeats say
together is their lower median, with the range, and from `readings_needed` repeats on with the 95 % interval of
Wilcoxon's signed ranks, as everywhere in the lab (`rank_test`).

This knee is about promises that are kept or not; the knee of the scores (`knee`) is about throughput.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median_low
from typing import Any

from vmlab.analysis.cell_shape import (
    BoundDocument,
    CellDocument,
    TargetDocument,
)
from vmlab.analysis.figures.counted_cells import counts
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.rank_test import signed_rank
from vmlab.analysis.statistics.sample_size import ALPHA, readings_needed
from vmlab.analysis.tiles.knee import ONE_REPEAT, TOO_FEW
from vmlab.analysis.tiles.over_hosts import ALL_HOSTS, cells_of_all_hosts
from vmlab.analysis.tiles.target_results import delivered, load_of
from vmlab.analysis.tiles.throughput import TILES, tiles_of
from vmlab.model.axes import axes_words, without
from vmlab.model.grouping import grouped
from vmlab.model.jsonable import INNER, fields_of, key
from vmlab.model.run import AxisValue


class ClimbEnd(StrEnum):
    """Why one repeat climbs no further."""

    MISSED = "missed"
    """A tile missed a target."""
    UNKNOWN = "unknown"
    """A cell failed, is invalid, or a figure was not measured."""
    OPEN = "open"
    """It delivered at every number of tiles that was run."""


@dataclass(frozen=True, slots=True)
class Climb:
    """One repeat: the most `tiles` that delivered, and why it ended; `last` is the cell at which it did."""

    repeat: int
    tiles: int
    end: ClimbEnd = field(metadata=key("ended"))
    last: CellDocument = field(metadata=INNER)


@dataclass(frozen=True, slots=True)
class Carried:
    """One place of all axes but that of the tiles, such as a cache mode.

    `cells` are by number of tiles, and within it by repeat. `tiles` is None where no repeat found out; it is a lower
    bound where `at_least`. `interval` is None with fewer repeats than it takes, which `because` says.
    """

    axes: dict[str, AxisValue]
    label: str
    cells: dict[int, tuple[CellDocument, ...]] = field(metadata=INNER)
    climbs: tuple[Climb, ...] = field(metadata=INNER)
    tiles: int | None
    at_least: bool
    range: tuple[int, int] | None
    interval: tuple[int, int] | None = field(metadata=key("interval_95"))
    because: str
    level_divisor: int = field(default=1, metadata=INNER)

    @property
    def climbing(self) -> bool:
        """Whether some repeat has not found its end."""
        return any(climb.end is ClimbEnd.OPEN for climb in self.climbs)

    @property
    def known(self) -> int:
        """The most tiles with which every repeat that got so far delivered, whatever happened afterwards."""
        return max((climb.tiles for climb in self.climbs), default=0)

    @property
    def ended_by(self) -> tuple[CellDocument, ...]:
        """The cells in which a target was missed first, of the repeats that carry as many tiles as the place does."""
        missed = [climb for climb in self.climbs if climb.end is ClimbEnd.MISSED]
        return tuple(climb.last for climb in missed if climb.tiles == self.tiles)

    @property
    def ran_out(self) -> BoundDocument | None:
        """What was at its limit in the first cells that missed, in most of them; None where nothing is known."""
        found = [bound for cell in self.ended_by if (bound := cell.bound_by) is not None]
        if not found:
            return None
        (most, _), *_ = Counter(bound.resource for bound in found).most_common()
        return next(bound for bound in found if bound.resource == most)

    def json_fields(self) -> dict[str, Any]:
        """The place as it stands in ``vmlab.scale/1``, without its steps."""
        found = {
            "readings_needed": readings_needed(self.level_divisor),
            "repeats": self.climbs,
            "ran_out": self.ran_out,
        }
        return {**fields_of(self), **found}


def carried_of(documents: Sequence[RunDocument]) -> list[Carried]:
    """The places of runs of one scenario with growing numbers of tiles, in the order in which they first came.

    Where hosts of a fleet ran cells together, all of them are a place, too: with so many tiles on every host.
    """
    every = (cell for document in documents for cell in (*cells_of_all_hosts(document), *document.cells))
    found = grouped((tuple(without(cell.axes, TILES).items()), cell) for cell in filter(counts, every))
    # Cells run in random order; the first run's axes have the scenario's.
    order = documents[0].run.axes if documents else {}

    def rank(place: tuple[tuple[str, AxisValue], ...]) -> list[int]:
        known = [(order[name].values if name in order else [], value) for name, value in place]
        # All hosts together, which no axis has among its values, come before each of them.
        last = [-1 if value == ALL_HOSTS else len(values) for values, value in known]
        return [
            values.index(value) if value in values else end for (values, value), end in zip(known, last, strict=True)
        ]

    return [_carried(dict(place), found[place]) for place in sorted(found, key=rank)]


def _carried(axes: dict[str, AxisValue], every: Sequence[CellDocument]) -> Carried:
    by_tiles = grouped((tiles_of(cell), cell) for cell in every)
    cells = {tiles: tuple(sorted(by_tiles[tiles], key=lambda cell: cell.repeat)) for tiles in sorted(by_tiles)}
    climbs = tuple(_climb(repeat, cells) for repeat in dict.fromkeys(c.repeat for c in next(iter(cells.values()))))
    told = sorted(climb.tiles for climb in climbs if climb.end is not ClimbEnd.UNKNOWN)
    tiles = median_low(told) if told else None
    open_at = max((climb.tiles for climb in climbs if climb.end is ClimbEnd.OPEN), default=None)
    divisor = max(climb.last.level_divisor for climb in climbs)
    return Carried(
        axes=axes,
        label=place_label(axes, next(iter(cells.values()))[0].settings.get("cache")),
        cells=cells,
        climbs=climbs,
        tiles=tiles,
        at_least=tiles is not None and tiles == open_at,
        range=(told[0], told[-1]) if told else None,
        interval=_interval(told, divisor),
        level_divisor=divisor,
        because="" if len(told) >= readings_needed(divisor) else ONE_REPEAT if len(told) == 1 else TOO_FEW,
    )


def _climb(repeat: int, cells: dict[int, tuple[CellDocument, ...]]) -> Climb:
    """How far one repeat got; a repeat without a cell at a number of tiles ended for an unknown reason there."""
    reached, last = 0, next(iter(cells.values()))[0]
    for tiles, those in cells.items():
        cell = next((one for one in those if one.repeat == repeat), None)
        verdict = None if cell is None else delivered(cell)
        last = last if cell is None else cell
        if verdict is not True:
            return Climb(repeat, reached, ClimbEnd.UNKNOWN if verdict is None else ClimbEnd.MISSED, last)
        reached = tiles
    return Climb(repeat, reached, ClimbEnd.OPEN, last)


def _interval(told: Sequence[int], divisor: int) -> tuple[int, int] | None:
    """The 95 % interval of the number of tiles, widened to whole ones; None with fewer repeats than it takes."""
    if len(told) < readings_needed(divisor):
        return None
    interval = signed_rank(told).interval(ALPHA / divisor)
    return None if interval is None else (math.floor(interval[0]), math.ceil(interval[1]))


def place_label(axes: Mapping[str, AxisValue], cache: object) -> str:
    """A place in words; where nothing but the tiles is varied, the cache mode that all guests share, if they do."""
    if axes:
        return axes_words(axes)
    return f"cache {cache}" if cache else "the scenario as written"


def nearest(cells: Sequence[CellDocument]) -> TargetDocument | None:
    """The target of which most was taken in these cells, over tiles and repeats; None where nothing was measured.

    A share of the pace is always near its limit where it is kept, so it counts only where it is missed, or alone.
    """
    measured = [one for cell in cells for one in cell.targets if one.met is not None]
    telling = [one for one in measured if not one.implied or not one.met] or measured
    return max(telling, key=load_of, default=None)
