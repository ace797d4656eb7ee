#!/usr/bin/python3 -IS
"""systemctl and journalctl in a place on the host, where no systemd runs: starts units as their files say.

It knows what the units of the roles use: types simple, notify, forking and oneshot, users, environments, limits, and
drop-ins. It never restarts a server that has ended. Units and what they print are kept below ``/run/vmlab/units``.
"""

from __future__ import annotations

import contextlib
import grp
import json
import os
import pwd
import resource
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

UNITS = (Path("/etc/systemd/system"), Path("/usr/lib/systemd/system"))
STATE = Path("/run/vmlab/units")
PATIENCE = 240.0
"""Seconds that a server has to become ready, and to end."""
LIMITS = {"NOFILE": resource.RLIMIT_NOFILE, "CORE": resource.RLIMIT_CORE, "MEMLOCK": resource.RLIMIT_MEMLOCK}
Settings = dict[str, list[str]]


class Fault(Exception):
    """Why a unit did not start or stop, in one line."""


def read_unit(name: str, folders: tuple[Path, ...] = UNITS) -> Settings:
    """The values of each key of a unit's ``[Service]``; an empty value forgets those before it. Raises Fault."""
    files = [folder / name for folder in folders if (folder / name).is_file()][:1]
    if not files:
        raise Fault(f"Unit {name} not found.")
    files += sorted(file for folder in folders for file in (folder / f"{name}.d").glob("*.conf"))
    found: Settings = {}
    for file in files:
        section = ""
        for line in file.read_text().replace("\\\n", " ").splitlines():
            text = line.strip()
            if text.startswith("["):
                section = text
            elif section == "[Service]" and text and text[0] not in "#;":
                key, _, value = text.partition("=")
                if value:
                    found.setdefault(key, []).append(value)
                else:
                    found[key] = []
    return found


def environment(settings: Settings) -> dict[str, str]:
    """The environment that a unit's programs begin with."""
    known = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    for value in settings.get("Environment", ()):
        known.update(word.partition("=")[::2] for word in shlex.split(value))
    for value in settings.get("EnvironmentFile", ()):
        file = Path(value.lstrip("-"))
        if file.is_file():
            lines = (line.strip() for line in file.read_text().splitlines())
            known.update(
                (key, " ".join(shlex.split(text)))
                for key, sign, text in (line.partition("=") for line in lines if line[:1] not in ("", "#", ";"))
                if sign
            )
    return known


def words(command: str, known: dict[str, str]) -> tuple[list[str], bool]:
    """The words of a command with its variables, as systemd.service(5) has them, and whether it may fail."""
    marks = command[: len(command) - len(command.lstrip("-@:+!"))]
    found: list[str] = []
    for word in shlex.split(command[len(marks) :]):
        if word.startswith("$") and word[1:].isidentifier():
            found += known.get(word[1:], "").split()
        else:
            for name, value in known.items():
                word = word.replace(f"${{{name}}}", value)
            found.append(word)
    return found, "-" in marks


