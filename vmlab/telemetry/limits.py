"""When the host's CPUs or its disk are at their limit, in one tick; docs/reference/telemetry.md has why."""

from __future__ import annotations

from vmlab.model.sample import Sample

CPU_BUSY = 95.0
"""Percent of all CPUs, or of a guest's processors, that count as all of them."""
DISK_BUSY = 90.0
"""Percent of a tick with a request under way, from which on the disk is at its limit."""
MOST_OF_THE_TIME = 50.0
"""Percent of the time at its limit, from which on CPU or disk bound what ran."""


def cpu_busy(sample: Sample) -> float:
    """The share of all CPUs that worked, in percent: neither idle nor idle while a request was at the disk."""
    return 100.0 - sample.get("cpu_idle_percent") - sample.get("cpu_iowait_percent")
