"""How a viewer starts, finds and stops runs: it asks, watches and commands, and owns nothing.

Imports no hypervisor and no SSH, so that the console and quick commands stay quick.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from vmlab.lab.control import send_command
from vmlab.lab.folder import RunFolder, RunRequest
from vmlab.lab.prepared import write_request
from vmlab.model.errors import CleanupIncomplete, UsageError
from vmlab.plan.loading import ScenarioFile
from vmlab.plan.planning import HostFacts, Overrides, Plan
from vmlab.store.runs import new_run_id

STOP_SECONDS = 180.0
_KILL_SECONDS = 20.0


def start_run(file: ScenarioFile, overrides: Overrides, plan: Plan, host: HostFacts) -> RunFolder:
    """Start a run that lives on its own; returns as soon as its launcher runs.

    The plan must have been checked for fit. Raises UsageError when the state folder cannot be written.
    """
    folder = RunFolder.of(new_run_id(plan.scenario.name))
    folder.make()
    lock = folder.take_lock()
    try:
        request = RunRequest(folder.id, str(file.path), replace(overrides, seed=plan.seed), plan.seed)
        write_request(folder, request, file.text, host)
        folder.note_processes(launcher_pid=_spawn_launcher(folder, lock))
    finally:
        os.close(lock)
    return folder


def _spawn_launcher(folder: RunFolder, lock: int) -> int:
    """The launcher in a session of its own, so that neither Ctrl-C nor a closed terminal reaches it."""
    os.set_inheritable(lock, True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "vmlab.lab.launcher", folder.id, str(folder.path), str(lock)],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(folder.log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def stop_run(folder: RunFolder, *, origin: str, number: signal.Signals = signal.SIGINT) -> None:
    """Ask the run to stop; returns at once. Before there is a runner its launcher is told by a signal.

    Raises UsageError when the run is over.
    """
    if not folder.alive():
        raise UsageError(f"run {folder.id} is not running")
    if folder.control.exists():
        send_command(folder.control, "stop", origin=origin, signal=number.name)
        return
    launcher = folder.process("launcher_pid")
    if launcher is not None and folder.alive():
        os.kill(launcher, number)


def wait_until_over(folder: RunFolder, deadline: float = STOP_SECONDS) -> None:
    """Return when no process of the run is left.

    A run that has not ended after `deadline` seconds is killed, which the kernel makes thorough, and swept. Raises
    CleanupIncomplete then, as its figures may end in the middle.
    """
    if _is_over(folder, deadline):
        return
    launcher = folder.process("launcher_pid")
    if launcher is not None and folder.id.encode() in _command_line(launcher):
        os.kill(launcher, signal.SIGKILL)
    if not _is_over(folder, _KILL_SECONDS):
        raise CleanupIncomplete(
            f"run {folder.id} does not end, killed or not; `vmlab clean` once its processes are gone"
        )
    raise CleanupIncomplete(
        f"run {folder.id} did not end within {deadline:.0f} s and was killed; `vmlab clean` clears up"
    )


def _is_over(folder: RunFolder, deadline: float) -> bool:
    end = time.monotonic() + deadline
    while folder.alive():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def _command_line(process: int) -> bytes:
    """Empty for a process that is gone: its number may be another's by now."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""
