"""Stores of runs as the engine leaves them: real events through the real writer, with clocks that tests know."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vmlab.model.cell_event import (
    CacheProved,
    CellEnded,
    CellStarted,
    GuestInspected,
    MeasurementTaken,
    NetworkProved,
    PhaseEnded,
    PhaseStarted,
    WorkloadEnded,
    WorkloadStarted,
)
from vmlab.model.event import (
    HostProbed,
    Notice,
    RunEnded,
    RunStarted,
)
from vmlab.model.results import CacheProof, Measurement, NetworkProof, Provision, RawOutput
from vmlab.model.run import AxisValue
from vmlab.model.sample import Sample, SampleNames
from vmlab.plan.cell_settings import settings_of
from vmlab.plan.terms import CellPlan, Plan
from vmlab.store.samples import SampleWriter
from vmlab.store.writer import RunWriter

WALL = 1795271400.0
"""2026-11-21 14:30 UTC, when every story begins; its monotonic clock then says 0."""
HOST = {
    "hostname": "pve1",
    "cpu": "AMD EPYC 7302P 16-Core Processor",
    "cpus": 2,
    "kernel": "6.1.0-18-amd64",
    "qemu": "7.2.22",
    "libvirt": "9.0.0",
}
SAMPLED = SampleNames.of(
    [
        "tick_length_seconds",
        "tick_lateness_seconds",
        "cpu_user_percent",
        "cpu_system_percent",
        "cpu_iowait_percent",
        "disk_reads_per_second",
        "disk_writes_per_second",
        "disk_await_ms",
        "disk_util_percent",
        "disk_read_bytes_per_second",
        "disk_write_bytes_per_second",
        "memory_used_bytes",
        "memory_cached_bytes",
        "ksm_saved_bytes",
    ]
)


class Story:
    """Tells the store at `path` what a run of one scenario would. Every event comes a second after the one before."""

    def __init__(self, path: Path, scenario: str = "tile", run: str = "20261121-143000-tile-7f3a") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.writer = RunWriter(path)
        self.scenario = scenario
        self.run = run
        self.mono = 0.0
        self.cells = 0
        self.guests = 0

    def now(self, seconds: float = 1.0) -> dict[str, Any]:
        """Both clocks, `seconds` later."""
        self.mono += seconds
        return {"wall": WALL + self.mono - 1, "mono": self.mono}

    def begin(
        self,
        axes: Mapping[str, Sequence[AxisValue]],
        table: Mapping[str, Any] | None = None,
        *,
        accelerator: str = "tcg",
        host: Mapping[str, Any] = HOST,
        size: str = "smoke",
        seed: int = 1,
        cells: int = 2,
        said: Mapping[str, Any] | None = None,
        **run: Any,
    ) -> Story:
        """The beginning of the run, with the documents that the launcher keeps; a table of cache modes unless told.

        `said` is what else the stored scenario says; its axes may say more of the run's, such as their points. `run` is
        what else the run's first event says.
        """
        start = {"run": self.run, "scenario": self.scenario, "size": size, "seed": seed, "cells": cells}
        self.writer.append(RunStarted(**self.now(), **start, expected_seconds=60.0, **run))  # type: ignore[arg-type]
        named: dict[str, dict[str, Any]] = {
            name: {"values": list(values), "sets": [], "points": {}, "label": ""} for name, values in axes.items()
        }
        table = table or ({"columns": "cache", "rows": "workloads", "baseline": None} if "cache" in axes else None)
        said = said or {}
        for name, axis in said.get("axes", {}).items():
            named[name] |= axis
        body = {"name": self.scenario, **said, "axes": named, "table": table}
        self.writer.document("scenario", json.dumps(body))
        self.writer.append(HostProbed(**self.now(), accelerator=accelerator, host=dict(host)))
        return self

    def begin_plan(self, plan: Plan, accelerator: str = "tcg") -> Story:
        """The beginning of a run of `plan`, with the scenario as the launcher stores it."""
        self.scenario = plan.scenario.name
        start = {"run": self.run, "scenario": self.scenario, "size": plan.size, "seed": plan.seed}
        cells = len(plan.cells)
        self.writer.append(RunStarted(**self.now(), **start, cells=cells, expected_seconds=plan.seconds))  # type: ignore[arg-type]
        self.writer.document("scenario", plan.scenario.model_dump_json(by_alias=True))
        self.writer.append(HostProbed(**self.now(), accelerator=accelerator, host=dict(HOST)))
        return self

    def start_plan_cell(self, cell: CellPlan) -> int:
        """A cell of a plan begins, with the settings that the runner writes; its number."""
        return self.start_cell(cell.axes, cell.repeat, len(cell.guests), settings_of(cell))

    def start_cell(
        self,
        axes: Mapping[str, AxisValue],
        repeat: int = 1,
        guests: int = 4,
        settings: Mapping[str, Any] | None = None,
        *,
        looped: bool = False,
    ) -> int:
        """A cell begins; its number."""
        self.cells += 1
        self.guests = guests
        began = self.now()
        self.writer.append(
            CellStarted(
                cell=self.cells,
                axes=dict(axes),
                repeat=repeat,
                guests=guests,
                settings=dict(settings or {}),
                looped=looped,
                wall=began["wall"],
                mono=began["mono"],
            )
        )
        return self.cells

    def sample(self, length: float, values: Mapping[str, float]) -> None:
        """One sample of the host, of a tick of `length` seconds."""
        clocks = self.now(length)
        given = {"tick_length_seconds": length, "tick_lateness_seconds": 0.0, **values}
        figures = array("d", [given.get(name, float("nan")) for name in SAMPLED.names])
        SampleWriter(self.writer)(Sample(clocks["wall"], clocks["mono"], length, 0.0, SAMPLED, figures))

    def execute(self, seconds: float, samples: Sequence[Mapping[str, float]] = ()) -> None:
        """The execute phase, with `samples` spread evenly over it."""
        write = SampleWriter(self.writer)
        self.writer.append(PhaseStarted(**self.now(), cell=self.cells, phase="execute"))
        length = seconds / (len(samples) or 1)
        for values in samples or ({},):
            clocks = self.now(length)
            if values:
                given = {"tick_length_seconds": length, "tick_lateness_seconds": 0.0, **values}
                more = [name for name in values if name not in SAMPLED.position]
                layout = SampleNames.of((*SAMPLED.names, *more)) if more else SAMPLED
                figures = array("d", [given.get(name, float("nan")) for name in layout.names])
                write(Sample(clocks["wall"], clocks["mono"], length, 0.0, layout, figures))
        clocks = self.now(0)
        self.writer.append(PhaseEnded(**clocks, cell=self.cells, phase="execute", seconds=seconds))

    def measure(self, workload: str, value: float, metric: str = "run_time", unit: str = "s", tile: int = 1) -> None:
        """One figure of a workload that passed."""
        place = {"cell": self.cells, "workload": workload, "tile": tile, "guest": f"{workload}-client"}
        if metric == "run_time":
            self.writer.append(WorkloadEnded(**self.now(), **place, outcome="passed", seconds=value))  # type: ignore[arg-type]
            text = f"{workload} took {value} s\n"
            self.writer.raw(self.cells, RawOutput(workload, tile, f"{workload}-client", "client stdout", text))
        figure = Measurement(workload, tile, f"{workload}-client", metric, value, unit)
        self.writer.append(MeasurementTaken(**self.now(), cell=self.cells, figure=figure))

    def ran(self, workload: str, tile: int, late: float, seconds: float) -> None:
        """A workload ran from `late` seconds after the common start for so long, and gave no figure yet."""
        place = {"cell": self.cells, "workload": workload, "tile": tile, "guest": f"{workload}-client"}
        started = {"benchmark": workload, "late_ms": late * 1e3, "uncertainty_ms": 0.1}
        self.writer.append(WorkloadStarted(**self.now(), **place, **started))  # type: ignore[arg-type]
        self.writer.append(WorkloadEnded(**self.now(), **place, outcome="passed", seconds=seconds))  # type: ignore[arg-type]

    def took(self, workload: str, tile: int, seconds: float) -> None:
        """The run time of a workload that `ran`."""
        figure = Measurement(workload, tile, f"{workload}-client", "run_time", seconds, "s")
        self.writer.append(MeasurementTaken(**self.now(), cell=self.cells, figure=figure))

    def fail(self, workload: str, reason: str, tile: int = 1, outcome: str = "failed") -> None:
        """A workload that failed, or was broken off."""
        place = {"cell": self.cells, "workload": workload, "tile": tile, "guest": f"{workload}-client"}
        ended = WorkloadEnded(**self.now(), **place, outcome=outcome, seconds=1.0, reason=reason)  # type: ignore[arg-type]
        self.writer.append(ended)

    def prove(self, guest: str = "file-a", *, o_direct: bool, expected: str) -> None:
        """The proof of a cache mode."""
        file = f"/run/{guest}.qcow2"
        proof = CacheProof(guest, file, o_direct, True, o_direct, False, expected=expected, agrees=True)
        self.writer.append(CacheProved(**self.now(), cell=self.cells, proof=proof))

    def carry(self, device: str, carried: int, least: int | None = None, most: int | None = None, **of: str) -> None:
        """The proof of a tunnel, or of the rules or the limit of a guest, in a `direction`."""
        proof = NetworkProof.of(device, of.get("guest", ""), of.get("direction", "both"), carried, least, most)
        self.writer.append(NetworkProved(**self.now(), cell=self.cells, proof=proof))

    def look_inside(self, guest: str, **seen: dict[str, Any]) -> None:
        """What was found inside of a guest."""
        self.writer.append(GuestInspected(**self.now(), cell=self.cells, tile=1, guest=guest, seen=seen))

    def end_cell(
        self, outcome: str = "passed", reasons: Sequence[str] = (), wall: float | None = None, missed: int = 0
    ) -> None:
        """The cell ended; its tiles missed so many targets."""
        self.writer.append(
            CellEnded(
                **self.now(),
                cell=self.cells,
                outcome=outcome,
                reasons=list(reasons),
                wall_seconds=wall,
                start_skew_ms=3.25,
                skew_uncertainty_ms=1.5,
                provision=Provision("cold", 41.5, self.guests),
                missed=missed,
            )
        )

    def cell(self, axes: Mapping[str, AxisValue], times: Mapping[str, float], wall: float, repeat: int = 1) -> None:
        """A whole cell of one tile that passed."""
        self.start_cell(axes, repeat)
        self.execute(wall)
        for workload, seconds in times.items():
            self.measure(workload, seconds)
        self.end_cell(wall=wall)

    def note(self, text: str) -> None:
        """A warning."""
        self.writer.append(Notice(**self.now(), level="warning", text=text))

    def end(self, outcome: str = "passed", exit_code: int = 0, reason: str = "") -> Path:
        """The run ended; the path of its closed store."""
        self.writer.append(RunEnded(**self.now(), outcome=outcome, exit_code=exit_code, reason=reason))
        return self.close()

    def close(self) -> Path:
        """Close the store without a last word."""
        self.writer.close()
        return self.writer.path
