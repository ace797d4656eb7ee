"""A run that only a bench sees: twelve guests at work, told by real events and real samples of this host.

The guests' own figures are SYNTHETIC, of libvirt's form; everything else is read from this host.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.support.recorder_process import SyntheticGuests
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.cell_event import (
    CellStarted,
    GuestStateChanged,
    PhaseStarted,
    WorkloadProgressed,
    WorkloadStarted,
)
from vmlab.model.event import HostProbed, RunStarted
from vmlab.store.samples import SampleWriter
from vmlab.store.writer import RunWriter
from vmlab.telemetry.host.host_figures import Watched
from vmlab.telemetry.recorder import Recorder

GUESTS = ("file-a", "file-b", "front", "database")
TILES = 3


@contextmanager
def busy_run(state: Path) -> Iterator[Path]:
    """The store of a run that goes on in the state folder `state` (an ``XDG_STATE_HOME``) while the block runs."""
    folder = RunFolder("20260101-000000-bench-0000", state / "vmlab/runs/20260101-000000-bench-0000")
    folder.path.mkdir(parents=True)
    lock = folder.take_lock()
    writer = RunWriter(folder.store)
    _begin(writer)
    done = threading.Event()
    progress = threading.Thread(target=_progress, args=(writer, done))
    names = [f"t{tile}-{guest}" for tile in range(1, TILES + 1) for guest in GUESTS]
    made_up = SyntheticGuests(len(names), names)
    watched = Watched(lab_folders=[state], scope="process")
    recorder = Recorder(1.0, SampleWriter(writer), watched, made_up.tell)
    recorder.start()
    progress.start()
    try:
        yield folder.store
    finally:
        done.set()
        progress.join()
        recorder.stop()
        writer.close()
        os.close(lock)


def _begin(writer: RunWriter) -> None:
    writer.append(RunStarted(run="bench", scenario="tile", size="full", seed=1, cells=6, expected_seconds=3600.0))
    writer.append(HostProbed(accelerator="tcg", host={}))
    writer.append(CellStarted(cell=1, axes={"tiles": TILES, "cache": "none"}, repeat=1, guests=TILES * len(GUESTS)))
    writer.append(PhaseStarted(cell=1, phase="execute"))
    for tile in range(1, TILES + 1):
        for guest in GUESTS:
            writer.append(GuestStateChanged(cell=1, tile=tile, guest=guest, role="web", state="prepared"))
            writer.append(
                WorkloadStarted(
                    cell=1, workload=guest, tile=tile, guest=guest, benchmark="http", late_ms=1.0, uncertainty_ms=1.0
                )
            )


def _progress(writer: RunWriter, done: threading.Event) -> None:
    """Every workload says once a second how far it is, as real ones do."""
    began = time.monotonic()
    while not done.wait(1.0):
        far = (time.monotonic() - began) % 600
        for tile in range(1, TILES + 1):
            for guest in GUESTS:
                writer.append(
                    WorkloadProgressed(cell=1, workload=guest, tile=tile, done=far, total=600, unit="requests")
                )
