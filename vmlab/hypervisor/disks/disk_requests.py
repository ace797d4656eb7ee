"""How many requests of a guest's disks its QEMU has answered, and how many it has taken and not answered.

A disk by itself says neither: one that is idle answers nothing either. What QEMU has answered the guest may still not
know of, as where an interrupt was lost; that is to be asked of the guest.
"""

from __future__ import annotations

from vmlab.hypervisor.contract import DiskRequests
from vmlab.hypervisor.disks.block_nodes import Monitor
from vmlab.hypervisor.disks.latency_histograms import disks
from vmlab.model.errors import HypervisorError

_ANSWERED = "_operations"
"""The ending of QEMU's counters of requests that have ended: done, failed or invalid, by kind."""


def read(monitor: Monitor) -> dict[str, DiskRequests]:
    """Those of each disk, by its name in a scenario; blocks. Raises HypervisorError when QEMU refuses."""
    taken = _taken(monitor)
    return {
        name: DiskRequests(sum(count for key, count in stats.items() if key.endswith(_ANSWERED)), taken.get(path))
        for name, path, stats in disks(monitor)
    }


def _taken(monitor: Monitor) -> dict[str, int]:
    """By the disk's path, what is in use of all its queues; {} from a QEMU before 7.2, which does not say."""
    try:
        devices = [one["path"] for one in monitor("x-query-virtio") if one["name"] == "virtio-blk"]
    except HypervisorError:
        return {}
    return {path: sum(_in_use(monitor, path, queue) for queue in range(_queues(monitor, path))) for path in devices}


def _queues(monitor: Monitor, path: str) -> int:
    count: int = monitor("x-query-virtio-status", {"path": path})["num-vqs"]
    return count


def _in_use(monitor: Monitor, path: str, queue: int) -> int:
    count: int = monitor("x-query-virtio-queue-status", {"path": path, "queue": queue})["inuse"]
    return count
