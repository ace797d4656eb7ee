"""Processes by their ids: what /proc says of them, and the one place that sends them signals.

A signal goes to a process that is certainly the one meant, not to a later one with the same pid.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from vmlab.system.descriptors import closed_after

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def signal_process(process: int, number: signal.Signals, is_meant: Callable[[bytes], bool]) -> bool:
    """Send a signal to `process` if `is_meant` is true of its command line (words end with NUL).

    False where it is gone, or `is_meant` is false. A pidfd is opened before the check, so the signal cannot reach a
    later process with the same pid. Raises PermissionError.
    """
    try:
        with closed_after(os.pidfd_open(process)) as held:
            if not is_meant(command_line(process)):
                return False
            signal.pidfd_send_signal(held, number)
    except ProcessLookupError:
        return False
    return True


def signal_child(child: int, number: signal.Signals) -> None:
    """Send a signal to a child of this process that was not waited for yet, so that its pid cannot have a new owner."""
    os.kill(child, number)


def oom_kills(proc: Path) -> int:
    """How many processes the kernel has killed for lack of memory since boot; 0 where it does not count them.

    Those of a cgroup that reached its limit count too (``oom_kill`` of /proc/vmstat, since Linux 4.13).
    """
    return vm_counter(proc, "oom_kill")


def vm_counter(proc: Path, *names: str) -> int:
    """The sum of these counters of /proc/vmstat; 0 for those that the kernel does not have."""
    try:
        words = (proc / "vmstat").read_text().split()
        counters = dict(zip(words[::2], words[1::2], strict=True))
        return sum(int(counters.get(name, 0)) for name in names)
    except (OSError, ValueError):
        return 0


def has_job_control() -> bool:
    """Whether a shell started this process's job and would have it go on after a stop, such as by `fg`.

    Not where the terminal runs the program itself (`xterm -e`, the command of a tmux window, `ssh -t`): the parent of
    the job is of another session then.
    """
    process, group = os.getpid(), os.getpgrp()
    try:
        while os.getpgid(process) == group:
            process = parent_of(process)
        return os.getsid(process) == os.getsid(0)
    except (OSError, ValueError):
        return False


def parent_of(process: int) -> int:
    """A process's parent. Raises OSError for one that is gone."""
    return stat_of(Path(f"/proc/{process}")).parent


class ProcessStat(NamedTuple):
    """What /proc/PID/stat says, see proc(5). Times are in clock ticks.

    `ran` is what it used of CPUs itself, `reaped` what children used that it has waited for. `born` is when it was
    started, from boot on: with its pid that names one process.
    """

    name: bytes
    state: bytes
    parent: int
    flags: int
    ran: int
    reaped: int
    born: int

    @classmethod
    def of(cls, text: bytes) -> ProcessStat:
        """From the file's text; the name in it may contain anything. Raises ValueError for any other text."""
        head, _, rest = text.rpartition(b") ")
        fields = rest.split(None, 20)
        if len(fields) < 20:
            raise ValueError("/proc/PID/stat has another form than expected")
        state, parent, flags, born = fields[0], fields[1], fields[6], fields[19]
        user, system, reaped_user, reaped_system = map(int, fields[11:15])
        name = head.partition(b"(")[2]
        return cls(name, state, int(parent), int(flags), user + system, reaped_user + reaped_system, int(born))


def stat_of(folder: Path) -> ProcessStat:
    """That of the process with this folder of /proc. Raises OSError for one that is gone, and ValueError."""
    return ProcessStat.of((folder / "stat").read_bytes())


def state_of(process: int, proc: Path = Path("/proc")) -> str | None:
    """The letter of a process's state, such as ``S``; None for one that is gone."""
    with contextlib.suppress(OSError, ValueError):
        return stat_of(proc / str(process)).state.decode()
    return None


def start_of(process: int) -> int:
    """When a process was started, in clock ticks since boot: with its pid, it names one process. Raises OSError."""
    return stat_of(Path(f"/proc/{process}")).born


def fdinfo(folder: Path, descriptor: str) -> dict[str, str]:
    """What the process with this folder of /proc says of an open file: ``flags``, ``mnt_id`` and others (proc(5)).

    Raises OSError where it is closed.
    """
    text = (folder / "fdinfo" / descriptor).read_text()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def is_stopped(process: int, born: int | None = None) -> bool:
    """Whether a process is stopped, by a signal or a debugger; False for one that is gone or was not started `born`."""
    try:
        stat = stat_of(Path(f"/proc/{process}"))
    except OSError:
        return False
    return stat.state in (b"T", b"t") and born in (None, stat.born)


def stop_job() -> None:
    """Stop this process and the others of its job, as Ctrl-Z does, until the shell has them go on.

    Without `has_job_control` the kernel stops nothing, and this returns at once. Call it in the main thread.
    """
    before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        os.kill(0, signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, before)


def command_line(process: int) -> bytes:
    """The command line of a process, each word ended by NUL; empty for one that is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""
