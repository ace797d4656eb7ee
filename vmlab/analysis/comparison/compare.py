"""Compares runs, or cells of runs, and lists what else differs between them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from vmlab.analysis.cell_shape import CellDocument
from vmlab.analysis.comparison.comparison import AT_BEST, INDEX, Comparison, Named, Noise, Row
from vmlab.analysis.comparison.conditions import Differing, differing, named_labels
from vmlab.analysis.comparison.families import asked_metrics, with_differences
from vmlab.analysis.comparison.gate import Condition
from vmlab.analysis.comparison.meetings import Meeting, Side, meetings_of, place_of
from vmlab.analysis.comparison.overall import Overall, Part, overall_of
from vmlab.analysis.figures.counted_cells import as_of, counts
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
from vmlab.analysis.figures.undelivered import undelivered_of, undelivered_words
from vmlab.analysis.record.accelerators import accelerator_of
from vmlab.analysis.record.bound import idle_disk_words
from vmlab.analysis.shape import RunPart
from vmlab.analysis.speed_spans import at_best_speed, speed_span, wall_at_best_speed
from vmlab.analysis.tiles.target_results import following_of, timed_of
from vmlab.analysis.tiles.throughput import TILE_INDEX, Indexed, index_figures, reference_of
from vmlab.model.errors import UsageError
from vmlab.model.ordered import all_ordered_words
from vmlab.model.results import NeighbourUse
from vmlab.model.run import RUN_TIME, AxisValue, Outcome
from vmlab.model.visible import quoted
from vmlab.telemetry.domains.neighbours import mean_uses


def compare(
    sides: Sequence[Side],
    noise: Noise | None = None,
    chosen: Sequence[str] = (),
    conditions: Sequence[Condition] = (),
) -> Comparison:
    """The first side is the baseline. Cells with the same axis values are compared; single cells are compared in any
    case. No difference is called real that is not beyond the `noise` of its figure.

    Of figures that are `chosen`, each by METRIC or WORKLOAD.METRIC, there are no other rows, and they are one family.
    Where all `conditions` that will be judged are bounds on levels, one side is enough.

    Raises UsageError for less than two sides, where no cells meet, and for a figure that none of them has.
    """
    _demand_enough(sides, conditions)
    meetings = meetings_of(sides)
    if not meetings:
        raise UsageError("the runs have no cell with the same axes; name cells to compare, such as last:1 last:2")
    baseline, parts = sides[0].run, [part for side in sides for part in side.parts]
    asked = asked_metrics(baseline)
    of_runs = [list(chain.from_iterable(own)) for own in zip(*(one.of_runs for one in meetings), strict=True)]
    unlike = _unlike(parts, meetings)
    rows: list[Row] = []
    indexed: list[Indexed] = []
    overall: list[Overall] = []
    for meeting in meetings:
        timed = timed_of(meeting.cells, baseline.throughput)
        here, index, of_all = _at(meeting, timed, unlike, baseline, noise, chosen)
        rows += with_differences(here, asked, timed, noise, chosen=bool(chosen))
        indexed += filter(None, [index])
        overall += filter(None, [of_all])
    results = tuple(row for row in rows if not row.fixed)
    passed = [_passed(meetings, place) for place in range(len(sides))]
    timed = timed_of(list(chain.from_iterable(of_runs)), baseline.throughput)
    _demand_known(chosen, results, meetings, timed, unlike)
    alone = tuple(_alone(sides, meetings))
    differs = tuple(differing([part.run for part in parts], [(one.axes, one.of_runs) for one in meetings]))
    doubts = noise.doubts(sides[0].label, baseline) if noise else ()
    return Comparison(
        labels=tuple(side.label for side in sides),
        rows=results,
        warnings=(*unlike.values(), *_warnings(parts, [axes for axes, _ in alone], differs), *doubts),
        differs=differs,
        noise=noise,
        workloads=tuple(workloads_of([cell for part in parts for cell in part.cells])),
        alone=alone,
        indexed=tuple(indexed),
        speed=speed_span([cell for meeting in meetings for cell in meeting.passed]),
        ordered=all_ordered_words(part.run.host for part in parts),
        accelerators=tuple(accelerator_of(part.run, own) for part, own in zip(parts, of_runs, strict=True)),
        bound=tuple(tuple(one.bound_by.resource for one in cells if one.bound_by is not None) for cells in passed),
        neighbours=tuple(map(_neighbours, passed)),
        asked=tuple(dict.fromkeys(row.metric for row in results)) if chosen else _asked_here(asked, results, timed),
        chosen=tuple(chosen),
        overall=tuple(overall),
        timed=timed,
        fixed=tuple(row for row in rows if row.fixed),
        unlike=unlike,
        within=baseline if {part.run.id for part in parts} == {baseline.id} else None,
    )


def _unlike(parts: Sequence[Side], meetings: Sequence[Meeting]) -> dict[Named, str]:
    """A line for each figure that has another unit, or another better end, in some of the runs than in others, at one
    place at least. Another one at another place is no matter, as each place is compared by itself.

    A scenario says what its own metrics are, and may have said otherwise before. A record that does not tell the kind
    of a workload does not tell better ends.
    """
    found: dict[Named, str] = {}
    for meeting in meetings:
        found = {**_unlike_at(parts, meeting.of_runs), **found}
    return found


def _unlike_at(parts: Sequence[Side], of_runs: Sequence[Sequence[CellDocument]]) -> dict[Named, str]:
    taken = [
        (over.workload in part.run.throughput, part.label, over)
        for part, cells in zip(parts, of_runs, strict=True)
        for over in chain.from_iterable(cell.over_tiles for cell in cells)
    ]
    found: dict[Named, dict[tuple[str, bool | None], dict[str, None]]] = {}
    for known, label, over in sorted(taken, key=lambda one: not one[0]):
        meanings = found.setdefault((over.workload, over.metric), {})
        of_unit = (one for one in meanings if one[0] == over.unit)
        meaning = (over.unit, over.more_is_better) if known else next(of_unit, (over.unit, over.more_is_better))
        meanings.setdefault(meaning, {})[label] = None
    words = {True: "more is better", False: "less is better", None: "neither end is better"}
    return {
        (workload, metric): f"{workload} {metric} is not compared, as it is not the same: "
        + "; ".join(f"{named_labels([*labels])}: in {unit}, {words[more]}" for (unit, more), labels in meanings.items())
        for (workload, metric), meanings in found.items()
        if len(meanings) > 1
    }


def _at(
    meeting: Meeting,
    timed: Mapping[str, str],
    unlike: Collection[Named],
    baseline: RunPart,
    noise: Noise | None,
    chosen: Sequence[str],
) -> tuple[list[Row], Indexed | None, Overall | None]:
    """The rows of one place without their differences, its tile index, and its overall figure."""
    rows, index = list(_rows(meeting, timed, unlike)), _index(meeting, baseline)
    order = {workload: number for number, workload in enumerate(dict.fromkeys(row.workload for row in rows))}
    rows.sort(key=lambda row: (order[row.workload], row.metric != timed.get(row.workload), row.fixed))
    firsts = _parts(rows, chosen or (baseline.table.metrics if baseline.table else ()) or (RUN_TIME,), timed)
    overall = overall_of(meeting.axes, firsts, noise.percents if noise else None)
    if chosen:
        return [row for row in rows if any(_is_chosen(row, name, timed) for name in chosen)], None, overall
    if index is None:
        return rows, None, overall
    return [*rows, index[0]], index[1], overall


def _demand_enough(sides: Sequence[Side], conditions: Sequence[Condition]) -> None:
    if not sides or (len(sides) < 2 and not conditions):
        raise UsageError("a comparison needs two runs or cells; `vmlab ls` lists the runs")
    relative = next((one for one in conditions if not one.level), None)
    if len(sides) < 2 and relative is not None:
        raise UsageError(
            f"{relative.named}: {sides[0].label} has no baseline and varies no axis; name a baseline before it, or "
            f"bound the value itself, as '{relative.figure} {relative.sign} 20 s'"
        )


def _parts(rows: Sequence[Row], metrics: Sequence[str], timed: Mapping[str, str]) -> list[Part]:
    """The first of `metrics` that each workload has, and of which an end is better."""
    found: dict[str, Part] = {}
    for name in metrics:
        for row in rows:
            more = row.more_is_better
            if row.workload != WALL_CLOCK and not row.fixed and more is not None and _is_chosen(row, name, timed):
                found.setdefault(row.workload, Part(row.workload, row.metric, row.unit, more, row.figures))
    return list(found.values())


def _is_chosen(row: Row, name: str, timed: Mapping[str, str]) -> bool:
    """Whether a user's name of a figure means a row: of a run time also the throughput that takes its place."""
    metrics = {row.metric, *([RUN_TIME] if row.metric == timed.get(row.workload) else [])}
    return any(name in (metric, f"{row.workload}.{metric}") for metric in metrics)


