"""What the cgroups of a QEMU process limit, which no key copies: a line for each value that is not the kernel's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from vmlab.system.mounts import cgroups_in
from vmlab.telemetry.source import Roots

_UNIFIED = {
    "cpu.weight": "100",
    "cpu.max": "max 100000",
    "io.max": "",
    "io.weight": "default 100",
    "memory.max": "max",
    "memory.high": "max",
}
"""Files of version 2 with what they say where nothing is limited."""
_OLD = {
    "cpu": {"cpu.shares": "1024", "cpu.cfs_quota_us": "-1"},
    "blkio": {f"blkio.throttle.{way}_{unit}_device": "" for way in ("read", "write") for unit in ("bps", "iops")},
}
"""The same of version 1, by its controllers."""
_MORE = {"cpu.cfs_quota_us": "cpu.cfs_period_us"}
"""The file without which a value says little."""


def cgroup_lines(pid: int, roots: Roots) -> Iterator[str]:
    """One for each limit of the process's cgroups and those above; none where they cannot be read."""
    try:
        groups = list(cgroups_in((roots.proc / str(pid) / "cgroup").read_bytes()))
    except (OSError, ValueError):
        return
    top = roots.sys / "fs/cgroup"
    for controllers, inner in groups:
        files: dict[str, str] = {}
        for controller in controllers:
            files |= _OLD.get(controller, {})
        for root in [top / ",".join(controllers)] if controllers else [top, top / "unified"]:
            if ".." not in inner.parts:
                yield from _of_group(root, inner, files if controllers else _UNIFIED)


def _of_group(root: Path, inner: Path, files: Mapping[str, str]) -> Iterator[str]:
    """Of the group and those above it, but for the root of the hierarchy, which has no limits."""
    for group in (inner, *inner.parents)[:-1]:
        for name, usual in files.items():
            said = _read(root / group / name)
            if said is not None and said != usual:
                more = _read(root / group / _MORE[name]) if name in _MORE else None
                yield f"cgroup /{group}: {name} {said}{f' of {more}' if more else ''}: not copied"


def _read(file: Path) -> str | None:
    try:
        return " ".join(file.read_text().split())
    except OSError:
        return None
