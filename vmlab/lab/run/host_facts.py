"""The host's configuration when the run began; all figures depend on it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil

from vmlab import __version__
from vmlab.analysis.record.fleet_hosts import PACKAGES
from vmlab.guests.image.catalog import Image
from vmlab.guests.image.layers import layer_versions
from vmlab.model.scenarios.host_settings import Host
from vmlab.system.entry_points import other_packages
from vmlab.system.host_size import host_memory
from vmlab.system.kvm_device import processor_fields
from vmlab.telemetry.place import disks_under
from vmlab.telemetry.setting_files import chosen_word
from vmlab.telemetry.source import Roots

_STEADY = "performance"
"""The governor that keeps the highest speed."""


def _text(path: str | Path) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _bracketed(path: str | Path) -> str | None:
    text = _text(path)
    return None if text is None else chosen_word(text)


def disk_below(folder: Path, roots: Roots) -> dict[str, Any]:
    """The whole disk and the file system that hold `folder`; None for what is not known, such as of a tmpfs."""
    name = next(iter(disks_under([folder], roots, lambda _line: None)), None)
    queue = roots.sys / "block" / str(name) / "queue"
    rotational = _text(queue / "rotational")
    mounts = [m for m in psutil.disk_partitions(all=True) if folder.is_relative_to(m.mountpoint)]
    mount = max(mounts, key=lambda m: len(m.mountpoint), default=None)
    return {
        "device": name,
        "filesystem": mount.fstype if mount else None,
        "scheduler": _bracketed(queue / "scheduler"),
        "read_ahead_kib": _text(queue / "read_ahead_kb"),
        "rotational": None if rotational is None else rotational == "1",
        "emulated": False,
    }


def facts_of_run(disks: Path, ordered: Host, layers: Iterable[Image]) -> dict[str, Any]:
    """Those of the host with what was ordered of it, and the versions of packages in the `layers` of its guests.

    Raises ImageError for a layer that is damaged.
    """
    facts = host_facts(disks)
    if ordered.disk is not None:
        facts["disk"] |= {"emulated": True, "profile": ordered.disk, "rotational": True}
    if ordered.size is not None:
        facts["ordered"] = ordered.size._asdict()
    if versions := layer_versions(layers):
        facts[PACKAGES] = versions
    return facts


def turbo(roots: Roots) -> bool | None:
    """Whether the processor may run faster than its nominal speed; None where its driver does not say so."""
    for file, on in (("intel_pstate/no_turbo", "0"), ("cpufreq/boost", "1")):
        text = _text(roots.sys / "devices/system/cpu" / file)
        if text is not None:
            return text == on
    return None


def unfixed_speed(facts: Mapping[str, Any]) -> str | None:
    """What lets the processor change its speed by itself, from `host_facts`; None where nothing is known to."""
    reasons = []
    if (governor := facts.get("governor")) not in (None, _STEADY):
        reasons.append(f"its governor is {governor}, not {_STEADY}")
    if facts.get("turbo"):
        reasons.append("turbo is on")
    return f"the processor's speed is not fixed: {' and '.join(reasons)}" if reasons else None


def host_facts(disks: Path) -> dict[str, Any]:
    """CPU and its microcode, memory, kernel, governor, THP, KSM, the disk below `disks`, the load, and plugins."""
    ksm = Path("/sys/kernel/mm/ksm")
    processor = processor_fields(_text("/proc/cpuinfo") or "")
    governor = _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {
        "hostname": platform.node(),
        "vmlab": __version__,
        "cpu": processor.get("model name") or platform.machine(),
        "microcode": processor.get("microcode"),
        "cpus": psutil.cpu_count() or 1,
        "memory_bytes": host_memory().total,
        "kernel": platform.release(),
        "governor": governor,
        "turbo": turbo(Roots()),
        "transparent_hugepages": _bracketed("/sys/kernel/mm/transparent_hugepage/enabled"),
        "ksm": {name: _text(str(ksm / name)) for name in ("run", "sleep_millisecs", "pages_to_scan")},
        "disk": disk_below(disks, Roots()),
        "load_before": list(os.getloadavg()),
        **({"plugins": plugins} if (plugins := other_packages()) else {}),
    }