def _demand_known(
    chosen: Sequence[str],
    rows: Sequence[Row],
    meetings: Sequence[Meeting],
    timed: Mapping[str, str],
    unlike: Mapping[Named, str],
) -> None:
    """Raises UsageError for the first figure that none of the `rows` is, with those that there are."""
    for name in chosen:
        if not any(_is_chosen(row, name, timed) for row in rows):
            if line := next((line for one, line in unlike.items() if name in (one[1], ".".join(one))), None):
                raise UsageError(f"--metric {quoted(name)}: {line}")
            every = [row for meeting in meetings for row in _rows(meeting, timed, unlike) if not row.fixed]
            own = [row for row in every if name.startswith(f"{row.workload}.")]
            there = ", ".join(dict.fromkeys(row.metric for row in own or every))
            raise UsageError(f"--metric {quoted(name)}: no cell that is compared has this metric; there are {there}")


def _index(meeting: Meeting, baseline: RunPart) -> tuple[Row, Indexed] | None:
    """The tile index of each side, and what it is measured by; None where there is none."""
    reference = reference_of(meeting.of_baseline, baseline.throughput)
    figures = index_figures(reference, meeting.sides) if reference else None
    if reference is None or figures is None:
        return None
    row = Row(meeting.axes, INDEX, TILE_INDEX, "1", figures, more_is_better=True)
    return row, Indexed.of(meeting.axes, reference, meeting.sides)


