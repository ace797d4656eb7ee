"""The axes and the layout of results of the stored scenario.

Its numbers have the bounds that they have where a scenario is planned: a record comes from anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from vmlab.analysis.shape import (
    AbsentDocument,
    AxisDocument,
    TableDocument,
    UntilDocument,
    WrittenDocument,
)
from vmlab.model.checked import Check, Condition, Keys, check_of
from vmlab.model.errors import StoreError
from vmlab.model.event import RepeatsEnded
from vmlab.model.event_fields import Repeat, Tile
from vmlab.model.run import MOST_AXES, MOST_VALUES, AxisValue
from vmlab.model.scenarios.table_words import TABLE, WORKLOADS

WRITTEN = "scenario.yaml"
"""The document of a store that has the scenario's text."""
_Point = Annotated[dict[str, Any], Keys({"absent": str | None})]
_Axis = Annotated[
    dict[str, Any],
    Keys({"values": list[AxisValue], "points": dict[str, _Point]}),
    Condition(lambda axis: len(axis.get("values") or ()) in range(1, MOST_VALUES + 1)),
]
_are_axes = check_of(
    Annotated[
        dict[str, _Axis],
        Keys({"tiles": Annotated[dict[str, Any], Keys({"values": list[Tile]})]}),
        Condition(lambda axes: len(axes) <= MOST_AXES),
    ]
)
_is_table = check_of(
    Annotated[
        dict[str, Any],
        Keys(
            {
                "columns": str | list[str],
                "rows": str | list[str] | None,
                "metrics": list[str] | None,
                "statistics": list[str] | None,
                "over": str,
                "relative": str | None,
                "baseline": AxisValue | dict[str, AxisValue] | None,
                "best_of": Repeat | None,
            }
        ),
        Condition(lambda table: bool(table.get("columns"))),
    ]
)


def _checked(said: Mapping[str, Any], name: str, holds: Check, what: str) -> Any:
    """A part of the stored scenario; None where it has none. Raises StoreError where it is not what the lab writes."""
    found = said.get(name)
    if found is not None and not holds(found):
        raise StoreError(f"the stored scenario has {what} of an unknown form")
    return found


def axes_of(said: Mapping[str, Any]) -> dict[str, AxisDocument]:
    """The axes of a stored scenario, in its order; {} where there is none.

    Raises StoreError where they are not what the lab writes.
    """
    axes = _axes(said)
    return {name: AxisDocument(axis["values"], str(axis.get("label") or "")) for name, axis in axes.items()}


def absent_of(said: Mapping[str, Any]) -> list[AbsentDocument]:
    """The values of axes that have no cells, in the scenario's order. Raises StoreError as `axes_of` does."""
    found: list[AbsentDocument] = []
    for name, axis in _axes(said).items():
        points = axis.get("points", {})
        for value in axis["values"]:
            if (reason := points.get(value, {}).get("absent")) is not None:
                found.append(AbsentDocument(axes={name: value}, reason=reason))
    return found


