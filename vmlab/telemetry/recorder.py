"""The recorder: what host and guests do, each tick, from a thread of its own, for next to nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue

from vmlab.model.sample import Layout, Sample
from vmlab.telemetry.clock import Clocks, HostClocks, Tick, Ticker
from vmlab.telemetry.guest import GuestStats
from vmlab.telemetry.guests import Guests
from vmlab.telemetry.host import Notify, Readings, host_groups
from vmlab.telemetry.lab_cpu import Scope
from vmlab.telemetry.priority import take_precedence
from vmlab.telemetry.source import Roots

OWN_NAMES = (
    "tick_length_seconds",
    "tick_lateness_seconds",
    "ticks_missed",
    "clock_step_seconds",
    "suspended_seconds",
    "recorder_cpu_percent",
)
"""The first values of every sample: about the tick itself."""
# Waking the sink's thread costs as much as a third of a tick, so faster ticks are handed over a few at a time.
_HAND_OVER_SECONDS = 0.19
_FASTEST, _SLOWEST = 0.02, 3600.0


class Recorder:
    """Calls `sink` with a `Sample` every `interval` seconds (0.02 to 3600) between `start` and `stop`.

    `sink` runs in a thread of its own, in order, and may take its time; it gets each sample within 0.2 s. `guests`
    gives libvirt's bulk statistics and may hang. `network` is the lab's bridge, `disks` are the folders of the lab's
    disk files. `scope` says whose CPU is the lab's: that of all processes of this PID namespace, or of this process
    alone. `notify` gets one line for each thing that is not to be had; any thread calls it. Raises ValueError for an
    interval that makes no sense.
    """

    def __init__(
        self,
        interval: float,
        sink: Callable[[Sample], None],
        guests: Callable[[], GuestStats] | None = None,
        network: str | None = "vmlab0",
        disks: Sequence[Path] = (),
        *,
        notify: Notify = lambda line: None,
        scope: Scope = "namespace",
        roots: Roots | None = None,
        clocks: Clocks | None = None,
    ) -> None:
        if not _FASTEST <= interval <= _SLOWEST:
            raise ValueError(f"an interval of {interval:g} s is not between {_FASTEST:g} and {_SLOWEST:g} s")
        self._interval = interval
        self._sink = sink
        self._notify = notify
        self._clocks = clocks or HostClocks()
        self._ready: SimpleQueue[list[Sample] | None] = SimpleQueue()
        self._fresh: list[Sample] = []
        self._hand_over_at = 0.0
        self._loss_told = False
        groups = host_groups(roots or Roots(), disks, network, scope, notify)
        self._guests = None
        if guests is not None:
            self._guests = Guests(guests, interval)
            groups.append(self._guests)
        self._readings = Readings(groups, notify)
        self._parts: tuple[tuple[str, ...], ...] = ()
        self._layout = Layout((), ())
        self._layouts: dict[tuple[str, ...], Layout] = {}
        self._cpu_before = 0.0
        self._threads = [
            threading.Thread(target=self._record, name="recorder", daemon=True),
            threading.Thread(target=self._deliver, name="recorder-sink", daemon=True),
        ]

    def start(self) -> None:
        """Begin; the first sample comes after one interval."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, after every sample that was taken has gone to the sink. A second call does nothing."""
        self._clocks.stop()
        for thread in self._threads:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join()

    def _record(self) -> None:
        try:
            refusal = take_precedence()
            if refusal is not None:
                self._notify(refusal)
            ticker = Ticker(self._interval, self._clocks)
            self._prime(ticker)
            while (tick := ticker.wait()) is not None:
                self._fresh.append(self._sample(tick))
                if tick.moment.mono >= self._hand_over_at:
                    self._hand_over()
                    self._hand_over_at = tick.moment.mono + _HAND_OVER_SECONDS
        finally:
            self._hand_over()
            if self._guests is not None:
                self._guests.stop()
            self._ready.put(None)

    def _hand_over(self) -> None:
        self._ready.put(self._fresh)
        self._fresh = []

    def _deliver(self) -> None:
        take_precedence()
        while (samples := self._ready.get()) is not None:
            for sample in samples:
                try:
                    self._sink(sample)
                except Exception as error:  # noqa: BLE001 - recording goes on, and the loss is told
                    self._tell_loss(error)

    def _tell_loss(self, error: Exception) -> None:
        if not self._loss_told:
            self._loss_told = True
            self._notify(f"a sample was lost: {error}")

    def _prime(self, ticker: Ticker) -> None:
        """The readings that the first tick's differences start from."""
        self._cpu_before = time.thread_time()
        if self._guests is not None:
            self._guests.start(ticker.deadline)
        self._readings.read(self._clocks.now().mono, self._interval)

    def _sample(self, tick: Tick) -> Sample:
        own = self._own(tick)
        values = self._readings.read(tick.moment.mono, tick.length)
        return Sample(
            tick.moment.wall, tick.moment.mono, tick.length, tick.lateness, self._current_layout(), (*own, *values)
        )

    def _own(self, tick: Tick) -> tuple[float, ...]:
        cpu = time.thread_time()
        before, self._cpu_before = self._cpu_before, cpu
        used = (cpu - before) / tick.length * 100
        return (tick.length, tick.lateness, float(tick.missed), tick.clock_step, tick.suspended, used)

    def _current_layout(self) -> Layout:
        parts = self._readings.parts()
        if len(parts) != len(self._parts) or any(a is not b for a, b in zip(parts, self._parts, strict=True)):
            self._parts = parts
            names = OWN_NAMES + tuple(name for part in parts for name in part)
            # A disk that comes and goes brings back a layout that was there before, and not a new one each time.
            self._layout = self._layouts.setdefault(names, Layout.of(names))
        return self._layout