def _passed(meetings: Sequence[Meeting], side: int) -> list[CellDocument]:
    """The cells of one side that meet others and passed, run by run."""
    runs = zip(*(meeting.sides[side] for meeting in meetings), strict=True)
    return [cell for run in runs for _, cells in run for cell in cells if cell.outcome == Outcome.PASSED]


def _neighbours(passed: Sequence[CellDocument]) -> tuple[NeighbourUse, ...] | None:
    """What the host's own guests took of each of these cells, the mean; None where unknown."""
    known = [cell.neighbours for cell in passed if cell.neighbours is not None]
    return mean_uses(known) if known else None


def _alone(
    sides: Sequence[Side], meetings: Sequence[Meeting]
) -> Iterator[tuple[dict[str, AxisValue], tuple[str, ...]]]:
    """The places that are not compared, and the sides that have no cell there; none of single cells."""
    met = {place_of(cell) for meeting in meetings for cell in meeting.cells}
    for place in dict.fromkeys(place_of(cell) for side in sides for part in side.parts for cell in part.cells):
        if place not in met:
            yield dict(place), tuple(side.label for side in sides if not all(part.at(place) for part in side.parts))


def _asked_here(asked: Collection[str], rows: Sequence[Row], timed: Mapping[str, str]) -> tuple[str, ...]:
    """The metrics that are asked for, where there are any such rows; run times else.

    The throughput of workloads of fixed duration stands for their run times.
    """
    rates = [rate for rate in timed.values() if rate] if RUN_TIME in asked else []
    found = dict.fromkeys(row.metric for row in rows if row.metric in asked or row.metric in rates)
    return tuple(found) or (RUN_TIME, WALL_SECONDS)


