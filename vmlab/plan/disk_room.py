"""The room that a run takes on the host's disk: what is written there, and on an emulated disk what lies on it too."""

from __future__ import annotations

from vmlab.plan.terms import Plan

_LEAST_SIZE = 2**35
FILE_SYSTEM_BYTES = 128 * 2**20
"""What a new file system on an emulated disk takes: 84 MiB, most of it the journal (docs/evidence/performance.md)."""
IMAGE_BYTES = 1280 * 2**20
"""The image's copy: 983 MiB (docs/evidence/performance.md), and some more for packages that grow."""
SNAPSHOT_BYTES = 64 * 2**20
"""The copy of a snapshot's disk: 6 to 39 MiB (docs/evidence/performance.md)."""


def emulated_disk_size(written: int) -> int:
    """How large an emulated disk is for cells that write so many bytes: room for image and snapshots besides.

    At least 32 GiB. Only what is written takes room on the host.
    """
    return max(_LEAST_SIZE, -(-2 * written // _LEAST_SIZE) * _LEAST_SIZE)


def disk_needed(plan: Plan) -> int:
    """Bytes that the plan takes at most.

    Each cell gives back what it wrote on the host's own disk. An emulated one keeps it until the run ends, as the file
    below it never shrinks; it has copies of image and snapshots besides.
    """
    if plan.scenario.host.disk is None:
        return plan.disk_bytes
    written = sum(cell.disk_bytes for cell in plan.cells)
    copied = IMAGE_BYTES + _snapshots(plan) * SNAPSHOT_BYTES
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
