"""Checks the targets of a scenario, and the metrics that its table names, against what its workloads give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vmlab.model.axes import axes_words
from vmlab.model.scenarios.scenario import Scenario
from vmlab.plan.scenario_file.problems import Problem, meant, shorten
from vmlab.plan.terms import CellPlan, Plan, WorkloadPlan
from vmlab.workloads.contract import WorkloadParams
from vmlab.workloads.metrics import SHARES
from vmlab.workloads.pace import DELIVERED
from vmlab.workloads.registry import kinds
from vmlab.workloads.target_limits import Target, judgeable, limit_of

_OF_A_CELL = "wall_seconds"
_HOST = "host."
_MOST_SHOWN = 160


def check_targets(scenario: Scenario, params: Mapping[str, WorkloadParams]) -> Iterator[Problem]:
    """What is wrong with ``targets``, in one cell; `params` are those of the workloads that are right."""
    for workload, limits in scenario.targets.items():
        entry = scenario.workloads.get(workload)
        if entry is None:
            message = f"there is no workload {shorten(workload)!r}; {meant(workload, scenario.workloads)}"
            yield Problem(("targets", workload), message, True)
            continue
        if workload not in params:
            continue
        kind = kinds()[entry.kind]
        for name, said in limits.items():
            metric = kind.metrics.get(name)
            if metric is None:
                known = judgeable(kind, params[workload].model_dump())
                message = f"kind {entry.kind} has no metric {shorten(name)!r}; {meant(name, known)}"
                yield Problem(("targets", workload, name), message, True)
            elif metric.better is None:
                message = f"{name} only describes the work: neither more nor less of it is better"
                yield Problem(("targets", workload, name), message, True)
            else:
                try:
                    limit_of(metric, said)
                except ValueError as error:
                    yield Problem(("targets", workload, name), f"targets.{workload}.{name}: {error}, not {said!r}")


def check_given(scenario: Scenario, cells: Sequence[CellPlan]) -> Iterator[Problem]:
    """The targets and the table's metrics that no workload gives in any of `cells`."""
    given = _given(cells)
    for workload, limits in scenario.targets.items():
        for name in limits:
            if workload in given and name not in given[workload]:
                yield Problem(("targets", workload, name), _never_given(workload, name, given[workload], cells), True)
    metrics = scenario.table.metrics if scenario.table else ()
    for index, name in enumerate(metrics):
        if not _is_of_cells(name) and all(name not in known for known in given.values()):
            gives = "; ".join(f"{workload} gives {_listed(known)}" for workload, known in given.items())
            near = meant(name, dict.fromkeys(one for known in given.values() for one in known))
            words = f"{near} " if near.startswith("did you mean") else ""
            message = f"no workload gives {shorten(name)!r} at any point of the axes; {words}{gives}"
            yield Problem(("table", "metrics", index), message)


def not_applicable(scenario: Scenario, cells: Sequence[CellPlan]) -> Iterator[str]:
    """A line for each target, and each metric of the table, that a workload gives at some points of the axes alone."""
    given = _given(cells)
    asked = [(workload, name) for workload, limits in scenario.targets.items() for name in limits]
    table = scenario.table.metrics if scenario.table else ()
    asked += [(workload, name) for workload in given for name in table if name in given[workload]]
    for workload, name in dict.fromkeys(asked):
        without = [cell for cell in cells if not any(name in _gives(one) for one in _of(cell, workload))]
        if without and workload in given:
            at = shorten("; ".join(dict.fromkeys(axes_words(cell.axes) for cell in without)), _MOST_SHOWN)
            yield f"{workload}.{name} is not applicable at {at}: {workload} does not give it there"


def _of(cell: CellPlan, workload: str) -> list[WorkloadPlan]:
    return [one for one in cell.workloads if one.tile == 1 and one.name == workload]


def _gives(workload: WorkloadPlan) -> list[str]:
    """The metrics that a workload gives, in the order of its kind."""
    kind = kinds()[workload.kind]
    left_out = kind.left_out(workload.params.model_dump())
    return [name for name in kind.metrics if name not in left_out]


def _given(cells: Sequence[CellPlan]) -> dict[str, list[str]]:
    """By workload the metrics that it gives in any of the cells."""
    found: dict[str, dict[str, None]] = {}
    for cell in cells:
        for one in (one for one in cell.workloads if one.tile == 1):
            found.setdefault(one.name, {}).update(dict.fromkeys(_gives(one)))
    return {workload: list(names) for workload, names in found.items()}


def _never_given(workload: str, name: str, given: Sequence[str], cells: Sequence[CellPlan]) -> str:
    named = {one.kind for cell in cells for one in _of(cell, workload)}
    if name == DELIVERED and all(kinds()[kind].paced for kind in named):
        return f"{name} is a share of a pace, and {workload} has none; give it one, such as pace: 5/s"
    judged = [one for one in given if any(_has_better_end(kind, one) for kind in named)]
    return f"{workload} never gives {name} with these parameters; it gives {_listed(judged)}"


def _has_better_end(kind: str, metric: str) -> bool:
    known = kinds()[kind].metrics.get(metric)
    return known is not None and known.better is not None


def _is_of_cells(name: str) -> bool:
    """Whether a metric is of the cell, of its host, or made by the lab for all workloads."""
    return name.startswith(_HOST) or name == _OF_A_CELL or name in SHARES


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def plan_targets(plan: Plan) -> tuple[Target, ...]:
    """What every tile of the plan has to deliver; of cells that differ, each target once."""
    return tuple(dict.fromkeys(one for cell in plan.cells for one in cell.targets if one.applicable))
