"""Runs inside a guest: looks once a second which of its processes stand still, until it is told to end.

Only the standard library of Python 3.9, started with ``-I -S``. It says ``{"ready": true}``, counts anew at a first
line on standard input, and after a second one says ``{"stopped": [[NAME, HOW, SECONDS], …], "seconds": S}``, those that
stood longest first. HOW is ``stopped`` (by a signal or a debugger), ``frozen`` (by a cgroup), ``throttled`` (a cgroup,
by a quota, added up over processors), ``offline`` (processors) or ``without a carrier`` (network cards, at least once,
which come first: nobody knows for how long). Who is stopped of what the lab itself has started here is left out, until
its parent ends: ``start_line`` watches clients. So are kernel threads, and what stood still before and never went on.

A file of each process and cgroup stays open, so that a look is one read of each; a process may be moved to another
cgroup at any time, so the members of one are read while it is frozen. Half of the time before and after each look is
taken to be like it. Where this program itself stood still, all did.
"""

from __future__ import annotations

import json
import os
import resource
import select
import sys
import time

LOOK = 1.0
KTHREADD = 2
MOST_TOLD = 5
CGROUPS = "/sys/fs/cgroup"
ONLINE = "/sys/devices/system/cpu/online"
CARDS = "/sys/class/net"
START_LINE = b"/run/vmlab/start_line.py"


class Process:
    """`how` it stands still now, "" for not; `seconds` by how it did; whether it has since `before` anybody looked."""

    def __init__(self, name: str, stat: int) -> None:
        self.name, self.stat = name, stat
        self.how, self.before = "", False
        self.seconds: dict[str, float] = {}


class Group:
    """A cgroup: its freezer, kept open, -1 for none; how many groups it had below it, and which."""

    def __init__(self, path: str, inode: int) -> None:
        self.inode, self.nlink, self.below = inode, -1, list[str]()
        self.throttled = throttled(path)
        try:
            self.freezer = os.open(f"{path}/cgroup.freeze", os.O_RDONLY)
        except OSError:
            self.freezer = -1

    def close(self) -> None:
        if self.freezer >= 0:
            os.close(self.freezer)


class Groups:
    """The cgroups of version 2 from `top` on."""

    def __init__(self, top: str) -> None:
        self.top = top
        self.known: dict[str, Group] = {}

    def look(self) -> None:
        """Find those that are new, and forget those that have gone."""
        found, left = set(), [self.top] if os.path.exists(f"{self.top}/cgroup.controllers") else []
        while left:
            path = left.pop()
            try:
                now = os.stat(path)
                group = self.known.get(path)
                if group is None or group.inode != now.st_ino:
                    # A service that starts again has a new one with the old name.
                    if group is not None:
                        group.close()
                    group = self.known[path] = Group(path, now.st_ino)
                if now.st_nlink != group.nlink:
                    group.below = [one.path for one in os.scandir(path) if one.is_dir()]
                    group.nlink = now.st_nlink
            except OSError:
                # It has gone, and another may have come, so that there are as many.
                if (above := self.known.get(os.path.dirname(path))) is not None:
                    above.nlink = -1
                continue
            found.add(path)
            left += group.below
        for path in self.known.keys() - found:
            self.known.pop(path).close()

    def frozen(self) -> set[int]:
        """The processes in frozen ones, and in those below. Events say so only once all tasks of one stand still."""
        tops = [f"{path}/" for path, group in self.known.items() if group.freezer >= 0 and is_frozen(group.freezer)]
        paths = [path for path in self.known if f"{path}/".startswith(tuple(tops))] if tops else []
        return {int(pid) for path in paths for pid in read(f"{path}/cgroup.procs").split()}

    def begin(self) -> None:
        """Count quotas from now on."""
        for path, group in self.known.items():
            group.throttled = throttled(path)

    def held_back(self) -> list[tuple[str, float]]:
        """Seconds for which quotas kept groups from running; of one below another, those of both."""
        found = [(path, throttled(path) - group.throttled) for path, group in self.known.items()]
        return [(path[len(self.top) + 1 :] or "all that runs there", seconds) for path, seconds in found if seconds > 0]