def _rows(meeting: Meeting, timed: Mapping[str, str], unlike: Collection[Named]) -> Iterator[Row]:
    """The rows of one place, but for figures that are `unlike`; `timed` are the workloads of fixed duration there.

    Their time is fixed, and the same however fast the host was, so nothing is taken out of it.
    """
    cells = meeting.cells
    follow = following_of(cells) if speed_span(meeting.passed) else frozenset()
    for workload in workloads_of(cells):
        taken = [over for cell in cells for over in cell.over_tiles if over.workload == workload]
        its_own = [[(run, as_of(workload, those)) for run, those in side] for side in meeting.sides]
        known = {(over.metric, over.unit): over.more_is_better for over in taken if over.more_is_better is not None}
        for metric, unit in dict.fromkeys((over.metric, over.unit) for over in taken):
            if (workload, metric) in unlike:
                continue
            more = known.get((metric, unit))
            fixed = workload in timed and metric == RUN_TIME
            row = Row(meeting.axes, workload, metric, unit, (), more, fixed=fixed)
            follows = workload in follow and workload not in timed
            steady = at_best_speed(workload, metric, unit) if follows else None
            yield _with_figures(row, its_own, over_tiles(workload, metric), steady)
    wall = Row(meeting.axes, WALL_CLOCK, WALL_SECONDS, "s", (), more_is_better=False, fixed=WALL_CLOCK in timed)
    follow = frozenset() if wall.fixed else follow - timed.keys()
    yield _with_figures(wall, meeting.sides, wall_seconds, wall_at_best_speed(follow) if follow else None)


def _with_figures(row: Row, sides: Sequence[Sequence[RunCells]], value: Value, steady: Value | None) -> Row:
    """The row with a figure of each side, and beside it, by `steady`, that at the best speed.

    It has none where one of these lacks a reading that the measured one has.
    """
    raw = replace(row, figures=_figures(sides, value))
    if steady is None:
        return raw
    best = replace(row, figures=_figures(sides, steady), label=AT_BEST)
    pairs = zip(raw.figures, best.figures, strict=True)
    lacking = any(len(one.readings) != len(other.readings) for one, other in pairs)
    return raw if lacking else replace(raw, at_best_speed=best)


def _figures(sides: Sequence[Sequence[RunCells]], value: Value) -> tuple[Figure, ...]:
    return tuple(figure_of_runs(side, value) for side in sides)


def _warnings(
    parts: Sequence[Side], alone: Sequence[Mapping[str, AxisValue]], differs: Sequence[Differing]
) -> Iterator[str]:
    labels = [part.label for part in parts]
    yield from (one.line(labels) for one in differs)
    idle = idle_disk_words([cell for part in parts for cell in part.cells])
    yield from [idle] if idle else []
    for part in parts:
        yield from _doubts(part, alone)


def _doubts(part: Side, alone: Sequence[Mapping[str, AxisValue]]) -> Iterator[str]:
    for other in part.run.measured_beside:
        yield f"{part.label}: run {other.run} of {other.user} measured on its host at the same time"
    for cell in part.cells:
        if counts(cell) and (words := undelivered_words(undelivered_of([cell]))):
            yield f"{part.label}: cell {cell.cell}: not delivered: {words}"
        if cell.axes in alone:
            yield f"{part.label}: cell {cell.cell}: left out, as it has no counterpart"
        elif cell.outcome != Outcome.PASSED:
            reasons = "; ".join(cell.reasons)
            yield f"{part.label}: cell {cell.cell}: {cell.outcome}" + (f", {reasons}" if reasons else "")
