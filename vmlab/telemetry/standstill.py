"""Notices processes of the lab that are stopped: by a signal, by a debugger, or by the freezer of a cgroup.

Twice a second each process's CPU clock is asked (clock_getcpuclockid(3), one system call). Only one that has not
advanced may be stopped: its state is read from ``/proc/PID/stat`` (T stopped, t traced), its cgroups from
``/proc/PID/cgroup``. Neither says anything of this process, in which the watch runs: it was stopped where no sample was
taken for a second and it used no CPU meanwhile.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vmlab.system.cgroup_mounts import Mount, hierarchies, mount_of
from vmlab.telemetry.lab_cpu import cpu_clock_of
from vmlab.telemetry.priority import take_precedence
from vmlab.telemetry.source import KernelFile

EVERY = 0.5
"""Seconds between two samples; a stop of a second is in one at least in which the process has used no CPU."""
_OWN_GAP = 1.0
_OWN_CPU_SHARE = 0.05
_STATES = {b"T": "stopped", b"t": "stopped by a debugger"}
_FROZEN = "frozen by its cgroup"
_INIT = 1


@dataclass(frozen=True, slots=True)
class Standstill:
    """Process `pid` was `how` (a participle for people) for `seconds`, give or take `EVERY`; `name` is its command."""

    pid: int
    name: str
    how: str
    seconds: float


@dataclass(slots=True)
class _Process:
    stat: KernelFile
    cgroup: KernelFile
    clock: int
    cpu: int = -1
    seen: float = 0.0
    """The moment of the newest sample in which it had used CPU or was not stopped, and of the one before."""
    before: float = 0.0
    since: float | None = None
    how: str = ""
    name: str = ""


class ProcessStates:
    """One look after the other at all processes that `proc` shows, without init and the calling process."""

    def __init__(self, proc: Path = Path("/proc"), mounts: Iterable[Mount] | None = None) -> None:
        self._proc = proc
        self._last_pid = KernelFile(proc / "loadavg")
        self._listed_at = b""
        self._known: dict[int, _Process] = {}
        self._own = os.getpid()
        found = list(hierarchies() if mounts is None else mounts)
        first = mount_of("freezer", [one for one in found if one.version == 1])
        second = next((one for one in found if one.version == 2), None)
        self._freezers = [
            (prefix, mount.root, file, word)
            for mount, prefix, file, word in (
                (first, "freezer", "freezer.state", b"FROZEN"),
                (second, "", "cgroup.events", b"frozen 1"),
            )
            if mount is not None
        ]
        self._places: dict[bytes, list[tuple[Path, bytes]]] = {}
        self._files: dict[Path, KernelFile] = {}
        self.ended: list[Standstill] = []
        """The stops that are over."""

    def look(self, now: float) -> None:
        """Take a sample at `now`, in seconds of the monotonic clock."""
        last_pid = self._last_pid.read().rsplit(None, 1)[-1]
        if last_pid != self._listed_at:
            self._listed_at = last_pid
            self._list(now)
        frozen: dict[Path, bool] = {}
        for pid, process in list(self._known.items()):
            try:
                how = self._how(process, frozen)
            except OSError:
                self._close(pid, process, now)
                del self._known[pid]
                continue
            if how:
                if process.since is None:
                    # To stop takes CPU time, so it happened before the sample in which that is seen.
                    process.since, process.how = (process.before + process.seen) / 2, how
                    process.name = _command(self._proc / str(pid))
            else:
                self._close(pid, process, now)
                process.before, process.seen = process.seen, now

    def end(self, now: float) -> list[Standstill]:
        """All stops so far; one that still lasts ends `now`."""
        for pid, process in self._known.items():
            process.seen = now
            self._close(pid, process, now)
        return self.ended

    def _list(self, now: float) -> None:
        for name in os.listdir(self._proc):  # noqa: PTH208 - half of iterdir's cost
            if name.isdigit() and (pid := int(name)) not in self._known and pid not in (_INIT, self._own):
                with suppress(OSError):
                    files = (KernelFile(self._proc / name / "stat"), KernelFile(self._proc / name / "cgroup"))
                    self._known[pid] = _Process(*files, cpu_clock_of(pid), seen=now, before=now)

    def _how(self, process: _Process, frozen: dict[Path, bool]) -> str:
        """How the process is stopped; empty where it is not. Raises OSError where it has gone."""
        cpu = time.clock_gettime_ns(process.clock)
        if cpu != process.cpu:
            process.cpu = cpu
            return ""
        stat = process.stat.read()
        # proc(5): the text after the closing bracket of comm begins with the state.
        state = stat[(at := stat.rindex(b")") + 2) : at + 1]
        return _STATES.get(state) or (_FROZEN if self._is_frozen(process.cgroup.read(), frozen) else "")

    def _is_frozen(self, cgroups: bytes, frozen: dict[Path, bool]) -> bool:
        """Whether one of the `cgroups`, as the kernel lists those of a process, is frozen; `frozen` is for one look."""
        if cgroups not in self._places:
            self._places[cgroups] = list(self._freezers_of(cgroups))
        for path, word in self._places[cgroups]:
            if path not in frozen:
                frozen[path] = self._has(path, word)
            if frozen[path]:
                return True
        return False

    def _freezers_of(self, cgroups: bytes) -> Iterator[tuple[Path, bytes]]:
        for line in cgroups.splitlines():
            _, controllers, inner = line.decode("utf-8", "surrogateescape").split(":", 2)
            for name, root, file, word in self._freezers:
                # The cgroup at the top cannot be frozen.
                if name in controllers.split(",") and inner != "/":
                    yield root / inner.lstrip("/") / file, word

    def _has(self, path: Path, word: bytes) -> bool:
        try:
            if path not in self._files:
                self._files[path] = KernelFile(path)
            return word in self._files[path].read()
        except OSError:
            self._files.pop(path, None)
            return False

    def _close(self, pid: int, process: _Process, now: float) -> None:
        if process.since is not None:
            last = now if process.seen == now else now - EVERY / 2
            self.ended.append(Standstill(pid, process.name, process.how, max(0.0, last - process.since)))
            process.since = None


class StandstillWatch:
    """Watches the processes of this PID namespace, from `start` until `stop`, in a thread of its own.

    `inside` is whether this is the PID namespace of a lab; where it is not, nothing is watched, since the processes
    would be those of everybody.
    """

    def __init__(
        self, *, inside: bool, proc: Path = Path("/proc"), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._states = ProcessStates(proc) if inside else None
        self._stopping = threading.Event()
        self._own: list[Standstill] = []
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._watch, name="standstill", daemon=True)

    def start(self) -> None:
        """Begin; must be called once."""
        self._thread.start()

    def stop(self) -> list[Standstill]:
        """End, and give what stood still. A second call gives the same. Raises OSError where /proc cannot be read."""
        self._stopping.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return [*self._own, *([] if self._states is None else self._states.ended)]

    def _watch(self) -> None:
        if self._states is None:
            return
        take_precedence()
        before, used = self._clock(), time.process_time()
        try:
            going = True
            while going:
                going = not self._stopping.wait(EVERY)
                now, cpu = self._clock(), time.process_time()
                gap = now - before - EVERY
                if gap >= _OWN_GAP and cpu - used < gap * _OWN_CPU_SHARE:
                    self._own.append(Standstill(os.getpid(), "", _STATES[b"T"], gap))
                self._states.look(now)
                before, used = now, cpu
            self._states.end(now)
        except OSError as error:
            self._failure = error


def longest(found: Iterable[Standstill], known: Mapping[int, str]) -> Iterator[tuple[str, str, float]]:
    """Who stood still, how, and for how many seconds in all, one of each name.

    `known` names processes of the lab; every other one is a program on the host. Of several with one name, as the
    processes of one client are, the longest counts.
    """
    sums: dict[tuple[int, str, str], float] = {}
    for one in found:
        key = (one.pid, known.get(one.pid) or f"{one.name} on the host", one.how)
        sums[key] = sums.get(key, 0.0) + one.seconds
    most: dict[tuple[str, str], float] = {}
    for (_, name, how), seconds in sums.items():
        most[name, how] = max(seconds, most.get((name, how), 0.0))
    for (name, how), seconds in most.items():
        yield name, how, seconds


def _command(folder: Path) -> str:
    """The name of the program; for one that Python runs, that of its script."""
    try:
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        name = (folder / "comm").read_text(errors="replace").strip()
    except OSError:
        return "a program"
    scripts = [word for word in words[1:] if word.endswith(".py")] if name.startswith("python") else []
    return Path(scripts[0]).name if scripts else name
