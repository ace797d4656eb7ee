"""Runs a user's command by ``sh -c``, once or again and again, and keeps what it prints, up to a limit.

One JSON argument: ``text`` for the shell; ``folder`` to run it in; ``user`` to run it as; ``rounds``, how often, or
``time``, seconds in which rounds begin; ``timeout``, seconds for all rounds; ``most``, bytes that it may print;
``group``, the name of a cgroup; ``kept``, a path, with ``.out`` and ``.err`` behind it, for what it printed;
``stays``: whether what it started may go on when it has ended, as servers do; ``units``: whether to look for services
of systemd that it left running.

Ends with a line ``{"seconds": S, "rounds": [[OUT, ERR], …], "status": N, "over": BOOL, "late": BOOL, "left": [NAME, …],
"units": [NAME, …], "last": [LINE, …]}``: seconds from the first begin of the shell to its last end, or to that of what
it started, where that ends within a moment; the characters that each round printed; the last round's status, as a shell
gives it; whether it printed too much or took too long, and was killed for it; what was left running, and was killed;
services that run and did not before the first round; and the last lines that it printed, those of its error output if
there are any. No round follows one that failed.

The command and whatever it starts are in the cgroup, from which nobody escapes by a fork, and each round in a session
of its own, so that ``kill 0`` reaches the round alone. Where this program is killed, another ends the command.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import select
import signal
import sys
import time

# Type checkers take this name for true. Importing typing and pathlib costs an emulated guest most of a second.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Options = dict[str, Any]
HIERARCHIES = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
PIECE, PIPE_BYTES = 2**16, 2**20
F_SETPIPE_SZ = 1031
MOST_FILES = 4096
GRACE = 1.0
"""Seconds for what ends with the shell: tee behind a process substitution ends a moment after it."""
ENDING = 10.0
"""Seconds for what was killed to be gone."""
SOON, LOOK = 0.001, 0.01
"""Seconds between two looks at what has not ended, at first and at most."""
LINES, LONGEST = 3, 200


def hierarchy() -> str:
    """Where cgroups of version 2 are; empty where there are none."""
    return next((top for top in HIERARCHIES if os.path.exists(f"{top}/cgroup.controllers")), "")


class Group:
    """A cgroup of version 2, which is made."""

    def __init__(self, name: str) -> None:
        if not (top := hierarchy()):
            sys.exit("there is no cgroup of version 2, by which all that a command starts is known")
        self.folder = f"{top}/vmlab-{name}"
        os.makedirs(self.folder, exist_ok=True)

    def read(self, name: str) -> str:
        with open(f"{self.folder}/{name}") as file:
            return file.read()

    def write(self, name: str, text: str) -> None:
        with open(f"{self.folder}/{name}", "w") as file:
            file.write(text)

    def is_empty(self) -> bool:
        return "populated 1" not in self.read("cgroup.events")

    def members(self) -> list[int]:
        """Those of groups below this one are not among them."""
        return [int(process) for process in self.read("cgroup.procs").split()]

    def names(self) -> list[str]:
        found = []
        for process in self.members():
            try:
                with open(f"/proc/{process}/comm") as file:
                    found.append(file.read().strip())
            except OSError:
                continue
        return found or ["a process in a cgroup of its own"]

    def kill(self) -> None:
        until = time.monotonic() + ENDING
        while not self.is_empty() and time.monotonic() < until:
            try:
                self.write("cgroup.kill", "1")
            except OSError:
                # Kernels before 5.14 have no such file.
                for process in self.members():
                    try:
                        os.kill(process, signal.SIGKILL)
                    except ProcessLookupError:
                        continue
            time.sleep(LOOK)

    def remove(self) -> None:
        if self.is_empty():
            os.rmdir(self.folder)


def running_units() -> set[str]:
    """The units of systemd in which something runs, but those of users, among which the lab's own SSH session is."""
    found = set()
    for folder, inner, _ in os.walk(hierarchy() or os.devnull):
        name = os.path.basename(folder)
        is_unit = name.endswith((".service", ".scope"))
        if is_unit or name == "user.slice":
            inner.clear()
        if is_unit and name != "init.scope":
            try:
                with open(f"{folder}/cgroup.events") as file:
                    found |= {name} if "populated 1" in file.read() else set()
            except OSError:
                continue
    return found


