"""How a viewer starts a recording of the host and its own guests, which then goes on independently of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from vmlab.hypervisor.trace_instance import demand_traceable
from vmlab.lab.process.launch import spawn_detached
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import UsageError
from vmlab.model.quantities import format_bytes, format_seconds
from vmlab.store.life import RECORDER
from vmlab.store.runs import new_run_id
from vmlab.system.descriptors import closed_after

NAME = "recording"
"""What a recording is called in place of a scenario."""
_PROGRAM = "vmlab.lab.run.host_recorder"


LEAST_INTERVAL, MOST_INTERVAL = 0.02, 3600.0
LEAST_BYTES = 10**6


@dataclass(frozen=True, slots=True)
class RecordingRequest:
    """How long to record (None until it is stopped), how often, and how much to keep: the newest of each.

    With `blktrace` the requests to the block devices below the guests' disks are counted, too. On the recorder's
    command line these fields are JSON.
    """

    seconds: float | None
    interval: float = 1.0
    keep_seconds: float = 86400.0
    keep_bytes: int = 10**9
    blktrace: bool = False


def start_recording(request: RecordingRequest) -> RunFolder:
    """Start it; returns as soon as its process runs.

    Raises UsageError for a request that makes no sense, and RefusedError where the state folder cannot be written,
    or has no locks, and where nothing can be traced that is to be.

    It holds no place among the runs that measure on this host: it starts no guest and loads no disk.
    """
    _demand_sense(request)
    if request.blktrace:
        demand_traceable()
    folder = RunFolder.of(new_run_id(NAME))
    with closed_after(folder.make(guests=False)) as lock:
        pid = spawn_detached(_PROGRAM, folder, str(lock), json.dumps(asdict(request)), kept=(lock,))
        folder.note_processes(launcher_pid=pid, **{RECORDER: pid})
    return folder


def _demand_sense(request: RecordingRequest) -> None:
    least = f"{1000 * LEAST_INTERVAL:g} ms"
    if not LEAST_INTERVAL <= request.interval <= MOST_INTERVAL:
        raise UsageError(f"a recording takes a sample every {least} to {format_seconds(MOST_INTERVAL)}")
    if not all(span >= LEAST_INTERVAL for span in (request.keep_seconds, request.seconds) if span is not None):
        raise UsageError(f"a recording lasts {least} or more, and keeps as much")
    if not request.keep_bytes >= LEAST_BYTES:
        raise UsageError(f"a recording keeps {format_bytes(LEAST_BYTES)} or more")
