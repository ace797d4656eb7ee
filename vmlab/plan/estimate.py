"""How long a cell takes, how much it writes and how much memory it needs: estimates, meant to be right within a
factor of two.

Guests' boots and workloads are measured alone on an idle host with two cores; what runs side by side shares the
cores, so work beyond what two cores do at once is spread over the host's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType

from vmlab.model.names import DATA_FOLDER, HOST_PLACE
from vmlab.model.run import Accelerator
from vmlab.model.scenarios.guest import GuestResources
from vmlab.plan.terms import CellPlan, GuestPlan, HostFacts, Plan, WorkloadPlan
from vmlab.workloads.registry import kinds
from vmlab.workloads.workload_steps import Footprint

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


_ZEROES_A_SECOND = 200 * 2**20
"""Bytes that the host's disk takes of a data disk that is written beforehand: a guess."""


def cell_seconds(guests: Sequence[GuestPlan], footprints: Iterable[Footprint], host: HostFacts, *, cold: bool) -> float:
    """Seconds from nothing running to nothing left: boot or restore, prepare, execute, collect, clean up.

    Without `cold` guests are taken to be frozen already: the first run takes `freezing_seconds` more.
    """
    spread = _CORES_MEASURED / max(host.cpus, 1)
    own, share = (_BOOT_ALONE, _BOOT_SHARE) if cold else (_RESTORE_ALONE, _RESTORE_SHARE)
    start = 0.0
    if guests:
        start = max(own[host.accelerator_guess], share[host.accelerator_guess] * len(guests) * spread)
        written = (one.resources for one in guests if one.resources.data_preallocation == "full")
        start += sum(one.data_bytes or 0 for one in written) / _ZEROES_A_SECOND
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


FILE_SYSTEM_BYTES = 128 * 2**20
"""What a new file system takes: 84 MiB on an emulated disk, most of it the journal (docs/evidence/performance.md)."""


def cell_disk(
    guests: Sequence[GuestPlan], workloads: Sequence[WorkloadPlan], accelerator: Accelerator, bare: Collection[str] = ()
) -> int:
    """Bytes that a cell takes where runs lie: what workloads write, what booting does, and data disks.

    Data disks in a pool, a volume group or a folder of the user's lie elsewhere.
    """
    written = sum(footprint(workload, accelerator, bare).disk_bytes for workload in workloads)
    written += len(guests) * BOOT_WRITES_BYTES
    for guest in guests:
        if (place := guest.resources.data_place) is not None:
            on_it = written_to_data_disk(guest, workloads, accelerator)
            written += (0 if place.name else data_disk_bytes(guest.resources, on_it)) - on_it
    return written


def data_disk_bytes(guest: GuestResources, written: int) -> int:
    """Bytes that a guest's data disk takes where it lies, when workloads write so many to it."""
    place = guest.data_place
    if place is None:
        return 0
    if guest.allocates_all:
        return place.file_bytes(guest.data_bytes or 0)
    if place.file_system is None:
        return written
    # What btrfs overwrites goes to another place of its disk.
    return FILE_SYSTEM_BYTES + written * (2 if place.kind == "btrfs" else 1)


def written_to_data_disk(guest: GuestPlan, workloads: Iterable[WorkloadPlan], accelerator: Accelerator) -> int:
    """Bytes that workloads write to the data disk of a virtual machine that has one; databases never do."""
    return sum(
        footprint(workload, accelerator).disk_bytes
        for workload in workloads
        if workload.source == guest.key
        and PurePosixPath(getattr(workload.params, "folder", "/")).is_relative_to(DATA_FOLDER)
    )


QEMU_BYTES = 64 * 2**20
"""QEMU's own under KVM, a guess. Before the guest runs QEMU takes 34 to 36 MiB, with 512 MiB or
2 GiB of RAM and 1 or 4 vCPUs (docs/evidence/performance.md)."""

EMULATOR_BYTES = 128 * 2**20
"""QEMU's own under TCG, but for the translated code: 81 to 128 MiB (docs/evidence/performance.md)."""

