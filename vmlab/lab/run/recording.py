"""The recorder over a whole run: host and guests, each tick, into the run's store."""

from __future__ import annotations

import asyncio
import contextlib
import time
from array import array
from collections import deque
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from vmlab.hypervisor.isolation.namespace import host_proc
from vmlab.hypervisor.protocols import Hypervisor
from vmlab.lab.cell.disturbance import JUDGED
from vmlab.lab.provision.timing import USUAL, Timing
from vmlab.model.concurrency import shielded
from vmlab.model.errors import StoreError
from vmlab.model.event import Event, Notice
from vmlab.model.sample import Sample, SampleNames, split_name
from vmlab.store.outbox import Outbox
from vmlab.store.samples import SampleWriter
from vmlab.telemetry.guest_readings import GuestAnswer, GuestStats
from vmlab.telemetry.guests import asked_of_loop
from vmlab.telemetry.host.host_figures import Watched
from vmlab.telemetry.host.ordered_host import GroupFiles
from vmlab.telemetry.recorder import ReadTimes, Recorder
from vmlab.telemetry.recorder_clock import HostClocks
from vmlab.telemetry.sample_summary import extremes_over, mean_over
from vmlab.telemetry.source import Roots

_KEPT_SAMPLES = 4 * 3600


class RecentFigures:
    """Keeps the values of `metrics` of the last hours in memory, for what is checked as soon as a cell ends.

    Each sample is passed on to `sink` as it is. Of hundreds of values a tick, those of a few metrics are asked for.
    """

    def __init__(self, sink: Callable[[Sample], None], metrics: Container[str] = JUDGED) -> None:
        self._sink = sink
        self._metrics = metrics
        self._kept: deque[Sample] = deque(maxlen=_KEPT_SAMPLES)
        self._layout: SampleNames | None = None
        self._thin = SampleNames((), ())
        self._places: list[int] = []

    def __call__(self, sample: Sample) -> None:
        """Take one sample, in the recorder's thread."""
        if sample.layout is not self._layout:
            self._layout = sample.layout
            names = sample.layout.names
            self._places = [place for place, name in enumerate(names) if split_name(name)[0] in self._metrics]
            self._thin = SampleNames.of([names[place] for place in self._places])
        values = array("d", [sample.values[place] for place in self._places])
        self._kept.append(sample._replace(layout=self._thin, values=values))
        self._sink(sample)

    def mean(self, name: str, since: float, until: float) -> float:
        """The mean of one value over a span of the monotonic clock, as `show` has it; NaN without any."""
        return mean_over(tuple(self._kept), name, since, until)

    def extremes(self, metric: str, since: float, until: float) -> tuple[float, float]:
        """The lowest and the highest value of any instance of `metric` in a tick within a span; NaN without any."""
        return extremes_over(tuple(self._kept), metric, since, until)


class KeptTicks:
    """Passes samples on to `keep`; counts those that cannot be stored, and reports the number afterwards."""

    def __init__(self, keep: Callable[[Sample], None], emit: Callable[[Event], object]) -> None:
        self._keep = keep
        self._emit = emit
        self._lost = 0
        self._why = ""

    def __call__(self, sample: Sample) -> None:
        """Keep one sample, or count it as lost."""
        try:
            self._keep(sample)
        except StoreError as error:
            self._lost += 1
            self._why = str(error)
        else:
            self.tell_losses()

    def tell_losses(self) -> None:
        """Report how many were lost since the last report, if any."""
        if self._lost:
            ticks = "tick is" if self._lost == 1 else "ticks are"
            self._emit(Notice(level="warning", text=f"{self._lost} {ticks} lost to the recording: {self._why}"))
            self._lost = 0


@dataclass(eq=False)
class HostRecording:
    """Records while the block runs. Whatever cannot be recorded gives one notice in the run.

    The process `_apart` is counted as neither the lab's work nor that of others. `_ordered` is the limited host, if
    there is one. The CPUs' speed is probed every `speed` seconds, 0 for never.
    """

    _outbox: Outbox
    _hypervisor: Hypervisor
    _folders: Sequence[Path]
    _timing: Timing = USUAL
    _apart: int | None = None
    _ordered: GroupFiles | None = None
    speed: float = 0.0
    _questions: set[asyncio.Task[object]] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._kept = KeptTicks(SampleWriter(self._outbox.writer), self._outbox.append)
        self.figures = RecentFigures(self._kept)

    async def __aenter__(self) -> Self:
        watched = Watched(
            roots=Roots(host_proc=host_proc()),
            lab_folders=tuple(self._folders),
            network=self._hypervisor.network.bridge,
            notify=self._notify,
            apart=self._apart,
            ordered=self._ordered,
            outside=self._hypervisor.watch.host_pids,
        )
        guests = asked_of_loop(self._statistics, asyncio.get_running_loop(), self._timing.statistics)
        # Every wait can be ended, so that counters are read when somebody asks for it.
        clocks = HostClocks(plain=0.0)
        self._recorder = Recorder(self._timing.tick, self.figures, watched, guests, speed=self.speed, clocks=clocks)
        self._recorder.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        # The recorder's last question to the hypervisor needs the event loop, so the loop must not wait for it here. A
        # stop of the run at this moment would end the loop too early.
        if not await shielded(asyncio.to_thread(self._recorder.stop, self._timing.recorder)):
            text = f"the recorder did not end within {self._timing.recorder:g} s: its last ticks are lost"
            self._outbox.append(Notice(level="warning", text=text))
        # A call that hangs is not waited for, but must end before the hypervisor's connection is closed.
        for question in self._questions:
            question.cancel()
        self._kept.tell_losses()

    async def read_at(self, mono: float) -> ReadTimes | None:
        """Read the counters of host and guests at this moment, or now where it has passed; when that was.

        None where the guests have not answered within `timing.reading`, or the recorder has ended.
        """
        loop, read = asyncio.get_running_loop(), asyncio.Event()
        found: list[ReadTimes] = []

        def done(counters: ReadTimes) -> None:
            found.append(counters)
            with contextlib.suppress(RuntimeError):  # The loop has ended.
                loop.call_soon_threadsafe(read.set)

        self._recorder.read_at(mono, done)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, mono - time.monotonic()) + self._timing.reading):
                await read.wait()
        if not found:
            self._outbox.append(Notice(level="warning", text=f"guests gave no metrics for {self._timing.reading:g} s"))
        return found[0] if found else None

    async def _statistics(self, whole: bool) -> GuestAnswer[GuestStats]:
        question = asyncio.current_task()
        assert question is not None
        self._questions.add(question)
        try:
            return await self._hypervisor.statistics.domain_stats(whole=whole)
        finally:
            self._questions.discard(question)

    def _notify(self, line: str) -> None:
        self._outbox.append(Notice(level="info", text=line))
