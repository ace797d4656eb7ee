"""How threads stand still: stopped by a signal, by a debugger, or by the freezer of a cgroup.

Each thread's state is read from ``/proc/PID/task/TID/stat`` (T stopped, t traced); of one that sleeps the freezers of
its cgroups are read too. To be stopped a thread has to run: one that has not run since it was seen asleep
(``schedstat``) still sleeps, and its state is not read, as that costs three times as much; a process whose CPU clock
has not advanced since all its threads were seen asleep is not looked at further. A stop counts for the time between
samples, so that many short ones add up to what they took together, however short each is.

The first thread of each process and those in a frozen cgroup are in every sample. Of the others, more than
`_MOST_AT_ONCE` are sampled in turn, each less often.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from vmlab.system.descriptors import closed_after
from vmlab.system.mounts import Mount, hierarchies
from vmlab.telemetry.freezers import ASLEEP, WAITS, Freezers
from vmlab.telemetry.lab_cpu import cpu_clock_of
from vmlab.telemetry.source import KernelFile, reader

EVERY = 0.2
"""Seconds between two samples on average."""
_LIST_SECONDS = 1.0
"""Processes and threads are listed, and the cgroups of those that have run are read, this seldom."""
_LISTS = 12
"""The cgroups of threads that do not run are read at one listing of so many."""
_MOST_AT_ONCE = 64
STOPPED = "stopped"
_STATES = {b"T": STOPPED, b"t": "stopped by a debugger"}
_NEVER_RAN = b"0 0 0\n"
"""A thread's schedstat on kernels that do not count."""
_FROZEN = "frozen by its cgroup"
_FILE_SYSTEM = "stopped by a frozen file system"
_BY_FREEZE = b"percpu_rwsem"
"""Where in the kernel a write waits for a file system that fsfreeze(8) has frozen (include/linux/fs.h)."""
_PERHAPS = "stopped by a file system or for a moment"
"""What a thread is at the first sample that finds it there: forks and ends wait there for moves of cgroups as well."""
_INIT = 1
_MOST_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Standstill:
    """Process `pid` was `how` (a participle for people) for `seconds` in all; `name` is its command.

    Where it was one of its threads and not the whole process, `thread` is that thread's name. Of a process outside of
    this PID namespace `pid` is the number that the host has for it, less than 0.
    """

    pid: int
    name: str
    how: str
    seconds: float
    thread: str = ""


@dataclass(slots=True)
class _Process:
    pid: int
    clock: int | None
    """That of its CPU time; None where nothing tells it."""
    threads: set[int] = field(default_factory=set)
    used: int = -1
    """What the clock said last; -1 where its threads may be others since then."""
    told: int = -1
    """The same when its threads were given last."""
    awake: int = 0
    """Of its threads those that were not seen asleep since then."""
    seen: float = float("-inf")
    """When it was known to sleep last."""
    sleeps: bool = False


@dataclass(slots=True)
class _Thread:
    process: _Process
    tid: int
    folder: Path
    stat: Callable[[], bytes]
    ran: Callable[[], bytes]
    placed: Callable[[], bytes]
    """Reads its cgroups."""
    seen: float
    asleep_at: bytes = b""
    """What it had run when it was seen asleep; empty where it was not, or where nothing counts that."""
    asleep_with: int = -1
    """What its process had run when it was seen asleep."""
    has_run: bool = True
    """Whether it has run since its cgroups were read."""
    cgroups: bytes = b""
    how: str = ""
    stopped: dict[str, float] = field(default_factory=dict)
    name: str = ""


Pids = Callable[[], Iterable[int]]
"""Gives processes; any thread may call it."""


