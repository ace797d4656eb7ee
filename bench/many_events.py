"""How long `ls`, `show` and `attach` take beside a run of very many events: ``python -m bench.many_events [COUNT]``.

The store is synthetic: one run whose cells progress, and progress, and progress.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    MeasurementTaken,
    PhaseEnded,
    PhaseStarted,
    WorkloadEnded,
    WorkloadProgressed,
)
from vmlab.model.event import (
    Event,
    RunEnded,
    RunStarted,
)
from vmlab.model.event_json import to_json
from vmlab.model.places import runs_folder
from vmlab.model.results import Measurement
from vmlab.store.runs import STORE
from vmlab.store.writer import RunWriter

RUN = "20261121-143000-tile-many"
_CELLS = 100
_COMMANDS = (("ls",), ("show", RUN), ("show", RUN, "--json"), ("attach", RUN))


def make(count: int) -> Path:
    """A store of about `count` events under the state folder; all but a thousand tell progress."""
    folder = runs_folder() / RUN
    folder.mkdir(parents=True)
    writer = RunWriter(folder / STORE)
    writer.document("scenario", json.dumps({"axes": {"cache": {"values": ["none", "writeback"]}}}))
    connection = writer._open
    assert connection is not None
    # One transaction: a writer's own way, one for each event, would take minutes.
    connection.execute("BEGIN")
    writer.append(RunStarted(run=RUN, scenario="tile", size="demo", seed=1, cells=_CELLS, expected_seconds=60.0))
    for cell in range(1, _CELLS + 1):
        for event in _cell(cell, count // _CELLS):
            writer.append(event)
    writer.append(RunEnded(outcome="passed", exit_code=0))
    connection.execute("COMMIT")
    writer.close()
    return folder / STORE


def _cell(cell: int, count: int) -> list[Event]:
    place = {"cell": cell, "workload": "web", "tile": 1}
    return [
        CellStarted(cell=cell, axes={"cache": ("none", "writeback")[cell % 2]}, repeat=(cell + 1) // 2, guests=4),
        PhaseStarted(cell=cell, phase="execute"),
        *(WorkloadProgressed(**place, done=n, total=count, unit="requests") for n in range(count)),  # type: ignore[arg-type]
        PhaseEnded(cell=cell, phase="execute", seconds=10.0),
        WorkloadEnded(**place, guest="front", outcome="passed", seconds=10.0 + cell / 100),  # type: ignore[arg-type]
        MeasurementTaken(cell=cell, figure=Measurement("web", 1, "front", "run_time", 10.0 + cell / 100, "s")),
        CellEnded(cell=cell, outcome="passed", reasons=[], wall_seconds=10.0, start_skew_ms=1.0),
    ]


def main() -> None:
    """Print a line for each command."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        store = make(count)
        print(f"{count} events, {store.stat().st_size / 2**20:.0f} MiB, {len(to_json(_cell(1, 1)[2]))} bytes an event")
        for command in _COMMANDS:
            began, before = time.monotonic(), os.times()
            subprocess.run([sys.executable, "-m", "vmlab", *command], check=True, capture_output=True)
            after = os.times()
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            print(f"{' '.join(command):<40} {time.monotonic() - began:6.2f} s, {cpu:.2f} s of CPU")


if __name__ == "__main__":
    main()
