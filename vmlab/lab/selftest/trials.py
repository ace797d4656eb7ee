"""What is tried, in order, by one run of a small guest: boot, freeze, restore, prove, switch, record, kill, clear."""

from __future__ import annotations

import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil

from vmlab.analysis.record.cell_timeline import CellTimeline
from vmlab.analysis.record.host_means import host_during
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.guests.snapshots import SNAPSHOTS
from vmlab.lab.commands.stopping import STOP_SECONDS, is_over, send_signal, stop_run
from vmlab.lab.commands.verbs import ChangeRunning
from vmlab.lab.process.dead_runs import sweep_run
from vmlab.lab.process.event_feed import watch
from vmlab.lab.process.launch import check_ready, start_run
from vmlab.lab.process.measuring_runs import HostBusy, Turn
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.process.waiting_runs import Tell, in_turn
from vmlab.lab.provision.host_support import prepare_run
from vmlab.model.cell_event import (
    CellEnded,
    SnapshotMade,
    WorkloadStarted,
)
from vmlab.model.errors import RefusedError, VmlabError, in_one_line
from vmlab.model.event import Event
from vmlab.model.run import Outcome
from vmlab.plan.hosting import check_fit
from vmlab.plan.planning import load_valid
from vmlab.plan.terms import Overrides
from vmlab.store.reader import RunReader
from vmlab.system.host_size import host_memory
from vmlab.system.processes import command_line

WORKS, FAILS, NOT_HERE, NOT_TRIED = "works", "fails", "not here", "not tried"
SCENARIO = Path(__file__).with_name("selftest.yaml")
MEASURED, SWITCHED, KILLED = 1, 2, 3
"""The cells, by what is done to them."""
TRIALS = (
    "a guest boots and is frozen",
    "it is restored and does verified work",
    "its cache mode is proved",
    "the cache mode is switched while it works",
    "the recorder agrees with the kernel's counters",
    "the runner is killed, and nothing is left",
    "what was measured before is intact",
)
BOOTED, RESTORED, PROVED, SWITCH, RECORDER, KILL, INTACT = TRIALS
_WATCH_SECONDS = 0.1
_CPU_POINTS = 4.0
"""Percentage points of all CPUs by which the recorder may differ: a tick of the kernel's clock at each end of a span of
some seconds, and the time between two readings of this process."""
_CACHED_SHARE = 0.05
"""Share of the host's memory by which the page cache may differ, as it grows meanwhile."""
_DEADLINE_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Result:
    """One line: `state` is works, fails, not here or not tried; `detail` says what was seen, or why not."""

    name: str
    state: str
    detail: str


Show = Callable[[Result], object]


class CounterTrace:
    """The kernel's own counters, read by another library than the recorder's parser, ten times a second."""

    def __init__(self) -> None:
        self._readings: list[tuple[float, float, float, float, float]] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="selftest-counters", daemon=True)

    def __enter__(self) -> CounterTrace:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._end.wait(_WATCH_SECONDS):
            cpu = psutil.cpu_times()
            # psutil has guests' time in `user`, too; `guest` and `guest_nice` would count it twice.
            every = sum(cpu) - getattr(cpu, "guest", 0.0) - getattr(cpu, "guest_nice", 0.0)
            # psutil counts what can be reclaimed of slabs as cached, too.
            meminfo = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
            cached = 1024.0 * int(meminfo["Cached"].split()[0])
            self._readings.append((time.monotonic(), cpu.user, cpu.system, every, cached))

    def during(self, since: float, until: float) -> dict[str, float] | None:
        """Mean shares of CPU time in percent and page cache in bytes; None for a span that it did not see."""
        inside = [one for one in self._readings if since <= one[0] <= until]
        if len(inside) < 2:
            return None
        first, last = inside[0], inside[-1]
        ticks = last[3] - first[3]
        if ticks <= 0:
            return None
        return {
            "cpu_user_percent": 100 * (last[1] - first[1]) / ticks,
            "cpu_system_percent": 100 * (last[2] - first[2]) / ticks,
            "memory_cached_bytes": sum((a[4] + b[4]) / 2 * (b[0] - a[0]) for a, b in pairwise(inside))
            / (last[0] - first[0]),
        }


