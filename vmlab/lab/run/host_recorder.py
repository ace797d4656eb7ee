"""The process of a recording: the host and its own guests, each tick, as a run without workloads.

Started by `host_recording`, never by hand: ``python -m vmlab.lab.run.host_recorder RUN FOLDER LOCK_FD REQUEST``. It
holds the run's lock. SIGINT and SIGTERM end it as its own end does: what was recorded is whole. So does the loss of its
folder (`held_folder`), with exit code 1 and the cause in the log: a folder that was moved has the whole record.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.trace_instance import TraceInstance
from vmlab.lab.process.host_recording import NAME, RecordingRequest
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.process.signals import HELD, STOPPING
from vmlab.lab.run.host_facts import host_facts
from vmlab.lab.run.recording import KeptTicks
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    PhaseEnded,
    PhaseStarted,
)
from vmlab.model.domain import Domain
from vmlab.model.errors import ExitCode, StoreError, VmlabError, in_one_line
from vmlab.model.event import (
    DomainsSeen,
    Event,
    HostProbed,
    Notice,
    RunEnded,
    RunStarted,
)
from vmlab.model.jsonable import time_of_day
from vmlab.model.quantities import format_seconds
from vmlab.model.run import OF_HOST, Outcome, Phase
from vmlab.model.sample import Sample
from vmlab.model.visible import visible_line
from vmlab.store.outbox import PATIENCE_SECONDS, Outbox
from vmlab.store.samples import SampleWriter
from vmlab.store.writer import RunWriter
from vmlab.system.held_folder import LOOK_SECONDS, FolderLostError, why_lost
from vmlab.system.terminal import say
from vmlab.telemetry.domains.domains import Domains
from vmlab.telemetry.domains.traced_disks import TracedDisks
from vmlab.telemetry.host.host_figures import Watched
from vmlab.telemetry.recorder import Recorder
from vmlab.telemetry.source import THE_HOST
from vmlab.telemetry.speed_trace import PERIOD

_CELL = 1
_LOOK_EVERY = 60
"""Samples after which it is looked whether too much is kept."""
_FOLD_EVERY = 600
"""Samples after which the log is folded in: nothing is measured that this could disturb."""
_DROPPED_PART = 0.05
"""How much of what is kept goes when the bytes are too many."""
_GAP_TICKS = 2
_GAP_SECONDS = 2.0
_MOST_GAPS = 100
_STOP_SECONDS = 20.0


class Ring:
    """Passes samples on to `keep`, and drops the oldest ones beyond what the request allows."""

    def __init__(self, writer: RunWriter, keep: Callable[[Sample], None], request: RecordingRequest) -> None:
        self._writer = writer
        self._keep = keep
        self._request = request
        self._count = 0
        self._first: float | None = None
        self.began_at: float | None = None
        """The moment up to which samples were dropped; None where all are kept."""

    def __call__(self, sample: Sample) -> None:
        """Keep one sample. Raises StoreError where it cannot be written."""
        self._keep(sample)
        self._first = sample.mono if self._first is None else self._first
        self._count += 1
        if self._count % _LOOK_EVERY == 0:
            self._drop(sample.mono)
        if self._count % _FOLD_EVERY == 0:
            self._writer.checkpoint()

    def _drop(self, now: float) -> None:
        first = self._first or now
        until = now - self._request.keep_seconds
        if self._writer.used_bytes() > self._request.keep_bytes:
            until = max(until, first + _DROPPED_PART * (now - first))
        if until > first and self._writer.drop_samples(until):
            self._first = self.began_at = until


class Gaps:
    """Names each span without a sample, in a warning of the record: its figures are one mean over all of it.

    A recorder that was stopped or starved missed ticks; a host that slept has none. Spans of a tick or two are the
    host's scheduler, and are in ``ticks_missed`` alone.
    """

    def __init__(self, note: Callable[[str, str], None]) -> None:
        self._note = note
        self._count = 0

    def __call__(self, sample: Sample) -> None:
        """Look at the next sample."""
        asleep = sample.get("suspended_seconds")
        stood = sample.get("ticks_missed") >= _GAP_TICKS and sample.length >= _GAP_SECONDS
        if not stood and not asleep >= _GAP_SECONDS:
            return
        self._count += 1
        if self._count <= _MOST_GAPS:
            why = "the host was suspended" if asleep >= _GAP_SECONDS else "the recorder did not run"
            whole = format_seconds(sample.length + max(0.0, asleep))
            self._note(f"gap: no sample was taken for {whole} until {time_of_day(sample.wall)}: {why}", "warning")

    def tell_rest(self) -> None:
        """Say how many more there were than are named."""
        if self._count > _MOST_GAPS:
            self._note(f"{self._count - _MOST_GAPS} more gaps are not named", "warning")


class HostRecorder:
    """Records into the store of `folder` between `start` and `end`."""

    def __init__(self, folder: RunFolder, request: RecordingRequest) -> None:
        self._writer = RunWriter(folder.store)
        self._outbox = Outbox(self._writer)
        self._request = request
        self._domains = Domains(THE_HOST, notify=self._note)
        self._seen: tuple[Domain, ...] = ()
        self._ring = Ring(self._writer, SampleWriter(self._writer), request)
        self._kept = KeptTicks(self._ring, self._outbox.append)
        self._gaps = Gaps(self._note)
        self._folder = folder
        watched = Watched(lab_folders=[folder.path], scope="process", notify=self._note)
        self._instance = TraceInstance(folder.id, Journal(folder.journal)) if request.blktrace else None
        self._traced = (
            None
            if self._instance is None
            else TracedDisks(self._instance, lambda: self._domains.domains, lambda line: self._note(line, "warning"))
        )
        self._recorder = Recorder(
            request.interval, self._take, watched, speed=PERIOD, domains=self._domains, traced=self._traced
        )

    def start(self) -> None:
        """Write the beginning of the record, and start to sample. Raises OSError where no trace can be made."""
        seconds = self._request.seconds or 0.0
        self._emit(
            RunStarted(run=self._folder.id, scenario=NAME, size=OF_HOST, seed=0, cells=1, expected_seconds=seconds),
            HostProbed(accelerator="", host=host_facts(self._folder.path)),
            CellStarted(cell=_CELL, axes={}, repeat=1, guests=0),
            PhaseStarted(cell=_CELL, phase=Phase.EXECUTE),
        )
        self._began = time.monotonic()
        if self._instance is not None and self._traced is not None:
            self._instance.start()
            self._traced.start()
        self._recorder.start()

    def end(self, why: str = "") -> None:
        """Take the last sample, and write the end of the record; `why` it ended otherwise than it should.

        Raises StoreError where it could not be written.
        """
        self._recorder.stop(_STOP_SECONDS)
        if self._instance is not None and self._traced is not None:
            self._traced.close()
            # Where the folder is lost the journal is, too.
            with suppress(StoreError):
                self._instance.close()
        self._kept.tell_losses()
        self._gaps.tell_rest()
        if self._ring.began_at is not None:
            gone = format_seconds(max(0.0, self._ring.began_at - self._began))
            self._note(f"the samples of the first {gone} were dropped: the recording keeps its newest part", "warning")
        seconds = time.monotonic() - self._began
        self._emit(
            PhaseEnded(cell=_CELL, phase=Phase.EXECUTE, seconds=seconds),
            CellEnded(cell=_CELL, outcome=Outcome.PASSED, reasons=[], wall_seconds=None, start_skew_ms=None),
            RunEnded(outcome=Outcome.ABORTED, exit_code=int(ExitCode.FAILED), reason=why)
            if why
            else RunEnded(outcome=Outcome.PASSED, exit_code=int(ExitCode.PASSED)),
        )
        self._outbox.close(LOOK_SECONDS if why else PATIENCE_SECONDS)
        self._writer.fold_in()
        self._writer.close()

    def _take(self, sample: Sample) -> None:
        domains = self._domains.domains
        if domains is not self._seen:
            self._seen = domains
            self._emit(DomainsSeen(domains=list(domains)))
        self._gaps(sample)
        self._kept(sample)

    def _note(self, line: str, level: str = "info") -> None:
        self._emit(Notice(level=level, text=line))

    def _emit(self, *events: Event) -> None:
        for event in events:
            self._outbox.append(event)


def main() -> None:
    """Entry point of the recorder's process."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    folder, request = RunFolder(sys.argv[1], Path(sys.argv[2])), RecordingRequest(**json.loads(sys.argv[4]))
    try:
        folder.hold()
        recorder = HostRecorder(folder, request)
        recorder.start()
        why = _until_stopped(math.inf if request.seconds is None else request.seconds)
        if not why:
            recorder.end()
            return
        with suppress(StoreError):
            recorder.end(why)
        raise FolderLostError(why)
    except (VmlabError, OSError) as error:
        say(f"vmlab: {visible_line(in_one_line(error))}")
        sys.exit(ExitCode.FAILED)


def _until_stopped(seconds: float) -> str:
    """Wait for a signal, the end of the time, or the loss of the folder: why it is lost."""
    end = time.monotonic() + seconds
    told = threading.Event()

    def heed() -> None:
        # Signals are blocked, so that none is lost before or comes in the middle of the end. Python's sigtimedwait
        # answers with a signal that never came where it is stopped and continued after its time; sigwait does not.
        signal.sigwait(STOPPING)
        told.set()

    threading.Thread(target=heed, name="signals", daemon=True).start()
    while not (why := why_lost()) and (left := end - time.monotonic()) > 0 and not told.wait(min(LOOK_SECONDS, left)):
        pass
    return why


if __name__ == "__main__":
    main()
