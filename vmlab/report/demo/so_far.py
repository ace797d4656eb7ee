"""What a recording has shown up to a moment: each number of tiles on each side, by the targets of its workloads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.target_results import delivered
from vmlab.analysis.tiles.throughput import tiles_of
from vmlab.model.axes import axes_words
from vmlab.report.run.tiles_board import TargetBar, target_bars


class TilesSoFar(NamedTuple):
    """A number of tiles: the `bars` of its workloads once its cell has ended, and whether all `met` their targets.

    `limits` are known from the beginning, by the names of bars.

    `switched` is a cell that counts for neither side.
    """

    tiles: int
    cell: int
    bars: tuple[TargetBar, ...] = ()
    met: bool | None = None
    switched: bool = False
    limits: Mapping[str, str] = MappingProxyType({})


class SideSoFar(NamedTuple):
    """One side, such as a cache mode, with each number of tiles that it was measured with."""

    label: str
    tiles: tuple[TilesSoFar, ...]


def so_far(document: RunDocument, done: Collection[int]) -> tuple[SideSoFar, ...]:
    """Every side of `document`, with the figures of the cells whose numbers are in `done`."""
    sides: dict[str, list[TilesSoFar]] = {}
    for cell in document.cells:
        label = axes_words({name: value for name, value in cell.axes.items() if name != "tiles"})
        limits = {bar.name: bar.limit for bar in target_bars(cell)}
        found = TilesSoFar(tiles_of(cell), cell.cell, limits=limits)
        if cell.cell in done:
            switched = bool(cell.switches)
            bars = () if switched else target_bars(cell)
            found = found._replace(bars=bars, met=None if switched else delivered(cell), switched=switched)
        sides.setdefault(label, []).append(found)
    return tuple(SideSoFar(label, tuple(tiles)) for label, tiles in sides.items())
