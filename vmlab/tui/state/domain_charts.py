"""The charts of one of the host's own guests, from the same samples as those of the host."""

from __future__ import annotations

from vmlab.model.domain import Domain
from vmlab.tui.state.charts import Chart, Series


def domain_charts(domain: Domain, *, has_requests: bool) -> tuple[Chart, ...]:
    """CPU, memory, disk and network of `domain`; without requests, as of a QEMU alone, what its process moved."""
    name = domain.name
    percent = 100.0 * domain.vcpus if domain.vcpus else None
    disk = "domain_disk" if has_requests else "domain_host"
    charts = [
        _chart(
            "CPU",
            "%",
            name,
            percent,
            ("used", "one", "domain_cpu_percent"),
            ("steal", "four", "domain_vcpu_delay_percent"),
        ),
        _chart(
            "Memory",
            "B",
            name,
            None,
            ("resident", "one", "domain_memory_resident_bytes"),
            ("KSM", "two", "domain_ksm_merged_bytes"),
            ("used", "three", "domain_memory_used_bytes"),
            ("cached", "five", "domain_memory_cached_bytes"),
        ),
        _chart(
            "Disk rate",
            "B/s",
            name,
            None,
            ("read", "one", f"{disk}_read_bytes_per_second"),
            ("write", "three", f"{disk}_write_bytes_per_second"),
        ),
        _chart(
            "Network",
            "B/s",
            name,
            None,
            ("receive", "one", "domain_network_receive_bytes_per_second"),
            ("transmit", "three", "domain_network_transmit_bytes_per_second"),
        ),
    ]
    if has_requests:
        charts[3:3] = [
            _chart("Disk wait", "ms", name, None, ("await", "three", "domain_disk_await_ms")),
            _chart("Disk queue", "waiting", name, None, ("requests", "two", "domain_disk_queue_depth")),
        ]
    return tuple(charts)


def _chart(title: str, unit: str, name: str, top: float | None, *series: tuple[str, str, str]) -> Chart:
    terms = [(label, tone, ((f"{metric}[{name}]", 1),)) for label, tone, metric in series]
    return Chart(title, unit, tuple(Series(label, tone, one, one) for label, tone, one in terms), False, top)
