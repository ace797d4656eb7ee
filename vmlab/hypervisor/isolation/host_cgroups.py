"""Cgroups with limits: the host that a scenario orders, around all guests of a lab, and guests on the host.

An ordered host has fewer CPUs and less memory. In each hierarchy, of version 1 and 2, ``machine/PREFIXhost.partition``
has the limits and no process. Below it libvirt puts guests into ``guests.partition``, and what runs on the host goes
into ``programs``. A guest on the host has ``machine/PREFIXbare-KEY``, or the same below the limited host.

The names begin with the lab's prefix, see `cgroups.prefix_of`, so that all of it goes as the guests' own cgroups do,
after any end.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from vmlab.hypervisor.isolation import cgroups
from vmlab.hypervisor.journal import Journal
from vmlab.model.errors import HypervisorError, RefusedError
from vmlab.model.ordered import LIMITED_HOST
from vmlab.model.quantities import format_bytes
from vmlab.model.scenarios.host_settings import HostSize
from vmlab.system.mounts import Mount, cpu_list, hierarchies, mount_of, read_cpu_list
from vmlab.system.removal import remove_cgroup
from vmlab.telemetry.host.ordered_host import GroupFiles
from vmlab.telemetry.source import PAGE_BYTES

_GUESTS = "guests.partition"
_PROGRAMS = "programs"
_CPUS, _NODES = "cpuset.cpus", "cpuset.mems"
_DELEGATED = ("cpu", *cgroups.OF_ORDERED_HOST)
_EMPTY_SECONDS = 5.0


def _name(prefix: str) -> str:
    return f"{prefix}host.partition"


def programs_of(prefix: str) -> list[Path]:
    """The ``cgroup.procs`` files into which what runs on the lab's host is written; none without an ordered one."""
    mounts = cgroups.used_mounts(hierarchies(), ordered=True)
    found = [mount.root / cgroups.PARTITION / _name(prefix) / _PROGRAMS / "cgroup.procs" for mount in mounts]
    return [file for file in found if file.exists()]


