"""The cgroups that libvirt makes for a lab's guests: which controllers there are, and their folders' end.

They lie beside those of other labs, outside of every namespace, and outlive a killed runner.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WANTED = ("cpu", "cpuacct")
"""Shares, and the time that guests used. What is not needed is not asked for, so that no limit comes unasked."""

_PARTITION = "machine"
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted hierarchy: its root folder, and the controllers in it."""

    root: Path
    controllers: frozenset[str]


def hierarchies(mounts: Path = Path("/proc/self/mounts")) -> list[Mount]:
    """All mounted hierarchies, version 1 and 2. Version 2 counts processor time without a controller."""
    found = []
    for line in mounts.read_text().splitlines():
        _, root, kind, options = line.split()[:4]
        if kind == "cgroup":
            found.append(Mount(Path(root), frozenset(options.split(","))))
        elif kind == "cgroup2":
            names = (Path(root) / "cgroup.controllers").read_text().split()
            found.append(Mount(Path(root), frozenset({*names, "cpuacct"})))
    return found


def available_controllers(mounts: list[Mount]) -> list[str]:
    """Those of WANTED that this host has."""
    return [name for name in WANTED if any(name in mount.controllers for mount in mounts)]


def prefix_of(root: Path) -> str:
    """How libvirt begins the cgroup names of an embedded driver with this `root`: no two roots share it."""
    return f"qemu-embed-{hashlib.sha256(str(root).encode()).hexdigest()[:8]}-"


def partitions(mounts: list[Mount]) -> list[Path]:
    """The folders that libvirt puts guests in, one a hierarchy that it uses; they need not exist."""
    return [mount.root / _PARTITION for mount in mounts if mount.controllers & {*WANTED}]


def is_shared(partition: Path) -> bool:
    """Whether `partition` belongs to someone who is no lab, and so must stay when it is empty."""
    return partition.is_dir() and not any(partition.glob("qemu-embed-*-lab"))


def hold(partition: Path, prefix: str) -> None:
    """Put an empty folder into `partition`, so that no other lab's end removes it under a starting guest."""
    for _ in range(_TRIES):
        try:
            (partition / f"{prefix}lab").mkdir(parents=True, exist_ok=True)
        except FileNotFoundError:
            continue
        return


def remove_groups(partition: Path, prefix: str) -> list[str]:
    """Remove the empty cgroups below `partition` whose names begin with `prefix`; what went, as paths.

    Raises OSError where a process still runs in one.
    """
    removed = []
    for group in sorted(partition.glob(f"{prefix}*")):
        for folder in _deepest_first(group):
            folder.rmdir()
        removed.append(str(group))
    return removed


def remove_partition(partition: Path) -> bool:
    """Remove an empty partition; False where it is in use or gone."""
    try:
        partition.rmdir()
    except OSError:
        return False
    return True


def _deepest_first(folder: Path) -> Iterator[Path]:
    for child in folder.iterdir():
        if child.is_dir():
            yield from _deepest_first(child)
    yield folder
