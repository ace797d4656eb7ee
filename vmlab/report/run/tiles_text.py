"""How many tiles a host carries, as text that grows with each run, as one sentence, and as ``vmlab.scale/1``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.record.accelerators import accelerator_of
from vmlab.analysis.record.fleet_hosts import HOST_AXIS
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.tiles.over_hosts import ALL_HOSTS
from vmlab.analysis.tiles.target_results import delivered, load_of
from vmlab.analysis.tiles.throughput import tiles_of
from vmlab.analysis.tiles.tiles_carried import Carried, ClimbEnd, carried_of, nearest
from vmlab.model.axes import axes_words, without
from vmlab.model.jsonable import picked
from vmlab.model.ordered import all_ordered_words
from vmlab.model.visible import visible_line
from vmlab.report.blocks import Notes, Section
from vmlab.report.bound_text import resource_word
from vmlab.report.heading import behind_notes
from vmlab.report.run.load_bars import ASCII, factor_text, load_bar
from vmlab.report.run.score_rows import knees
from vmlab.report.run.target_text import instead_words, limit_words, missed_words, of_tiles, worst_first
from vmlab.report.words import plural
from vmlab.system.text_width import WIDTH, left, shortened, width_of
from vmlab.workloads.target_limits import Target

TILES_TITLE = "how many tiles this host carries"
SCHEMA = "vmlab.scale/1"
_OF_TARGET = ("workload", "metric", "unit", "limit", "at_least", "implied")
_BAR = 15
"""Letters of the bar."""
_FACTOR = 6
"""Letters of how many times the limit the load is, with the blank before."""


class Stop(StrEnum):
    """Why no further tile was tried."""

    KNEE = "knee"
    MOST_TILES = "max tiles"
    GUARD = "guard"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Ascent:
    """Runs of one scenario, each with one tile more than the one before.

    `because` says why a guard or a run stopped it, `resource` what a further tile would have used up.
    """

    scenario: str
    size: str
    until_knee: bool
    max_tiles: int
    targets: tuple[Target, ...]
    documents: tuple[RunDocument, ...] = ()
    places: tuple[Carried, ...] = ()
    stop: Stop | None = None
    because: str = ""
    resource: str = ""
    labels: tuple[str, ...] = field(default=())


def climb_of(document: RunDocument) -> Ascent | None:
    """One run with one tile and more as a climb; None for a run without targets, or without an axis of tiles from 1."""
    tried = {tiles_of(cell) for cell in document.cells if cell.targets}
    if len(tried) < 2 or min(tried) != 1:
        return None
    run, places = document.run, tuple(carried_of([document]))
    most = max(tried)
    return Ascent(run.scenario, run.size, False, most, (), (document,), places, Stop.MOST_TILES)


def tiles_answer(document: RunDocument) -> list[str]:
    """How many tiles the host carried in one run, in sentences; [] where the run does not tell.

    The number of tiles that all delivered what the targets ask comes first; the knee of throughput is evidence for it,
    and the answer where there are no targets.
    """
    climb = climb_of(document)
    return [*([] if climb is None else [sentence(climb)]), *knees(document)]


def tiles_section(document: RunDocument) -> Section:
    """The same with its title."""
    return Section(TILES_TITLE, [Notes(tiles_answer(document), tone="")])


def heading_lines(ascent: Ascent) -> list[str]:
    """What is asked of each tile, and the heading of the rows to come."""
    asked = ", ".join(limit_words(one) for one in ascent.targets)
    width = _label_width(ascent)
    return [
        f"{ascent.scenario}, size {ascent.size}: each tile must deliver {asked}",
        f"tiles  {'':{width}}  {'load, | is the limit':{_BAR + 2 + _FACTOR}}  what is nearest to its limit",
    ]


def step_lines(ascent: Ascent, tiles: int, width: int = WIDTH) -> list[str]:
    """The rows of the run with so many tiles, one for each place that was run, none wider than `width`."""
    label = _label_width(ascent)
    rows = []
    for place in ascent.places:
        if cells := place.cells.get(tiles):
            target = nearest(cells)
            bar = bar_text(load_of(target)) if target else f"[{'':{_BAR}}]{'':{_FACTOR}}"
            row = f"{tiles:>5}  {left(visible_line(place.label), label)}  {bar}  {_row_words(cells)}"
            rows.append(shortened(row, width))
    return rows


def bar_text(load: float) -> str:
    """``[=====|=====    ]  2.2x``: how much of its limit something takes."""
    return f"[{load_bar(load, _BAR, ASCII, met=load <= 1).text}]{factor_text(load):>{_FACTOR}}"


def sentence(ascent: Ascent) -> str:
    """How many tiles each place carries, what ran out first there, and what shows it."""
    if not ascent.places:
        return "nothing is known of how many tiles this host carries: no cell was measured"
    carried = "; and ".join(_carried_words(ascent, place) for place in ascent.places)
    return visible_line(f"{_who(ascent)} carries {carried}")


def behind_runs(ascent: Ascent) -> list[str]:
    """Whether guests were emulated, and which parts of the host were not its own."""
    return behind_notes(_accelerators(ascent), _ordered(ascent), "some of the runs")


def _accelerators(ascent: Ascent) -> list[str]:
    found = dict.fromkeys(accelerator_of(document.run, document.cells) for document in ascent.documents)
    return [name for name in found if name]


def _ordered(ascent: Ascent) -> tuple[str, ...]:
    return all_ordered_words(document.run.host for document in ascent.documents)


def brief(ascent: Ascent) -> str:
    """The same without its evidence, for a line or two."""
    return visible_line(f"{_who(ascent)} carries {', '.join(_brief_words(place) for place in ascent.places)}")


def _who(ascent: Ascent) -> str:
    return "the fleet" if any(HOST_AXIS in place.axes for place in ascent.places) else "this host"


def _where(place: Carried) -> str:
    """``with cache none``; of a fleet ``on hv1 with cache none``, or that all hosts had so many tiles at once."""
    host = place.axes.get(HOST_AXIS)
    if host is None:
        return f"with {place.label}"
    others = without(place.axes, HOST_AXIS)
    on = "on every host at once" if host == ALL_HOSTS else f"on {host}"
    return f"{on} with {axes_words(others)}" if others else on


def scale_document(ascent: Ascent) -> dict[str, Any]:
    """Everything as JSON; see docs/reference/json.md."""
    return {
        "schema": SCHEMA,
        "scale": {
            **picked(ascent, "scenario", "size", "until_knee", "max_tiles"),
            "runs": [document.run.id for document in ascent.documents],
            "stopped_by": ascent.stop,
            "because": ascent.because,
            "sentence": sentence(ascent),
            "accelerators": _accelerators(ascent),
            "ordered": _ordered(ascent),
        },
        "targets": [picked(target, *_OF_TARGET) for target in ascent.targets],
        "places": [{**place.json_fields(), "steps": list(_steps(ascent, place))} for place in ascent.places],
    }


def _label_width(ascent: Ascent) -> int:
    return max((width_of(visible_line(label)) for label in ascent.labels), default=0)


def _row_words(cells: Sequence[CellDocument]) -> str:
    """How many repeats delivered, and the target of which most was taken."""
    verdicts = [delivered(cell) for cell in cells]
    target = nearest(cells)
    words = missed_words(target, of_tiles=of_tiles(cells)) if target else "nothing was measured"
    if len(cells) == 1:
        state = {True: "delivers", False: "MISSED", None: cells[0].outcome}[verdicts[0]]
    else:
        doubtful = verdicts.count(None)
        state = f"{verdicts.count(True)} of {plural(len(cells), 'repeat')} deliver"
        state += f", {doubtful} not known" if doubtful else ""
    return f"{state}: {words}"


def _carried_words(ascent: Ascent, place: Carried) -> str:
    with_ = _where(place)
    if place.tiles is None:
        last = next(climb.last for climb in place.climbs if climb.end is ClimbEnd.UNKNOWN)
        why = "; ".join(last.reasons) or "not all that it takes was measured"
        count = f"at least {_tiles(place.known)}" if place.known else "an unknown number of tiles"
        return f"{count} {with_} (cell {last.cell} of its last run is {last.outcome}: {why})"
    if place.at_least:
        return f"at least {_tiles(place.tiles)} {with_}{_spread_words(place)}{_not_further(ascent)}"
    return f"{_tiles(place.tiles)} {with_}{_spread_words(place)}, where {_ran_out_words(place)}"


def _brief_words(place: Carried) -> str:
    if place.tiles is None:
        return f"an unknown number of tiles {_where(place)}"
    if place.at_least:
        return f"at least {_tiles(place.tiles)} {_where(place)}"
    bound = place.ran_out
    first = f" (the {resource_word(bound.resource)} ran out first)" if bound and bound.where else ""
    return f"{_tiles(place.tiles)} {_where(place)}{first}"


def _tiles(count: int) -> str:
    return plural(count, "tile") if count else "no tile"


def _spread_words(place: Carried) -> str:
    """How certain the number is."""
    count = sum(climb.end is not ClimbEnd.UNKNOWN for climb in place.climbs)
    if count < 2 or place.range is None:
        return " (one repeat, no spread known)"
    if place.interval is not None:
        low, high = place.interval
        return f" ({100 - 5 / place.level_divisor:.4g} % interval {low} to {high}, {count} repeats)"
    low, high = place.range
    found = f"in each of {count} repeats" if low == high else f"from {low} to {high} in {count} repeats"
    return f" ({found}, too few for an interval)"


def _not_further(ascent: Ascent) -> str:
    match ascent.stop:
        case Stop.GUARD:
            return f", where {ascent.resource} ran out first: {ascent.because}"
        case Stop.MOST_TILES:
            return ", the most that were tried"
        case _:
            return f", after which the search ended: {ascent.because}"


def _ran_out_words(place: Carried) -> str:
    bound, cell = place.ran_out, place.ended_by[0]
    worst = worst_first([one for one in cell.targets if one.met is False])[0]
    missed = f"with {plural(_tiles_of_end(place), 'tile')} {instead_words(worst, of_tiles=of_tiles([cell]))}"
    if bound is None:
        return f"nothing tells what ran out first, as the host was not watched: {missed}"
    first = f"the {resource_word(bound.resource)} ran out first"
    if bound.resource == "none":
        first = "no resource of the host was at its limit"
    return f"{first}: {missed}, while {bound.sentence}"


def _tiles_of_end(place: Carried) -> int:
    return next(tiles for tiles, cells in place.cells.items() if place.ended_by[0] in cells)


def _steps(ascent: Ascent, place: Carried) -> Iterator[dict[str, Any]]:
    # Each number of tiles has a run of its own, also for the cells that stand for those of all hosts.
    run_of = {tiles_of(cell): document.run.id for document in ascent.documents for cell in document.cells}
    for tiles, cells in place.cells.items():
        verdicts = [delivered(cell) for cell in cells]
        yield {
            "tiles": tiles,
            "run": run_of[tiles],
            "delivered": verdicts.count(True),
            "missed": verdicts.count(False),
            "unknown": verdicts.count(None),
            "cells": [
                {
                    **picked(cell, "cell", "repeat", "outcome", "reasons"),
                    "delivered": verdict,
                    "nearest": nearest([cell]),
                    **picked(cell, "targets", "bound_by"),
                }
                for cell, verdict in zip(cells, verdicts, strict=True)
            ],
        }
