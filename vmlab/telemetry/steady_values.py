"""What must stay as it is while the workloads of a cell run: settings of the host, and what the lab is given of it.

Each value is read before, every half second or so, and after, and compared with the first. Beside settings these are
what the cgroups of the lab's threads, and all above them, are given (weights, quotas, CPUs, limits of memory and
disks), and what each thread of a QEMU that runs is given itself: its cgroups, CPUs, scheduling policy and nice value.
For how long a quota kept a cgroup from running the kernel counts itself; the groups above this process are left out of
that: `host_counters` has them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from vmlab.system.mounts import Mount, cgroups_in, cpu_list, read_cpu_list, throttled_seconds
from vmlab.telemetry.place import disks_under, lowest_disks_under
from vmlab.telemetry.setting_files import KSM, THP, chosen_word, read_ahead_of, read_setting
from vmlab.telemetry.source import THE_HOST, KernelFile, Roots, reader

_BELOW_SYS = (
    THP,
    *(f"kernel/mm/transparent_hugepage/{name}" for name in ("defrag", "shmem_enabled", "khugepaged/defrag")),
    "kernel/sched_ext/state",
    "module/zswap/parameters/enabled",
    *(f"{KSM}/{name}" for name in ("run", "sleep_millisecs", "advisor_mode", "merge_across_nodes")),
    *(f"devices/system/cpu/{name}" for name in ("online", "smt/control", "cpufreq/boost")),
    *(f"devices/system/cpu/intel_pstate/{name}" for name in ("status", "no_turbo", "max_perf_pct", "min_perf_pct")),
    "devices/system/clocksource/clocksource0/current_clocksource",
    *(f"module/kvm/parameters/halt_poll_ns{suffix}" for suffix in ("", "_grow", "_grow_start", "_shrink")),
    *(f"devices/system/cpu/cpuidle/{name}" for name in ("current_governor", "current_governor_ro")),
)
_BY_PATTERN = ("devices/system/cpu/cpu0/cpuidle/state*/disable", "kernel/mm/hugepages/hugepages-*/nr_hugepages")
"""Below /sys, one for each idle state and each size of pages; who disables a state does so for all CPUs."""
_SCANNED = f"{KSM}/pages_to_scan"
_OF_EACH_CPU = ("scaling_governor", "energy_performance_preference")
_MOST_CPUS = 16
"""CPUs whose governor is compared; whoever changes it does so for all. The kernel moves bounds of the speed itself."""
_QUEUE = ("scheduler", "nr_requests", "rq_affinity", "nomerges", "wbt_lat_usec", "write_cache", "max_sectors_kb")
_BELOW_PROC_SYS = (
    *(f"vm/{name}" for name in ("swappiness", "vfs_cache_pressure", "nr_hugepages", "overcommit_memory")),
    *(f"vm/dirty_{name}" for name in ("ratio", "background_ratio", "bytes", "background_bytes")),
    *(f"vm/dirty_{name}_centisecs" for name in ("expire", "writeback")),
    *(f"kernel/{name}" for name in ("numa_balancing", "sched_rt_runtime_us", "sched_autogroup_enabled")),
)
_OF_GROUPS = (
    *("cpu.shares", "cpu.weight", "cpu.idle", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.max"),
    *("cpu.cfs_burst_us", "cpu.max.burst", "cpu.uclamp.min", "cpu.uclamp.max"),
    *("cpuset.cpus", "cpuset.mems", "cpuset.effective_cpus", "cpuset.cpus.effective"),
    *("memory.limit_in_bytes", "memory.swappiness", "memory.max", "memory.high", "memory.swap.max"),
    *(f"blkio.throttle.{way}_{unit}_device" for way in ("read", "write") for unit in ("bps", "iops")),
    *("blkio.weight", "blkio.weight_device", "blkio.bfq.weight", "io.max", "io.weight", "io.bfq.weight"),
)
"""Of version 1 and 2, by the kernel's names."""
_QEMU = b"(qemu-system"
_OWN = b"its own"


@dataclass(frozen=True, slots=True)
class Changed:
    """`what` had not the value `was` but another one, `became`, for some `seconds`, as far as readings tell."""

    what: str
    was: str
    became: str
    seconds: float
    pid: int | None = None
    """The process whose thread it is of; None for what is not one's alone."""


class Given(NamedTuple):
    """What a thread has of its CPUs."""

    cpus: Set[int]
    policy: int
    nice: int


Read = bytes | Given
"""What a reading gives: the text of a file, or this."""


@dataclass(frozen=True, slots=True)
class Throttled:
    """A quota kept the cgroup `group` from running for `seconds`, added up over CPUs; `pids` are its processes.

    Of one outside of this PID namespace it is the number that the host has for it, less than 0.
    """

    group: Path
    pids: frozenset[int]
    seconds: float


