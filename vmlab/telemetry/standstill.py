"""Notices what of the lab stands still while the workloads of a cell run.

Everything that carries a figure is watched, each thread by itself: QEMU's virtual CPUs, I/O threads and workers, the
emulated disk's server, programs on the host. Five times a second, in long cells twice, at moments that follow no
period, `process_states` looks at all of them.

None of this says anything of this process, in which the watch runs: it was stopped while no sample was taken, it used
no CPU, and waited neither for one nor for a page from a disk. Such gaps add up from a quarter of a second on, below
which a host below this one may cause them, and count from a second in all on. What must not change meanwhile is watched
by `steady_values` and `link_states`.
"""

from __future__ import annotations

import math
import os
import random
import resource
import select
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from vmlab.telemetry.link_states import LinkStates
from vmlab.telemetry.process_states import EVERY, STOPPED, Pids, ProcessStates, Standstill
from vmlab.telemetry.recorder_clock import take_precedence
from vmlab.telemetry.source import THE_HOST, KernelFile
from vmlab.telemetry.steady_values import Changed, LabValues, Throttled

_LONG, _SELDOM = 5.0, 2.5
"""After so many seconds there are enough samples for a share of 2 %, and samples are so many times less often."""
_COMPARE_SECONDS = (0.2, 1.25)
"""After at most so many seconds the next sample compares what must not change, and those in a long cell: half a second
and two seconds lie between two readings at most.
"""
_OWN_GAP, _OWN_LEAST = 0.25, 1.0
"""Seconds from which a gap between samples is a stop of this process, and from which all of them count."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a watch saw in its `seconds`: who stood still, who was throttled, and what was changed meanwhile."""

    seconds: float = 0.0
    stood: Sequence[Standstill] = ()
    throttled: Sequence[Throttled] = ()
    changed: Sequence[Changed] = ()


