"""How a viewer stops a run: it sends the command, and first resumes (SIGCONT) a run that was paused by SIGSTOP.

Imports no hypervisor and no SSH, so that the console and small commands start quickly.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from vmlab.lab.commands.verbs import NotAnswering, NotListening, Stop
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import UsageError
from vmlab.store.life import is_alive, is_recording
from vmlab.store.runs import resolve_run, run_folders
from vmlab.system.processes import command_line, parent_of, signal_process

STOP_SECONDS = 180.0
"""How long a run that was asked to stop may take for its clean-up."""
SILENT_SECONDS = 15.0
"""How long a run may take that did not answer."""
ANSWER_SECONDS = 5.0
_NEWBORN_SECONDS = 0.5


def living_run(*, or_newest: bool = False) -> RunFolder:
    """The run that is under way, where there is none the newest if asked. A recording counts where there is no other.

    Raises UsageError where there is none of either, and with their names where several are under way.
    """
    folders = run_folders()
    living = [path for path in folders if is_alive(path)] or (folders[:1] if or_newest else [])
    living = [path for path in living if not is_recording(path)] or living
    if not living:
        raise UsageError("no run is under way; `vmlab ls` lists those that are over")
    if len(living) > 1:
        names = ", ".join(path.name for path in living)
        raise UsageError(f"{len(living)} runs are under way, and one is to be named: {names}")
    return RunFolder(living[0].name, living[0])


def run_meant(reference: str | None, *, or_newest: bool = False) -> RunFolder:
    """The run of that name; for None that of `living_run`. Raises UsageError for what names none."""
    if reference is None:
        return living_run(or_newest=or_newest)
    path = resolve_run(reference).parent
    return RunFolder(path.name, path)


def stop_run(folder: RunFolder, *, origin: str, number: signal.Signals = signal.SIGINT) -> float:
    """Ask the run to stop; returns at once, with the seconds that it may now take until it is over.

    Where no runner listens, the signal `number` is sent to the launcher, which forwards it to a runner that starts.
    Raises UsageError when the run is over, and RefusedError for one of another user.
    """
    folder.demand_commandable()
    _wake(folder)
    try:
        Stop(origin=origin, signal=number.name).send(folder.control, ANSWER_SECONDS)
    except NotListening:
        send_signal(folder, number, "launcher_pid")
    except NotAnswering:
        send_signal(folder, number, "launcher_pid")
        return SILENT_SECONDS
    return STOP_SECONDS


def is_over(folder: RunFolder, deadline: float) -> bool:
    """Wait `deadline` seconds at most; returns whether no process of the run is left."""
    end = time.monotonic() + deadline
    while folder.alive():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def send_signal(folder: RunFolder, number: signal.Signals, name: str) -> bool:
    """Send a signal to ``launcher_pid`` or ``runner_pid``; False where it does not exist or is no longer a process of
    the run.
    """
    process = folder.process(name)
    if process is None:
        return False
    # A process that was just started has no command line yet.
    end = time.monotonic() + _NEWBORN_SECONDS
    while not signal_process(process, number, _is_of(folder)):
        if command_line(process) or time.monotonic() > end or not Path(f"/proc/{process}").exists():
            return False
        time.sleep(0.01)
    return True


def _wake(folder: RunFolder) -> None:
    """SIGCONT for launcher, init and runner: it does nothing to one that was not stopped."""
    runner, init = folder.process("runner_pid"), None
    with suppress(OSError, ValueError, IndexError):
        init = None if runner is None else parent_of(runner)
    for process in (folder.process("launcher_pid"), init, runner):
        if process is not None:
            signal_process(process, signal.SIGCONT, _is_of(folder))


def _is_of(folder: RunFolder) -> Callable[[bytes], bool]:
    """Whether a command line is that of a process of the run: launcher, init and runner are given its id."""
    return lambda words: os.fsencode(folder.id) in words.split(b"\0")
