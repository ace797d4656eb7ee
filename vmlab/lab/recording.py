"""The recorder over a whole run: host and guests, each tick, into the run's store."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from vmlab.hypervisor.contract import Hypervisor
from vmlab.hypervisor.namespace import host_proc
from vmlab.model.event import Notice
from vmlab.model.sample import Sample
from vmlab.store.samples import SampleWriter
from vmlab.store.writer import RunWriter
from vmlab.telemetry.guests import asked_of_loop
from vmlab.telemetry.recorder import Recorder
from vmlab.telemetry.source import Roots

INTERVAL_SECONDS = 1.0
_STATS_SECONDS = 10.0
_KEPT_SAMPLES = 4 * 3600


class RecentFigures:
    """The samples of the last hours in memory, for what must be known as soon as a cell ends; passes all on."""

    def __init__(self, sink: Callable[[Sample], None]) -> None:
        self._sink = sink
        self._kept: deque[Sample] = deque(maxlen=_KEPT_SAMPLES)

    def __call__(self, sample: Sample) -> None:
        """Take one sample, in the recorder's thread."""
        self._kept.append(sample)
        self._sink(sample)

    def mean(self, name: str, since: float, until: float) -> float:
        """The mean of one value over ticks that lie within a span of the monotonic clock; NaN without any."""
        ticks = [s for s in tuple(self._kept) if s.mono - s.length >= since and s.mono <= until]
        weighed = [(s.get(name), s.length) for s in ticks if math.isfinite(s.get(name))]
        length = math.fsum(length for _, length in weighed)
        return math.fsum(value * length for value, length in weighed) / length if length > 0 else math.nan


class Recording:
    """Records while the block runs. What cannot be recorded is a notice in the run, once."""

    def __init__(self, writer: RunWriter, hypervisor: Hypervisor, disks: Path) -> None:
        self._writer = writer
        self._hypervisor = hypervisor
        self._disks = disks
        self.figures = RecentFigures(SampleWriter(writer))

    async def __aenter__(self) -> Self:
        self._recorder = Recorder(
            INTERVAL_SECONDS,
            self.figures,
            guests=asked_of_loop(self._hypervisor.domain_stats, asyncio.get_running_loop(), _STATS_SECONDS),
            disks=(self._disks,),
            notify=self._notify,
            roots=Roots(host_proc=host_proc()),
        )
        self._recorder.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        # The recorder's last question to the hypervisor needs the event loop, so the loop must not wait for it here.
        await asyncio.to_thread(self._recorder.stop)

    def _notify(self, line: str) -> None:
        self._writer.append(Notice(level="info", text=line))