class ProcessStates:
    """One look after the other at all threads that `proc` shows, without init and the calling process.

    Where `only` is given, at those of these processes alone, as `proc` numbers them.
    """

    def __init__(
        self, proc: Path = Path("/proc"), mounts: Iterable[Mount] | None = None, only: Pids | None = None
    ) -> None:
        self._proc = proc
        self._only = only
        self._last_pid = KernelFile(proc / "loadavg")
        self._listed_as, self._listed_at, self._listings = b"", float("-inf"), 0
        self._again = False
        self._processes: dict[int, _Process] = {}
        self._threads: dict[int, _Thread] = {}
        self._turn: list[_Thread] = []
        self._names: dict[int, str] = {}
        self._own = os.getpid()
        self.mounts = list(hierarchies() if mounts is None else mounts)
        self._freezers = Freezers(self.mounts)
        self._gone: list[_Thread] = []
        self._ended: list[_Thread] = []
        self._looked, self._were_frozen = float("-inf"), False

    def look(self, now: float, seldom: float = 1.0) -> None:
        """Take a sample at `now`, in seconds of the monotonic clock; processes are listed so many times less often."""
        if now - self._listed_at >= _LIST_SECONDS * seldom:
            self.list_all(now)
        # Version 1 freezes what sleeps without running it.
        some_are_frozen = self._freezers.look()
        for process in self._processes.values():
            used = _used(process.clock)
            process.sleeps = used == process.used != -1 and not process.awake and not some_are_frozen
            if process.sleeps:
                process.seen = now
            elif used != process.used:
                process.used, process.awake = used, len(process.threads)
        for thread in self._due(some_are_frozen):
            try:
                ran = thread.ran()
                is_frozen = some_are_frozen and self._freezers.frozen(thread.cgroups)
                if ran and ran == thread.asleep_at and not thread.how and not is_frozen:
                    thread.seen = now
                    self._asleep(thread)
                    continue
                how = self._how(thread, ran)
            except OSError:
                self._forget(thread)
            else:
                self._take(thread, how, now)
        self._looked = now

    def _due(self, some_are_frozen: bool) -> list[_Thread]:
        """The threads of this sample. A signal stops a whole process, and a freezer all threads in its cgroup: these
        do not wait for their turn.
        """
        if len(self._threads) <= _MOST_AT_ONCE:
            return [one for one in self._threads.values() if not one.process.sleeps]
        awake = [one for one in self._processes.values() if not one.sleeps]
        due = {one.pid: self._threads[one.pid] for one in awake if one.pid in one.threads}
        most = max(_MOST_AT_ONCE - len(due), (_MOST_AT_ONCE + 1) // 2)
        if some_are_frozen or self._were_frozen:
            every = self._threads.values()
            due |= {one.tid: one for one in every if one.how == _FROZEN or self._freezers.frozen(one.cgroups)}
        self._were_frozen = some_are_frozen
        if not self._turn:
            self._turn = [self._threads[tid] for one in awake for tid in one.threads if tid != one.pid]
        some, self._turn = self._turn[:most], self._turn[most:]
        return [*due.values(), *(one for one in some if one.tid not in due)]

    def end(self, now: float) -> list[Standstill]:
        """All stops so far, one at most of each process and kind: that of the process, or of the thread with the
        longest. One that still lasts ends `now`.
        """
        for thread in self._threads.values():
            self._take(thread, thread.how if thread.how != _PERHAPS else "", now)
        most: dict[tuple[int, str], _Thread] = {}
        for thread in (*self._threads.values(), *self._ended):
            for how, seconds in thread.stopped.items():
                known, pid = most.get((thread.process.pid, how)), thread.process.pid
                # Of threads that were stopped together, the first one stands for the process. A signal stops all.
                apart = float("inf") if how == STOPPED else 4 * EVERY
                if known is None or seconds > known.stopped[how] + (-apart if thread.tid == pid else apart):
                    most[pid, how] = thread
        return [
            Standstill(pid, self._names[pid], how, one.stopped[how], "" if one.tid == pid else one.name)
            for (pid, how), one in most.items()
        ]

    def threads(self, *, every: bool = False) -> list[tuple[int, int, bytes]]:
        """The threads of processes that have run since the call before, or of `every` one, and those that have ended:
        the id of the process, the thread's, and its cgroups as the kernel lists them. Numbers outside of this PID
        namespace are less than 0.
        """
        some, self._gone = self._gone, []
        for process in self._processes.values():
            if every or process.used == -1 or process.used != process.told:
                process.told = process.used
                some += map(self._threads.__getitem__, process.threads)
        sign = 1 if self._only is None else -1
        return [(sign * one.process.pid, sign * one.tid, one.cgroups) for one in some]

    def list_all(self, now: float, *, every: bool = False) -> None:
        """List processes and threads, and read the cgroups of those that have run, or of `every` one."""
        self._listed_at = now
        last_pid = self._last_pid.read().rsplit(None, 1)[-1]
        is_other = last_pid != self._listed_as
        # A thread takes its number before it is shown. Those outside of this PID namespace are not counted here.
        if is_other or self._again or self._only is not None:
            self._listed_as, self._again = last_pid, is_other
            for pid in self._list_processes():
                with suppress(OSError):
                    self._list_threads(pid, self._proc / str(pid) / "task", now)
        self._listings += 1
        for place, thread in enumerate(list(self._threads.values())):
            # A thread may be put into another cgroup at any time.
            if every or thread.has_run or (place + self._listings) % _LISTS == 0:
                thread.has_run = False
                try:
                    self._read_cgroups(thread)
                except OSError:
                    self._forget(thread)

    def _read_cgroups(self, thread: _Thread) -> None:
        cgroups = thread.placed()
        if cgroups != thread.cgroups:
            thread.cgroups = cgroups
            self._freezers.add(cgroups)
            thread.process.told = -1

    def _asleep(self, thread: _Thread) -> None:
        """Note that a thread was seen asleep after its process's clock was read."""
        if thread.asleep_with != thread.process.used:
            thread.asleep_with = thread.process.used
            thread.process.awake -= 1

    def _awake(self, thread: _Thread) -> None:
        """Have a thread looked at again although it does not run: a freezer stops and thaws what sleeps where it is."""
        if thread.asleep_with == thread.process.used:
            thread.asleep_with = -1
            thread.process.awake += 1

    def _list_processes(self) -> Iterable[int]:
        if self._only is not None:
            return self._only()
        names = os.listdir(self._proc)  # noqa: PTH208 - half of iterdir's cost
        return (pid for name in names if name.isdigit() and (pid := int(name)) not in (_INIT, self._own))

    def _list_threads(self, pid: int, tasks: Path, now: float) -> None:
        # Outside of this PID namespace its number is another process's here.
        clock = cpu_clock_of(pid) if self._only is None else None
        for name in os.listdir(tasks):  # noqa: PTH208
            if (tid := int(name)) not in self._threads:
                with suppress(OSError):
                    known = len(self._threads)
                    stat = reader(tasks / name / "stat", 2 * known)
                    ran: Callable[[], bytes] = bytes
                    # Some kernels have none.
                    with suppress(OSError):
                        ran = reader(tasks / name / "schedstat", 2 * known)
                    placed = reader(tasks / name / "cgroup", 3 * known)
                    process = self._processes.setdefault(pid, _Process(pid, clock))
                    process.used = -1
                    process.threads.add(tid)
                    self._threads[tid] = _Thread(process, tid, tasks / name, stat, ran, placed, seen=now)

    def _forget(self, thread: _Thread) -> None:
        if self._threads.pop(thread.tid, None) is None:
            return
        self._gone.append(thread)
        process = thread.process
        process.threads.discard(thread.tid)
        if thread.asleep_with != process.used:
            process.awake -= 1
        if not process.threads:
            self._processes.pop(process.pid, None)
        thread.stopped.pop(_PERHAPS, None)
        if thread.stopped:
            self._ended.append(thread)

    def _how(self, thread: _Thread, ran: bytes) -> str:
        """How the thread is stopped that has `ran` so long; empty where it is not. Raises OSError where it has gone."""
        stat = thread.stat()
        # proc(5): the text after the closing bracket of comm begins with the state.
        state = stat[(at := stat.rindex(b")") + 2) : at + 1]
        how = _STATES.get(state, "")
        thread.has_run = True
        thread.asleep_at = ran if state == ASLEEP and ran != _NEVER_RAN else b""
        if state == WAITS:
            # Seldom, and it may have been put into another cgroup just now.
            self._read_cgroups(thread)
            with suppress(OSError):
                if _BY_FREEZE in _read(thread.folder / "wchan"):
                    how = _FILE_SYSTEM if thread.how in (_PERHAPS, _FILE_SYSTEM) else _PERHAPS
        if state in self._freezers.frozen(thread.cgroups):
            how = _FROZEN
        if state == ASLEEP and not how:
            self._asleep(thread)
        elif how:
            self._awake(thread)
        if how and not thread.name:
            thread.name = stat[stat.index(b"(") + 1 : at - 2].decode("utf-8", "replace")
            pid = thread.process.pid
            self._names.setdefault(pid, _command(self._proc / str(pid)))
        return how

    def _take(self, thread: _Thread, how: str, now: float) -> None:
        """Between two samples of which one found it stopped, it was stopped for half of the time."""
        if thread.how == _PERHAPS:
            seconds = thread.stopped.pop(_PERHAPS, 0.0)
            thread.how = how if how == _FILE_SYSTEM else ""
            if thread.how:
                thread.stopped[how] = thread.stopped.get(how, 0.0) + seconds
        if how or thread.how:
            since = max(thread.seen, thread.process.seen)
            # In the look before, its freezer was not in force.
            passed = now - (max(since, self._looked) if how == _FROZEN else since)
            for one in {how, thread.how} - {""}:
                thread.stopped[one] = thread.stopped.get(one, 0.0) + passed * (1.0 if how == thread.how else 0.5)
        thread.how, thread.seen = how, now


def _used(clock: int | None) -> int:
    """Nanoseconds of CPU time by this clock; -1 where it tells nothing."""
    try:
        return -1 if clock is None else time.clock_gettime_ns(clock)
    except OSError:
        return -1


def _read(path: Path) -> bytes:
    with closed_after(os.open(path, os.O_RDONLY | os.O_CLOEXEC)) as file:
        return os.pread(file, _MOST_BYTES, 0)


def _command(folder: Path) -> str:
    """The name of the program; for one that Python runs, that of its script."""
    try:
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        name = (folder / "comm").read_text(errors="replace").strip()
    except OSError:
        return "a program"
    scripts = [word for word in words[1:] if word.endswith(".py")] if name.startswith("python") else []
    return Path(scripts[0]).name if scripts else name
