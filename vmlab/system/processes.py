"""The one place that sends signals, to a process that is certainly the one meant, not a later one with the same pid."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path


def signal_process(process: int, number: signal.Signals, is_meant: Callable[[bytes], bool]) -> bool:
    """Send a signal to `process` if `is_meant` is true of its command line (words end with NUL).

    False where it is gone, or `is_meant` is false. A pidfd is opened before the check, so the signal cannot reach a
    later process with the same pid. Raises PermissionError.
    """
    try:
        held = os.pidfd_open(process)
    except ProcessLookupError:
        return False
    try:
        if not is_meant(command_line(process)):
            return False
        signal.pidfd_send_signal(held, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(held)
    return True


def signal_child(child: int, number: signal.Signals) -> None:
    """Send a signal to a child of this process that was not waited for yet, so that its pid cannot have a new owner."""
    os.kill(child, number)


def oom_kills(proc: Path) -> int:
    """How many processes the kernel has killed for lack of memory since boot; 0 where it does not count them.

    Those of a cgroup that reached its limit count too (``oom_kill`` of /proc/vmstat, since Linux 4.13).
    """
    try:
        words = (proc / "vmstat").read_text().split()
        return int(dict(zip(words[::2], words[1::2], strict=True)).get("oom_kill", 0))
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
    return int(_stat(process)[1])


def _stat(process: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; the name before it may contain anything. Raises OSError."""
    return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()


def start_of(process: int) -> int:
    """When a process was started, in clock ticks since boot: with its pid, it names one process. Raises OSError."""
    return int(_stat(process)[19])


def is_stopped(process: int, born: int | None = None) -> bool:
    """Whether a process is stopped, by a signal or a debugger; False for one that is gone or was not started `born`."""
    try:
        fields = _stat(process)
    except OSError:
        return False
    return fields[0] in ("T", "t") and born in (None, int(fields[19]))


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
