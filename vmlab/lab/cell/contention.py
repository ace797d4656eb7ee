"""How guests shared the CPU while all of them wanted it: from the common start to the end of the first client.

Only guests with configured CPU shares are measured; the figures are shown beside the configured shares.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from vmlab.hypervisor.contract import Hypervisor
from vmlab.lab.cell.workload_instance import WorkloadInstance
from vmlab.model.results import Measurement
from vmlab.plan.terms import CellPlan
from vmlab.workloads.metrics import SHARES


class Contention:
    """CPU seconds of each guest in the span in which all of them worked."""

    def __init__(self, hypervisor: Hypervisor, shares: dict[str, int]) -> None:
        self._hypervisor = hypervisor
        self._shares = shares
        self._used: dict[str, float] = {}

    @classmethod
    def of(cls, plan: CellPlan, hypervisor: Hypervisor) -> Contention:
        """For the guests of `plan` that have CPU shares and run a client; empty where fewer than two do."""
        sources = {workload.source for workload in plan.workloads}
        shares = {g.key: g.resources.cpu_shares for g in plan.guests if g.key in sources}
        sharing = {key: own for key, own in shares.items() if own is not None}
        return cls(hypervisor, sharing if len(sharing) >= 2 else {})

    async def measure(self, following: Sequence[asyncio.Future[None]]) -> None:
        """Read all domains' CPU time now and when the first client has ended."""
        names = list(self._shares)
        if not names:
            return
        before = await self._hypervisor.statistics.cpu_seconds(names)
        await asyncio.wait(following, return_when=asyncio.FIRST_COMPLETED)
        after = await self._hypervisor.statistics.cpu_seconds(names)
        self._used = {name: after[name] - before[name] for name in names}

    def measurements(self, instances: Sequence[WorkloadInstance]) -> Iterator[Measurement]:
        """For each client: the share configured, the share got (fractions of their sum), the CPU seconds."""
        total_used, total_shares = sum(self._used.values()), sum(self._shares.values())
        for instance in instances:
            key = instance.plan.source
            if key not in self._used or total_used <= 0:
                continue
            place = (instance.plan.name, instance.plan.tile, instance.context.source.name)
            configured, got, seconds = SHARES
            yield Measurement(*place, configured, self._shares[key] / total_shares, "1")
            yield Measurement(*place, got, self._used[key] / total_used, "1")
            yield Measurement(*place, seconds, self._used[key], "s")