@dataclass(slots=True)
class _Value:
    read: Callable[[], Read]
    first: Read
    pid: int | None
    since: float | None = None
    other: Read | None = None
    seconds: float = 0.0


class SteadyValues:
    """Values by name, which are compared with what they were first. One that cannot be read any more is let go."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, int | None], _Value] = {}
        self._left: list[Changed] = []

    def __len__(self) -> int:
        return len(self._values)

    def add(self, name: str, read: Callable[[], Read], pid: int | None = None) -> None:
        """Compare what `read` gives from now on. What cannot be read, with OSError, is passed over."""
        if (name, pid) not in self._values:
            with suppress(OSError):
                self._values[name, pid] = _Value(read, read(), pid)

    def look(self, now: float) -> bool:
        """Read all of them at `now`, in seconds of the monotonic clock; whether some are not what they were first."""
        others = False
        for key, value in list(self._values.items()):
            try:
                text = value.read()
            except OSError:
                self._left += self._changed(key[0], self._values.pop(key), now)
                continue
            if text != value.first:
                value.other = text
                value.since = now if value.since is None else value.since
                others = True
            elif value.since is not None:
                value.seconds += now - value.since
                value.since = None
        return others

    def changed(self, now: float) -> list[Changed]:
        """What was changed so far."""
        return [
            *self._left,
            *(one for (name, _), value in self._values.items() for one in self._changed(name, value, now)),
        ]

    def _changed(self, name: str, value: _Value, now: float) -> list[Changed]:
        if value.other is None:
            return []
        seconds = value.seconds + (0.0 if value.since is None else now - value.since)
        return [Changed(name, _words(value.first), _words(value.other), seconds, value.pid)]


@dataclass(slots=True)
class _Quota:
    file: KernelFile
    first: float
    last: float
    pids: set[int] = field(default_factory=set)


class LabValues:
    """Those of the host, of the disks below `folders`, and of the lab's threads and their cgroups in `mounts`."""

    def __init__(self, mounts: Sequence[Mount], folders: Sequence[Path], roots: Roots = THE_HOST) -> None:
        self._mounts = mounts
        self._roots = roots
        self._steady = SteadyValues()
        self._groups: dict[bytes, list[Path]] = {}
        self._quotas: dict[Path, _Quota] = {}
        self._given: dict[int, SteadyValues] = {}
        """By thread."""
        self._open = set[int]()
        """Those that have other values now."""
        self._cgroups: dict[int, bytes] = {}
        """Of threads of a QEMU, when they were seen first."""
        self._moved: dict[int, bytes] = {}
        own = (roots.proc / "self/cgroup").read_bytes()
        self._of_this_process = frozenset(self._groups_of(own))
        for path in setting_files(folders, roots):
            self._add_file(path)

    def look(self, now: float, threads: Iterable[tuple[int, int, bytes]]) -> None:
        """Read all at `now`, of threads those of `threads`: the id of their process, their own, and their cgroups.

        Numbers of threads outside of this PID namespace are those of the host, less than 0.
        """
        for pid, tid, cgroups in threads:
            self._take_groups(pid, cgroups)
            if tid not in self._given:
                self._given[tid] = SteadyValues()
                self._add_thread(self._given[tid], pid, tid, cgroups)
            elif (first := self._cgroups.get(tid)) is not None:
                others = [line for line in cgroups.splitlines() if line not in first.splitlines()]
                self._moved[tid] = b" ".join(others) or _OWN
            self._open.add(tid)
        # What is put back on a thread that sleeps is over then.
        self._open = {tid for tid in self._open if self._given[tid].look(now)}
        self._steady.look(now)
        for quota in self._quotas.values():
            # One that was removed keeps what it counted last.
            with suppress(OSError):
                quota.last = throttled_seconds(quota.file.read()) or quota.last

    def begin(self) -> None:
        """What quotas kept from running until now counts for nothing."""
        for quota in self._quotas.values():
            quota.first = quota.last

    def _take_groups(self, pid: int, cgroups: bytes) -> None:
        if cgroups not in self._groups:
            self._groups[cgroups] = self._groups_of(cgroups)
            self._add_groups(self._groups[cgroups])
        for group in self._groups[cgroups]:
            if group in self._quotas:
                self._quotas[group].pids.add(pid)

    def changed(self, now: float) -> list[Changed]:
        """What was changed so far."""
        return [one for values in (self._steady, *self._given.values()) for one in values.changed(now)]

    def throttled(self) -> list[Throttled]:
        """The groups that a quota kept from running since they were seen first."""
        return [
            Throttled(group, frozenset(one.pids), one.last - one.first)
            for group, one in self._quotas.items()
            if one.last > one.first
        ]

    def _groups_of(self, cgroups: bytes) -> list[Path]:
        """The folders of the `cgroups`, as the kernel lists those of a thread, and of all above them."""
        found: dict[Path, None] = {}
        for controllers, inner in cgroups_in(cgroups):
            for mount in self._mounts:
                if mount.controllers & {*controllers} if mount.version == 1 else not controllers:
                    found |= dict.fromkeys(mount.root / one for one in (inner, *inner.parents))
        return list(found)

    def _add_groups(self, groups: Iterable[Path]) -> None:
        for group in groups:
            for name in _OF_GROUPS:
                self._add_file(group / name)
            if group not in self._quotas and group not in self._of_this_process:
                with suppress(OSError):
                    file = KernelFile(group / "cpu.stat")
                    counted = throttled_seconds(file.read())
                    if counted is not None:
                        self._quotas[group] = _Quota(file, counted, counted)

    def _add_file(self, path: Path) -> None:
        with suppress(OSError):
            self._steady.add(str(path), reader(path, len(self._steady)))

    def _add_thread(self, values: SteadyValues, pid: int, tid: int, cgroups: bytes) -> None:
        """Programs on the host may change their own; QEMU does not."""
        with suppress(OSError, ValueError):
            proc = self._roots.proc if pid > 0 else self._roots.host_proc
            task = proc / str(abs(pid)) / "task" / str(abs(tid))
            stat = (task.parents[1] / "stat").read_bytes()
            if _QEMU in stat:
                name = (task / "comm").read_text(errors="replace").strip()
                called = f"its thread {name} ({abs(tid)})"
                values.add(called, partial(_given, tid) if tid > 0 else _given_by(task, 2 * len(self._given)), pid)
                self._cgroups[tid], self._moved[tid] = cgroups, _OWN
                # Without this object, whose files are to be closed with it.
                values.add(f"the cgroup of {called}", partial(self._moved.__getitem__, tid), pid)