class Trials:
    """Runs them, and calls `show` with each result as soon as it is known.

    One that was not reached is `not tried`, so that each of `TRIALS` has one result.
    """

    def __init__(self, show: Show, *, concurrent: bool = False) -> None:
        self._show = show
        self._concurrent = concurrent
        self.results: list[Result] = []
        self.folder: RunFolder | None = None
        self._snapshots: set[str] = set()
        self._timeline = RunTimeline()

    def add(self, result: Result) -> None:
        """Take a result, and show it."""
        self.results.append(result)
        self._show(result)

    def _note(self, name: str, state: str, detail: str) -> None:
        self.add(Result(name, state, detail))

    def leave_out(self, why: str, *, failed: bool = False) -> None:
        """Note what has no result yet as not tried; with `failed`, the first of it as what failed, with the reason."""
        done = {one.name for one in self.results}
        left = [name for name in TRIALS if name not in done]
        if failed and left:
            self._note(left.pop(0), FAILS, why)
            why = "the run had ended"
        for name in left:
            self._note(name, NOT_TRIED, why)

    def run(self, tell: Tell | None = None) -> None:
        """Try all of them; returns when nothing of the run is left. With `tell` it waits for its turn on this host, and
        calls that meanwhile with where it stands. Raises HostBusy where another run measures or waits.
        """
        file = load_valid(str(SCENARIO))
        # No snapshot that is kept was prepared with this seed, so that the guest is booted and frozen. Other load
        # spoils no trial.
        overrides = Overrides(size="smoke", seed=secrets.randbits(32), allow_noise=True)

        def attempt(turn: Turn | None = None) -> RunFolder:
            check_ready()
            plan, host = prepare_run(file, overrides)
            check_fit(plan, host, overcommit=True)
            return start_run(file, overrides, plan, host, concurrent=self._concurrent, turn=turn)

        def planned() -> float:
            check_ready()
            return prepare_run(file, overrides)[0].seconds

        try:
            if tell is None:
                self.folder = attempt()
            else:
                self.folder = in_turn("selftest", attempt, planned=planned, tell=tell)
        except HostBusy:
            raise
        except RefusedError as error:
            self.leave_out(in_one_line(error))
            return
        try:
            with CounterTrace() as trace:
                self._follow(self.folder, trace)
            self.leave_out(f"the run ended: {self._why_ended()}", failed=True)
        finally:
            self._clear(self.folder)

    def _why_ended(self) -> str:
        ended = self._timeline.ended
        return "its processes are gone" if ended is None else ended.reason or ended.outcome

    def _follow(self, folder: RunFolder, trace: CounterTrace) -> None:
        end = time.monotonic() + _DEADLINE_SECONDS
        for event in watch(folder):
            if event is not None:
                self._timeline.apply(event)
                self._take(folder, event, trace)
            if time.monotonic() > end:
                self.leave_out(f"not done within {_DEADLINE_SECONDS:.0f} s", failed=True)
                return

    def _take(self, folder: RunFolder, event: Event, trace: CounterTrace) -> None:
        match event:
            case SnapshotMade():
                self._snapshots.add(event.snapshot)
                self._note(BOOTED, WORKS, f"{event.seconds:.1f} s, {self._accelerator()}")
            case CellEnded() if event.cell == MEASURED:
                self._judge_measured(folder, self._timeline.cells[event.cell], trace)
            case WorkloadStarted() if event.cell == SWITCHED:
                self._switch(folder)
            case WorkloadStarted() if event.cell == KILLED:
                self._kill(folder)
            case _:
                pass

    def _accelerator(self) -> str:
        probed = self._timeline.probed
        return "accelerator unknown" if probed is None else probed.accelerator

    def _judge_measured(self, folder: RunFolder, cell: CellTimeline, trace: CounterTrace) -> None:
        told = cell.told
        reasons, seconds, how = "; ".join(told.reasons), told.provision.seconds, told.provision.how
        if told.outcome == Outcome.PASSED and how == "restored":
            self._note(RESTORED, WORKS, f"ready {seconds:.1f} s after the start, {len(told.measurements)} metrics")
        else:
            self._note(RESTORED, FAILS, f"the cell is {told.outcome}, guest {how}: {reasons}")
        disagree = [one for one in told.cache_proof if not one.agrees]
        if told.cache_proof and not disagree:
            direct = sum(one.o_direct for one in told.cache_proof)
            self._note(PROVED, WORKS, f"none: {direct} of {len(told.cache_proof)} open disk files have O_DIRECT")
        else:
            what = f"{disagree[0].file} is not {disagree[0].expected}" if disagree else "no disk file was seen"
            self._note(PROVED, FAILS, what)
        self._compare(folder, cell, trace)

    def _compare(self, folder: RunFolder, cell: CellTimeline, trace: CounterTrace) -> None:
        span = cell.execution
        kernel = None if span is None else trace.during(*span)
        if span is None or kernel is None:
            self._note(RECORDER, FAILS, "no workload ran long enough")
            return
        with RunReader(folder.store) as reader:
            recorded = {name: one.mean for name, one in host_during(reader, *span).items()}
        self._note(RECORDER, *recorder_verdict(recorded, kernel, host_memory().total))

    def _switch(self, folder: RunFolder) -> None:
        try:
            done = ChangeRunning(origin="vmlab selftest", cache="writeback").ask(folder)
        except VmlabError as error:
            self._note(SWITCH, FAILS, in_one_line(error))
            return
        paused = max((value for value in done.get("pauses_ms", {}).values() if value is not None), default=None)
        still = "" if paused is None else f"; the guest paused for {paused:.1f} ms"
        self._note(SWITCH, WORKS, f"none to writeback, proved by QEMU's open files{still}")

    def _kill(self, folder: RunFolder) -> None:
        began = time.monotonic()
        if not send_signal(folder, signal.SIGKILL, "runner_pid"):
            self._note(KILL, FAILS, "the runner was not found")
            return
        over = is_over(folder, STOP_SECONDS)
        left = [*folder.remains(), *_processes_of(folder)]
        if over and not left:
            self._note(KILL, WORKS, f"all cleared {time.monotonic() - began:.1f} s after kill -9")
        else:
            self._note(KILL, FAILS, "; ".join(left) or f"processes are left after {STOP_SECONDS:.0f} s")
        self._judge_intact(folder)

    def _judge_intact(self, folder: RunFolder) -> None:
        try:
            with RunReader(folder.store) as reader:
                timeline = RunTimeline.of(event for _, event in reader.events())
                damage = reader.damage()
        except VmlabError as error:
            self._note(INTACT, FAILS, in_one_line(error))
            return
        first = timeline.cells.get(MEASURED)
        outcome = timeline.ended.outcome if timeline.ended is not None else "without an end"
        if damage is None and first is not None and first.ended is not None and first.told.measurements:
            self._note(INTACT, WORKS, f"cell 1 is {first.told.outcome}, the run {outcome}; the store is sound")
        else:
            self._note(INTACT, FAILS, damage or "cell 1 is not in the store")

    def _clear(self, folder: RunFolder) -> None:
        if folder.alive():
            with suppress(VmlabError):
                stop_run(folder, origin="vmlab selftest")
            is_over(folder, STOP_SECONDS)
        if not folder.alive():
            sweep_run(folder)
        for snapshot in self._snapshots:
            with suppress(RefusedError):
                SNAPSHOTS.remove(snapshot)


def recorder_verdict(recorded: dict[str, float], kernel: dict[str, float], memory: float) -> tuple[str, str]:
    """Whether the recorder's means over a span are the kernel's, and both in words; `memory` is the host's, in
    bytes."""
    allowed = {name: _CACHED_SHARE * memory if name.endswith("_bytes") else _CPU_POINTS for name in kernel}
    missing = [name for name in kernel if name not in recorded]
    if missing:
        return FAILS, f"it has no {missing[0]}"
    apart = [name for name, value in kernel.items() if abs(recorded[name] - value) > allowed[name]]
    user, system = (f"{recorded[name]:.1f} and {kernel[name]:.1f} %" for name in list(kernel)[:2])
    words = f"recorder and counters: CPU user {user}, system {system}"
    if apart:
        name = apart[0]
        return FAILS, f"{name}: recorded {recorded[name]:.4g}, by the counters {kernel[name]:.4g}; {words}"
    return WORKS, words


def _processes_of(folder: RunFolder) -> Iterator[str]:
    """What still runs with the run's id in its command line, this process apart."""
    for process in psutil.process_iter():
        if folder.id.encode() in command_line(process.pid) and process.pid != psutil.Process().pid:
            yield f"process {process.pid}"
