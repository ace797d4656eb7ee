"""Whether a run lives: its processes hold a lock together, which the kernel frees when the last of them is gone."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

from vmlab.model.errors import UsageError
from vmlab.system.descriptors import closed_after
from vmlab.system.file_system import NoLocksError, flock
from vmlab.system.given_file import read_given
from vmlab.system.processes import command_line

LOCK = "lock"
PROCESSES = "runner.json"
LOG = "launcher.log"
"""What the run's processes print, which goes on growing for as long as one of them lives."""
RECORDER = "recorder_pid"
"""The process of a recording of the host, which is no run of a lab."""
_MOST_NOTED = 65536


def is_alive(folder: Path) -> bool:
    """Whether any process of the run in `folder` still holds its lock.

    Where this process cannot ask the lock, it goes by the run's processes, which bear its name: the lock is its user's
    alone, and there is none on a file system without locks.
    """
    try:
        with closed_after(os.open(folder / LOCK, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)) as descriptor:
            flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, folder / LOCK)
    except BlockingIOError:
        return True
    except (PermissionError, NoLocksError):
        return _has_processes(folder)
    except OSError:
        return False
    return False


def _has_processes(folder: Path) -> bool:
    name = os.fsencode(folder.name)
    return any(name in command_line(process).split(b"\0") for process in process_ids(folder).values())


def process_ids(folder: Path) -> dict[str, int]:
    """Process ids of the run as the host sees them, such as ``runner_pid``; empty where none were written down.

    The ids are valid only while the run lives.
    """
    try:
        noted = json.loads(read_given(folder / PROCESSES, _MOST_NOTED))
    except (UsageError, ValueError, RecursionError):
        return {}
    if not isinstance(noted, dict):
        return {}
    return {name: value for name, value in noted.items() if isinstance(value, int)}


def is_recording(folder: Path) -> bool:
    """Whether the run in `folder` is a recording of the host."""
    return RECORDER in process_ids(folder)
