"""What the host has to give, and whether a plan fits into it."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from vmlab.model.errors import RefusedError
from vmlab.model.run import Accelerator
from vmlab.model.units import format_bytes
from vmlab.plan.terms import HostFacts, Plan

GUEST_OVERHEAD_BYTES = 64 * 2**20
"""What QEMU itself takes besides a guest's RAM."""


def read_host_facts(disk_folder: Path) -> HostFacts:
    """The host as it is now. `disk_folder` is where guests' disks will lie; its nearest parent that exists counts."""
    folder = disk_folder
    while not folder.exists():
        folder = folder.parent
    memory = psutil.virtual_memory()
    return HostFacts(
        memory_available_bytes=memory.available,
        memory_total_bytes=memory.total,
        disk_free_bytes=psutil.disk_usage(str(folder)).free,
        cpus=psutil.cpu_count() or 1,
        accelerator_guess=_guess(),
    )


def _guess() -> Accelerator:
    """KVM needs its device and, on x86, the processor's own extension; without that flag it cannot run our kernel."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    if os.uname().machine != "x86_64":
        return "kvm"
    words = set(Path("/proc/cpuinfo").read_text(errors="replace").split())
    return "kvm" if words & {"vmx", "svm"} else "tcg"


def memory_needed(plan: Plan) -> int:
    """Bytes that the plan's largest cell takes on the host: guests' RAM and QEMU's own."""
    return max(cell.memory_bytes + len(cell.guests) * GUEST_OVERHEAD_BYTES for cell in plan.cells)


def check_fit(plan: Plan, host: HostFacts) -> None:
    """Raises RefusedError when disk or memory cannot hold the plan; memory overcommit passes where it is allowed."""
    needed = memory_needed(plan)
    if needed > host.memory_available_bytes and not plan.scenario.allow.memory_overcommit:
        raise RefusedError(
            f"{plan.guests} guests need {format_bytes(needed)} of memory and the host has "
            f"{format_bytes(host.memory_available_bytes)} free",
            remedy="fewer --tiles, or --allow-overcommit where that is what you want to see",
        )
    if plan.disk_bytes > host.disk_free_bytes:
        raise RefusedError(
            f"the guests will write {format_bytes(plan.disk_bytes)} and the disk has "
            f"{format_bytes(host.disk_free_bytes)} free",
            remedy="a smaller --size or fewer --tiles, or clear the disk; XDG_STATE_HOME moves the lab's disks",
        )
