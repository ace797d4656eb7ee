"""How threads stand still: stopped by a signal, by a debugger, or by the freezer of a cgroup.

Each thread's state is read from ``/proc/PID/task/TID/stat`` (T stopped, t traced); of one that sleeps the freezers of
its cgroups are read too. To be stopped a thread has to run: one that has not run since it was seen asleep
(``schedstat``) still sleeps, and its state is not read, as that costs three times as much. A stop counts for the time
between samples, so that many short ones add up to what they took together, however short each is. More than
`_MOST_AT_ONCE` threads are sampled in turn, each less often.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from vmlab.system.mounts import Mount, cgroups_in, hierarchies, mount_of
from vmlab.telemetry.source import KernelFile, reader

EVERY = 0.2
"""Seconds between two samples on average."""
_LIST_SECONDS = 1.0
"""Processes and threads are listed, and the cgroups of those that have run are read, this seldom."""
_LISTS = 8
"""The cgroups of threads that do not run are read at one listing of so many."""
_MOST_AT_ONCE = 64
STOPPED = "stopped"
_STATES = {b"T": STOPPED, b"t": "stopped by a debugger"}
_NEVER_RAN = b"0 0 0\n"
"""A thread's schedstat on kernels that do not count."""
_ASLEEP, _WAITS = b"S", b"D"
"""What a thread is said to be that a freezer of version 2 or 1 has stopped (Linux 6.18), and others are as well."""
_FROZEN = "frozen by its cgroup"
_FILE_SYSTEM = "stopped by a frozen file system"
_BY_FREEZE = b"percpu_rwsem"
"""Where in the kernel a write waits for a file system that fsfreeze(8) has frozen (include/linux/fs.h)."""
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
class _Thread:
    pid: int
    tid: int
    folder: Path
    stat: Callable[[], bytes]
    ran: Callable[[], bytes]
    seen: float
    asleep_at: bytes = b""
    """What it had run when it was seen asleep; empty where it was not, or where nothing counts that."""
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
        self._threads: dict[int, _Thread] = {}
        self._turn: list[_Thread] = []
        self._names: dict[int, str] = {}
        self._own = os.getpid()
        self.mounts = list(hierarchies() if mounts is None else mounts)
        first = mount_of("freezer", [one for one in self.mounts if one.version == 1])
        second = next((one for one in self.mounts if one.version == 2), None)
        self._freezers = [
            (prefix, mount.root, file, word)
            for mount, prefix, file, word in (
                # FROZEN, and FREEZING while one of its threads does not stop.
                (first, "freezer", "freezer.state", b"FR"),
                (second, "", "cgroup.events", b"frozen 1"),
            )
            if mount is not None
        ]
        self.changes = 0
        """Grows whenever `threads` may give something else."""
        self._places: dict[bytes, list[tuple[Path, bytes]]] = {}
        self._files: dict[Path, KernelFile] = {}
        self._ended: list[_Thread] = []

    def look(self, now: float, seldom: float = 1.0) -> None:
        """Take a sample at `now`, in seconds of the monotonic clock; processes are listed so many times less often."""
        if now - self._listed_at >= _LIST_SECONDS * seldom:
            self.list_all(now)
        if not self._turn:
            self._turn = list(self._threads.values())
        some, self._turn = self._turn[:_MOST_AT_ONCE], self._turn[_MOST_AT_ONCE:]
        frozen: dict[bytes, bool] = {}
        for thread in some:
            try:
                ran = thread.ran()
                if ran and ran == thread.asleep_at and not thread.how and not self._is_frozen(thread.cgroups, frozen):
                    thread.seen = now
                    continue
                how = self._how(thread, ran, frozen)
            except OSError:
                self._forget(thread)
            else:
                self._take(thread, how, now)

    def end(self, now: float) -> list[Standstill]:
        """All stops so far, one at most of each process and kind: that of the process, or of the thread with the
        longest. One that still lasts ends `now`.
        """
        for thread in self._threads.values():
            self._take(thread, thread.how, now)
        most: dict[tuple[int, str], _Thread] = {}
        for thread in (*self._threads.values(), *self._ended):
            for how, seconds in thread.stopped.items():
                known = most.get((thread.pid, how))
                # Of threads that were stopped together, the first one stands for the process.
                longer = known is None or seconds > known.stopped[how] + 4 * EVERY
                if known is None or longer or (thread.tid == thread.pid and seconds > known.stopped[how] - 4 * EVERY):
                    most[thread.pid, how] = thread
        return [
            Standstill(pid, self._names[pid], how, one.stopped[how], "" if one.tid == pid else one.name)
            for (pid, how), one in most.items()
        ]

    def threads(self) -> Iterator[tuple[int, int, bytes]]:
        """Each thread that there is: the id of its process, its own, and its cgroups as the kernel lists them."""
        return ((one.pid, one.tid, one.cgroups) for one in self._threads.values())

    def list_all(self, now: float) -> None:
        """List processes and threads, and read the cgroups of those that have run."""
        self._listed_at = now
        last_pid = self._last_pid.read().rsplit(None, 1)[-1]
        if last_pid != self._listed_as:
            self._listed_as = last_pid
            for pid in self._processes():
                with suppress(OSError):
                    self._list_threads(pid, self._proc / str(pid) / "task", now)
        self._listings += 1
        self.changes += 1
        for place, thread in enumerate(list(self._threads.values())):
            # A thread may be put into another cgroup at any time.
            if thread.has_run or (place + self._listings) % _LISTS == 0:
                thread.has_run = False
                try:
                    thread.cgroups = _read(thread.folder / "cgroup")
                except OSError:
                    self._forget(thread)

    def _processes(self) -> Iterable[int]:
        if self._only is not None:
            return self._only()
        names = os.listdir(self._proc)  # noqa: PTH208 - half of iterdir's cost
        return (pid for name in names if name.isdigit() and (pid := int(name)) not in (_INIT, self._own))

    def _list_threads(self, pid: int, tasks: Path, now: float) -> None:
        for name in os.listdir(tasks):  # noqa: PTH208
            if (tid := int(name)) not in self._threads:
                with suppress(OSError):
                    stat = reader(tasks / name / "stat", 2 * len(self._threads))
                    ran: Callable[[], bytes] = bytes
                    # Some kernels have none.
                    with suppress(OSError):
                        ran = reader(tasks / name / "schedstat", 2 * len(self._threads))
                    self._threads[tid] = _Thread(pid, tid, tasks / name, stat, ran, seen=now)

    def _forget(self, thread: _Thread) -> None:
        if self._threads.pop(thread.tid, None) is not None and thread.stopped:
            self._ended.append(thread)

    def _how(self, thread: _Thread, ran: bytes, frozen: dict[bytes, bool]) -> str:
        """How the thread is stopped that has `ran` so long; empty where it is not. Raises OSError where it has gone."""
        stat = thread.stat()
        # proc(5): the text after the closing bracket of comm begins with the state.
        state = stat[(at := stat.rindex(b")") + 2) : at + 1]
        how = _STATES.get(state, "")
        thread.has_run = True
        thread.asleep_at = ran if state == _ASLEEP and ran != _NEVER_RAN else b""
        if state == _WAITS:
            # Seldom, and it may have been put into another cgroup just now.
            thread.cgroups = _read(thread.folder / "cgroup")
            self.changes += 1
            with suppress(OSError):
                how = _FILE_SYSTEM if _BY_FREEZE in _read(thread.folder / "wchan") else ""
        if state in (_WAITS, _ASLEEP) and self._is_frozen(thread.cgroups, frozen):
            how = _FROZEN
        if how and not thread.name:
            thread.name = stat[stat.index(b"(") + 1 : at - 2].decode("utf-8", "replace")
            self._names.setdefault(thread.pid, _command(self._proc / str(thread.pid)))
        return how

    def _take(self, thread: _Thread, how: str, now: float) -> None:
        """Between two samples of which one found it stopped, it was stopped for half of the time."""
        if how or thread.how:
            for one in {how, thread.how} - {""}:
                whole = how == thread.how
                thread.stopped[one] = thread.stopped.get(one, 0.0) + (now - thread.seen) * (1.0 if whole else 0.5)
        thread.how, thread.seen = how, now

    def _is_frozen(self, cgroups: bytes, frozen: dict[bytes, bool]) -> bool:
        """Whether one of the `cgroups`, as the kernel lists those of a thread, is frozen; `frozen` is for one look."""
        known = frozen.get(cgroups)
        if known is None:
            if cgroups not in self._places:
                self._places[cgroups] = list(self._freezers_of(cgroups))
            known = frozen[cgroups] = any(self._has(path, word) for path, word in self._places[cgroups])
        return known

    def _freezers_of(self, cgroups: bytes) -> Iterator[tuple[Path, bytes]]:
        for controllers, inner in cgroups_in(cgroups):
            for name, root, file, word in self._freezers:
                # The cgroup at the top cannot be frozen.
                if name in (controllers or [""]) and inner != Path():
                    yield root / inner / file, word

    def _has(self, path: Path, word: bytes) -> bool:
        try:
            if path not in self._files:
                self._files[path] = KernelFile(path)
            return word in self._files[path].read()
        except OSError:
            self._files.pop(path, None)
            return False


def _read(path: Path) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(file, _MOST_BYTES, 0)
    finally:
        os.close(file)


def _command(folder: Path) -> str:
    """The name of the program; for one that Python runs, that of its script."""
    try:
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        name = (folder / "comm").read_text(errors="replace").strip()
    except OSError:
        return "a program"
    scripts = [word for word in words[1:] if word.endswith(".py")] if name.startswith("python") else []
    return Path(scripts[0]).name if scripts else name
