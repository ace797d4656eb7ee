"""What the host was when the run began: the configuration that stands behind every figure."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import psutil

from vmlab import __version__


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _cpu_model() -> str:
    for line in (_text("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _bracketed(path: str) -> str | None:
    """The chosen word of a sysfs list such as ``always [madvise] never``."""
    text = _text(path)
    return text.split("[", 1)[1].split("]", 1)[0] if text and "[" in text else text


def _disk_below(folder: Path) -> dict[str, Any]:
    """The block device and file system that hold `folder`."""
    device = folder.stat().st_dev
    name = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve().name
    mounts = [m for m in psutil.disk_partitions(all=True) if folder.is_relative_to(m.mountpoint)]
    mount = max(mounts, key=lambda m: len(m.mountpoint), default=None)
    queue = f"/sys/block/{name}/queue"
    return {
        "device": name if Path(f"/sys/class/block/{name}").exists() else None,
        "filesystem": mount.fstype if mount else None,
        "scheduler": _bracketed(f"{queue}/scheduler"),
        "read_ahead_kib": _text(f"{queue}/read_ahead_kb"),
        "rotational": _text(f"{queue}/rotational") == "1",
        "emulated": False,
    }


def host_facts(disks: Path) -> dict[str, Any]:
    """CPU, memory, kernel, governor, THP, KSM, the disk below `disks`, and the load before the run."""
    ksm = Path("/sys/kernel/mm/ksm")
    governor = _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {
        "hostname": platform.node(),
        "vmlab": __version__,
        "cpu": _cpu_model(),
        "cpus": psutil.cpu_count() or 1,
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "governor": governor,
        "transparent_hugepages": _bracketed("/sys/kernel/mm/transparent_hugepage/enabled"),
        "ksm": {name: _text(str(ksm / name)) for name in ("run", "sleep_millisecs", "pages_to_scan")},
        "disk": _disk_below(disks),
        "load_before": list(os.getloadavg()),
    }