class OrderedHost:
    """The host of one lab, whose cgroups begin with `prefix`; a `size` of None on a side is the host's own there."""

    def __init__(self, prefix: str, size: HostSize, mounts: Sequence[Mount] | None = None) -> None:
        self.size = size
        self._mounts = list(hierarchies() if mounts is None else mounts)
        self._name = _name(prefix)
        self._event: int | None = None
        self._watched: int | None = None
        self._full = 0

    @property
    def partition(self) -> str:
        """Where libvirt puts the guests; it writes the suffix ``.partition`` itself."""
        return f"/{cgroups.PARTITION}/{self._name.removesuffix('.partition')}/{_GUESTS.removesuffix('.partition')}"

    @property
    def controllers(self) -> list[str]:
        """What libvirt is to use: its own choice, and what limits this host."""
        return list(dict.fromkeys([*cgroups.available_controllers(self._mounts), *cgroups.OF_ORDERED_HOST]))

    def make(self) -> None:
        """Make all cgroups, and set the limits, which are read back. The partitions above them exist.

        Raises RefusedError where a controller is missing or the host is smaller, HypervisorError and OSError.
        """
        require_controllers(LIMITED_HOST, self._mounts)
        for mount in cgroups.used_mounts(self._mounts, ordered=True):
            self._make(mount)
        self._watch()

    def _top(self, mount: Mount) -> Path:
        return mount.root / cgroups.PARTITION / self._name

    def _make(self, mount: Mount) -> None:
        top = self._top(mount)
        make_group(mount, top, None, self.size.memory_bytes)
        if "memory" in mount.controllers and mount.version == 1:
            accounting = top / "memory.use_hierarchy"
            if accounting.read_text().strip() == "0":
                accounting.write_text("1")
        if "cpuset" in mount.controllers:
            self._choose_cpus(top, cpus_below(mount, top.parent))
        if mount.version == 2:
            delegate(top, mount)
        for inner in (top / _GUESTS, top / _PROGRAMS):
            inner.mkdir(exist_ok=True)
            if "cpuset" in mount.controllers and mount.version == 1:
                inherit_cpus(inner)

    def _choose_cpus(self, folder: Path, cpus: list[int]) -> None:
        """The last ones: the first serves most interrupts of the host."""
        count = self.size.cpus
        if count is None:
            return
        if count > len(cpus):
            raise RefusedError(f"a {LIMITED_HOST} of {count} CPUs needs as many, and {len(cpus)} are to be had")
        limit_cpus(folder, cpus[-count:])

    def require_inside(self, pid: int, proc: Path = Path("/proc")) -> None:
        """Raise HypervisorError unless the process, of this PID namespace, is in it; OSError where there is none.

        libvirt starts a guest outside of all cgroups where it may not make them, and says nothing.
        """
        groups = [line.split(":", 2) for line in (proc / str(pid) / "cgroup").read_text().splitlines()]
        for controller in cgroups.OF_ORDERED_HOST:
            mount = mount_of(controller, self._mounts)
            wanted = {controller} if mount is not None and mount.version == 1 else {""}
            inside = [path for _, names, path in groups if wanted & {*names.split(",")}]
            if not any(f"/{self._name}/" in path for path in inside):
                raise HypervisorError(f"process {pid} is outside the {LIMITED_HOST}: its {controller} is not limited")

    def files(self) -> GroupFiles:
        """Where the recorder reads its figures."""
        memory = mount_of("memory", self._mounts)
        cpu = mount_of("cpuacct", [mount for mount in self._mounts if mount.version == 1]) or mount_of(
            "cpu", self._mounts
        )
        assert memory is not None
        return GroupFiles(self._top(memory), memory.version, None if cpu is None else self._top(cpu), self.size.cpus)

    def _watch(self) -> None:
        """Version 1 counts a kill in the cgroup of the process alone, which libvirt removes: so ask for each."""
        memory = mount_of("memory", self._mounts)
        assert memory is not None
        if memory.version == 1 and self.size.memory_bytes is not None:
            top = self._top(memory)
            self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._watched = os.open(top / "memory.oom_control", os.O_RDONLY | os.O_CLOEXEC)
            (top / "cgroup.event_control").write_text(f"{self._event} {self._watched}")

    def why_killed(self) -> str:
        """Why the kernel has killed a process of this host since the last call; empty where it has killed none."""
        before, self._full = self._full, self._times_full()
        if self._full <= before or self.size.memory_bytes is None:
            return ""
        return (
            f"the memory of the {LIMITED_HOST}, {format_bytes(self.size.memory_bytes)}, was full: the kernel killed it"
        )

    def _times_full(self) -> int:
        if self._event is not None:
            try:
                return self._full + os.eventfd_read(self._event)
            except BlockingIOError:
                return self._full
        memory = mount_of("memory", self._mounts)
        if memory is None or memory.version == 1:
            return self._full
        try:
            words = (self._top(memory) / "memory.events").read_text().split()
        except OSError:
            return self._full
        return int(dict(zip(words[::2], words[1::2], strict=True)).get("oom_kill", 0))

    def close(self) -> None:
        """Let go of the files; the cgroups go with the lab's others."""
        for descriptor in (self._event, self._watched):
            if descriptor is not None:
                os.close(descriptor)
        self._event = self._watched = None


