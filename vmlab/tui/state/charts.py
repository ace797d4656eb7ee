"""Which charts the Live screen has, and from which values of a sample each is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vmlab.tui.state.history import Terms


@dataclass(frozen=True, slots=True)
class Series:
    """One area or line. `shown` is the value that stands in figures beside its `label`; `tone` names a colour.

    `drawn` may differ from `shown` where areas lie on each other: dirty pages are part of the cache; what is only
    told draws nothing. `unit` is the chart's unless it says otherwise; `minor` figures give way where room is short.
    """

    label: str
    tone: str
    shown: Terms
    drawn: Terms
    unit: str | None = None
    minor: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Series that share one scale. `unit` is ``%``, ``ms``, ``B`` or ``B/s``.

    `top` is the end of the scale: a number, the name of a value such as the total of memory, or None for the largest
    value in sight. `stacked` series add up; others are lines.
    """

    title: str
    unit: str
    series: tuple[Series, ...]
    stacked: bool
    top: float | str | None = None


def _plain(label: str, tone: str, *names: str) -> Series:
    terms = tuple((name, 1) for name in names)
    return Series(label, tone, terms, terms)


CPU = Chart(
    "CPU",
    "%",
    (
        _plain("user", "one", "cpu_user_percent"),
        _plain("system", "two", "cpu_system_percent"),
        _plain("iowait", "three", "cpu_iowait_percent"),
        _plain("steal", "four", "cpu_steal_percent"),
        replace(_plain("other", "rest", "cpu_nice_percent", "cpu_irq_percent", "cpu_softirq_percent"), minor=True),
    ),
    stacked=True,
    top=100.0,
)
MEMORY = Chart(
    "Memory",
    "B",
    (
        _plain("used", "one", "memory_used_bytes"),
        Series(
            "cached",
            "two",
            (("memory_cached_bytes", 1),),
            (("memory_cached_bytes", 1), ("memory_reclaimable_slab_bytes", 1), ("memory_dirty_bytes", -1)),
        ),
        _plain("dirty", "three", "memory_dirty_bytes"),
        _plain("buffers", "four", "memory_buffers_bytes"),
        Series("free", "rest", (("memory_free_bytes", 1),), ()),
    ),
    stacked=True,
    top="memory_total_bytes",
)
DISK_BUSY = Chart("Disk", "%", (_plain("util", "two", "disk_util_percent"),), stacked=True, top=100.0)
DISK_WAIT = Chart("Disk", "ms", (_plain("await", "three", "disk_await_ms"),), stacked=True)
DISK_RATE = Chart(
    "Disk",
    "B/s",
    (
        _plain("read", "one", "disk_read_bytes_per_second"),
        _plain("written", "three", "disk_write_bytes_per_second"),
    ),
    stacked=False,
)
KSM = Chart(
    "KSM",
    "B",
    (
        _plain("saved", "one", "ksm_saved_bytes"),
        Series("sharing", "rest", (("ksm_pages_sharing", 1),), (), unit="pages"),
    ),
    stacked=True,
)
PRESSURE = Chart(
    "Pressure",
    "%",
    (
        _plain("cpu", "one", "pressure_cpu_some_percent"),
        _plain("io", "three", "pressure_io_some_percent"),
        _plain("mem", "two", "pressure_memory_some_percent"),
    ),
    stacked=False,
    top=100.0,
)
NETWORK = Chart(
    "Lab network",
    "B/s",
    (_plain("between guests", "one", "network_receive_bytes_per_second"),),
    stacked=True,
)
