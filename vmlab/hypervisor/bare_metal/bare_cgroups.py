"""The cgroups of a guest on the host: so many CPUs and so much memory, in every hierarchy, of version 1 and 2.

They are ``machine/PREFIXbare-KEY``, or below the ordered host where there is one. Their names begin with the lab's
prefix, so they go as the cgroups of the virtual machines do, after any end.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from vmlab.hypervisor.isolation import cgroups
from vmlab.hypervisor.isolation.host_cgroups import delegate, inherit_cpus, limit_cpus, limit_memory, used_mounts
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.model.errors import RefusedError
from vmlab.system.cgroup_mounts import Mount, hierarchies, mount_of, read_cpu_list
from vmlab.system.removal import remove_cgroup

_EMPTY_SECONDS = 5.0


class BareCgroups:
    """The cgroups of one lab's guests on the host; `prefix` is the lab's, see `cgroups.prefix_of`."""

    def __init__(self, prefix: str, journal: Journal, mounts: Sequence[Mount] | None = None) -> None:
        self._prefix = prefix
        self._journal = journal
        self._mounts = used_mounts(hierarchies() if mounts is None else mounts)

    def hold(self) -> None:
        """Make the partitions, once in a run. Raises RefusedError where a controller is missing, and OSError."""
        for controller in cgroups.OF_ORDERED_HOST:
            if mount_of(controller, self._mounts) is None:
                raise RefusedError(f"no guest on the host: the cgroup controller {controller} is missing")
        lacking = [
            partition
            for partition in cgroups.partitions(self._mounts, ordered=True)
            if not (partition / f"{self._prefix}lab").exists()
        ]
        if not lacking:
            return
        for partition in lacking:
            if not cgroups.is_shared(partition):
                self._journal.add(JournalEntry("partition", str(partition)))
        # Entries are undone from the last to the first, and a partition goes once it is empty.
        self._journal.add(JournalEntry("cgroups", self._prefix))
        for partition in lacking:
            cgroups.hold(partition, self._prefix)

    def cpus(self) -> list[int]:
        """The CPUs that guests may use here. Raises OSError."""
        mount = mount_of("cpuset", self._mounts)
        assert mount is not None
        above = self._above(mount)
        if mount.version == 2:
            delegate(mount.root, mount)
            return read_cpu_list((above / "cpuset.cpus.effective").read_text())
        inherit_cpus(above)
        return read_cpu_list((above / "cpuset.cpus").read_text())

    @contextlib.contextmanager
    def made(self, key: str, cpus: list[int], memory_bytes: int) -> Iterator[list[Path]]:
        """The ``cgroup.procs`` files of guest `key` while the block runs, with limits that were read back.

        Nothing may be left in them after the block. Raises HypervisorError and OSError.
        """
        groups = [self._above(mount) / f"{self._prefix}bare-{key}" for mount in self._mounts]
        try:
            for mount, group in zip(self._mounts, groups, strict=True):
                self._make(mount, group, cpus, memory_bytes)
            yield [group / "cgroup.procs" for group in groups]
        finally:
            for group in groups:
                _removed(group)

    def _above(self, mount: Mount) -> Path:
        partition = mount.root / cgroups.PARTITION
        ordered = partition / f"{self._prefix}host.partition"
        return ordered if ordered.exists() else partition

    def _make(self, mount: Mount, group: Path, cpus: list[int], memory_bytes: int) -> None:
        if mount.version == 2:
            for folder in (mount.root, *([group.parent.parent] if group.parent.parent != mount.root else ())):
                delegate(folder, mount)
            delegate(group.parent, mount)
        elif "cpuset" in mount.controllers:
            inherit_cpus(group.parent)
        group.mkdir(exist_ok=True)
        if "cpuset" in mount.controllers:
            if mount.version == 1:
                inherit_cpus(group)
            limit_cpus(group, cpus)
        if "memory" in mount.controllers:
            limit_memory(group / ("memory.max" if mount.version == 2 else "memory.limit_in_bytes"), memory_bytes)


def _removed(group: Path) -> None:
    """Remove a cgroup; the kernel may count a process that has ended for a moment still. Raises OSError."""
    until = time.monotonic() + _EMPTY_SECONDS
    while True:
        try:
            remove_cgroup(group)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            return