TRANSLATED_BYTES = 512 * 2**20
"""The code that TCG has translated: 212 to 474 MiB after boot, preparation and workloads, with 512 MiB or 1 GiB of RAM
and 1 or 2 vCPUs; it follows neither (docs/evidence/performance.md)."""

_BUFFER_BYTES = 2**30
_BUFFER_PART = 8
"""QEMU's buffer for that code takes 1 GiB, and an eighth of the host's memory at most (tcg_region_init of QEMU 7.2)."""


def guest_memory(resources: GuestResources, host: HostFacts) -> int:
    """Bytes that one guest needs on `host` in a run: all of its RAM, and QEMU's own."""
    if host.accelerator_guess == "kvm":
        return resources.memory_bytes + QEMU_BYTES
    # Locked memory is taken whether it is used or not.
    buffer = _BUFFER_BYTES if resources.memory_lock else TRANSLATED_BYTES
    translated = min(buffer, host.memory_total_bytes // _BUFFER_PART)
    return resources.memory_bytes + EMULATOR_BYTES + translated


def cell_memory(cell: CellPlan, host: HostFacts) -> int:
    """Bytes that all guests of a cell need together; beside one on the host itself there is no QEMU."""
    bare = sum(guest.resources.memory_bytes for guest in cell.bare)
    return bare + sum(guest_memory(guest.resources, host) for guest in cell.guests)


def held_memory(plan: Plan, host: HostFacts) -> int:
    """Bytes of the guests of a cell that the host can neither swap nor leave out: locked ones, and huge pages."""
    cells = ([guest.resources for guest in cell.guests] for cell in plan.cells)
    held = ([one for one in cell if one.memory_lock or one.page_bytes] for cell in cells)
    return max((sum(guest_memory(one, host) for one in cell) for cell in held), default=0)


def memory_needed(plan: Plan, host: HostFacts) -> int:
    """Bytes that the plan's largest cell needs."""
    return max((cell_memory(cell, host) for cell in plan.cells), default=0)


_LEAST_SIZE = 2**35
IMAGE_BYTES = 1280 * 2**20
"""The image's copy: 983 MiB (docs/evidence/performance.md), and some more for packages that grow."""
SNAPSHOT_BYTES = 64 * 2**20
"""The copy of a snapshot's disk: 6 to 39 MiB (docs/evidence/performance.md)."""


def emulated_disk_size(written: int) -> int:
    """How large an emulated disk is for cells that write so many bytes: room for image and snapshots besides.

    At least 32 GiB. Only what is written takes room on the host.
    """
    return max(_LEAST_SIZE, -(-2 * written // _LEAST_SIZE) * _LEAST_SIZE)


def disk_needed(plan: Plan, layers: Mapping[str, int] = MappingProxyType({})) -> int:
    """Bytes that the plan takes at most.

    Each cell gives back what it wrote on the host's own disk. An emulated one keeps it until the run ends, as the file
    below it never shrinks; it has copies of image, layers and snapshots besides. `layers` as in `HostFacts`.
    """
    if plan.scenario.host.disk is None:
        return plan.disk_bytes
    written = sum(cell.disk_bytes for cell in plan.cells)
    # A layer that is not built yet is a copy of the image, and packages.
    of_layers = sum(layers.get(" ".join(one), IMAGE_BYTES) for one in plan.layers)
    copied = IMAGE_BYTES + of_layers + _snapshots(plan) * SNAPSHOT_BYTES
    return min(emulated_disk_size(plan.disk_bytes), FILE_SYSTEM_BYTES + copied + written)


def _snapshots(plan: Plan) -> int:
    """How many snapshots there are at most: those of equal machines and work share one, as those of all tiles."""
    if plan.cold:
        return 0
    known = set()
    for cell in plan.cells:
        for guest in (one for one in cell.guests if one.tile == 1):
            own = [work for work in cell.workloads if guest.key in (work.source, work.target)]
            work = tuple((one.name, one.params.model_dump_json()) for one in own)
            known.add((guest.guest, guest.machine, work))
    return len(known)
