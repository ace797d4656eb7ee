"""The memory that guests need on the host: their RAM, and what QEMU itself takes beside it."""

from __future__ import annotations

from vmlab.model.scenarios.guest import GuestResources
from vmlab.plan.terms import CellPlan, HostFacts, Plan

QEMU_BYTES = 64 * 2**20
"""QEMU's own under KVM, a guess. Before the guest runs QEMU takes 34 to 36 MiB, with 512 MiB or
2 GiB of RAM and 1 or 4 vCPUs (docs/evidence/performance.md)."""

EMULATOR_BYTES = 128 * 2**20
"""QEMU's own under TCG, but for the translated code: 81 to 128 MiB (docs/evidence/performance.md)."""

TRANSLATED_BYTES = 512 * 2**20
"""The code that TCG has translated: 212 to 474 MiB after boot, preparation and workloads, with 512 MiB or 1 GiB of RAM
and 1 or 2 vCPUs; it follows neither (docs/evidence/performance.md)."""

_BUFFER_PART = 8
"""QEMU's buffer for that code takes an eighth of the host's memory at most (tcg_region_init of QEMU 7.2)."""


def guest_memory(resources: GuestResources, host: HostFacts) -> int:
    """Bytes that one guest needs on `host` in a run: all of its RAM, and QEMU's own."""
    if host.accelerator_guess == "kvm":
        return resources.memory_bytes + QEMU_BYTES
    translated = min(TRANSLATED_BYTES, host.memory_total_bytes // _BUFFER_PART)
    return resources.memory_bytes + EMULATOR_BYTES + translated


def cell_memory(cell: CellPlan, host: HostFacts) -> int:
    """Bytes that all guests of a cell need together; beside one on the host itself there is no QEMU."""
    bare = sum(guest.resources.memory_bytes for guest in cell.bare)
    return bare + sum(guest_memory(guest.resources, host) for guest in cell.guests)


def memory_needed(plan: Plan, host: HostFacts) -> int:
    """Bytes that the plan's largest cell needs."""
    return max((cell_memory(cell, host) for cell in plan.cells), default=0)
