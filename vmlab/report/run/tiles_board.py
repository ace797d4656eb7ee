"""The board that answers how many tiles a host carries: a row for each place, a square for each number of tiles."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

from vmlab.analysis.cell_shape import CellDocument, TargetDocument
from vmlab.analysis.figures.counted_cells import counts
from vmlab.analysis.record.accelerators import accelerator_of
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.target_results import delivered, load_of
from vmlab.analysis.tiles.tiles_carried import Carried, ClimbEnd, carried_of, nearest
from vmlab.model.grouping import grouped
from vmlab.model.ordered import behind, ordered_words
from vmlab.report.bound_text import resource_word
from vmlab.report.run.target_text import limit_text, measured_words
from vmlab.report.words import cells_words

QUESTION = "How many tiles does this host carry?"


class BoardRow(NamedTuple):
    """One place, such as a cache mode.

    `squares` has for each number of tiles whether the host carries it, None where that is not known. `carried` is the
    number that it carries, and `stopped` says what ran out, with its use in percent as `share`, empty where not known.
    """

    label: str
    squares: tuple[bool | None, ...]
    carried: str
    stopped: str
    share: str


class Board(NamedTuple):
    """The rows, and what stands behind them in a few words each."""

    rows: tuple[BoardRow, ...]
    notes: tuple[str, ...]


class TargetBar(NamedTuple):
    """The target of a workload of which most was taken: `load` is 1 at the limit, infinite where nothing was done."""

    name: str
    load: float
    value: str
    limit: str
    met: bool


def board_of(document: RunDocument, ended: Collection[int] | None = None) -> Board | None:
    """The board after the cells whose numbers are in `ended`, None for all.

    None for a run without targets, and for one that does not climb from one tile.
    """
    planned = _planned(document)
    if not planned or not any(cell.targets for cell in document.cells):
        return None
    cells = [cell for cell in document.cells if ended is None or cell.cell in ended]
    places = carried_of([replace(document, cells=cells)])
    return Board(tuple(_row(place, planned) for place in places), tuple(_notes(document, cells, places)))


def cells_of_most_tiles(document: RunDocument) -> tuple[int, ...]:
    """The cells with the most tiles of which every place has one that counts and passed, one for each place."""
    places = carried_of([document])
    common = [
        tiles
        for tiles in (places[0].cells if places else ())
        if all(any(delivered(cell) is not None for cell in place.cells.get(tiles, ())) for place in places)
    ]
    return tuple(place.cells[max(common)][0].cell for place in places) if common else ()


def target_bars(cell: CellDocument) -> tuple[TargetBar, ...]:
    """For each workload with targets the one that took most of its limit, over all tiles of the cell."""
    by_workload = grouped((one.workload, one) for one in cell.targets if one.met is not None)
    found = (nearest([replace(cell, targets=those)]) for those in by_workload.values())
    return tuple(_bar(target) for target in found if target is not None)


def _bar(target: TargetDocument) -> TargetBar:
    name = f"{target.workload} {target.metric.removeprefix('latency_')}"
    return TargetBar(name, load_of(target), measured_words(target), limit_text(target), bool(target.met))


def _planned(document: RunDocument) -> range:
    """The numbers of tiles that the run climbs through; empty for one that does not."""
    axis = document.run.axes.get("tiles")
    values = [value for value in axis.values if isinstance(value, int)] if axis else []
    return range(1, max(values) + 1) if len(values) > 1 and min(values) == 1 else range(0)


def _row(place: Carried, planned: range) -> BoardRow:
    unknown = next((climb.last for climb in place.climbs if climb.end is ClimbEnd.UNKNOWN), None)
    if place.tiles is None and unknown is not None:
        squares = tuple(True if tiles <= place.known else None for tiles in planned)
        least = f"{place.known}+" if place.known else "?"
        return BoardRow(place.label, squares, least, f"cell {unknown.cell} does not tell", "")
    carried = place.tiles or 0
    tried = max(place.cells)
    if place.at_least:
        squares = tuple(True if tiles <= carried else None for tiles in planned)
        return BoardRow(place.label, squares, str(carried), "so far" if tried < planned[-1] else "or more", "")
    squares = tuple(tiles <= carried for tiles in planned)
    return BoardRow(place.label, squares, str(carried), *_stopped(place))


def _stopped(place: Carried) -> tuple[str, str]:
    """What ran out first, and how busy it was."""
    bound = place.ran_out
    if bound is None:
        return "stopped by a target; the host was not watched", ""
    if bound.resource == "none":
        return "stopped by a target; no resource was at its limit", ""
    share = bound.evidence.get(f"{bound.resource}_busy_percent")
    word = resource_word(bound.resource).upper()
    whose = "the" if bound.where in ("", "host") else f"{bound.where}'s"
    return f"stopped by {whose} {word}", "" if share is None else f"{share:.0f} %"


def _notes(document: RunDocument, cells: list[CellDocument], places: list[Carried]) -> Iterator[str]:
    run = document.run
    yield from behind(accelerator_of(run, document.cells), ordered_words(run.host))
    if places and all(len(place.climbs) == 1 for place in places):
        yield "one measurement each"
    switched = [cell.cell for cell in cells if cell.switches]
    if switched:
        yield f"{cells_words(switched)} {'was' if len(switched) == 1 else 'were'} switched and {_not_counted(switched)}"
    others = [cell.cell for cell in cells if not cell.switches and counts(cell) and delivered(cell) is None]
    if others:
        yield f"{cells_words(others)} {_not_counted(others)}"


def _not_counted(numbers: list[int]) -> str:
    return "does not count" if len(numbers) == 1 else "do not count"