def _axes(said: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return _checked(said, "axes", _are_axes, "axes") or {}


def table_of(said: Mapping[str, Any]) -> TableDocument | None:
    """The layout that the planner decided on and stored with the scenario; None where there is none.

    Raises StoreError where it is not what the lab writes.
    """
    table = _checked(said, "table", _is_table, "a table")
    return None if table is None else table_document(table)


def table_document(said: Mapping[str, Any]) -> TableDocument:
    """A table of the scenario language, as JSON has it, in the form in which documents have it."""
    columns, rows = _words(said["columns"]), _words(said.get("rows")) or [WORKLOADS]
    baseline = said.get("baseline")
    by_part: dict[str, AxisValue] = baseline if isinstance(baseline, dict) else {}
    first = by_part.get(columns[0]) if isinstance(baseline, dict) else baseline
    return TableDocument(
        columns=columns[0],
        rows=rows[0],
        baseline=first,
        column_parts=columns,
        row_parts=rows,
        metrics=_words(said.get("metrics")),
        statistics=_words(said.get("statistics")),
        over=str(said.get("over") or "tiles"),
        relative=said.get("relative"),
        baseline_place=by_part,
        best_of=said.get("best_of"),
    )


_is_until = check_of(
    Annotated[
        dict[str, Any],
        Keys(
            {
                "spread": float | None,
                "looks": list[Repeat] | None,
                "looks_at": str | None,
                "at_least": Repeat,
                "at_most": Repeat,
                "time": float | None,
            }
        ),
        Condition(lambda until: {"spread", "at_least", "at_most"} <= until.keys()),
    ]
)


def until_of(said: Mapping[str, Any], ended: RepeatsEnded | None) -> UntilDocument | None:
    """The spread or the looks up to which the run is repeated, and what came of it; None where it names none.

    Raises StoreError where it is not what the lab writes.
    """
    until = _checked(said, "until", _is_until, "an `until`")
    if until is None:
        return None
    return UntilDocument(
        spread_percent=until["spread"],
        looks=until.get("looks"),
        at_least=until["at_least"],
        at_most=until["at_most"],
        repeats=ended.repeats if ended else None,
        widest_percent=ended.widest_percent if ended else None,
        reached=ended.reached if ended else None,
        seconds=until.get("time"),
        looks_at=TABLE if until.get("looks_at") == TABLE else None,
    )


def _words(said: Any) -> list[str]:
    return [said] if isinstance(said, str) else list(said or ())


def summary_of(said: Mapping[str, Any]) -> str:
    """The scenario's own sentence about itself; empty where the stored scenario has none."""
    summary = said.get("summary")
    return summary if isinstance(summary, str) else ""


def kinds_of(said: Mapping[str, Any]) -> dict[str, str]:
    """The kind of every workload by its name; {} where the stored scenario does not have it."""
    return {name: str(entry.get("kind", "")) for name, entry in entries_of(said).items()}


def entries_of(said: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What the stored scenario says of every workload, its parameters as they are written; {} where it says nothing."""
    workloads = said.get("workloads")
    entries = workloads.items() if isinstance(workloads, dict) else ()
    return {name: entry for name, entry in entries if isinstance(entry, dict)}


_are_targets = check_of(dict[str, dict[str, str | int | float]])


def targets_said(said: Mapping[str, Any]) -> dict[str, dict[str, str | int | float]]:
    """The scenario's ``targets`` by workload and metric, as they are written; {} where it has none.

    Raises StoreError where they are not what the lab writes.
    """
    return _checked(said, "targets", _are_targets, "targets") or {}


def variables_of(texts: Mapping[str, str]) -> dict[str, str] | None:
    """The values that a run's scenario had for its variables; None of runs before there were any."""
    return _texts_asked_for(texts, "variables")


def files_of(texts: Mapping[str, str]) -> dict[str, str]:
    """The files that a run's workloads sent, as its request keeps them; {} where it sent none."""
    return _texts_asked_for(texts, "files") or {}


def sets_of(texts: Mapping[str, str]) -> list[str]:
    """The assignments of a run's command line, as its request keeps them."""
    said = _asked_for(texts, "sets")
    return [value for value in said if isinstance(value, str)] if isinstance(said, list) else []


def _texts_asked_for(texts: Mapping[str, str], key: str) -> dict[str, str] | None:
    said = _asked_for(texts, key)
    is_made_so = isinstance(said, dict) and all(isinstance(value, str) for value in said.values())
    return said if is_made_so else None


def _asked_for(texts: Mapping[str, str], key: str) -> Any:
    try:
        return json.loads(texts["request"])["overrides"][key]
    except (LookupError, TypeError, ValueError, RecursionError):
        return None


def written_of(texts: Mapping[str, str]) -> WrittenDocument | None:
    """A run's scenario as it was written; None where it is not known with what variables."""
    variables = variables_of(texts)
    return None if variables is None or WRITTEN not in texts else WrittenDocument(texts[WRITTEN], variables)


def stored_scenario(texts: Mapping[str, str]) -> dict[str, Any]:
    """The document ``scenario``; {} where there is none. Raises StoreError where it is not JSON."""
    try:
        body = json.loads(texts.get("scenario", "{}"))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"the stored scenario is not JSON: {error}") from error
    return body if isinstance(body, dict) else {}
