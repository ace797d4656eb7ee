"""The resources of the host, whether a plan fits, and what a lab leaves to the guests that the host runs already."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil

from vmlab.model.errors import RefusedError, UsageError
from vmlab.model.names import HOST_PLACE, IN_MEMORY
from vmlab.model.ordered import EMULATED_DISK, LIMITED_HOST
from vmlab.model.quantities import format_bytes
from vmlab.model.scenarios.scenario import Allow
from vmlab.plan.data_places import check_data_places, check_direct, lacking_room
from vmlab.plan.estimate import IMAGE_BYTES, disk_needed, emulated_disk_size, footprint, held_memory, memory_needed
from vmlab.plan.host_lacks import lacked_by, not_in_hosts_libvirt, too_many_requests
from vmlab.plan.terms import HostFacts, Plan
from vmlab.system import kvm_device
from vmlab.system.file_system import filesystem_of, nearest_folder
from vmlab.system.host_size import host_memory, read_cores, read_nodes
from vmlab.system.rights import QEMU_BYTES, Needed, too_low, why_no_locked_memory
from vmlab.telemetry.domains.neighbour_readings import neighbours
from vmlab.telemetry.domains.neighbours import described
from vmlab.telemetry.place import ON_A_DISK, refuses_overlay
from vmlab.telemetry.setting_files import most_requests, unsettable
from vmlab.telemetry.source import THE_HOST, Roots
from vmlab.workloads.registry import kinds


def read_host_facts(disk_folder: Path, roots: Roots = THE_HOST) -> HostFacts:
    """The host as it is now. `disk_folder` is where guests' disks will be; its nearest parent that this user can see is
    measured.
    """
    folder = nearest_folder(disk_folder)
    memory = host_memory()
    kind = filesystem_of(folder)
    works = kvm_device.may_work()
    return HostFacts(
        memory_available_bytes=memory.available,
        memory_total_bytes=memory.total,
        disk_free_bytes=psutil.disk_usage(str(folder)).free,
        cpus=psutil.cpu_count() or 1,
        accelerator_guess="kvm" if works else "tcg",
        kvm_refuses=kvm_device.opens() and not works,
        unsettable=unsettable(folder),
        most_requests=most_requests(folder),
        no_locked_memory=why_no_locked_memory(),
        in_memory=kind if kind in IN_MEMORY else None,
        no_overlay=refuses_overlay(folder, THE_HOST),
        neighbours=neighbours(roots.host_proc),
        cores=read_cores(),
        nodes=read_nodes(),
    )


class DoesNotFit(RefusedError):
    """Memory or disk cannot hold the plan; `resource` is which, in words, and `shortage` how much of it lacks."""

    def __init__(self, resource: str, shortage: str, remedy: str) -> None:
        super().__init__(shortage, remedy=remedy)
        self.resource = resource
        self.shortage = shortage


def check_fit(plan: Plan, host: HostFacts, *, overcommit: bool = True) -> None:
    """Raises RefusedError when disk or memory cannot hold the plan (`DoesNotFit`), or the host cannot be as it asks, or
    a limit of this process is too low for it, or an asset is missing; UsageError for an asset that no workload needs.

    Memory overcommit passes where the scenario allows it, unless `overcommit` is false. A plan of absent points alone
    has nothing to run, and is refused too.
    """
    if not plan.cells:
        why = next((f"no claim can be answered here: {one.because[0]}" for one in plan.unanswerable.values()), "")
        raise RefusedError(f"nothing to run: {why or 'every axis value is marked absent'}")
    for name in plan.host_settings:
        if name in host.unsettable:
            raise RefusedError(f"the scenario sets host.{name}, and {host.unsettable[name]}", remedy="vmlab doctor")
    for cell in plan.cells:
        if (reason := lacked_by(cell, host, plan.scenario.host.cpus)) is not None:
            raise RefusedError(reason)
        if plan.scenario.host.disk is None and (reason := too_many_requests(cell, host)) is not None:
            raise RefusedError(reason)
    if (reason := not_in_hosts_libvirt(plan)) is not None:
        raise RefusedError(f"{reason}, which qemu:///system cannot have", remedy="--hypervisor embedded")
    check_assets(plan, host)
    check_data_places(plan)
    check_direct(plan)
    for line, remedy in too_low(_needed_limits(plan)):
        raise RefusedError(line, remedy=remedy)
    _check_disk_of_host(plan, host)
    needed = memory_needed(plan, host)
    _check_size_of_host(plan, host, needed, overcommit=overcommit)
    left = left_free_bytes(host, plan.scenario.allow)
    if needed + left > host.memory_available_bytes and not (overcommit and plan.scenario.allow.memory_overcommit):
        beside = f", of which {format_bytes(left)} are left to its own guests" if left else ""
        raise DoesNotFit(
            "memory",
            f"{plan.guests} guests need {format_bytes(needed)} of memory and the host has "
            f"{format_bytes(host.memory_available_bytes)} free{beside}",
            "fewer --tiles, or --allow-overcommit where that is what you want to see",
        )
    if (held := held_memory(plan, host)) > host.memory_available_bytes:
        raise DoesNotFit(
            "memory",
            f"guests with locked memory or huge pages need {format_bytes(held)}, which cannot be overcommitted, and "
            f"the host has {format_bytes(host.memory_available_bytes)} free",
            "fewer --tiles",
        )
    if (written := disk_needed(plan, host.layers)) > host.disk_free_bytes:
        what = "the workloads" if plan.scenario.host.disk is None else f"a run on an {EMULATED_DISK}"
        raise DoesNotFit(
            "disk space",
            f"{what} will write {format_bytes(written)} and the disk has {format_bytes(host.disk_free_bytes)} free",
            "a smaller --size or fewer --tiles, or clear the disk; XDG_STATE_HOME moves the lab's disks",
        )
    for shortage in lacking_room(plan, host):
        raise DoesNotFit("disk space", shortage, "a smaller --size or fewer --tiles, or another folder")


def misfit(plan: Plan, host: HostFacts) -> RefusedError | None:
    """What `check_fit` raises for the plan; None where it fits."""
    try:
        check_fit(plan, host)
    except RefusedError as error:
        return error
    return None


def _needed_limits(plan: Plan) -> Needed:
    """A guest's disk image grows up to its size, and its memory is a file in its snapshot."""
    guests = [guest.resources for cell in plan.cells for guest in cell.guests]
    files = [IMAGE_BYTES, *(max(one.disk_bytes, one.memory_bytes) for one in guests)]
    files += [one.data_place.file_bytes(one.data_bytes) for one in guests if one.data_place and one.data_bytes]
    if plan.scenario.host.disk is not None:
        files.append(emulated_disk_size(plan.disk_bytes))
    memory = max((one.memory_bytes for one in guests), default=0)
    return Needed(max(files), memory + QEMU_BYTES, plan.guests)