def is_started(unit: str, began: float) -> bool:
    """Whether somebody started it. What D-Bus, or a timer or socket from before `began`, starts ends by itself."""
    said = shown("Type", "TriggeredBy", unit=unit)
    if said is None or said.get("Type") == "dbus":
        return False
    for trigger in said.get("TriggeredBy", "").split():
        since = shown("ActiveState", "ActiveEnterTimestampMonotonic", unit=trigger) or {}
        if since.get("ActiveState") == "active" and int(since.get("ActiveEnterTimestampMonotonic") or 0) < 1e6 * began:
            return False
    return True


def has_booted(began: float) -> bool:
    """Whether systemd had started all that belongs to the boot before this time of the monotonic clock."""
    said = shown("FinishTimestampMonotonic")
    finished = int((said or {}).get("FinishTimestampMonotonic") or 0)
    return 0 < finished < 1e6 * began


def shown(*properties: str, unit: str = "") -> dict[str, str] | None:
    """Properties of a unit, or of systemd itself; None where it cannot be asked."""
    import subprocess

    argv = ["systemctl", "show", f"--property={','.join(properties)}", *(["--", unit] if unit else [])]
    try:
        asked = subprocess.run(argv, capture_output=True, text=True, timeout=ENDING, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return dict(line.split("=", 1) for line in asked.stdout.splitlines() if "=" in line)


def become(user: str) -> dict[str, str]:
    """The environment of `user`, whom this process becomes."""
    known = pwd.getpwnam(user)
    if known.pw_uid:
        os.initgroups(user, known.pw_gid)
        os.setgid(known.pw_gid)
        os.setuid(known.pw_uid)
    of_user = {"HOME": known.pw_dir, "USER": user, "LOGNAME": user, "SHELL": known.pw_shell}
    return {**os.environ, **of_user}


class Round:
    """One run of the command. `printed` are its two streams, of which `room` bytes are kept."""

    def __init__(self, options: Options, group: Group, room: int) -> None:
        self.group, self.room = group, room
        self.printed = [bytearray(), bytearray()]
        self.over = self.late = False
        self.left: list[str] = []
        self.status = 0
        self.poll = select.poll()
        self.streams: dict[int, bytearray] = {}
        ends = []
        for held in self.printed:
            ours, theirs = os.pipe()
            # The command does not wait for room while this program is not scheduled.
            fcntl.fcntl(ours, F_SETPIPE_SZ, PIPE_BYTES)
            os.set_blocking(ours, False)
            self.streams[ours] = held
            self.poll.register(ours, select.POLLIN)
            ends.append(theirs)
        self.began = self.ended = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            self.work(options, ends)
        for end in ends:
            os.close(end)

    def work(self, options: Options, ends: list[int]) -> None:
        """The forked child: never returns."""
        try:
            os.setsid()
            self.group.write("cgroup.procs", "0")
            for target, source in enumerate((os.open(os.devnull, os.O_RDONLY), *ends)):
                os.dup2(source, target)
            os.closerange(3, MOST_FILES)
            os.chdir(options["folder"])
            environment = become(options["user"])
            for one in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
                signal.signal(one, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.execve("/bin/sh", ["sh", "-c", options["text"]], environment)
        except BaseException as error:  # noqa: BLE001 - whatever it is, this program itself must not go on here.
            os.write(2, f"{error}\n".encode())
        finally:
            os._exit(127)

    def watch(self, until: float) -> None:
        """Read until the shell has ended; kill it where it prints too much, or is not over in time."""
        end = os.pidfd_open(self.pid)
        self.poll.register(end, select.POLLIN)
        while True:
            happened = {ready for ready, _ in self.poll.poll(max(0.0, 1000 * (until - time.monotonic())) + 1)}
            if end in happened:
                break
            self.take(happened)
            self.late = not self.over and time.monotonic() >= until
            if self.over or self.late:
                self.group.kill()
                os.kill(self.pid, signal.SIGKILL)
                break
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.ended = time.monotonic()
        self.status = status if status >= 0 else 128 - status
        self.poll.unregister(end)
        os.close(end)

    def take(self, ready: set[int]) -> None:
        """A piece of each stream that has something, or has ended."""
        for one in ready & self.streams.keys():
            try:
                piece = os.read(one, PIECE)
            except BlockingIOError:
                continue
            if not piece:
                self.poll.unregister(one)
                del self.streams[one]
                os.close(one)
                continue
            self.streams[one].extend(piece[: self.room])
            self.over = self.over or len(piece) > self.room
            self.room -= min(len(piece), self.room)

    def take_all(self) -> None:
        """What is in the pipes; who still holds their other ends is not waited for."""
        while ready := {one for one, _ in self.poll.poll(0)} & self.streams.keys():
            self.take(ready)
            if self.over:
                break

    def end_all(self) -> None:
        """Nothing of the command goes on, and what did is named; what ends by itself was part of its work."""
        until = time.monotonic() + (0 if self.over or self.late else GRACE)
        pause = SOON
        while not (self.over or self.group.is_empty()) and time.monotonic() < until:
            self.take({one for one, _ in self.poll.poll(1000 * pause)})
            if not self.streams:
                time.sleep(pause)
            pause = min(2 * pause, LOOK)
            self.ended = time.monotonic()
        if not self.group.is_empty():
            self.left = self.group.names()
            self.group.kill()
        self.take_all()
        for one in self.streams:
            os.close(one)

    def let_go(self) -> None:
        """What the command started goes on: a process of its own takes what that prints, as nobody else will."""
        self.take_all()
        if self.over or self.late:
            self.group.kill()
        elif self.streams and os.fork() == 0:
            drain(list(self.streams))
        for one in self.streams:
            os.close(one)

    def last(self) -> list[str]:
        out, err = (text.decode("utf-8", "replace") for text in self.printed)
        lines = [line.strip()[:LONGEST] for line in (err if err.strip() else out).splitlines() if line.strip()]
        return lines[-LINES:]


class Guard:
    """A process that kills the group where this one has been killed."""

    def __init__(self, group: Group) -> None:
        heard, self.held = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.work(group, heard)
            finally:
                os._exit(0)
        os.close(heard)

    def work(self, group: Group, heard: int) -> None:
        os.setsid()
        os.close(self.held)
        nothing = os.open(os.devnull, os.O_RDWR)
        for one in range(3):
            os.dup2(nothing, one)
        if not os.read(heard, 1):
            group.kill()
            group.remove()

    def dismiss(self) -> None:
        os.write(self.held, b".")
        os.close(self.held)
        os.waitpid(self.pid, 0)


def left_units(last: Round, before: set[str], began: float) -> list[str]:
    """Those that run now and did not before; what ends by itself within a moment was part of the last round's work."""
    more = {name for name in running_units() - before if is_started(name, began)}
    if not more or not has_booted(began):
        return []
    until = time.monotonic() + GRACE
    while (left := more & running_units()) and time.monotonic() < until:
        time.sleep(LOOK)
        last.ended = time.monotonic()
    return sorted(left)


def drain(streams: list[int]) -> None:
    """Never returns."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for one in range(3):
        os.dup2(nothing, one)
    poll = select.poll()
    for one in streams:
        os.set_blocking(one, True)
        poll.register(one, select.POLLIN)
    left = len(streams)
    while left:
        for ready, _ in poll.poll():
            if not os.read(ready, PIECE):
                poll.unregister(ready)
                left -= 1
    os._exit(0)


def run_rounds(options: Options, group: Group) -> list[Round]:
    rounds: list[Round] = []
    began, room = time.monotonic(), options["most"]
    while True:
        one = Round(options, group, room)
        rounds.append(one)
        one.watch(began + options["timeout"])
        if options["stays"]:
            one.let_go()
        else:
            one.end_all()
        room = one.room
        if one.status or one.over or one.late or one.left:
            return rounds
        if one.ended - rounds[0].began >= options["time"] if options["time"] else len(rounds) >= options["rounds"]:
            return rounds


def main() -> None:
    options = json.loads(sys.argv[1])
    group = Group(options["group"])
    guard = Guard(group)
    before, began = running_units() if options["units"] else set(), time.monotonic()
    rounds = run_rounds(options, group)
    units = left_units(rounds[-1], before, began) if options["units"] and not rounds[-1].status else []
    guard.dismiss()
    if not options["stays"]:
        group.remove()
    texts = [[part.decode("utf-8", "replace") for part in one.printed] for one in rounds]
    if options["kept"]:
        os.makedirs(os.path.dirname(options["kept"]), exist_ok=True)
        for at, ending in enumerate(("out", "err")):
            with open(f"{options['kept']}.{ending}", "wb") as file:
                file.write("".join(one[at] for one in texts).encode())
    last = rounds[-1]
    account = {
        "seconds": last.ended - rounds[0].began,
        "rounds": [[len(out), len(err)] for out, err in texts],
        "status": last.status,
        "over": last.over,
        "late": last.late,
        "left": last.left,
        "units": units,
        "last": last.last(),
    }
    sys.stdout.write(json.dumps(account) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
