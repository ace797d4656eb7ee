"""Ends a run: by asking it to stop, and one that does not by a kill, which clears up and writes its last event."""

from __future__ import annotations

import signal
import time

from vmlab.lab.commands.stopping import is_over, send_signal, stop_run
from vmlab.lab.process.dead_runs import sweep_run
from vmlab.lab.process.measuring_runs import leave
from vmlab.lab.process.run_ending import Verdict, ended, verdict, write_run_end
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import CleanupIncomplete, ExitCode
from vmlab.model.event import RunEnded
from vmlab.model.run import Outcome
from vmlab.system.descriptors import closed_after

KILL_SECONDS = 20.0
_KILLED = "killed: "


def end_run(folder: RunFolder, *, origin: str) -> RunEnded | None:
    """Ask the run to stop, wait for its clean-up, and kill it where that takes too long; its last event.

    Raises what `stop_run` raises, and CleanupIncomplete where something is left.
    """
    patience = stop_run(folder, origin=origin)
    if not is_over(folder, patience):
        return kill_because(folder, ExitCode.INTERRUPTED, f"it did not stop within {patience:.0f} s of `{origin}`")
    end = ended(folder)
    if end is not None and end.exit_code == ExitCode.CLEANUP_INCOMPLETE:
        raise CleanupIncomplete(f"run {folder.id} has stopped: {end.reason}; `vmlab clean` finishes")
    return end


def kill_because(folder: RunFolder, code: ExitCode, why: str) -> RunEnded:
    """Kill the run as `kill_run` does. Raises CleanupIncomplete where something is left."""
    end = kill_run(folder, code, f"{_KILLED}{why}")
    if end.exit_code == ExitCode.CLEANUP_INCOMPLETE:
        raise CleanupIncomplete(f"run {folder.id} is {end.outcome}, {end.reason}; `vmlab clean` finishes")
    return end


def killed_because(end: RunEnded | None) -> str:
    """Why a run was killed; empty for one that was not."""
    return end.reason.removeprefix(_KILLED) if end is not None and end.reason.startswith(_KILLED) else ""


def kill_run(folder: RunFolder, exit_code: ExitCode, reason: str) -> RunEnded:
    """Kill the processes of a run and clear up behind them; returns its last event, as it is in the store now.

    That is the run's own one if it had ended meanwhile, else aborted with `exit_code` and `reason`. The exit code is
    CLEANUP_INCOMPLETE where something is left. Raises CleanupIncomplete where a process does not even die.
    """
    send_signal(folder, signal.SIGKILL, "launcher_pid")
    send_signal(folder, signal.SIGKILL, "runner_pid")
    with closed_after(_lock_of_the_dead(folder)):
        end = ended(folder)
        if end is None:
            killed = Verdict(Outcome.ABORTED, exit_code, reason).ended()
            end = verdict(folder, sweep_run(folder), killed)
            write_run_end(folder, end)
        leave(folder.id)
        return end


def _lock_of_the_dead(folder: RunFolder) -> int:
    """The run's lock, taken as soon as no process holds it, so that no other process clears up at the same time."""
    end = time.monotonic() + KILL_SECONDS
    while True:
        try:
            return folder.take_lock()
        except BlockingIOError:
            if time.monotonic() > end:
                raise CleanupIncomplete(
                    f"run {folder.id} does not end, killed or not; `vmlab clean` once its processes are gone"
                ) from None
            time.sleep(0.01)
