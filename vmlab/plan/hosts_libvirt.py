"""What a lab in the host's own libvirt cannot have: it needs a network of the lab's own, or libvirt's settings."""

from __future__ import annotations

from collections.abc import Iterator

from vmlab.model.names import HOST_PLACE
from vmlab.plan.terms import CellPlan, Plan


def not_in_hosts_libvirt(plan: Plan) -> str | None:
    """The first thing that the plan asks for and cannot have there; None where it has all, or is not to be there."""
    if not plan.on_hosts_libvirt:
        return None
    return next((words for cell in plan.cells for words in _asked(plan, cell)), None)


def _asked(plan: Plan, cell: CellPlan) -> Iterator[str]:
    if plan.scenario.host.disk is not None:
        yield f"the scenario has host.disk: {plan.scenario.host.disk}"
    if plan.scenario.host.size is not None:
        yield "the scenario orders a host with host.cpus or host.memory"
    for bare in cell.bare:
        yield f"guest {bare.guest} runs on the host"
    for guest in cell.guests:
        if guest.resources.network != "plain":
            yield f"guest {guest.guest} has network: {guest.resources.network}"
        if guest.resources.bandwidth is not None:
            yield f"guest {guest.guest} has a bandwidth"
        if guest.resources.pool is not None:
            yield f"guest {guest.guest} has its data disk in a pool"
    for workload in cell.workloads:
        if HOST_PLACE in (workload.source, workload.target):
            yield f"workload {workload.name} runs on the host"
