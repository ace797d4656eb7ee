"""What the host went through while a cell's workloads ran."""

from __future__ import annotations

from vmlab.analysis.shape import AggregateDocument
from vmlab.store.reader import RunReader
from vmlab.store.samples import read_samples
from vmlab.telemetry.recorder import OWN_NAMES
from vmlab.telemetry.summary import summarise

HOST_KEYS = (
    "cpu_user_percent",
    "cpu_system_percent",
    "cpu_iowait_percent",
    "disk_await_ms",
    "disk_util_percent",
    "disk_read_bytes_per_second",
    "disk_write_bytes_per_second",
    "memory_used_bytes",
    "memory_cached_bytes",
    "ksm_saved_bytes",
)
"""The host figures that every document promises, in its order; others follow by name, the recorder's own apart."""


def host_during(reader: RunReader, since: float, until: float) -> dict[str, AggregateDocument]:
    """Mean, maximum, 95th percentile and area of every host figure from `since` to `until`; {} without samples.

    Both moments are on the monotonic clock. See `telemetry.summary.summarise` for what each is. Raises StoreError for
    a damaged store.
    """
    found = summarise(read_samples(reader, since, until), since, until)
    names = [*(key for key in HOST_KEYS if key in found), *sorted(found.keys() - {*HOST_KEYS, *OWN_NAMES})]
    return {
        name: AggregateDocument(mean=one.mean, max=one.max, p95=one.p95, area=one.area)
        for name, one in ((name, found[name]) for name in names)
    }
