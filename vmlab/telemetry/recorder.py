"""The recorder: samples host and guests at each tick, in a thread of its own, at almost no cost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import NamedTuple

from vmlab.model.sample import OWN_NAMES, Sample, SampleNames
from vmlab.telemetry.domains.domains import Domains
from vmlab.telemetry.domains.traced_disks import TracedDisks
from vmlab.telemetry.guests import Ask, Guests
from vmlab.telemetry.host.host_figures import Group, Readings, Watched, host_groups
from vmlab.telemetry.recorder_clock import HostClocks, Tick, Ticker, share_cpu, take_precedence
from vmlab.telemetry.speed_trace import CpuSpeed
from vmlab.telemetry.told_once import once

# Waking the sink's thread costs a third of a tick, so with short intervals a few ticks are handed over together.
_HAND_OVER_SECONDS = 0.19
_FASTEST, _SLOWEST = 0.02, 3600.0


class ReadTimes(NamedTuple):
    """When counters were read that somebody asked for, in seconds of the monotonic clock: those of the host, of the
    guests, and of the guests' disks. `sampled` is the sample in which the last of them is, by its `mono`.
    """

    host: float
    guests: float
    guests_disks: float
    sampled: float


class Recorder:
    """Calls `sink` with a `Sample` every `interval` seconds (0.02 to 3600) between `start` and `stop`.

    `sink` runs in a thread of its own, in order, and may be slow; it gets each sample within 0.2 s. What is sampled is
    `watched`, whose `notify` gets one line for each group that cannot be read. `guests` asks for libvirt's bulk
    statistics; it returns at once, and the answer may never come. Every `speed` seconds a probe traces the speed of the
    CPUs; 0 for none. `domains` reads the host's own guests, `traced` the trace of their disks. Raises ValueError for an
    interval outside these bounds.
    """

    def __init__(
        self,
        interval: float,
        sink: Callable[[Sample], None],
        watched: Watched,
        guests: Ask | None = None,
        *,
        speed: float = 0.0,
        domains: Domains | None = None,
        traced: TracedDisks | None = None,
        clocks: HostClocks | None = None,
    ) -> None:
        if not _FASTEST <= interval <= _SLOWEST:
            raise ValueError(f"an interval of {interval:g} s is not between {_FASTEST:g} and {_SLOWEST:g} s")
        self._interval = interval
        self._sink = sink
        self._notify = watched.notify
        self._clocks = clocks or HostClocks()
        self._ready: SimpleQueue[list[Sample] | None] = SimpleQueue()
        self._fresh: list[Sample] = []
        self._hand_over_at = 0.0
        self._tell_once = once(watched.notify)
        self._guests = None if guests is None else Guests(guests, interval)
        self._speed = CpuSpeed(watched.notify, period=speed) if speed else None
        more: tuple[Group | None, ...] = (self._guests, domains, traced, self._speed)
        groups = [*host_groups(watched), *(group for group in more if group is not None)]
        self._readings = Readings(groups, watched.notify)
        self._parts: list[tuple[str, ...]] = []
        self._layout = SampleNames((), ())
        self._layouts: dict[tuple[str, ...], SampleNames] = {}
        self._cpu_before = 0.0
        self._ticker: Ticker | None = None
        self._asked: list[tuple[float, Callable[[ReadTimes], object]]] = []
        self._waiting: list[tuple[float, Callable[[ReadTimes], object]]] = []
        self._threads = [
            threading.Thread(target=self._record, name="recorder", daemon=True),
            threading.Thread(target=self._deliver, name="recorder-sink", daemon=True),
        ]

    def start(self) -> None:
        """Start, in a thread that lives until `stop`; the first sample comes after one interval."""
        if self._speed is not None:
            self._speed.start()
        for thread in self._threads:
            thread.start()

    def read_at(self, mono: float, done: Callable[[ReadTimes], object]) -> None:
        """Read all counters at this moment too, or now where it has passed; the span between two such moments is one of
        whole samples. Any thread may call; `done` is called in the recorder's, once the counters of all guests have
        been read then or later, or never.
        """
        self._asked.append((mono, done))
        if self._ticker is not None:
            self._ticker.read_at(mono)

    def stop(self, deadline: float | None = None) -> bool:
        """End, after the sink got every sample that was taken. A second call does nothing.

        After `deadline` seconds, if given, threads that hang are abandoned; returns whether all of them ended.
        """
        self._clocks.stop()
        end = None if deadline is None else time.monotonic() + deadline
        for thread in self._threads:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(None if end is None else max(0.0, end - time.monotonic()))
        ended = not any(thread.is_alive() for thread in self._threads)
        if self._speed is not None and ended:
            self._speed.close()
        return ended

    def _record(self) -> None:
        try:
            refusal = take_precedence()
            if refusal is None:
                share_cpu()
            else:
                self._notify(refusal)
            self._ticker = ticker = Ticker(self._interval, self._clocks)
            for mono, _ in list(self._asked):
                ticker.read_at(mono)
            self._prime()
            while (tick := ticker.wait()) is not None:
                asked = self._due(tick.moment.mono)
                self._fresh.append(self._sample(tick))
                if self._waiting:
                    self._say_read(tick.moment.mono)
                if asked or tick.moment.mono >= self._hand_over_at:
                    self._hand_over()
                    self._hand_over_at = tick.moment.mono + _HAND_OVER_SECONDS
        finally:
            self._hand_over()
            self._ready.put(None)

    def _due(self, mono: float) -> bool:
        """Whether somebody asked for what is read now."""
        due = [one for one in self._asked if one[0] <= mono]
        for one in due:
            self._asked.remove(one)
            self._waiting.append((mono, one[1]))
        if due and self._guests is not None:
            self._guests.ask_anew()
        return bool(due)

    def _say_read(self, mono: float) -> None:
        """Tell those who asked, where the guests' counters are of their moment or later."""
        for one in list(self._waiting):
            at, done = one
            of_guests = (at, at) if self._guests is None else self._guests.read_since(at)
            if of_guests is not None:
                self._waiting.remove(one)
                done(ReadTimes(at, *of_guests, mono))

    def _hand_over(self) -> None:
        self._ready.put(self._fresh)
        self._fresh = []

    def _deliver(self) -> None:
        if take_precedence() is None:
            share_cpu()
        while (samples := self._ready.get()) is not None:
            for sample in samples:
                try:
                    self._sink(sample)
                except Exception as error:  # noqa: BLE001 - recording goes on, and the loss is reported
                    self._tell_once("sample", f"a sample was lost: {error}")

    def _prime(self) -> None:
        """Take the readings from which the first tick's differences are counted."""
        self._cpu_before = time.thread_time()
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

    def _current_layout(self) -> SampleNames:
        parts = self._readings.parts()
        # Names that did not change are the same objects, so this compares no text.
        if parts != self._parts:
            self._parts = parts
            names = OWN_NAMES + tuple(name for part in parts for name in part)
            # Layouts are kept, so that a disk that comes and goes does not make a new one each time.
            self._layout = self._layouts.setdefault(names, SampleNames.of(names))
        return self._layout
