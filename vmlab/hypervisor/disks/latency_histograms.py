"""How long requests of a guest's disks take, by the histograms of a running QEMU.

QEMU counts a request from the moment at which its disk takes it from the guest's queue until it gives the answer back:
all that host, cache and disk do is in it, and nothing of the guest's own scheduler. The histograms belong to the
guest's disk and not to the files below it, and so they stay when these are opened again in another cache mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from vmlab.hypervisor.contract import DiskLatency
from vmlab.hypervisor.disks.block_nodes import Monitor
from vmlab.model.errors import HypervisorError
from vmlab.telemetry.latency_bins import BINS, OPERATIONS

_DISK = re.compile(r"/virtio-disk(\d+)(?:/|$)")
"""In a QOM path, libvirt's alias of a disk, which has the number of its target: 0 for vda."""
_NAMES = {"0": "root", "1": "data"}
_REPLIES = {"read": "rd_latency_histogram", "write": "wr_latency_histogram", "flush": "flush_latency_histogram"}


def begin(monitor: Monitor) -> None:
    """Give each disk of the guest empty histograms; blocks. Raises HypervisorError when QEMU refuses."""
    for _, path, _ in disks(monitor):
        monitor("block-latency-histogram-set", {"id": path, "boundaries": BINS.boundaries})


def read(monitor: Monitor) -> DiskLatency:
    """What each disk of the guest has counted since `begin`; blocks. Raises HypervisorError where it counts nothing."""
    return {name: _counts(name, stats) for name, _, stats in disks(monitor)}


def disks(monitor: Monitor) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The name of each disk of the guest in a scenario, its path in QEMU, and what QEMU has counted of it."""
    for one in monitor("query-blockstats"):
        path = one.get("qdev", "")
        disk = _DISK.search(path)
        if disk is not None:
            yield _NAMES.get(disk[1], f"disk{disk[1]}"), path, one["stats"]


def _counts(name: str, stats: dict[str, Any]) -> dict[str, list[int]]:
    found = {}
    for operation in OPERATIONS:
        histogram = stats.get(_REPLIES[operation])
        if histogram is None or histogram["boundaries"] != BINS.boundaries:
            raise HypervisorError(f"QEMU does not count how long a {operation} of the disk {name} takes")
        found[operation] = histogram["bins"]
    return found
