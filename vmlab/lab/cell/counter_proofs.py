"""Proof that a cell's traffic took the way that was planned: through the tunnel, translated, within guests' limits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from vmlab.hypervisor.domain_spec import DomainSpec
from vmlab.hypervisor.levers.disk_limit import is_limited, limits_kept
from vmlab.hypervisor.protocols import DiskRequests, Hypervisor
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.cell.workload_instance import WorkloadInstance
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.model.concurrency import run_all
from vmlab.model.errors import DeadlineExceeded, HypervisorError, in_one_line
from vmlab.model.quantities import format_bytes
from vmlab.model.results import LeverProof, NetworkCounts, NetworkProof
from vmlab.model.scenarios.guest import BANDWIDTH
from vmlab.plan.terms import WorkloadPlan
from vmlab.workloads.registry import kinds


class NetworkCheck:
    """The counters around one cell's workloads. For a cell with plain networks alone nothing is read."""

    def __init__(self, hypervisor: Hypervisor, specs: Sequence[DomainSpec]) -> None:
        self._hypervisor = hypervisor
        self._limits = {spec.name: rate for spec in specs if (rate := spec.resources.bandwidth) is not None}
        self._behind = {spec.name for spec in specs if spec.resources.network == "vxlan"}
        self._translated = [spec.name for spec in specs if spec.resources.network == "nat"]
        self._specs = [spec for spec in specs if self._limits or self._behind or self._translated]
        self._before: NetworkCounts | None = None
        self._after: NetworkCounts | None = None
        self._seconds = 0.0

    async def begin(self) -> None:
        """Before the workloads start."""
        self._before = await self._counts()

    async def end(self, started: float) -> None:
        """After the workloads have ended, which were to start at `started` of the host's monotonic clock."""
        self._after = await self._counts()
        self._seconds = time.monotonic() - started

    async def _counts(self) -> NetworkCounts | None:
        return await self._hypervisor.network_counts(self._specs) if self._specs else None

    def proofs(self, instances: Sequence[WorkloadInstance]) -> Iterator[NetworkProof]:
        """What each device carried in between, against what the workloads moved and the limits allow."""
        before, after = self._before, self._after
        if before is None or after is None:
            return
        crossing = [one for one in instances if self._crosses(one.plan)]
        if crossing:
            least = max(1, sum(map(moved_bytes, crossing)))
            for device in ("tunnel", "cable"):
                carried = (getattr(after, device) or 0) - (getattr(before, device) or 0)
                yield NetworkProof.of(device, "", "both", carried, least, None)
        for guest in self._translated:
            touching = [one for one in instances if guest in (one.plan.source, one.plan.target) and one.plan.target]
            if touching:
                to, by = _grown(before.translated, after.translated, guest)
                # Whatever is asked has an answer, so that both directions are translated.
                yield NetworkProof.of("nat", guest, "to", to, 1, None)
                yield NetworkProof.of("nat", guest, "from", by, 1, None)
                yield NetworkProof.of("nat", guest, "both", to + by, max(1, sum(map(moved_bytes, touching))), None)
        if self._limits:
            yield from self._of_limits(before, after, instances)

    def _of_limits(
        self, before: NetworkCounts, after: NetworkCounts, instances: Sequence[WorkloadInstance]
    ) -> Iterator[NetworkProof]:
        from vmlab.hypervisor.overlay_network.guest_networks import bucket_bytes

        for guest, rate in self._limits.items():
            to, by = _grown(before.limited, after.limited, guest)
            most = round((1 + BANDWIDTH.within / 100) * rate / 8 * self._seconds) + bucket_bytes(rate)
            yield NetworkProof.of("limit", guest, "to", to, None, most)
            yield NetworkProof.of("limit", guest, "from", by, None, most)
            least = sum(moved_bytes(one) for one in instances if guest in (one.plan.source, one.plan.target))
            yield NetworkProof.of("limit", guest, "both", to + by, least, None)

    def _crosses(self, plan: WorkloadPlan) -> bool:
        return plan.target is not None and (plan.source in self._behind) is not (plan.target in self._behind)


def _grown(before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]], guest: str) -> tuple[int, int]:
    """What went to a guest and came from it in between; nothing where nothing was counted."""
    (to, by), (to_before, by_before) = after.get(guest, (0, 0)), before.get(guest, (0, 0))
    return to - to_before, by - by_before


def moved_bytes(instance: WorkloadInstance) -> int:
    """What arrived over the network by the workload's own verified account; 0 for a kind that does not count that."""
    metric = kinds()[instance.plan.kind].arrived
    return round(instance.collected.values.get(metric, 0)) if metric and instance.collected is not None else 0


def fault_of(proof: NetworkProof) -> str | None:
    """Why a cell with this proof is invalid; None where the proof agrees."""
    if proof.agrees:
        return None
    carried, least = format_bytes(proof.carried_bytes), format_bytes(proof.least_bytes or 0)
    if proof.device == "nat":
        way = "both ways" if proof.direction == "both" else f"{proof.direction} it"
        return f"{proof.guest}: {carried} had its address translated, {way}, while workloads moved {least}"
    if proof.device != "limit":
        return f"the {proof.device} carried {carried} while workloads moved {least} over it"
    if proof.most_bytes is None:
        return f"{proof.guest}: its limit carried {carried}, but its workloads moved {least}"
    most = format_bytes(proof.most_bytes)
    return f"{proof.guest}: {carried} went {proof.direction} it, where its limit lets {most} pass"


class LimitCheck:
    """What the disks of one cell's guests did between `begin` and `end`; without limits nothing is read."""

    def __init__(self, hypervisor: Hypervisor, guests: GuestSet, events: CellEvents) -> None:
        self._hypervisor = hypervisor
        self._guests = guests
        self._events = events
        self._specs: list[DomainSpec] = []
        self._before: Mapping[str, Mapping[str, DiskRequests]] = {}
        self._after: Mapping[str, Mapping[str, DiskRequests]] = {}
        self._began = self._ended = 0.0

    async def begin(self) -> None:
        """Before the workloads start."""
        self._specs = [spec for spec in self._guests.specs if is_limited(spec.resources)]
        self._began = time.monotonic()
        self._before = await self._read()

    async def end(self) -> None:
        """After they have ended. Guests of tiles that were retired meanwhile are left out."""
        there = {spec.name for spec in self._guests.specs}
        self._specs = [spec for spec in self._specs if spec.name in there]
        self._after = await self._read()
        self._ended = time.monotonic()

    async def _read(self) -> Mapping[str, Mapping[str, DiskRequests]]:
        read = await run_all(self._read_guest(spec) for spec in self._specs)
        return {spec.name: found for spec, found in zip(self._specs, read, strict=True)}

    async def _read_guest(self, spec: DomainSpec) -> Mapping[str, DiskRequests]:
        """Nothing where it cannot be read: then nobody knows whether the limit held, and nothing else is lost."""
        try:
            return await self._hypervisor.guest_disks.disk_requests(spec.name)
        except (HypervisorError, DeadlineExceeded) as error:
            self._events.doubt(f"whether limits of {spec.guest}'s disks held could not be read: {in_one_line(error)}")
            return {}

    def proofs(self) -> Iterator[LeverProof]:
        """See `disk_limit.limits_kept`; nothing before `end`."""
        for spec in self._specs if self._after else ():
            yield from limits_kept(spec, self._before[spec.name], self._after[spec.name], self._ended - self._began)
