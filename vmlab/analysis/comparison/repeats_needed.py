"""How many repeats a scenario's question takes at least, which is known before anything is measured.

And how well the figures of a run are known after the repeats that it has: what `until` of a scenario asks about.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import log1p
from statistics import median
from typing import TYPE_CHECKING

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.comparison import INDEX
from vmlab.analysis.comparison.difference import Difference
from vmlab.analysis.comparison.families import asked_of
from vmlab.analysis.comparison.gate import Condition
from vmlab.analysis.comparison.judging import figure_of_condition
from vmlab.analysis.comparison.meetings import sides_by_axis
from vmlab.analysis.comparison.overall import OVERALL
from vmlab.analysis.figures.counted_cells import counts
from vmlab.analysis.figures.figure import WALL_CLOCK, WALL_SECONDS, Figure, workloads_of
from vmlab.analysis.figures.reading import Asked, of_cells_alone, read
from vmlab.analysis.shape import RunDocument
from vmlab.analysis.statistics.sample_size import (
    ALPHA,
    detectable,
    detectable_percent,
    planned_looks,
    readings_needed,
)
from vmlab.analysis.tiles.target_results import first_metric, timed_of
from vmlab.analysis.tiles.throughput import TILE_INDEX
from vmlab.model.errors import UsageError
from vmlab.model.grouping import grouped
from vmlab.model.jsonable import key
from vmlab.model.run import RUN_TIME, AxisValue, Outcome
from vmlab.workloads.registry import kinds

if TYPE_CHECKING:
    from vmlab.model.scenarios.scenario import Scenario, WorkloadEntry
    from vmlab.plan.terms import CellPlan, ForClaims, Overrides, Plan


@dataclass(frozen=True, slots=True)
class RepeatsNeeded:
    """How many repeats it takes to prove a difference in one of `figures`, and to answer each of the claims, at least.

    With fewer no result proves anything; how large a difference so many find depends on the host's noise.
    """

    figures: int
    difference: int
    claims: tuple[int, ...]


def repeats_needed(scenario: Scenario) -> RepeatsNeeded:
    """What the figures that the scenario's table asks for take, as one family, and what its publication's claims do.

    Where looks at the table are planned, at one of them.
    """
    asked = asked_of(scenario.table.metrics if scenario.table else ())
    known = [entry for entry in scenario.workloads.values() if entry.kind in kinds()]
    found = sum(metric in asked for entry in known for metric in kinds()[entry.kind].declared(entry.params))
    figures = max(1, found + (WALL_SECONDS in asked and not _all_timed(known)))
    looks = scenario.table_looks
    claims = tuple(readings_needed(looks * one.comparisons) for one in scenario.claims)
    return RepeatsNeeded(figures, readings_needed(looks * figures), claims)


def looks_for(scenario: Scenario, word: ForClaims, unanswerable: Collection[str] = ()) -> tuple[int, ...]:
    """After how many repeats a scenario's claims are looked at. Raises UsageError for one that makes no claim.

    Those that are `unanswerable`, by their sentences, take none, unless all are.

    With one look that is after one more than the fewest that can answer every claim, so that one invalid cell at each
    place costs no answer: differences that are large beside the spread are found with them, for some half of what
    three looks take at most.
    """
    if not scenario.claims:
        raise UsageError(f"--repeats {word}: {scenario.name} has no claims")
    asked = [one for one in scenario.claims if one.say not in unanswerable] or scenario.claims
    comparisons = max(one.comparisons for one in asked)
    return planned_looks(comparisons) if word == "claims" else (readings_needed(comparisons) + 1,)


def with_enough_repeats(overrides: Overrides, scenario: Scenario, unanswerable: Collection[str] = ()) -> Overrides:
    """`overrides` with numbers for the repeats that the scenario's claims take, and a control run to show noise.

    As they are for other runs. The `unanswerable` claims take none. Raises UsageError for claims that a run cannot
    answer.
    """
    word = overrides.repeats
    if word == "claims" or word == "claims-once":
        if overrides.control:
            raise UsageError(f"--repeats {word}: a control run answers no claims")
        overrides = replace(overrides, repeats=None, looks=looks_for(scenario, word, unanswerable))
    return replace(overrides, least_repeats=repeats_needed(scenario).difference) if overrides.control else overrides


def _all_timed(entries: Sequence[WorkloadEntry]) -> bool:
    """Whether all workloads work for a fixed time, so that their total wall clock is no result."""
    return bool(entries) and all(kinds()[entry.kind].is_timed(entry.params) for entry in entries)


@dataclass(frozen=True, slots=True)
class GateNeeded:
    """What a condition of a gate takes at least to be decided, before anything is measured.

    `repeats` are those of one run that is compared with itself by its first axis. Where it varies none they are those
    of a bound on its level, and None for a difference. `runs` are those on each side of two groups of runs of the whole
    plan, for a bound on a level those of the candidate.
    """

    condition: Condition
    repeats: int | None
    runs: int


@dataclass(frozen=True, slots=True)
class Detectable:
    """The smallest difference, in percent, that an earlier run says so many `repeats` prove in four of five cases.

    It is the median over the figures that the scenario asks for, by their spread in `run`: as they were measured, and
    at the CPUs' best speed, None where that is not known.
    """

    run: str
    repeats: int
    percent: float
    at_best_speed: float | None = field(metadata=key("at_best_speed_percent"))


def detectable_by(document: RunDocument, repeats: int, looks: int = 1) -> Detectable | None:
    """What the run of `document` says of `repeats` of its cells; None where it compares nothing, or had too few.

    They are tested at one of so many planned `looks`.
    """
    sides = sides_by_axis(document)
    compared = compare(sides) if len(sides) > 1 else None
    rows = [row for row in compared.rows if row.metric in compared.asked and not row.fixed] if compared else []
    differences = [one for row in rows for one in row.differences]
    measured = [size for one in differences if (size := _with_repeats(one, repeats, looks)) is not None]
    corrected = [one for row in rows if row.at_best_speed for one in row.at_best_speed.differences]
    steady = [size for one in corrected if (size := _with_repeats(one, repeats, looks)) is not None]
    if not measured:
        return None
    return Detectable(document.run.id, repeats, median(measured), median(steady) if steady else None)


def _with_repeats(found: Difference, repeats: int, looks: int) -> float | None:
    """What a difference can detect with so many repeats, if the spread stays what it is."""
    now = detectable((found.readings,), ALPHA / (max(1, found.family) * found.level_divisor)) if found.paired else None
    if now is None or found.detectable is None:
        return None
    return detectable_percent(100 * log1p(found.detectable / 100) / now, repeats, looks * found.family)


_Figure = tuple[str, str]
_Place = tuple[tuple[str, AxisValue], ...]


def gate_needed(plan: Plan, conditions: Sequence[Condition]) -> list[GateNeeded]:
    """What each of the conditions takes, all of them being asked at once.

    Raises UsageError for a figure that no workload of the plan gives.
    """
    cells = {tuple(cell.axes.items()): cell for cell in plan.cells}
    figures = {place: [*_figures(cell, plan.table.metrics)] for place, cell in cells.items()}
    known = dict.fromkeys(chain.from_iterable(figures.values()))
    timed = _timed(plan.cells)
    names = dict.fromkeys(one.name for cell in plan.cells for one in cell.workloads)
    asked = [(one, figure_of_condition(one, list(known), timed, list(names))) for one in conditions]
    axis = next((name for name in plan.scenario.axes if len({dict(place).get(name) for place in cells}) > 1), None)
    inside = plan.scenario.table_looks * _asked_about(figures, asked, axis)
    between = _asked_about(figures, asked, None)
    return [
        GateNeeded(
            one,
            readings_needed(inside) if axis is not None or one.level else None,
            readings_needed(between, paired=bool(one.level)),
        )
        for one, _ in asked
    ]


def _asked_about(
    figures: Mapping[_Place, Sequence[_Figure]], asked: Sequence[tuple[Condition, _Figure]], axis: str | None
) -> int:
    """How many differences and levels all conditions ask about together, over which each of them is corrected.

    With an `axis` its values are compared with the first one, else two groups of runs at each place. `figures` are
    those of each place.
    """
    places = grouped((tuple(one for one in place if one[0] != axis), those) for place, those in figures.items())
    total = 0
    named = dict.fromkeys((figure, bool(one.level)) for one, figure in asked)
    for each in places.values():
        candidates = len(each) - 1 if axis is not None else 1
        there = set(chain.from_iterable(each))
        total += candidates * sum(figure in there for figure, _ in named)
    return max(1, total)


def _figures(cell: CellPlan, asked: Sequence[str]) -> Iterator[_Figure]:
    """Each figure of a cell that a comparison has differences of; its overall figure is of the `asked` metrics."""
    first = [one for one in cell.workloads if one.tile == 1]
    timed = _timed([cell])
    parts = 0
    for one in first:
        kind = kinds()[one.kind]
        params = one.params.model_dump()
        left_out = kind.left_out(params)
        fixed = {RUN_TIME} if one.name in timed else set()
        own = {name: found for name, found in kind.declared(params).items() if name not in left_out | fixed}
        yield from ((one.name, name) for name in own)
        named = (own.get(first_metric(metric, one.name, timed)) for metric in asked or (RUN_TIME,))
        parts += any(found is not None and found.better is not None for found in named)
    if WALL_CLOCK not in timed:
        yield WALL_CLOCK, WALL_SECONDS
    if len(first) > 1 or cell.tiles > 1:
        yield INDEX, TILE_INDEX
    if parts > 1:
        yield OVERALL, OVERALL


def _timed(cells: Sequence[CellPlan]) -> dict[str, str]:
    """The workloads that work for a fixed time in all cells, each with its throughput; the wall clock if all do."""
    rates: dict[str, str] = {}
    free: set[str] = set()
    for one in (one for cell in cells for one in cell.workloads):
        kind = kinds()[one.kind]
        if kind.is_timed(one.params.model_dump()):
            rates[one.name] = kind.throughput
        else:
            free.add(one.name)
    found = {name: rate for name, rate in rates.items() if name not in free}
    return {**found, **({WALL_CLOCK: ""} if found and not free else {})}


def widest_percent(
    cells: Sequence[CellDocument], metrics: Sequence[str], throughput: Mapping[str, str] | None = None
) -> float | None:
    """Half the width of the 95 % interval of a figure's mean (Student's) in percent of the mean: the largest of all.

    A figure is one of `metrics` of one workload at one place, averaged over the tiles, over the repeats that passed;
    and at each place the total wall clock where `metrics` has the run time. Places of which no repeat passed are left
    out. None where there is no figure; infinite where one has a single reading, or varies around 0.

    With `throughput`, the metric that is the throughput of each workload, those of fixed duration are known by it and
    not by their run time, as in tables; the wall clock is left out where all are.
    """
    timed = {} if throughput is None else timed_of(cells, throughput)
    widths = [
        _width_percent(figure)
        for place in _repeated(cells)
        for figure in _known_figures(place, metrics, timed)
        if figure.measured is not None
    ]
    return max(widths, default=None)


def _repeated(cells: Sequence[CellDocument]) -> list[list[CellDocument]]:
    """The cells that count, those of one place together."""
    return list(grouped((repr(sorted(cell.axes.items())), cell) for cell in cells if counts(cell)).values())


def _known_figures(place: Sequence[CellDocument], metrics: Sequence[str], timed: Mapping[str, str]) -> Iterator[Figure]:
    # Figures of the host need the samples of its recorder, and are no measurements of a workload.
    asked = [metric for metric in metrics if not of_cells_alone(metric)]
    passed = [cell for cell in place if cell.outcome == Outcome.PASSED]
    for workload in workloads_of(passed):
        yield from (read(place, Asked(first_metric(metric, workload, timed), workload)).figure for metric in asked)
    if (RUN_TIME in metrics and WALL_CLOCK not in timed) or WALL_SECONDS in metrics:
        yield read(place, Asked(WALL_SECONDS)).figure


def _width_percent(figure: Figure) -> float:
    spread = figure.measured
    assert spread is not None
    if spread.half_width is None:
        return math.inf
    if spread.mean == 0:
        return 0.0 if spread.half_width == 0 else math.inf
    return 100 * spread.half_width / abs(spread.mean)
