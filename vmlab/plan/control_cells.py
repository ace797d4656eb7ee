"""A control run: one point of a scenario as both sides of a comparison, so that nothing differs but chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vmlab.model.run import RANDOM, AxisValue
from vmlab.model.scenarios.axis import Axis
from vmlab.model.scenarios.scenario import Scenario
from vmlab.model.scenarios.table import Table
from vmlab.model.scenarios.table_words import METRICS, WORKLOADS, Relative
from vmlab.plan.placing import PlacedAxis, PlacedValue
from vmlab.plan.scenario_file.problems import Problem
from vmlab.plan.scenario_file.scenario_document import Document

SIDE = "side"
"""The axis of a control run, which sets nothing."""
SIDES = ("A", "B")
_COUNTS = ("repeats", "until")


def controlled(
    document: Document, scenario: Scenario, axes: Sequence[PlacedAxis], least: int | None
) -> tuple[Scenario, list[PlacedAxis]]:
    """The scenario and its axes as a control run has them: one value of each axis, and the axis `SIDE`.

    The value is that of the table's baseline, or else the first that is not absent. There are `least` repeats or more,
    in random order, unless options of the command line say otherwise. Raises UsageError where an option asks for
    several values, and ScenarioError where the scenario has an axis of that name.
    """
    document.raise_problems(list(_problems(document, scenario)))
    chosen = one_point(scenario, axes)
    of_axes = {
        axis.name: scenario.axes[axis.name].model_copy(update={"values": (axis.values[0].value,)}) for axis in chosen
    }
    changes = {
        "axes": {**of_axes, SIDE: Axis(values=SIDES)},
        "table": _table(scenario),
        # What was published has its places in axes that are not varied here.
        "reference": None,
        "order": scenario.order if document.is_option(("order",)) else RANDOM,
        **_counts(document, scenario, least or 1),
    }
    both = PlacedAxis(SIDE, tuple(PlacedValue(side, ()) for side in SIDES))
    return scenario.model_copy(update=changes), [*chosen, both]


def one_point(scenario: Scenario, axes: Sequence[PlacedAxis]) -> list[PlacedAxis]:
    """Each axis with one value: that of the table's baseline, or else the first that is not absent."""
    baseline = _baseline(scenario)
    return [PlacedAxis(axis.name, (_only(axis, baseline.get(axis.name)),)) for axis in axes]


def _problems(document: Document, scenario: Scenario) -> Iterator[Problem]:
    if SIDE in scenario.axes:
        message = f"a control run has an axis {SIDE} of its own; call this one something else"
        yield Problem(("axes", SIDE), message, True)
    for name, axis in scenario.axes.items():
        place = ("axes", name, "values")
        if len(axis.values) > 1 and document.is_option(place):
            yield Problem(place, f"a control run has one configuration on both sides; name one value of {name}")


def _baseline(scenario: Scenario) -> dict[str, AxisValue]:
    """The values of axes that the table names as its baseline; {} where it names none of an axis."""
    table = scenario.table
    if table is None or table.baseline is None:
        return {}
    if isinstance(table.baseline, dict):
        return dict(table.baseline)
    wanted = table.baseline
    for part in table.columns if table.is_simple else (*table.columns, *table.rows):
        if part in scenario.axes and any(_same(value, wanted) for value in scenario.axes[part].values):
            return {part: wanted}
    return {}


def _only(axis: PlacedAxis, wanted: AxisValue | None) -> PlacedValue:
    present = [value for value in axis.values if value.absent is None] or list(axis.values)
    return next((value for value in present if _same(value.value, wanted)), present[0])


def _same(one: AxisValue | None, other: AxisValue | None) -> bool:
    """Equal, and of one type: ``1`` is not ``true``."""
    return type(one) is type(other) and one == other


def _table(scenario: Scenario) -> Table:
    """Both sides beside each other, with the figures that the scenario asks for."""
    metrics = scenario.table.metrics if scenario.table else ()
    rows = (WORKLOADS, METRICS) if len(metrics) > 1 else (WORKLOADS,)
    relative: Relative | None = "difference" if metrics else None
    return Table(columns=(SIDE,), rows=rows, metrics=metrics, relative=relative, baseline=SIDES[0])


def _counts(document: Document, scenario: Scenario, least: int) -> dict[str, object]:
    """The number of repeats, raised to `least` where no option says it."""
    until = scenario.until
    if until is not None and until.looks is not None:
        # Both sides are alike: there are no claims to look at, and nothing to prove.
        return {"until": None, "repeats": max(until.at_least, least)}
    if any(document.is_option((key,)) for key in _COUNTS):
        return {}
    if until is None:
        return {"repeats": max(scenario.repeats, least)}
    bounds = {"at_least": max(until.at_least, least), "at_most": max(until.at_most, least)}
    return {"until": until.model_copy(update=bounds)}
