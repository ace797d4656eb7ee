"""How long a cell takes and how much it writes: estimates, meant to be right within a factor of two.

Guests' boots and workloads are measured alone on an idle host with two cores; what runs side by side shares the
cores, so work beyond what two cores do at once is spread over the host's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from vmlab.model.names import HOST_PLACE
from vmlab.model.run import Accelerator
from vmlab.model.scenarios.guest import GuestResources
from vmlab.plan.terms import HostFacts, WorkloadPlan
from vmlab.workloads.contract import Footprint
from vmlab.workloads.registry import kinds

BOOT_WRITES_BYTES = 48 * 2**20
"""What a guest writes from its boot until it is ready, and what its overlay needs for itself."""
_CORES_MEASURED = 2
_BOOT_ALONE: dict[Accelerator, float] = {"kvm": 3.0, "tcg": 9.0}
_BOOT_SHARE: dict[Accelerator, float] = {"kvm": 1.0, "tcg": 5.0}
"""Seconds of two whole cores that each guest's boot takes."""
_RESTORE_ALONE: dict[Accelerator, float] = {"kvm": 1.0, "tcg": 3.0}
_RESTORE_SHARE: dict[Accelerator, float] = {"kvm": 0.5, "tcg": 1.2}
"""The same for a guest that was frozen before. The figures for KVM are guesses, here and above."""
_OVERLAP = 0.7
"""Part of a workload's time that is work for the cores, and not waiting for disk or network; pauses are no part."""
_AROUND_CELL = 4.0
_FREEZE = 60.0
"""All of a tile's guests booted side by side, saved, and restored for the first time, under TCG."""


def footprint(workload: WorkloadPlan, accelerator: Accelerator, bare: Collection[str] = ()) -> Footprint:
    """What one workload costs; on the host itself, where the guests `bare` are, nothing is emulated."""
    server = workload.source if workload.target is None else workload.target
    on_host = workload.source == HOST_PLACE or {workload.source, server} <= {*bare}
    where: Accelerator = "kvm" if on_host else accelerator
    return kinds()[workload.kind](workload.params).footprint(where)


def cell_seconds(guests: int, footprints: Iterable[Footprint], host: HostFacts, *, cold: bool) -> float:
    """Seconds from nothing running to nothing left: boot or restore, prepare, execute, collect, clean up.

    Without `cold` guests are taken to be frozen already: the first run takes `freezing_seconds` more.
    """
    spread = _CORES_MEASURED / max(host.cpus, 1)
    own, share = (_BOOT_ALONE, _BOOT_SHARE) if cold else (_RESTORE_ALONE, _RESTORE_SHARE)
    start = 0.0
    if guests:
        start = max(own[host.accelerator_guess], share[host.accelerator_guess] * guests * spread)
    alone, busy = [0.0], 0.0
    for one in footprints:
        staging = one.staging_seconds if cold else 0.0
        alone.append(one.seconds + staging)
        busy += one.seconds - one.idle_seconds + staging
    together = max(*alone, _OVERLAP * busy * spread)
    return _AROUND_CELL + start + together


def freezing_seconds(workloads: Iterable[WorkloadPlan], accelerator: Accelerator) -> float:
    """Seconds that a first run takes more, for guests that are booted, staged side by side and saved."""
    return _FREEZE + max((footprint(one, accelerator).staging_seconds for one in workloads), default=0.0)


def cell_disk(guests: Sequence[GuestResources], footprints: Iterable[Footprint]) -> int:
    """Bytes that a cell takes on the host's disk: what workloads write, what booting does, and full data disks."""
    written = sum(one.disk_bytes for one in footprints) + len(guests) * BOOT_WRITES_BYTES
    return written + sum(guest.data_bytes or 0 for guest in guests if guest.allocation == "full")
