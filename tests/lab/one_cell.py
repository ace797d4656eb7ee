"""Everything around one cell, with the fake hypervisor and a stand-in for sysbench."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import asyncssh

from tests.fakes.boot import AS_THE_LAB
from tests.fakes.hypervisor import FakeHypervisor
from tests.fakes.local_guest import LocalGuest
from tests.fakes.sysbench import cpu_report
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.hypervisor.protocols import GuestDisk
from vmlab.lab.cell.cpu_floor import CpuFloor
from vmlab.lab.cell.live_switch import HostKsm
from vmlab.lab.cell.surroundings import CellHost, CellSurroundings, GuestOrigins, ReadAt, nothing_read
from vmlab.lab.provision.disk_integrity import Integrity
from vmlab.lab.provision.host_side import BareGuest, HostTiles
from vmlab.lab.provision.snapshot_provider import SnapshotProvider
from vmlab.lab.provision.timing import USUAL
from vmlab.lab.run.cell_run import CellRun
from vmlab.model.cell_event import (
    CellEnded,
    MeasurementTaken,
    WorkloadStarted,
)
from vmlab.model.event import Event
from vmlab.model.results import Measurement, RawOutput
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import GuestPlan, HostFacts, Overrides, Plan
from vmlab.telemetry.host_counters import HostCounters
from vmlab.telemetry.standstill import StandstillWatch
from vmlab.workloads.shell import Shell

SCENARIO = """
name: two
guests:
  quick: {memory: 128 MiB, cpu_shares: 200}
  slow:  {memory: 128 MiB, cpu_shares: 100}
limits: {start_skew: 1 h, clock_drift_percent: 100}
workloads:
  quick: {kind: cpu, on: quick, threads: 1, max_prime: 1000, events: 10}
  slow:  {kind: cpu, on: slow,  threads: 1, max_prime: 1000, events: 10}
"""
"""Its clients are real processes that take a moment. On a busy machine they start late, and the two clocks that one
of them reads are not of the same moment; tests of these two limits set them."""
Kind = TypeVar("Kind", bound=Event)
HOST = HostFacts(2**34, 2**34, 2**40, 2, "tcg")
REPORT = cpu_report()


class Raw:
    def __init__(self) -> None:
        self.kept: list[tuple[int, RawOutput]] = []

    def raw(self, cell: int, output: RawOutput) -> None:
        self.kept.append((cell, output))


class Lab:
    """Everything around one cell, with a stand-in for sysbench that runs `script`."""

    def __init__(self, folder: Path, script: str, plan: Plan) -> None:
        self.events: list[Event] = []
        self.begun = asyncio.Event()
        self.raw = Raw()
        self.guests: list[LocalGuest] = []
        self.boot = AS_THE_LAB
        self.failing: frozenset[str] = frozenset()
        self.hanging: frozenset[str] = frozenset()
        self.figures = {"cpu_outside_lab_percent": 1.0, "cpu_steal_percent": 0.0, "cpu_speed_percent": 100.0}
        self.folder = folder
        self.image = BootImage(Path("/none"), Path("/none"), Path("/none"), "")
        self.snapshot_provider: SnapshotProvider | None = None
        self.integrity: Integrity | None = None
        self.timing = replace(USUAL, quiet=0.1, tick=0.05)
        self.ksm: HostKsm | None = None
        self.counters: list[HostCounters] = []
        self.read_at: ReadAt = nothing_read
        self.disk = GuestDisk()
        self.cpu_floor: CpuFloor | None = None
        self.standstills: Callable[[], StandstillWatch] = partial(StandstillWatch, inside=False)
        self.settings: list[dict[str, str | int | None]] = []
        (folder / "disks").mkdir()
        self.hypervisor = FakeHypervisor(disks=folder / "disks")
        self.plan = plan
        sysbench = folder / "sysbench"
        sysbench.write_text(f"#!/bin/sh\n{script}\n")
        sysbench.chmod(0o755)

    async def connect(
        self, name: str, address: str, *, key: asyncssh.SSHKey, host_key: asyncssh.SSHKey, deadline: float
    ) -> LocalGuest:
        self.guests.append(LocalGuest(name, address, self.folder, self.failing, self.hanging, boot=self.boot))
        return self.guests[-1]

    def take(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, WorkloadStarted):
            self.begun.set()

    def host_tiles(self, tiles: Sequence[int]) -> AbstractContextManager[HostTiles]:
        raise AssertionError("no workload of these runs on the host")

    def no_far_host(self, host: Shell) -> Shell:
        raise AssertionError("no workload of these runs from the host to the host")

    def bare_guest(
        self, guest: GuestPlan, position: tuple[int, int], taken: Collection[int], deadline: float
    ) -> AbstractAsyncContextManager[BareGuest]:
        raise AssertionError("no guest of these is on the host")

    def cell(self) -> CellRun:
        around = CellSurroundings(
            "run",
            self.plan,
            self.hypervisor,
            self.take,
            self.raw,
            CellHost(
                self.host_tiles,
                self.no_far_host,
                self.bare_guest,
                lambda name, since, until: self.figures.get(name, 0.0),
                lambda name, since, until: (self.figures.get(name, 0.0),) * 2,
                # What this machine does beside the test is no part of it.
                counters=lambda: self.counters.pop(0) if self.counters else HostCounters(0.0),
                standstills=lambda: self.standstills(),
                settings=lambda: self.settings.pop(0) if self.settings else {},
                read_at=self.read_at,
                ksm=self.ksm,
                disk=self.disk,
            ),
            GuestOrigins(self.image, self.connect, snapshot_provider=self.snapshot_provider, integrity=self.integrity),
            timing=self.timing,
            cpu_floor=self.cpu_floor,
        )
        return CellRun(self.plan.cells[0], around)

    def measured(self) -> list[Measurement]:
        """The figures of all workloads."""
        return [event.figure for event in self.of(MeasurementTaken)]

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]

    def ended(self) -> CellEnded:
        (ended,) = self.of(CellEnded)
        return ended


def scenario_plan(changes: Callable[[str], str] = str) -> Plan:
    return make_plan(read(Path("two.yaml"), changes(SCENARIO)), Overrides(size="full"), HOST)


def lab_of(folder: Path, captured: int, script: str | None = None) -> Lab:
    plan = scenario_plan(lambda text: text.replace("events: 10}", f"events: {captured}}}"))
    return Lab(folder, script or f"cat <<'END'\n{REPORT}\nEND", plan)


@asynccontextmanager
async def working(
    folder: Path,
    changes: Callable[[str], str] = str,
    ksm: HostKsm | None = None,
    disk: GuestDisk | None = None,
    prepare: Callable[[Lab], object] = lambda _lab: None,
) -> AsyncIterator[tuple[Lab, CellRun]]:
    """A cell whose workloads run until the block ends; it has ended then."""
    go = folder / "go"
    script = f"while [ ! -e {go} ]; do sleep 0.05; done\ncat <<'END'\n{REPORT}\nEND"
    lab = Lab(folder, script, scenario_plan(lambda text: changes(text.replace("events: 10}", "events: 2500}"))))
    lab.ksm, lab.disk = ksm, disk or GuestDisk()
    prepare(lab)
    cell = lab.cell()
    running = asyncio.ensure_future(cell.run())
    try:
        await asyncio.wait_for(lab.begun.wait(), 60)
        yield lab, cell
    finally:
        go.touch()
        await asyncio.wait_for(running, 60)
