"""How a viewer starts a recording of the host and its own guests, which then goes on independently of it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

from vmlab.lab.process.launch import spawn_detached
from vmlab.lab.process.run_folder import RunFolder
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
        pid = spawn_detached(_PROGRAM, folder, str(lock), request.to_json(), kept=(lock,))
        folder.note_processes(launcher_pid=pid, **{RECORDER: pid})
    finally:
        os.close(lock)
    return folder
