"""What stands beside a run's store: the lock of its processes, their numbers, and its note.

Whether a run lives is told by the lock, which its processes hold together and the kernel frees when the last of them is
gone. The note is a line of a user's own on what the run was, in a small file with which it goes.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

from vmlab.model.errors import UsageError
from vmlab.system.descriptors import closed_after
from vmlab.system.file_system import NoLocksError, flock
from vmlab.system.given_file import put_in_place, read_given
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


NOTE = "note.txt"
LONGEST_NOTE = 500
"""Characters, of any script."""
_MOST_BYTES = 4 * LONGEST_NOTE + 1


def checked_note(text: str) -> str:
    """A note as it is kept, without spaces around it. Raises UsageError, with one line, for one that cannot be kept."""
    note = text.strip()
    if len(note) > LONGEST_NOTE:
        raise UsageError(f"a note has at most {LONGEST_NOTE} characters; this one has {len(note)}")
    try:
        note.encode()
    except UnicodeEncodeError:
        raise UsageError("a note is text in UTF-8; this one has other bytes") from None
    return note


def note_of(folder: Path) -> str:
    """The note of the run in `folder`; empty for none, and for a file that nobody can have written as one."""
    try:
        return checked_note(read_given(folder / NOTE, _MOST_BYTES, follow=False).decode())
    except (UsageError, UnicodeDecodeError):
        return ""


def write_note(folder: Path, note: str) -> None:
    """Keep a `checked_note` in the place of the one that was there; an empty one removes it. Raises OSError.

    Raises UsageError where a link, a folder or a special file stands in its place, which stays as it is.
    """
    path = folder / NOTE
    if note or os.path.lexists(path):
        put_in_place(path, f"{note}\n".encode() if note else b"")
