"""Records of runs that never ran, in the real store format, made by the program's own writers.

The cells are those of the shipped tile, and the samples have the names that the recorder reads on this host. **All
figures are synthetic**: made up from a seed, around what the recorder read or what such workloads take.
"""

from __future__ import annotations

import json
import math
import os
import random
import threading
from array import array
from pathlib import Path
from typing import Any

from bench.support.recorder_process import SyntheticGuests
from vmlab.lab.process.prepared import RunRequest, write_request
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    GuestStateChanged,
    MeasurementTaken,
    PhaseEnded,
    PhaseStarted,
    WorkloadEnded,
    WorkloadProgressed,
    WorkloadStarted,
)
from vmlab.model.event import (
    Event,
    HostProbed,
    ImageReady,
    RunEnded,
    RunnerFinished,
    RunStarted,
)
from vmlab.model.results import Measurement, RawOutput
from vmlab.model.run import Phase
from vmlab.model.sample import Sample, SampleNames
from vmlab.plan.cell_settings import settings_of
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import load
from vmlab.plan.terms import CellPlan, HostFacts, Overrides, WorkloadPlan
from vmlab.store.samples import SampleWriter
from vmlab.store.writer import RunWriter
from vmlab.system.removal import make_marked
from vmlab.telemetry.host.host_figures import Watched
from vmlab.telemetry.recorder import Recorder
from vmlab.workloads.registry import kinds

_HOST = HostFacts(2**36, 2**36, 2**42, 2, "tcg")
_EXECUTES = 0.8
"""The part of a cell that its workloads take."""
_TRIAL_TICKS = 8
_GUESTS = ("file-a", "file-b", "front", "database")


def sampled_here(tiles: int) -> Sample:
    """A real sample of this host with synthetic guests of so many tiles beside it."""
    names = [f"t{tile}-{guest}" for tile in range(1, tiles + 1) for guest in _GUESTS]
    made_up = SyntheticGuests(len(names), names)
    found: list[Sample] = []
    enough = threading.Event()

    def keep(sample: Sample) -> None:
        found.append(sample)
        if len(found) == _TRIAL_TICKS:
            enough.set()

    recorder = Recorder(0.2, keep, Watched(lab_folders=[Path.cwd()], scope="process"), made_up.tell)
    recorder.start()
    enough.wait(60)
    recorder.stop()
    return max(found, key=lambda sample: len(sample.values))


class _Teller:
    """Appends events and samples to a store, on clocks of its own that begin at `wall` seconds since the epoch."""

    def __init__(self, writer: RunWriter, seen: Sample, chance: random.Random, wall: float) -> None:
        self.writer = writer
        self.seen = seen
        self.chance = chance
        self.wall = wall
        self.mono = 1000.0
        self._keep = SampleWriter(writer)
        self._next = self.mono + 1.0

    def tell(self, kind: type[Event], **fields: Any) -> None:
        """An event of this moment."""
        self.writer.append(kind(wall=self.wall, mono=self.mono, **fields))

    def go_on(self, seconds: float) -> None:
        """Time goes on, with a sample each second."""
        end = self.mono + seconds
        while self._next <= end:
            self._step(self._next)
            self._keep(Sample(self.wall, self.mono, 1.0, 0.0, self.seen.layout, self._values()))
            self._next += 1.0
        self._step(end)

    def _step(self, mono: float) -> None:
        self.wall, self.mono = self.wall + mono - self.mono, mono

    def _values(self) -> array[float]:
        return array("d", map(self._value, self.seen.layout.names, self.seen.layout.units, self.seen.values))

    def _value(self, name: str, unit: str, real: float) -> float:
        if name in ("tick_length_seconds", "tick_lateness_seconds", "cpu_count") or math.isnan(real):
            return {"tick_length_seconds": 1.0, "tick_lateness_seconds": 0.0}.get(name, real)
        if unit == "%":
            return self.chance.uniform(0.0, 60.0)
        return (real or 10.0) * self.chance.uniform(0.5, 1.5)


