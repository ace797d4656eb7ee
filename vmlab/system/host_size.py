"""How large this host is: its memory, its CPUs and the cores that they are hardware threads of, and which of them a
number of CPUs are.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from vmlab.system.mounts import read_cpu_list

_FOLDER = Path("/sys/devices/system/cpu")
_NODES = Path("/sys/devices/system/node/has_memory")
Cores = tuple[tuple[int, ...], ...]
"""The CPUs of each core, in ascending order: two where it has two hardware threads."""


def read_cores(folder: Path = _FOLDER, allowed: Collection[int] | None = None) -> Cores:
    """The cores of `allowed`, or of all CPUs that this process may use; a core of one where no topology is known."""
    cpus = sorted(os.sched_getaffinity(0) if allowed is None else allowed)
    cores = {tuple(one for one in _siblings(folder, cpu) if one in cpus) for cpu in cpus}
    return tuple(sorted(cores))


def _siblings(folder: Path, cpu: int) -> list[int]:
    try:
        return read_cpu_list((folder / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text())
    except (OSError, ValueError):
        return [cpu]


def read_nodes(file: Path = _NODES) -> tuple[int, ...] | None:
    """The host's NUMA nodes; None where the kernel does not tell them."""
    try:
        return tuple(read_cpu_list(file.read_text()))
    except (OSError, ValueError):
        return None


def choose_cpus(cores: Cores, count: int, *, smt: bool | None, taken: Collection[int] = ()) -> list[int]:
    """`count` CPUs, the last ones, as the first serves most interrupts; those that are `taken` least often come first.

    With `smt` they are whole cores, both hardware threads of each; where it is false one thread of each core; where it
    is None any. Raises ValueError, with the reason, where `cores` has no such CPUs.
    """
    if (lack := lack_of_cpus(cores, count, smt=smt)) is not None:
        raise ValueError(lack)
    if smt is None:
        return sorted(_last([(cpu,) for core in cores for cpu in core], count, taken))
    if not smt:
        return sorted(_last([core[:1] for core in cores], count, taken))
    pairs = [core[:2] for core in cores if len(core) > 1]
    return sorted(_last(pairs, count // 2, taken))


def lack_of_cpus(cores: Cores, count: int, *, smt: bool | None) -> str | None:
    """Why `cores` has no such CPUs, see `choose_cpus`; None where it has."""
    threads, having = sum(map(len, cores)), len(cores)
    double = sum(len(core) > 1 for core in cores)
    if smt is None:
        return None if count <= threads else f"it needs {count} CPUs, and this host has {threads}"
    if not smt:
        return None if count <= having else f"it needs {count} cores, and this host has {having}"
    if count % 2:
        return f"{count} CPUs are no whole cores of two hardware threads each"
    if count // 2 <= double:
        return None
    cores_needed = "1 core" if count == 2 else f"{count // 2} cores"
    return f"it needs {cores_needed} of two hardware threads each, and this host has {double or 'none'}"


def _last(groups: Sequence[tuple[int, ...]], count: int, taken: Collection[int]) -> Iterable[int]:
    """The CPUs of `count` groups: the last of those that are taken least often."""
    used = Counter(taken)
    order = sorted(groups, key=lambda group: (max(used[cpu] for cpu in group), -max(group)))
    return (cpu for group in order[:count] for cpu in group)


def last_cpus(cores: Cores, count: int | None) -> Cores:
    """The cores of the last `count` CPUs alone, as a limited host has them; all where there is none."""
    if count is None:
        return cores
    kept = sorted(cpu for core in cores for cpu in core)[-count:]
    left = (tuple(cpu for cpu in core if cpu in kept) for core in cores)
    return tuple(core for core in left if core)


_LACKS = ".*memory stats couldn't be determined"
"""What psutil warns of where /proc/meminfo lacks lines, as in some containers; none that is read here is among them."""


class HostMemory(NamedTuple):
    """Bytes: of all memory, of what can be had without swapping, and of the page cache with what can be reclaimed."""

    total: int
    available: int
    cached: int


def host_memory() -> HostMemory:
    """The host's memory now."""
    warnings.filterwarnings("ignore", _LACKS, RuntimeWarning)
    found = psutil.virtual_memory()
    return HostMemory(found.total, found.available, found.cached)
