"""One sample of the host as lines of text for people."""

from __future__ import annotations

import math
from collections.abc import Iterator

from vmlab.model.sample import Sample
from vmlab.model.units import format_bytes

_NOTHING = "-"
_MOST_CPUS = 16


def host_lines(sample: Sample) -> list[str]:
    """CPU, memory, KSM, pressure and disks; cache is never part of what is used."""
    return [
        *_cpu(sample),
        *_memory(sample),
        *_pressure(sample),
        *_disks(sample),
        f"Tick      {sample.length:.3f} s   {sample.lateness * 1e3:.2f} ms late"
        f"   recorder {_percent(sample.get('recorder_cpu_percent'))} of one CPU",
    ]


def _cpu(sample: Sample) -> Iterator[str]:
    yield f"CPU       {_shares(sample, '')}"
    outside, lab = sample.get("cpu_outside_lab_percent"), sample.get("cpu_lab_percent")
    yield f"          this program {_percent(lab)} | everything else {_percent(outside)}"
    cpus = list(sample.instances("cpu_user_percent"))
    for cpu in cpus[:_MOST_CPUS] if len(cpus) > 1 else ():
        yield f"  CPU {cpu:<4}{_shares(sample, f'[{cpu}]')}"


def _shares(sample: Sample, instance: str) -> str:
    states = ("user", "system", "iowait", "steal", "idle")
    return " | ".join(f"{state} {_percent(sample.get(f'cpu_{state}_percent{instance}'))}" for state in states)


def _memory(sample: Sample) -> Iterator[str]:
    parts = (
        ("used", "memory_used_bytes"),
        ("cached", "memory_cached_bytes"),
        ("buffers", "memory_buffers_bytes"),
        ("free", "memory_free_bytes"),
    )
    yield "Memory    " + " | ".join(f"{word} {_bytes(sample.get(name))}" for word, name in parts)
    dirty, writeback = sample.get("memory_dirty_bytes"), sample.get("memory_writeback_bytes")
    into, out = sample.get("swap_in_bytes_per_second"), sample.get("swap_out_bytes_per_second")
    yield (
        f"          slab cache {_bytes(sample.get('memory_reclaimable_slab_bytes'))} | dirty {_bytes(dirty)}"
        f" | writeback {_bytes(writeback)}"
    )
    yield f"          swapped in {_bytes(into)}/s | out {_bytes(out)}/s"
    if "ksm_saved_bytes" in sample.layout.position:
        yield (
            f"KSM       saved {_bytes(sample.get('ksm_saved_bytes'))} | {sample.get('ksm_pages_sharing'):.0f} pages"
            f" sharing {sample.get('ksm_pages_shared'):.0f} | ksmd {_percent(sample.get('ksmd_cpu_percent'))}"
        )


def _pressure(sample: Sample) -> Iterator[str]:
    if "pressure_io_some_percent" in sample.layout.position:
        parts = [
            f"{resource} {_number(sample.get(f'pressure_{resource}_some_percent'), '.1f')}"
            f" / {_percent(sample.get(f'pressure_{resource}_full_percent'))}"
            for resource in ("cpu", "io", "memory")
        ]
        yield "Stalled   " + " | ".join(parts) + " (some / all)"


_DISK_COLUMNS = (
    ("reads/s", "disk_reads_per_second", 1.0),
    ("writes/s", "disk_writes_per_second", 1.0),
    ("rd MB/s", "disk_read_bytes_per_second", 1e-6),
    ("wr MB/s", "disk_write_bytes_per_second", 1e-6),
    ("await", "disk_await_ms", 1.0),
    ("rd ms", "disk_read_await_ms", 1.0),
    ("wr ms", "disk_write_await_ms", 1.0),
    ("util %", "disk_util_percent", 1.0),
)


def _disks(sample: Sample) -> Iterator[str]:
    disks = sample.instances("disk_reads_per_second")
    if not disks:
        return
    yield f"{'Disk':<8}" + "".join(f"{heading:>9}" for heading, _, _ in _DISK_COLUMNS)
    for disk in disks:
        figures = (sample.get(f"{metric}[{disk}]") * scale for _, metric, scale in _DISK_COLUMNS)
        yield f"{disk:<8}" + "".join(f"{_number(figure, '.2f'):>9}" for figure in figures)


def _percent(value: float) -> str:
    return f"{_number(value, '.1f')} %"


def _bytes(value: float) -> str:
    return format_bytes(value) if math.isfinite(value) else _NOTHING


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else _NOTHING