def make_run(
    run: str, seen: Sample, *, tiles: int, repeats: int, seconds: float, wall: float, pace: float = 1.0
) -> Path:
    """Make the folder of a run of the tile, `tiles` at a time, as a run leaves it; its store.

    It began at `wall`, in seconds since the epoch, and took `seconds` in all; its workloads took `pace` times as long
    as others.
    """
    folder = RunFolder.of(run)
    make_marked(folder.path, run)
    os.close(folder.take_lock())
    file = load("tile")
    overrides = Overrides(size="smoke", tiles=(tiles,), repeats=repeats, seed=1)
    plan = make_plan(file, overrides, _HOST)
    request = RunRequest(run, str(file.path), overrides, plan.seed)
    write_request(folder, request, file.text, _HOST)
    folder.note_processes(launcher_pid=1, runner_pid=2)
    folder.log.touch()
    writer = RunWriter(folder.store)
    connection = writer._open
    assert connection is not None
    # One transaction: a writer's own way, one for each event and each tick, would take minutes.
    connection.execute("BEGIN")
    teller = _Teller(writer, seen, random.Random(run), wall)
    start = {"run": run, "scenario": plan.scenario.name, "size": plan.size, "seed": plan.seed}
    teller.tell(RunStarted, **start, cells=len(plan.cells), expected_seconds=plan.seconds, order=plan.scenario.order)
    writer.document("scenario", plan.scenario.model_dump_json(by_alias=True))
    writer.document("scenario.yaml", file.text)
    writer.document("request", request.to_json())
    teller.tell(ImageReady, image="0123456789ab", how="cached", seconds=0.1)
    teller.tell(HostProbed, accelerator="tcg", host={"hostname": "bench", "cpus": 2, "kernel": "6.1.0", "qemu": "7.2"})
    for cell in plan.cells:
        _tell_cell(teller, cell, seconds / len(plan.cells), pace)
    teller.tell(RunnerFinished, outcome="passed", exit_code=0)
    teller.tell(RunEnded, outcome="passed", exit_code=0)
    connection.execute("COMMIT")
    writer.fold_in()
    writer.close()
    return folder.store


def _tell_cell(teller: _Teller, cell: CellPlan, seconds: float, pace: float) -> None:
    number = cell.index
    executes = seconds * _EXECUTES
    beside = (seconds - executes) / (len(Phase) - 1)
    settings = {**settings_of(cell), "host": {"ksm": "off", "thp": "madvise", "read_ahead_bytes": 131072}}
    guests = len(cell.guests)
    teller.tell(CellStarted, cell=number, axes=cell.axes, repeat=cell.repeat, guests=guests, settings=settings)
    for phase in Phase:
        teller.tell(PhaseStarted, cell=number, phase=phase)
        if phase == Phase.PROVISION:
            for guest in cell.guests:
                place = {"tile": guest.tile, "guest": guest.guest, "role": "+".join(guest.roles)}
                for state in ("created", "booted", "identified", "connected", "prepared"):
                    teller.tell(GuestStateChanged, cell=number, **place, state=state)
        if phase == Phase.EXECUTE:
            _tell_work(teller, cell, executes, pace)
        else:
            teller.go_on(beside)
        if phase == Phase.COLLECT:
            _tell_figures(teller, cell, executes, pace)
        teller.tell(PhaseEnded, cell=number, phase=phase, seconds=executes if phase == Phase.EXECUTE else beside)
    provision = {"how": "restored", "seconds": beside, "guests": guests, "snapshots": {}}
    ended = {"wall_seconds": executes, "start_skew_ms": 1.5, "skew_uncertainty_ms": 0.5, "provision": provision}
    teller.tell(CellEnded, cell=number, outcome="passed", reasons=[], **ended)


def _tell_work(teller: _Teller, cell: CellPlan, executes: float, pace: float) -> None:
    """Every workload starts, says once a second how far it is, and ends."""
    for one in cell.workloads:
        place = {"cell": cell.index, "workload": one.name, "tile": one.tile, "guest": _guest(one)}
        teller.tell(WorkloadStarted, **place, benchmark=one.kind, late_ms=1.0, uncertainty_ms=0.5)
    for second in range(int(executes)):
        teller.go_on(1.0)
        for one in cell.workloads:
            place = {"cell": cell.index, "workload": one.name, "tile": one.tile}
            teller.tell(WorkloadProgressed, **place, done=second, total=executes, unit="requests")
    teller.go_on(executes - int(executes))
    for one in cell.workloads:
        place = {"cell": cell.index, "workload": one.name, "tile": one.tile, "guest": _guest(one)}
        spent = executes * pace * teller.chance.uniform(0.45, 0.55)
        teller.tell(WorkloadEnded, **place, outcome="passed", seconds=spent)


def _tell_figures(teller: _Teller, cell: CellPlan, executes: float, pace: float) -> None:
    """What each workload measured, and what its tool printed."""
    for one in cell.workloads:
        for metric, what in kinds()[one.kind].metrics.items():
            value = (executes / 2 if metric == "run_time" else 1000.0) * pace * teller.chance.uniform(0.9, 1.1)
            figure = Measurement(one.name, one.tile, _guest(one), metric, value, what.unit)
            teller.tell(MeasurementTaken, cell=cell.index, figure=figure)
        text = json.dumps({"tool": one.kind, "lines": [teller.chance.random() for _ in range(100)]})
        teller.writer.raw(cell.index, RawOutput(one.name, one.tile, _guest(one), "client stdout", text))


def _guest(workload: WorkloadPlan) -> str:
    return workload.source


def host_alone() -> Sample:
    """A small sample of whole-host names, for records whose samples nobody reads."""
    names = SampleNames.of(["tick_length_seconds", "tick_lateness_seconds", "cpu_user_percent", "disk_util_percent"])
    return Sample(0.0, 0.0, 1.0, 0.0, names, (1.0, 0.0, 20.0, 10.0))
