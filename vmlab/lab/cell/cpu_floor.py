"""Whether a guest used as much CPU time as its work needs, by what the same work took on this host before.

A tool that does not do its work and reports that it did is seen by what it did not use. Its guest's CPU time, which
the host counts, does not depend on what else the host does, as run times do: beside busy neighbours of the same core
work takes up to 2.4 times as much of it. So a cell whose guest used less than a third of the median is invalid.

That holds for kinds of workloads that are nothing but CPU time (`Workload.needs_cpu`), where no server and no kernel
counts what they did, and for work of a second or more. What a guest used for several workloads together is held against
each of them, and is kept for none. The same work is the same kind with the same parameters, in a guest with as many
vCPUs of the same image, on a host with the same processor, QEMU and accelerator. Where memory or disks also decide, as
for all kinds but those that follow the CPUs' speed, it is the same cell altogether: a guest that swaps takes more.

What works for a fixed time has no amount; it is measured by what it says that it did in that time.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vmlab.lab.cell.disturbance import Disturbance
from vmlab.lab.cell.workload_instance import WorkloadInstance
from vmlab.model.run import RUN_TIME
from vmlab.plan.cell_settings import settings_of
from vmlab.plan.terms import CellPlan
from vmlab.store.kept_file import CpuNeeds
from vmlab.workloads.registry import kinds
from vmlab.workloads.workload_steps import AnyWorkload

SHARE = 1 / 3
"""Of the median CPU time of the same work, below which it was not done."""
_LEAST_SECONDS = 1.0
"""Less CPU time than this is lost in what a guest uses besides."""
_SLOWEST_PERCENT, _MOST_STEAL_PERCENT, _MOST_SWAPPED = 60.0, 10.0, 2**20
"""Speed of the CPUs, steal and swapped bytes up to which a cell's CPU time is kept: what is stolen counts as used, and
so does what the kernel does for a guest that swaps."""
_OF_HOST = ("cpu", "cpus", "governor", "turbo", "qemu", "cpu_model", "ordered")
_OF_GUEST = ("vcpus", "smt", "image", "boot")


@dataclass(frozen=True, slots=True)
class _Work:
    """CPU time in seconds that the guest of `instance` used while it did `amount` of the work that `key` names.

    It is `alone` where the guest has no other workload.
    """

    instance: WorkloadInstance
    key: str
    ran: float
    amount: float
    alone: bool


class CpuFloor:
    """For the cells of one run, on a host with these facts. `note` takes a line for people, and gets two at most."""

    def __init__(self, needs: CpuNeeds, accelerator: str, facts: Mapping[str, Any], note: Callable[[str], object]):
        self._needs = needs
        self._host = {"accelerator": accelerator, **{name: facts.get(name) for name in _OF_HOST}}
        self._note = note
        self._told = False

    def faults(self, plan: CellPlan, instances: Sequence[WorkloadInstance]) -> Iterator[str]:
        """A sentence for each workload whose guest used too little."""
        unknown: dict[str, None] = {}
        for work in self._works(plan, instances):
            usual = self._needs.usual(work.key)
            if usual is None:
                unknown[work.instance.plan.name] = None
            elif usual * work.amount >= _LEAST_SECONDS and work.ran < SHARE * usual * work.amount:
                yield (
                    f"{work.instance.label}: its guest used {work.ran:.2f} s of CPU time; on this host the same work "
                    f"took {usual * work.amount:.2f} s before (median), and less than a third of that does not do it"
                )
        self._tell(unknown)

    def _tell(self, unknown: Mapping[str, None]) -> None:
        if self._needs.damaged and not self._told:
            self._note("the CPU times of work on this host cannot be read, and are measured anew")
        if unknown and not self._told:
            self._told = True
            self._note(
                f"the CPU time of {', '.join(unknown)} on this host is not known yet: "
                "only the tool's own report shows that the work was done"
            )

    def learn(self, plan: CellPlan, instances: Sequence[WorkloadInstance], disturbance: Disturbance) -> None:
        """Keep what the workloads of a cell that passed have used."""
        slow = disturbance.speed_percent < _SLOWEST_PERCENT or disturbance.steal_percent > _MOST_STEAL_PERCENT
        if slow or disturbance.swapped_bytes > _MOST_SWAPPED:
            return
        self._needs.learn((one.key, one.ran / one.amount) for one in self._works(plan, instances) if one.alone)

    def _works(self, plan: CellPlan, instances: Sequence[WorkloadInstance]) -> Iterator[_Work]:
        places = Counter(place for one in plan.workloads for place in (one.source, one.target))
        guests = {guest.key: guest.resources for guest in plan.guests}
        for instance in instances:
            kind, source = kinds()[instance.plan.kind], instance.plan.source
            if not kind.needs_cpu or source not in guests or instance.collected is None:
                continue
            ran, amount = instance.ran(source), _amount(kind, instance)
            if ran > 0 and amount > 0:
                given = guests[source].model_dump(mode="json")
                key = self._key(plan, instance, {name: given.get(name) for name in _OF_GUEST})
                yield _Work(instance, key, ran, amount, alone=places[source] == 1)

    def _key(self, plan: CellPlan, instance: WorkloadInstance, guest: Mapping[str, Any]) -> str:
        own = {"kind": instance.plan.kind, "params": instance.plan.params.model_dump(mode="json")}
        around: dict[str, Any] = {}
        if not kinds()[instance.plan.kind].follows_speed:
            around = {"workload": instance.plan.name, "settings": settings_of(plan), "host settings": repr(plan.host)}
        text = json.dumps([self._host, guest, own, around], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def _amount(kind: type[AnyWorkload], instance: WorkloadInstance) -> float:
    """1 for a fixed amount of work; what was done in a fixed time by the kind's throughput."""
    assert instance.collected is not None
    values = instance.collected.values
    if not kind.is_timed(instance.plan.params.model_dump(mode="json")):
        return 1.0
    return values.get(kind.throughput, 0.0) * values[RUN_TIME]
