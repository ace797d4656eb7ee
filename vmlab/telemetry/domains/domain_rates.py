"""A domain's figures, from two readings of its process and two answers of libvirt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vmlab.telemetry.domains.qemu_processes import ProcessCounters
from vmlab.telemetry.source import NAN, growth

OF_PROCESS = (
    "domain_cpu_percent",
    "domain_vcpu_delay_percent",
    "domain_memory_resident_bytes",
    "domain_memory_swapped_bytes",
    "domain_ksm_merged_bytes",
    "domain_host_read_bytes_per_second",
    "domain_host_write_bytes_per_second",
)
"""From /proc."""
OF_MEMORY = ("domain_memory_used_bytes", "domain_memory_cached_bytes", "domain_memory_usable_bytes")
"""What the guest's balloon driver tells, where its owner has set a period."""
OF_DISK = (
    "domain_disk_reads_per_second",
    "domain_disk_writes_per_second",
    "domain_disk_read_bytes_per_second",
    "domain_disk_write_bytes_per_second",
    "domain_disk_await_ms",
    "domain_disk_queue_depth",
    "domain_disk_flushes_per_second",
    "domain_disk_read_depth",
    "domain_disk_flush_depth",
)
"""Of all disks together, and with ``[DOMAIN/TARGET]`` of each. What the depth of reads and that of flushes leave of the
queue's is that of writes.
"""
OF_NETWORK = ("domain_network_receive_bytes_per_second", "domain_network_transmit_bytes_per_second")
METRICS = (*OF_PROCESS, *OF_MEMORY, *OF_DISK, *OF_NETWORK)
_BLOCK = ("rd.reqs", "wr.reqs", "rd.bytes", "wr.bytes", "rd.times", "wr.times", "fl.reqs", "fl.times")
_OPTIONAL = ("fl.reqs", "fl.times")

Values = list[float]


def process_rates(now: ProcessCounters, before: ProcessCounters | None, length: float) -> Values:
    """`OF_PROCESS` over the `length` seconds between two readings."""
    merged = NAN if now.ksm_bytes is None else float(now.ksm_bytes)
    levels = [float(now.rss_bytes), float(now.swapped_bytes), merged]
    if before is None or length <= 0:
        return [NAN, NAN, *levels, NAN, NAN]
    old = before.delays_ns
    waited = sum(max(0, ns - old[thread]) for thread, ns in now.delays_ns.items() if thread in old)
    return [
        growth(now.cpu_ns, before.cpu_ns) / length / 1e7,
        waited / length / 1e7 if now.delays_ns else NAN,
        *levels,
        _rate(now.read_bytes, before.read_bytes, length),
        _rate(now.written_bytes, before.written_bytes, length),
    ]


def unseen_process_rates(now: Mapping[str, Any], before: Mapping[str, Any], length: float) -> Values:
    """`OF_PROCESS` as far as libvirt tells it, for a domain whose process is not visible."""
    resident = now.get("balloon.rss")
    delayed = [key for key in now if key.startswith("vcpu.") and key.endswith(".delay")]
    delays = [_rate(now.get(key), before.get(key), length) for key in delayed]
    return [
        _rate(now.get("cpu.time"), before.get("cpu.time"), length) / 1e7,
        sum(delays) / 1e7 if delays else NAN,
        NAN if resident is None else resident * 1024.0,
        *[NAN] * (len(OF_PROCESS) - 3),
    ]


def disk_targets(figures: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the disks in an answer that have counters."""
    return tuple(name for _, name in _blocks(figures))


def is_passed_over(now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether the disks of `before` have no counters now, as libvirt could not ask the domain (NOWAIT). It may name
    them nevertheless.
    """
    if disk_targets(now):
        return False
    named = {now.get(f"block.{place}.name") for place in range(int(now.get("block.count", 0)))}
    return any(name in named or "block.count" not in now for name in disk_targets(before))


def libvirt_rates(now: Mapping[str, Any], before: Mapping[str, Any], length: float) -> tuple[Values, dict[str, Values]]:
    """`OF_MEMORY`, `OF_DISK` and `OF_NETWORK` over the `length` seconds between two answers; `OF_DISK` of each disk."""
    old = {name: place for place, name in _blocks(before)}
    grown = {name: _grown(now, place, before, old.get(name)) for place, name in _blocks(now)}
    each = {name: _disk(one, length) for name, one in grown.items()}
    known = [one for one in grown.values() if one is not None]
    whole = [sum(column) for column in zip(*known, strict=True)] if known and len(known) == len(grown) else None
    return [*_memory(now), *_disk(whole, length), *_network(now, before, length)], each


def _blocks(figures: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    for place in range(int(figures.get("block.count", 0))):
        name = figures.get(f"block.{place}.name")
        # A backing file has a number of its own, and nothing but its size.
        if name is not None and f"block.{place}.rd.reqs" in figures:
            yield place, str(name)


def _grown(now: Mapping[str, Any], place: int, before: Mapping[str, Any], old: int | None) -> Values | None:
    """How far the counters of a disk went; None where it is new, or began anew."""
    if old is None:
        return None
    found = []
    for key in _BLOCK:
        new, last = now.get(f"block.{place}.{key}"), before.get(f"block.{old}.{key}")
        if new is None or last is None:
            if key not in _OPTIONAL:
                return None
            new = last = 0
        if new < last:
            return None
        found.append(float(new - last))
    return found


def _disk(grown: Values | None, length: float) -> Values:
    if grown is None or length <= 0:
        return [NAN] * len(OF_DISK)
    reads, writes, read_bytes, written, read_ns, write_ns, flushes, flush_ns = grown
    requests = reads + writes
    waited = read_ns + write_ns
    return [
        reads / length,
        writes / length,
        read_bytes / length,
        written / length,
        waited / requests / 1e6 if requests else 0.0,
        # Little's law: the time that all requests took together, over the time that passed.
        (waited + flush_ns) / length / 1e9,
        flushes / length,
        read_ns / length / 1e9,
        flush_ns / length / 1e9,
    ]


def _memory(now: Mapping[str, Any]) -> Values:
    """Inside the guest; used has no cache in it."""
    if not now.get("balloon.last-update"):
        return [NAN] * len(OF_MEMORY)
    total, unused, usable = (now.get(f"balloon.{key}") for key in ("available", "unused", "usable"))
    cached = now.get("balloon.disk_caches")
    used = NAN if total is None or unused is None else (total - unused - (cached or 0)) * 1024.0
    # The guest counts the three one after the other; parts that exceed the whole leave nothing that is known.
    return [used if used >= 0 else NAN, *(NAN if one is None else one * 1024.0 for one in (cached, usable))]


def _network(now: Mapping[str, Any], before: Mapping[str, Any], length: float) -> Values:
    count = int(now.get("net.count", 0))
    if not count or count != before.get("net.count"):
        return [NAN] * len(OF_NETWORK)
    keys = ([f"net.{place}.{way}.bytes" for place in range(count)] for way in ("rx", "tx"))
    return [sum(_rate(now.get(key), before.get(key), length) for key in own) for own in keys]


def _rate(now: int | None, before: int | None, length: float) -> float:
    return NAN if now is None or before is None or length <= 0 else growth(now, before) / length
