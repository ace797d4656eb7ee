"""Whether the host's kernel may merge pages of a running guest's memory with equal ones (KSM)."""

from __future__ import annotations

import time
from typing import Any

from vmlab.hypervisor.libvirt.qmp import qmp
from vmlab.model.errors import HypervisorError

MERGE_SECONDS = 60.0
"""A page that is unmerged is copied, under a lock that the guest's page faults need too."""


def set_mergeable(domain: Any, mergeable: bool) -> float:
    """Set QEMU's property ``merge`` of all memory of `domain`; blocks. Returns the seconds that it took.

    QEMU passes it on as MADV_MERGEABLE or MADV_UNMERGEABLE, which copies what is merged (backends/hostmem.c, and
    madvise(2)). Raises HypervisorError.
    """
    devices = [device["id"] for device in qmp(domain, "query-memdev") if "id" in device]
    if not devices:
        raise HypervisorError("QEMU names no memory of the guest")
    began = time.monotonic()
    for device in devices:
        qmp(domain, "qom-set", {"path": f"/objects/{device}", "property": "merge", "value": mergeable})
    return time.monotonic() - began