def check_assets(plan: Plan, host: HostFacts) -> None:
    """Raises RefusedError for an asset that a workload needs and nobody gave, UsageError for one that none needs."""
    if host.assets is None:
        return
    for workload in (one for cell in plan.cells for one in cell.workloads):
        form = kinds()[workload.kind].asset
        if form is not None and workload.asset is None:
            raise RefusedError(
                f"workload {workload.name} needs your own copy of {form.name}: {form.what}",
                remedy=f"--asset {form.name}=PATH",
            )
    if unused := sorted(set(host.assets) - set(plan.assets)):
        raise UsageError(f"--asset {unused[0]} is given, and no workload of {plan.scenario.name} needs it")


def _check_size_of_host(plan: Plan, host: HostFacts, needed: int, *, overcommit: bool) -> None:
    """An ordered host is a part of the host, and the guests must fit into it."""
    cpus, memory = plan.scenario.host.cpus, plan.scenario.host.memory_bytes
    if cpus is not None and cpus > host.cpus:
        raise RefusedError(f"a {LIMITED_HOST} of {cpus} CPUs is larger than the host, which has {host.cpus}")
    if memory is None:
        return
    if memory > host.memory_total_bytes:
        asked, having = format_bytes(memory), format_bytes(host.memory_total_bytes)
        raise RefusedError(f"a {LIMITED_HOST} with {asked} of memory is larger than the host, which has {having}")
    if needed > memory and not (overcommit and plan.scenario.allow.memory_overcommit):
        what, having = f"{plan.guests} guests need {format_bytes(needed)} of memory", format_bytes(memory)
        raise DoesNotFit(
            "memory",
            f"{what} and the {LIMITED_HOST} has {having}",
            "fewer --tiles, more of host.memory, or --allow-overcommit where that is what you want to see",
        )


def _check_disk_of_host(plan: Plan, host: HostFacts) -> None:
    """Direct I/O succeeds in memory, so nothing later would tell that no disk was measured. An emulated disk takes an
    overlay wherever it lies.
    """
    bare = next((one.guest for cell in plan.cells for one in cell.bare), None)
    if bare is not None and host.no_overlay is not None and plan.scenario.host.disk is None:
        raise RefusedError(
            f"guest {bare} runs on the host and needs an overlay, which the file system of runs ({host.no_overlay}) "
            "does not take",
            remedy=ON_A_DISK,
        )
    if host.in_memory is None:
        return
    if bare is not None:
        raise RefusedError(
            f"guest {bare} runs on the host and has its files on the host's disk, and runs lie in memory "
            f"({host.in_memory})",
            remedy=ON_A_DISK,
        )
    for workload in (one for cell in plan.cells for one in cell.workloads if one.source == HOST_PLACE):
        if footprint(workload, host.accelerator_guess).disk_bytes:
            raise RefusedError(
                f"workload {workload.name} has its files on the host's disk, and runs lie in memory ({host.in_memory})",
                remedy=ON_A_DISK,
            )


_LEFT_FREE = 10
"""Beside other guests this part of the host's memory stays free: they grow, and the page cache is theirs too."""

_LOWER_WEIGHT_WORDS = "the lab's guests together have half the usual CPU weight"
_USUAL_WEIGHT_WORDS = "in the host's own libvirt its guests have the same CPU weight as they have"


def left_free_bytes(host: HostFacts, allow: Allow) -> int:
    """Bytes of the host's memory that the lab may not plan with; 0 where no other guest runs, or all is allowed."""
    return 0 if allow.equal_weight or not host.neighbours else host.memory_total_bytes // _LEFT_FREE


def neighbour_words(host: HostFacts, allow: Allow, *, own_weight: bool) -> Iterator[str]:
    """Who runs here beside the lab, and what it leaves them; nothing where no other guest runs.

    Without `own_weight` the lab's guests have no cgroup that is theirs alone.
    """
    if not host.neighbours:
        return
    yield f"this host runs {described(host.neighbours)}"
    if allow.equal_weight:
        yield "the lab takes CPU and memory on equal terms with them (allow.equal_weight)"
    else:
        weight = _LOWER_WEIGHT_WORDS if own_weight else _USUAL_WEIGHT_WORDS
        yield f"the lab leaves {format_bytes(left_free_bytes(host, allow))} free, and {weight}"