def _has_surplus(file: Path) -> bool:
    """Whether pages beyond those that were reserved may be among the counted: they come with what processes touch."""
    try:
        return (file.parent / "nr_overcommit_hugepages").read_text().strip() != "0"
    except OSError:
        return False


def setting_files(folders: Sequence[Path], roots: Roots = THE_HOST) -> Iterator[Path]:
    """The files of the host's settings that are compared; some hosts lack some."""
    yield from (roots.sys / name for name in _BELOW_SYS)
    found = (path for pattern in _BY_PATTERN for path in sorted(roots.sys.glob(pattern)))
    yield from (path for path in found if not _has_surplus(path))
    yield from (roots.proc / "sys" / name for name in _BELOW_PROC_SYS)
    if not _is_advised(roots):
        yield roots.sys / _SCANNED
    for folder in sorted((roots.sys / "devices/system/cpu").glob("cpu[0-9]*/cpufreq"))[:_MOST_CPUS]:
        yield from (folder / name for name in _OF_EACH_CPU)
    disks = disks_under(folders, roots, lambda _line: None)
    # A scheduler is that of the disks below a volume or an array.
    disks += [one for folder in folders for one in lowest_disks_under(folder, roots)]
    for disk in dict.fromkeys(disks):
        read_ahead = roots.sys / read_ahead_of(disk)
        yield read_ahead
        yield from (read_ahead.parent / name for name in _QUEUE)
        yield from sorted((read_ahead.parent / "iosched").glob("*"))
        yield read_ahead.parents[1] / "dm/suspended"


def _is_advised(roots: Roots) -> bool:
    """Whether the kernel itself sets how many pages KSM scans, and so changes that by itself."""
    with suppress(OSError):
        return read_setting(roots, f"{KSM}/advisor_mode") != "none"
    return False


def _given(tid: int) -> Given:
    """What the kernel's scheduler gives a thread."""
    return Given(os.sched_getaffinity(tid), os.sched_getscheduler(tid), os.getpriority(os.PRIO_PROCESS, tid))


def _given_by(task: Path, others: int) -> Callable[[], Given]:
    """As `_given`, of a thread that only a folder of /proc tells of."""
    stat, status = (reader(task / name, others) for name in ("stat", "status"))

    def given() -> Given:
        # proc(5): the state, which follows the closing bracket of comm, is the third field.
        fields = stat().rpartition(b") ")[2].split()
        cpus = status().partition(b"\nCpus_allowed_list:")[2].partition(b"\n")[0]
        return Given(frozenset(read_cpu_list(cpus.decode())), int(fields[41 - 3]), int(fields[19 - 3]))

    return given


def _words(text: Read) -> str:
    if isinstance(text, Given):
        return f"CPUs {cpu_list(text.cpus)}, policy {text.policy}, nice {text.nice}"
    return chosen_word(" ".join(text.decode("utf-8", "replace").split())) or "empty"
