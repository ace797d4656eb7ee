"""Checks the layout of results: the table's sides, and the places of published figures and claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import get_args

from vmlab.model.axes import axis_word
from vmlab.model.scenarios.axis import Scalar
from vmlab.model.scenarios.reference import TILE, Reference, place_axes
from vmlab.model.scenarios.scenario import Scenario
from vmlab.model.scenarios.table import Table
from vmlab.model.scenarios.table_words import METRICS, STATISTICS, WORKLOADS, Statistic
from vmlab.plan.scenario_file.problems import Place, Problem, meant, shorten
from vmlab.plan.scenario_file.scenario_document import Document

_STATISTICS: tuple[str, ...] = get_args(Statistic)


def check_layout(document: Document, scenario: Scenario) -> None:
    """Check table and reference. Raises ScenarioError with every problem."""
    problems: list[Problem] = []
    if scenario.table is not None:
        problems += _table(scenario, scenario.table)
    if scenario.reference is not None:
        problems += _reference(scenario, scenario.reference)
    document.raise_problems(problems)


def _table(scenario: Scenario, table: Table) -> Iterator[Problem]:
    known = [*scenario.axes, WORKLOADS]
    seen: dict[str, str] = {}
    for key, side in (("columns", table.columns), ("rows", table.rows)):
        for index, part in enumerate(side):
            place: Place = ("table", key, index) if len(side) > 1 else ("table", key)
            if part not in (*known, METRICS, STATISTICS):
                yield Problem(place, f"there is no axis {shorten(part)!r}; {meant(part, known)}")
            elif part in seen:
                words = f"columns and rows are both {part}" if seen[part] != key else f"{key} has {part} twice"
                yield Problem(place, words)
            seen[part] = key
    if STATISTICS in seen and not table.statistics:
        yield Problem(("table",), "a side of statistics needs `statistics`, such as statistics: [mean, sd, sum]")
    yield from _baseline(scenario, table)


def _baseline(scenario: Scenario, table: Table) -> Iterator[Problem]:
    baseline = table.baseline
    if baseline is None:
        if table.relative is not None:
            yield Problem(("table", "relative"), "needs `baseline`, such as baseline: {setup: host}", True)
        return
    if not isinstance(baseline, dict):
        heads = list(chain.from_iterable(_values(scenario, table, part) for part in (*table.columns, *table.rows)))
        first = _values(scenario, table, table.columns[0]) if table.is_simple else heads
        if not _is_among(baseline, first):
            message = f"no column is {shorten(baseline)!r}; {meant(baseline, map(axis_word, first))}"
            yield Problem(("table", "baseline"), message)
            return
        having = [part for part in (*table.columns, *table.rows) if _is_among(baseline, _values(scenario, table, part))]
        reasons = [_absent(scenario, part, baseline) for part in having]
        if reasons and all(reasons):
            yield _never_measured(("table", "baseline"), baseline, reasons[0])
        return
    yield from _parts(scenario, table, ("table", "baseline"), baseline)
    for part, value in baseline.items():
        if reason := _absent(scenario, part, value):
            yield _never_measured(("table", "baseline", part), value, reason)


def _absent(scenario: Scenario, part: str, value: Scalar) -> str | None:
    """Why a value of an axis has no cells; None where it has some."""
    point = scenario.axes[part].points.get(str(value)) if part in scenario.axes else None
    return point.absent if point else None


def _never_measured(place: Place, value: Scalar, reason: str | None) -> Problem:
    return Problem(place, f"nothing can be compared with {shorten(value)!r}, which is absent: {reason}")


def _is_among(value: Scalar, values: Sequence[Scalar]) -> bool:
    """Whether one of them is the value and of its type: `true` is not 1."""
    return any(isinstance(value, bool) is isinstance(one, bool) and value == one for one in values)


def _values(scenario: Scenario, table: Table | None, part: str) -> Sequence[Scalar]:
    """The values that a part of a table may have."""
    if part in scenario.axes:
        return scenario.axes[part].values
    of_parts: dict[str, Sequence[Scalar]] = {
        WORKLOADS: tuple(scenario.workloads),
        METRICS: table.figures if table else (),
        STATISTICS: _STATISTICS,
    }
    return of_parts.get(part, ())


def _parts(scenario: Scenario, table: Table | None, here: Place, place: Mapping[str, Scalar]) -> Iterator[Problem]:
    """What is wrong with a mapping of parts of a table to their values."""
    known = [*scenario.axes, WORKLOADS, STATISTICS]
    for name, value in place.items():
        if name not in (*known, METRICS):
            yield Problem((*here, name), f"there is no axis {shorten(name)!r}; {meant(name, known)}", True)
            continue
        values = _values(scenario, table, name)
        if name != METRICS and not _is_among(value, values):
            message = f"{name} has no {shorten(value)!r}; {meant(value, map(axis_word, values))}"
            yield Problem((*here, name), message)


def _reference(scenario: Scenario, reference: Reference) -> Iterator[Problem]:
    for index, figure in enumerate(reference.figures):
        here: Place = ("reference", "figures", index)
        for key in ("rows", "columns", "to"):
            yield from _parts(scenario, scenario.table, (*here, key), getattr(figure, key))
    for index, claim in enumerate(reference.claims):
        here = ("reference", "claims", index)
        for name, values in claim.each.items():
            for value in values:
                yield from _parts(scenario, scenario.table, (*here, "each"), {name: value})
        for number, place in enumerate(claim.places):
            yield from _parts(scenario, scenario.table, (*here, claim.kind, number), place_axes(place))
            tile = place.get(TILE, 1)
            if isinstance(tile, bool) or not isinstance(tile, int) or tile < 1:
                yield Problem((*here, claim.kind, number, TILE), "needs the number of a tile, the first of which is 1")