class Stops:
    """Start lines watch what is below `ours`, the lab's connection, or below a start line, for being stopped."""

    def __init__(self, proc: str, ours: int, cgroups: str = CGROUPS, online: str = ONLINE, cards: str = CARDS) -> None:
        self.proc, self.groups, self.online, self.cards = proc, Groups(cgroups), online, cards
        self.own_pid = os.getpid()
        self.tops = {ours, self.own_pid}
        self.ours = set(self.tops)
        self.known: dict[int, Process | None] = {}
        self.ended: list[Process] = []
        self.frozen = self.offline = 0.0
        self.last = self.began = time.monotonic()
        self.own, self.cpus, self.carriers = own_times(), read(online), carrier_changes(cards)
        for process, how in self.states():
            process.before = how != ""

    def begin(self) -> None:
        """Count from now on."""
        self.ended, self.frozen, self.offline = [], 0.0, 0.0
        self.began = self.last = time.monotonic()
        self.own, self.cpus, self.carriers = own_times(), read(self.online), carrier_changes(self.cards)
        for process, how in self.states():
            process.seconds, process.how, process.before = {}, how, process.before and how != ""
        self.groups.begin()

    def look(self) -> None:
        now, own = time.monotonic(), own_times()
        passed, self.last = now - self.last, now
        # Who waits for a processor or a page is not stopped.
        if own[1] == self.own[1] and passed - (own[0] - self.own[0]) > 3 * LOOK:
            self.frozen += passed - LOOK
        self.own = own
        self.offline += passed if read(self.online) != self.cpus else 0.0
        for process, how in self.states():
            for one in (process.how, how):
                if one:
                    process.seconds[one] = process.seconds.get(one, 0.0) + passed / 2
            process.how, process.before = how, process.before and how != ""

    def states(self) -> list[tuple[Process, str]]:
        """How each process stands still, "" for not; the new ones are among them."""
        pids = sorted(int(name) for name in os.listdir(self.proc) if name.isdigit())
        for pid in self.known.keys() - set(pids):
            self.forget(pid)
        for pid in pids:
            if pid not in self.known:
                self.known[pid] = self.opened(pid)
        self.groups.look()
        frozen = self.groups.frozen()
        found = []
        for pid, process in list(self.known.items()):
            if process is None:
                continue
            try:
                rest = os.pread(process.stat, 512, 0).rpartition(b") ")[2]
                stopped = rest[:1] in (b"T", b"t")
                if stopped or pid in self.ours:
                    stopped = not self.is_ours(pid, int(rest.split(b" ", 2)[1])) and stopped
            except OSError:
                # It has ended, and another may have its number by now.
                self.forget(pid)
                continue
            found.append((process, "stopped" if stopped else "frozen" if pid in frozen else ""))
        return found

    def is_ours(self, pid: int, parent: int) -> bool:
        """By its present parent: what outlives its parent is watched by no start line, nor is what is below it."""
        is_it = pid in self.tops or parent in self.ours
        (self.ours.add if is_it else self.ours.discard)(pid)
        return is_it

    def opened(self, pid: int) -> Process | None:
        try:
            stat = os.open(f"{self.proc}/{pid}/stat", os.O_RDONLY)
        except OSError:
            return None
        try:
            head, _, rest = os.pread(stat, 512, 0).rpartition(b") ")
            parent = int(rest.split()[1])
            if parent not in self.ours and START_LINE in read(f"{self.proc}/{pid}/cmdline").split(b"\0"):
                self.tops.add(pid)
            self.is_ours(pid, parent)
            if pid != self.own_pid and KTHREADD not in (pid, parent):
                return Process(head.partition(b"(")[2].decode("utf-8", "replace"), stat)
        except (OSError, ValueError, IndexError):
            pass
        os.close(stat)
        return None

    def forget(self, pid: int) -> None:
        gone = self.known.pop(pid)
        self.ours.discard(pid)
        self.tops.discard(pid)
        if gone is not None:
            os.close(gone.stat)
            if gone.seconds:
                self.ended.append(gone)

    def told(self) -> list[tuple[str, str, float]]:
        every = [one for one in (*self.ended, *self.known.values()) if one is not None and not one.before]
        found = [(one.name, how, seconds) for one in every for how, seconds in one.seconds.items()]
        found += [(group, "throttled", seconds) for group, seconds in self.groups.held_back()]
        if self.frozen:
            found.append(("all that runs there", "frozen", self.frozen))
        if self.offline:
            found.append(("a processor", "offline", self.offline))
        now = carrier_changes(self.cards)
        lost = [(name, "without a carrier", 0.0) for name, then in self.carriers.items() if now.get(name) != then]
        told: dict[str, list[tuple[str, str, float]]] = {}
        for one in [*lost, *sorted(found, key=lambda one: -one[2])]:
            told.setdefault(one[1], []).append(one)
        return [one for of_kind in told.values() for one in of_kind[:MOST_TOLD]]


def read(path: str) -> bytes:
    """A small file; nothing where it is not there any more."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def is_frozen(freezer: int) -> bool:
    try:
        return os.pread(freezer, 16, 0)[:1] == b"1"
    except OSError:
        # The group has gone.
        return False


def throttled(path: str) -> float:
    """Seconds for which a quota kept a cgroup from running, added up over processors."""
    return int((read(f"{path}/cpu.stat").partition(b"throttled_usec ")[2].split() or [b"0"])[0]) / 1e6


def carrier_changes(cards: str) -> dict[str, bytes]:
    """How often each network card has lost or got its carrier; what has no device, as a bridge, is none."""
    try:
        names = [name for name in os.listdir(cards) if os.path.exists(f"{cards}/{name}/device")]
    except OSError:
        return {}
    return {name: read(f"{cards}/{name}/carrier_changes") for name in names}


def own_times() -> tuple[float, int]:
    """Seconds for which this process ran, or waited for a processor; how often it waited for a page."""
    try:
        ran, waited, _ = read("/proc/self/schedstat").split()
        return (int(ran) + int(waited)) / 1e9, int(read("/proc/self/stat").rpartition(b")")[2].split()[9])
    except (ValueError, IndexError):
        return time.monotonic(), 0


def main() -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    stops = Stops("/proc", os.getppid())
    poll = select.poll()
    poll.register(0, select.POLLIN)
    sys.stdout.write('{"ready":true}\n')
    sys.stdout.flush()
    lines = 0
    while True:
        if not poll.poll(1000 * LOOK):
            if lines:
                stops.look()
            continue
        if not (piece := os.read(0, 512)):
            return
        if not lines:
            stops.begin()
        lines += piece.count(b"\n")
        if lines > 1:
            break
    stops.look()
    body = {"stopped": stops.told(), "seconds": time.monotonic() - stops.began}
    sys.stdout.write(json.dumps(body, separators=(",", ":")) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