class Unit:
    """One unit, with what is known of it from an earlier call."""

    def __init__(self, name: str) -> None:
        self.name = name if "." in name else f"{name}.service"
        self._settings = read_unit(self.name)
        self._kind = self._last("Type", "simple")
        self._state = STATE / f"{self.name}.json"
        self.log = STATE / f"{self.name}.log"

    def _last(self, key: str, default: str = "") -> str:
        return (self._settings.get(key) or [default])[-1]

    def active(self) -> bool:
        """Whether it was started, and its main process, where there is one, still runs."""
        try:
            pid = json.loads(self._state.read_text())["pid"]
        except (OSError, ValueError, KeyError):
            return False
        return pid == 0 or is_alive(pid)

    def start(self) -> None:
        """Start it and wait until it is ready. Raises Fault."""
        if self.active():
            return
        known = environment(self._settings)
        for key in ("ExecCondition", "ExecStartPre"):
            for command in self._settings.get(key, ()):
                self._run_to_end(command, known)
        pid = self._started(known)
        self._state.write_text(json.dumps({"pid": pid}))
        for command in self._settings.get("ExecStartPost", ()):
            self._run_to_end(command, {**known, "MAINPID": str(pid)})

    def _started(self, known: dict[str, str]) -> int:
        """The number of its main process, 0 where it has none."""
        commands = self._settings.get("ExecStart", [])
        if self._kind in ("oneshot", "forking"):
            for command in commands:
                self._run_to_end(command, known)
            return self._forked() if self._kind == "forking" else 0
        argv, _ = words(commands[0], known)
        if self._kind != "notify":
            return self._spawn(argv, known).pid
        with notified(self.name) as heard:
            process = self._spawn(argv, {**known, "NOTIFY_SOCKET": heard.getsockname()})
            wait_for_ready(heard, process)
        return process.pid

    def _forked(self) -> int:
        file = self._last("PIDFile")
        if not file:
            return 0
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with contextlib.suppress(OSError, ValueError):
                return int(Path(file).read_text())
            time.sleep(0.02)
        raise Fault(f"{file} was not written")

    def _spawn(self, argv: list[str], known: dict[str, str]) -> subprocess.Popen[bytes]:
        STATE.mkdir(parents=True, exist_ok=True)
        user = self._last("User")
        account = pwd.getpwnam(user) if user else None
        if account is not None:
            known = {**known, "HOME": account.pw_dir, "USER": user, "LOGNAME": user}
        group = self._last("Group")
        number = grp.getgrnam(group).gr_gid if group else account.pw_gid if account else None

        def begin() -> None:
            # In this order: who has given up root cannot raise a limit.
            for name, limit in LIMITS.items():
                if said := self._last(f"Limit{name}"):
                    set_limit(limit, resource.RLIM_INFINITY if said == "infinity" else int(said))
            if account is not None:
                os.initgroups(user, number or account.pw_gid)
            if number is not None:
                os.setgid(number)
            if account is not None:
                os.setuid(account.pw_uid)

        with self.log.open("ab") as log:
            try:
                return subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=known,
                    cwd="/",
                    start_new_session=True,
                    preexec_fn=begin,
                    umask=int(self._last("UMask", "0022"), 8),
                )
            except (OSError, subprocess.SubprocessError) as error:
                raise Fault(f"{argv[0]}: {error}") from error

    def _run_to_end(self, command: str, known: dict[str, str]) -> None:
        argv, may_fail = words(command, known)
        try:
            status = self._spawn(argv, known).wait(PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise Fault(f"{argv[0]} did not end") from error
        if status and not may_fail:
            raise Fault(f"{argv[0]} exited with {status}")

    def stop(self) -> None:
        """Stop it and wait for its end. Raises Fault."""
        if not self.active():
            self._state.unlink(missing_ok=True)
            return
        pid = json.loads(self._state.read_text())["pid"]
        known = {**environment(self._settings), "MAINPID": str(pid)}
        for command in self._settings.get("ExecStop", ()):
            self._run_to_end(command, known)
        if pid:
            self._end(pid)
        self._state.unlink(missing_ok=True)

    def _end(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.Signals[self._last("KillSignal", "SIGTERM")])
        until = time.monotonic() + PATIENCE
        while is_alive(pid):
            if time.monotonic() > until:
                raise Fault(f"process {pid} did not end")
            time.sleep(0.02)

    def last_line(self) -> str:
        """The last line that it has printed."""
        try:
            lines = self.log.read_text(errors="replace").split("\n")
        except OSError:
            return ""
        return next((line for line in reversed(lines) if line.strip()), "")


def set_limit(limit: int, value: int) -> None:
    """Set a limit; as far up as a host allows where it lets not even root raise its own."""
    try:
        resource.setrlimit(limit, (value, value))
    except ValueError:
        most = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most, most))


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in ("Z", "X")
    except (OSError, IndexError):
        return False


@contextlib.contextmanager
def notified(name: str) -> Iterator[socket.socket]:
    """A socket for sd_notify(3), to which every user may write."""
    STATE.mkdir(parents=True, exist_ok=True)
    place = STATE / f"{name}.notify"
    place.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(place))
        place.chmod(0o666)
        yield heard


def wait_for_ready(heard: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Wait for READY=1. Raises Fault where the server ends before, or says nothing for too long."""
    heard.settimeout(0.1)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            raise Fault(f"exited with {process.returncode} before it was ready")
        with contextlib.suppress(TimeoutError):
            if "READY=1" in heard.recv(65536).decode("utf-8", "replace").split("\n"):
                return
    raise Fault(f"was not ready within {PATIENCE:.0f} s")


def shown(name: str) -> str:
    """What ``systemctl show`` is asked for."""
    try:
        active = Unit(name).active()
    except Fault:
        active = False
    return f"ActiveState={'active' if active else 'failed'}\nResult={'success' if active else 'exit-code'}"


def say(lines: Iterable[str]) -> None:
    """Print lines."""
    sys.stdout.writelines(f"{line}\n" for line in lines)


def main(argv: list[str]) -> int:
    """systemctl, or journalctl where it is called so; its exit status."""
    names = [word for word in argv[1:] if not word.startswith("-")]
    if Path(argv[0]).name == "journalctl":
        say(Unit(name).last_line() for name in names)
        return 0
    verb, units = names[0], names[1:]
    if verb == "show":
        say(map(shown, units))
    elif verb == "is-active":
        return 0 if all(Unit(name).active() for name in units) else 3
    elif verb in ("start", "stop", "restart"):
        for name in units:
            unit = Unit(name)
            if verb != "start":
                unit.stop()
            if verb != "stop":
                unit.start()
    elif verb != "daemon-reload":
        raise Fault(f"there is no {verb} in a place on the host")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv))
    except Fault as fault:
        with contextlib.suppress(OSError):
            for unit in sys.argv[2:]:
                with (STATE / f"{unit}.log").open("a") as log:
                    log.write(f"{fault}\n")
        sys.exit(f"systemctl: {fault}")
