"""Checks the targets of a scenario against the metrics of its workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vmlab.model.scenario import Scenario
from vmlab.plan.problems import Problem, meant, shorten
from vmlab.plan.terms import CellPlan, Plan
from vmlab.workloads.contract import WorkloadParams
from vmlab.workloads.pace import DELIVERED
from vmlab.workloads.registry import kinds
from vmlab.workloads.targets import Target, judgeable, limit_of, targets_of


def is_paced(params: WorkloadParams) -> bool:
    """Whether a workload with these parameters offers a fixed load."""
    return getattr(params, "pace", None) is not None


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
        known = judgeable(kind, paced=is_paced(params[workload]))
        for name, said in limits.items():
            if name in known:
                try:
                    limit_of(known[name], said)
                except ValueError as error:
                    yield Problem(("targets", workload, name), f"targets.{workload}.{name}: {error}, not {said!r}")
            elif name == DELIVERED and kind.paced:
                message = f"{name} is a share of a pace, and {workload} has none; give it one, such as pace: 5/s"
                yield Problem(("targets", workload, name), message, True)
            elif name in kind.metrics:
                message = f"{name} only describes the work: neither more nor less of it is better"
                yield Problem(("targets", workload, name), message, True)
            else:
                message = f"kind {entry.kind} has no metric {shorten(name)!r}; {meant(name, known)}"
                yield Problem(("targets", workload, name), message, True)


def plan_targets(plan: Plan) -> tuple[Target, ...]:
    """What every tile of the plan has to deliver; of cells that differ, each target once."""
    found: dict[Target, None] = {}
    for cell in plan.cells:
        found |= dict.fromkeys(_cell_targets(plan.scenario, cell))
    return tuple(found)


def _cell_targets(scenario: Scenario, cell: CellPlan) -> Iterator[Target]:
    first = [one for one in cell.workloads if one.tile == 1]
    return targets_of(
        scenario.targets, {one.name: one.kind for one in first}, {one.name: is_paced(one.params) for one in first}
    )