class StandstillWatch:
    """Watches all that carries a figure, from `start` until `stop`, in a thread of its own.

    `inside` is whether this is the PID namespace of a lab; where it is not, nothing is watched, since the processes
    would be those of everybody. `folders` are those of the lab's disk files, for the settings of the disks below them.
    `outside` gives the lab's processes in no PID namespace of the lab, as the host's `host_proc` numbers them; the
    lab's `bridge` is named where its network namespace is the host's.
    """

    def __init__(
        self,
        *,
        inside: bool,
        folders: Sequence[Path] = (),
        proc: Path = Path("/proc"),
        host_proc: Path = Path("/proc"),
        outside: Pids = tuple,
        bridge: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock, self._proc = clock, proc
        self._states = ProcessStates(proc) if inside else None
        roots = THE_HOST._replace(host_proc=host_proc)
        self._values = LabValues(self._states.mounts, folders, roots) if self._states is not None else None
        self._of_outside = partial(ProcessStates, host_proc, only=outside)
        self._outside = self._of_outside() if inside and tuple(outside()) else None
        self._bridge = bridge
        self._links: LinkStates | None = None
        self._stopping = -1
        self._seen = Seen()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._watch, name="standstill", daemon=True)

    def begin(self, *, links: bool = True) -> None:
        """Take all values as they are now: what is changed from here on was changed, also before `start`.

        Without `links` they are taken at the start, as some are still made. Raises OSError where /proc cannot be read.
        """
        if self._states is not None and self._values is not None:
            now, threads = self._clock(), list[tuple[int, int, bytes]]()
            # Those that are watched from the start on have been seen by no look yet.
            firsts = [ProcessStates(self._proc, self._states.mounts)]
            firsts += [self._of_outside(self._states.mounts)] if self._outside is not None else []
            for first in firsts:
                first.list_all(now)
                threads += first.threads(every=True)
            self._values.look(now, threads)
            if links:
                self._links = LinkStates(self._bridge)
                self._links.look(now)

    def start(self) -> None:
        """Watch from now on; must be called once."""
        if self._states is not None and self._links is None:
            self._links = LinkStates(self._bridge)
        self._stopping = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread.start()

    def stop(self) -> Seen:
        """End, and give what was seen. A second call gives the same.

        Raises OSError where /proc cannot be read, and whatever else the watch has failed of.
        """
        if self._stopping >= 0:
            os.eventfd_write(self._stopping, 1)
            self._thread.join()
            os.close(self._stopping)
            self._stopping = -1
        # Not left to the garbage collector: a watch has hundreds of files open, and a process may have 1,024.
        self._states = self._values = self._outside = None
        if self._links is not None:
            self._links.close()
        if self._failure is not None:
            raise self._failure
        return self._seen

    def _watch(self) -> None:
        try:
            if self._states is not None and self._values is not None and self._links is not None:
                take_precedence()
                self._values.begin()
                self._look_on(self._states, self._values, self._links)
        except Exception as error:  # noqa: BLE001 - what ends the watch must not look as if nothing was seen
            # Its traceback would keep what was open.
            self._failure = error.with_traceback(None)

    def _look_on(self, states: ProcessStates, values: LabValues, links: LinkStates) -> None:
        began = now = due = self._clock()
        own, stopped, waits = _OwnTimes(self._proc), 0.0, select.poll()
        for descriptor in (self._stopping, links):
            waits.register(descriptor, select.POLLIN)
        going, seldom = True, 1.0
        while going:
            seldom = 1.0 if now - began < _LONG else _SELDOM
            self._look(states, now, seldom)
            if now >= due:
                self._compare(states, values, now)
                due = now + random.uniform(0.8, 1.0) * _COMPARE_SECONDS[seldom > 1.0]
            wait = random.uniform(0.5, 1.5) * EVERY * seldom
            going = self._wait(waits, now + wait, links)
            before, now = now, self._clock()
            gap = now - before - wait - own.since()
            stopped += gap if gap >= _OWN_GAP else 0.0
        self._look(states, now, seldom)
        self._compare(states, values, now, every=True)
        links.look(now)
        # Numbers of the host's are other processes here.
        others = [] if self._outside is None else self._outside.end(now)
        outside = [replace(one, pid=-one.pid) for one in others]
        changed = [*values.changed(now), *links.changed(now)]
        this = [Standstill(os.getpid(), "", STOPPED, stopped)] if stopped >= _OWN_LEAST else []
        self._seen = Seen(now - began, [*this, *states.end(now), *outside], values.throttled(), changed)

    def _look(self, states: ProcessStates, now: float, seldom: float) -> None:
        states.look(now, seldom)
        if self._outside is not None:
            self._outside.look(now, seldom)

    def _wait(self, waits: select.poll, until: float, links: LinkStates) -> bool:
        """Wait, and take what the kernel tells of links meanwhile; False when `stop` ended the wait."""
        while (left := until - self._clock()) > 0:
            # To ask the links' socket at each comparison costs more than this wait (decision 47).
            for descriptor, _ in waits.poll(1000 * left):
                if descriptor == self._stopping:
                    return False
                links.look(self._clock())
        return True

    def _compare(self, states: ProcessStates, values: LabValues, now: float, *, every: bool = False) -> None:
        threads = list[tuple[int, int, bytes]]()
        for one in (states, self._outside):
            if one is not None:
                one.list_all(now, every=every)
                # What is changed of a process that does not run changes nothing.
                threads += one.threads(every=every)
        values.look(now, threads)


class _OwnTimes:
    """For how long this process ran, and waited for a CPU: the calling thread, which makes it, and the main thread.

    The main thread may have Python's lock while it waits. Where the kernel does not count the waits, they are none: a
    thread under SCHED_FIFO waits for less than a sample.
    """

    def __init__(self, proc: Path) -> None:
        self._counted: list[KernelFile] = []
        for thread in (threading.get_native_id(), os.getpid()):
            with suppress(OSError):
                self._counted.append(KernelFile(proc / "self/task" / str(thread) / "schedstat"))
        self._last, self._faults = self._now(), _major_faults()

    def since(self) -> float:
        """Seconds since the call before; without end where it waited for a page from a disk, as nothing tells these."""
        before, faults = self._last, self._faults
        self._last, self._faults = self._now(), _major_faults()
        return self._last - before if self._faults == faults else math.inf

    def _now(self) -> float:
        # Its time on the CPU, that for which it waited for one, in nanoseconds, and a count.
        waits = [file.read().split() for file in self._counted]
        return time.process_time() + sum(int(one[1]) for one in waits if len(one) > 1) / 1e9


def _major_faults() -> int:
    """How many of this process's pages were read from a disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt
