"""How much CPU the lab itself used, and from that, how much all other work on the host used.

What stands in for a part of the host, as the process of an emulated disk does, is neither: it is counted apart.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from vmlab.system.processes import TICKS_PER_SECOND, ProcessStat, stat_of
from vmlab.telemetry.host.host_cpu import CpuShares
from vmlab.telemetry.host.host_figures import FigureSource, GroupMaker, Watched
from vmlab.telemetry.source import NAN, KernelFile, Roots, growth_within, most_seconds, readable

Scope = Literal["namespace", "process"]
_SCHEDULER_CLOCK = 2
# In percent. A larger shortfall is not jitter of the clocks, and must not hide a load that comes later.
_MOST_OWED = 10.0


class NamespaceCpu:
    """CPU seconds of all processes in this PID namespace, and of those that any of them has reaped.

    In a lab these are the runner, its QEMUs and the programs that it starts on the host, where a server may have a
    process for each client. Each process's own clock is asked (clock_getcpuclockid(3): nanoseconds, one system call),
    and /proc is listed only after a new pid was used. The process `apart` is left out; `apart_seconds` has what it
    used. The lab's processes `outside` of the namespace, as the host numbers them, are added.
    """

    def __init__(
        self,
        roots: Roots,
        clock_ns: Callable[[int], int] = time.clock_gettime_ns,
        *,
        apart: int | None = None,
        outside: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        self._outside = HostsProcesses(roots.host_proc, outside)
        self._proc = roots.proc
        self._clock_ns = clock_ns
        self._apart = apart
        self._last_pid = KernelFile(roots.proc / "loadavg")
        self._listed_at = b""
        self._clocks: list[int] = []
        self._reapers: dict[int, KernelFile | None] = {}
        self._reaped = 0.0
        # Where this process is init itself, os.times includes the children that it reaped.
        self._init = None if os.getpid() == 1 else readable(roots.proc / "1/stat")

    def __call__(self) -> float:
        """The sum so far, in seconds."""
        last_pid = self._last_pid.read().rsplit(None, 1)[-1]
        if last_pid != self._listed_at:
            self._listed_at = last_pid
            self._clocks = self._list()
            self._reaped = self._reaped_seconds()
        try:
            running = sum(map(self._clock_ns, self._clocks))
        except OSError:
            running = self._of_those_left()
        times = os.times()
        reaped = times.children_user + times.children_system + self._reaped
        return running / 1e9 + reaped + self._outside()

    def _of_those_left(self) -> int:
        """Nanoseconds of the processes that still run, where one has ended since they were listed."""
        running = 0
        for clock in self._clocks:
            try:
                running += self._clock_ns(clock)
            except OSError:
                # Its time is counted for the process that reaped it.
                self._listed_at = b""
        self._reaped = self._reaped_seconds()
        return running

    def apart_seconds(self) -> float:
        """CPU seconds of the process that is counted apart; 0 without one, NaN where it has ended."""
        if self._apart is None:
            return 0.0
        try:
            return self._clock_ns(cpu_clock_of(self._apart)) / 1e9
        except OSError:
            return NAN

    def _list(self) -> list[int]:
        pids = [int(name) for name in os.listdir(self._proc) if name.isdigit()]  # noqa: PTH208 - half of iterdir's cost
        self._reapers = {pid: self._reapers.get(pid) or self._reaper(pid) for pid in pids if pid != self._apart}
        return [cpu_clock_of(pid) for pid in self._reapers]

    def _reaper(self, pid: int) -> KernelFile | None:
        """Where a process tells of its children: init and this one are asked otherwise, and a QEMU has none."""
        if pid in (1, os.getpid()):
            return None
        file = readable(self._proc / str(pid) / "stat")
        try:
            return None if file is None or b"(qemu-system" in file.read() else file
        except OSError:
            return None

    def _reaped_seconds(self) -> float:
        """By init and all others but this process, whose children `os.times` has."""
        seconds = 0.0 if self._init is None else ProcessStat.of(self._init.read()).reaped / TICKS_PER_SECOND
        for file in filter(None, self._reapers.values()):
            with suppress(OSError, ValueError):
                seconds += ProcessStat.of(file.read()).reaped / TICKS_PER_SECOND
        return seconds


class HostsProcesses:
    """CPU seconds of the processes that `pids` gives, read in the host's `proc`; of those that have ended too.

    A clock can only be asked for by a number of the own PID namespace, so it is the kernel's count in ticks of 10 ms.
    """

    def __init__(self, proc: Path, pids: Callable[[], Iterable[int]]) -> None:
        self._proc = proc
        self._pids = pids
        self._used: dict[int, int] = {}
        self._ended = 0

    def __call__(self) -> float:
        """The sum so far, in seconds."""
        now: dict[int, int] = {}
        for pid in self._pids():
            with suppress(OSError, ValueError):
                now[pid] = stat_of(self._proc / str(pid)).ran
        # A number that is used again for another process would count less than before.
        self._ended += sum(used for pid, used in self._used.items() if now.get(pid, -1) < used)
        self._used = now
        return (self._ended + sum(now.values())) / TICKS_PER_SECOND


def cpu_clock_of(pid: int) -> int:
    """The clock of the CPU time of process `pid`, for `time.clock_gettime_ns`."""
    return (~pid << 3) | _SCHEDULER_CLOCK


def process_cpu() -> float:
    """CPU seconds of this process and of its children that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


class OutsideLab:
    """The load that did not come from the lab, in percent of all CPUs.

    It is all busy time minus the lab's. The two are counted in ticks of 10 ms by different clocks, so a difference may
    be negative; it is then subtracted from the next ones, which keeps the mean right. A lab that used more than all
    CPUs, or less than before by more than such ticks (a process whose parent does not wait for its children takes its
    time along), is unknown for that tick.
    """

    title = "the host's own other work"
    names: tuple[str, ...] = ("cpu_outside_lab_percent", "cpu_lab_percent")

    def __init__(
        self,
        roots: Roots,
        cpu: CpuShares,
        scope: Scope,
        apart: int | None = None,
        outside: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        self._cpu = cpu
        self._lab: Callable[[], float] = process_cpu
        self._apart: Callable[[], float] | None = None
        if scope == "namespace":
            namespace = NamespaceCpu(roots, apart=apart, outside=outside)
            self._lab = namespace
            if apart is not None:
                self._apart = namespace.apart_seconds
                self.names = (*self.names, "cpu_emulated_disk_percent")
        self._before: float | None = None
        self._apart_before = NAN
        self._owed = 0.0

    def read(self, mono: float, length: float) -> list[float]:
        """See `Group.read`; must be called after that of its `CpuShares`."""
        now = self._lab()
        before, self._before = self._before, now
        apart = self._read_apart(length)
        if before is None or self._cpu.busy_percent != self._cpu.busy_percent:
            return [NAN, NAN, *apart]
        lab = self._share(now, before, length)
        known = [share for share in apart if not math.isnan(share)]
        if lab != lab:
            return [NAN, NAN, *apart]
        outside = self._cpu.busy_percent - lab - sum(known) - self._owed
        self._owed = min(_MOST_OWED, max(0.0, -outside))
        return [max(0.0, outside), lab, *apart]

    def _read_apart(self, length: float) -> list[float]:
        if self._apart is None:
            return []
        now = self._apart()
        before, self._apart_before = self._apart_before, now
        return [self._share(now, before, length)]

    def _share(self, now: float, before: float, length: float) -> float:
        """What was used from one reading to the next, in percent of all CPUs; NaN where that cannot be."""
        if 0 < before - now < most_seconds(0.0):
            return 0.0
        return growth_within(now, before, most_seconds(length) * self._cpu.count) / length / self._cpu.count * 100


def _outside(watched: Watched) -> OutsideLab | None:
    cpu = watched.find(CpuShares)
    return None if cpu is None else OutsideLab(watched.roots, cpu, watched.scope, watched.apart, watched.outside)


SOURCE = FigureSource((GroupMaker(OutsideLab.title, _outside),), place=2)