class BareCgroups:
    """The cgroups of one lab's guests on the host; `prefix` is the lab's, see `cgroups.prefix_of`."""

    def __init__(self, prefix: str, journal: Journal, mounts: Sequence[Mount] | None = None) -> None:
        self._prefix = prefix
        self._journal = journal
        self._mounts = cgroups.used_mounts(hierarchies() if mounts is None else mounts, ordered=True)

    def hold(self) -> None:
        """Make the partitions, once in a run. Raises RefusedError where a controller is missing, and OSError."""
        require_controllers("guest on the host", self._mounts)
        cgroups.hold_all(self._prefix, self._mounts, self._journal, ordered=True)

    def cpus(self) -> list[int]:
        """The CPUs that guests may use here. Raises OSError."""
        mount = mount_of("cpuset", self._mounts)
        assert mount is not None
        if mount.version == 2:
            delegate(mount.root, mount)
        return cpus_below(mount, self._above(mount))

    @contextlib.contextmanager
    def made(self, key: str, cpus: list[int], memory_bytes: int) -> Iterator[list[Path]]:
        """The ``cgroup.procs`` files of guest `key` while the block runs, with limits that were read back.

        Nothing may be left in them after the block. Raises HypervisorError and OSError.
        """
        groups = [self._above(mount) / f"{self._prefix}bare-{key}" for mount in self._mounts]
        try:
            for mount, group in zip(self._mounts, groups, strict=True):
                make_group(mount, group, cpus, memory_bytes)
            yield [group / "cgroup.procs" for group in groups]
        finally:
            for group in groups:
                _removed(group)

    def _above(self, mount: Mount) -> Path:
        partition = mount.root / cgroups.PARTITION
        ordered = partition / _name(self._prefix)
        return ordered if ordered.exists() else partition


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


def require_controllers(what: str, mounts: Sequence[Mount]) -> None:
    """Raise RefusedError unless this host has the controllers that limit `what`."""
    for controller in cgroups.OF_ORDERED_HOST:
        if mount_of(controller, mounts) is None:
            raise RefusedError(f"no {what}: the cgroup controller {controller} is missing")


def make_group(mount: Mount, group: Path, cpus: list[int] | None, memory_bytes: int | None) -> None:
    """Make a cgroup with these limits, which are read back. Raises HypervisorError and OSError."""
    group.mkdir(parents=True, exist_ok=True)
    if mount.version == 2:
        for folder in reversed([one for one in group.parents if one.is_relative_to(mount.root)]):
            delegate(folder, mount)
    elif "cpuset" in mount.controllers:
        # In version 1 a new cpuset is empty, and takes no process.
        for folder in (group.parent, group):
            inherit_cpus(folder)
    if "memory" in mount.controllers and memory_bytes is not None:
        file = group / ("memory.max" if mount.version == 2 else "memory.limit_in_bytes")
        cgroups.set_value(file, str(memory_bytes), str(memory_bytes // PAGE_BYTES * PAGE_BYTES))
    if "cpuset" in mount.controllers and cpus is not None:
        limit_cpus(group, cpus)


def cpus_below(mount: Mount, folder: Path) -> list[int]:
    """The CPUs that a cgroup in `folder` can have. Raises OSError."""
    if mount.version == 2:
        return read_cpu_list((folder / "cpuset.cpus.effective").read_text())
    inherit_cpus(folder)
    return read_cpu_list((folder / _CPUS).read_text())


def limit_cpus(folder: Path, chosen: list[int]) -> None:
    """Give a cgroup these CPUs alone, and read them back. Raises HypervisorError and OSError."""
    (folder / _CPUS).write_text(cpu_list(chosen))
    if read_cpu_list((folder / _CPUS).read_text()) != chosen:
        raise HypervisorError(f"{folder / _CPUS} does not take CPUs {cpu_list(chosen)}")


def inherit_cpus(folder: Path) -> None:
    """Give a new cpuset of version 1 the CPUs and memory nodes of the one above it, without which it takes no
    process."""
    for name in (_CPUS, _NODES):
        if not (folder / name).read_text().strip():
            (folder / name).write_text((folder.parent / name).read_text().strip())


def delegate(folder: Path, mount: Mount) -> None:
    """Have what is below `folder` use the controllers. One that has a process of its own cannot: OSError (EBUSY)."""
    file = folder / "cgroup.subtree_control"
    known = file.read_text().split()
    if missing := [name for name in _DELEGATED if name in mount.controllers and name not in known]:
        file.write_text(" ".join(f"+{name}" for name in missing))
