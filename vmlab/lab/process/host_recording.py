"""How a viewer starts a recording of the host and its own guests, which then goes on independently of it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.process.signals import HELD
from vmlab.model.errors import RefusedError, in_one_line
from vmlab.store.life import RECORDER
from vmlab.store.runs import new_run_id
from vmlab.system.marks import make_marked
from vmlab.system.removal import remove_tree

NAME = "recording"
"""What a recording is called in place of a scenario."""
_PROGRAM = "vmlab.lab.run.host_recorder"


@dataclass(frozen=True, slots=True)
class RecordingRequest:
    """How long to record (None until it is stopped), how often, and how much to keep: the newest of each."""

    seconds: float | None
    interval: float = 1.0
    keep_seconds: float = 86400.0
    keep_bytes: int = 10**9

    def to_json(self) -> str:
        """For the recorder's command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RecordingRequest:
        """The inverse of `to_json`."""
        return cls(**json.loads(text))


def start_recording(request: RecordingRequest) -> RunFolder:
    """Start it; returns as soon as its process runs. Raises RefusedError where the state folder cannot be written.

    It holds no place among the runs that measure on this host: it starts no guest and loads no disk.
    """
    folder = RunFolder.of(new_run_id(NAME))
    try:
        make_marked(folder.path, folder.id)
        try:
            lock = folder.take_lock()
        except BaseException:
            remove_tree(folder.path)
            raise
    except OSError as error:
        raise RefusedError(f"cannot write {in_one_line(error)}") from error
    try:
        pid = _spawn(folder, lock, request)
        folder.note_processes(launcher_pid=pid, **{RECORDER: pid})
    finally:
        os.close(lock)
    return folder


def _spawn(folder: RunFolder, lock: int, request: RecordingRequest) -> int:
    """In a session of its own, so that neither Ctrl-C nor a closed terminal reaches it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", _PROGRAM, folder.id, str(Path(folder.path).absolute()), str(lock), request.to_json()],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(folder.log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            # The descriptor is duplicated onto itself in the child, so that no other process inherits it.
            (os.POSIX_SPAWN_DUP2, lock, lock),
        ],
        setsid=True,
        setsigmask=HELD,
        setsigdef=HELD,
    )
