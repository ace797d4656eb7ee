"""Whole runs of the real `Runner` over guests in memory, told by what their events and the hypervisor say."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import asyncssh

from tests.fakes.hypervisor import FakeHypervisor
from tests.fakes.image import small_image
from tests.fakes.scripted_guest import Script, ScriptedGuest
from tests.fakes.sysbench import EVENTS, cpu_report, few_lines
from tests.lab.answering_run import say
from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.hypervisor.protocols import Hypervisor
from vmlab.lab.process import launcher
from vmlab.lab.process.prepared import RunRequest, read_prepared, write_image, write_request
from vmlab.lab.process.run_ending import Verdict
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.process.signals import HELD
from vmlab.lab.provision.timing import Timing
from vmlab.lab.run.parts import RunnerParts
from vmlab.lab.run.runner import Runner
from vmlab.model.cell_event import CellEnded, CellStarted
from vmlab.model.event import Event
from vmlab.model.results import RawOutput
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides
from vmlab.store.outbox import Outbox
from vmlab.store.reader import RunReader
from vmlab.store.writer import RunWriter
from vmlab.telemetry.cpu_speed import SPEED
from vmlab.telemetry.host_counters import HostCounters

SOON = 120.0
"""Far above what a run of cells in memory takes, in seconds."""
REPORT = few_lines(cpu_report())
SCENARIO = f"""
name: two
guests:
  quick: {{memory: 128 MiB}}
  slow:  {{memory: 128 MiB}}
workloads:
  quick: {{kind: cpu, on: quick, threads: 1, max_prime: 1000, events: {EVENTS}}}
  slow:  {{kind: cpu, on: slow,  threads: 1, max_prime: 1000, events: {EVENTS}}}
"""
PHASES = ["provision", "prepare", "execute", "collect", "clean up"]
CACHES = "axes: {cache: [none, writeback]}\n"
GRID = "axes: {tiles: [1, 2], cache: [none, writeback]}\n"
PASSED: tuple[str, list[str]] = ("passed", [])
"""Outcome and reasons of a cell that went well."""
HOST = HostFacts(2**34, 2**34, 2**40, 2, "tcg")
QUICK = Timing(cause=0.01, lead=0.02, lead_a_client=0.0, quiet=0.6, tick=0.05)
Kind = TypeVar("Kind", bound=Event)


class HeldHypervisor(FakeHypervisor):
    """Guests are created once `may_create` is set, which it is in the beginning."""

    def __init__(self, disks: Path) -> None:
        super().__init__(disks=disks)
        self.may_create = asyncio.Event()
        self.may_create.set()

    async def create(self, image: BootImage, specs: list[DomainSpec]) -> None:
        await self.may_create.wait()
        await super().create(image, specs)


@dataclass
class TestRecording:
    """A host whose figures are what the test says, whenever they are asked for: `HostRecording` without a recorder."""

    __test__ = False
    values: Mapping[str, float]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_failure: object) -> None:
        """Nothing was begun."""

    @property
    def figures(self) -> Self:
        """What answers `mean`."""
        return self

    async def read_at(self, mono: float) -> None:
        """Nothing is read."""

    def mean(self, name: str, since: float, until: float) -> float:
        """The mean of one figure."""
        return self.values.get(name, 100.0 if name == SPEED else 0.0)

    def extremes(self, metric: str, since: float, until: float) -> tuple[float, float]:
        """Those of a figure that did not change."""
        return (self.mean(metric, since, until),) * 2


class HeardOutbox(Outbox):
    """Calls `hear` with each event, in the midst of the step that emits it, and `settle` when all are stored."""

    def __init__(self, writer: RunWriter, hear: Callable[[Event], None], settle: Callable[[], None]) -> None:
        super().__init__(writer)
        self._hear = hear
        self._settle_heard = settle

    def append(self, event: Event) -> None:
        super().append(event)
        self._hear(event)

    async def settled(self) -> None:
        await super().settled()
        self._settle_heard()


@dataclass
class MemoryRun:
    """One run. `changes` is what stands below the scenario's guests and workloads, `scripts` how clients work by guest.

    `on` has functions to be called at events: each is given the event and the run. `parts` replaces some of the
    runner's parts.
    """

    changes: str = ""
    overrides: Overrides = field(default_factory=lambda: Overrides(size="full", cold=True, sets=("order=as written",)))
    scripts: dict[str, Script] = field(default_factory=dict)
    host: dict[str, float] = field(default_factory=lambda: {"cpu_outside_lab_percent": 0.0, "cpu_steal_percent": 0.0})
    counters: list[HostCounters] = field(default_factory=lambda: [HostCounters(0.0)])
    on: list[Callable[[Event, MemoryRun], None]] = field(default_factory=list)
    parts: dict[str, Any] = field(default_factory=dict)
    recorded: list[Event] = field(default_factory=list)
    """What a runner before it recorded, if the run goes on."""

    def __post_init__(self) -> None:
        self.folder = RunFolder.of("20261121-150000-two-0001")
        os.close(self.folder.make())
        text = SCENARIO + self.changes
        plan = self.plan = make_plan(read(Path("two.yaml"), text), self.overrides, HOST)
        write_request(self.folder, RunRequest(self.folder.id, "two.yaml", self.overrides, plan.seed), text, HOST)
        self.image = small_image()
        files = (self.image.disk, self.image.kernel, self.image.initrd)
        write_image(self.folder, BootImage(*files, self.image.command_line))
        self.hypervisor = HeldHypervisor(self.folder.disks)
        self.guests: list[ScriptedGuest] = []
        self.events: list[Event] = []
        self.settled: list[int] = []
        """How many events there were whenever the runner had waited until they were stored."""

    async def connect(
        self, name: str, address: str, *, key: asyncssh.SSHKey, host_key: asyncssh.SSHKey, deadline: float
    ) -> ScriptedGuest:
        """A guest's shell."""
        self.guests.append(ScriptedGuest(name, address, self.scripts.get(name, Script(REPORT))))
        return self.guests[-1]

    async def run(self) -> Verdict:
        """The verdict; `stored` and `raw` have what is kept of it afterwards."""
        writer = RunWriter(self.folder.store)
        outbox = HeardOutbox(writer, self._hear, lambda: self.settled.append(len(self.events)))
        parts = RunnerParts(
            connect=self.connect,
            recording=self._recording,
            timing=QUICK,
            neighbours=tuple,
            host_counters=lambda: self.counters.pop(0) if len(self.counters) > 1 else self.counters[0],
            **self.parts,
        )
        prepared = read_prepared(self.folder)
        self.runner = Runner(self.folder, prepared, outbox, self.hypervisor, parts, recorded=self.recorded)
        try:
            async with asyncio.timeout(SOON):
                return await self.runner.run()
        finally:
            await asyncio.to_thread(outbox.close)
            writer.close()

    def _recording(
        self, _outbox: Outbox, _hypervisor: Hypervisor, _folders: object, _timing: Timing, *_counted: object
    ) -> Any:
        return TestRecording(self.host)

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        for hear in self.on:
            hear(event, self)

    async def command(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Send the runner a command over its socket; its answer."""
        return await asyncio.to_thread(say(name, origin="test", **arguments).send, self.folder.control)

    async def until(self, kind: type[Event]) -> None:
        """Return when the next event of this kind comes."""
        come = asyncio.Event()
        self.on.append(lambda event, _run: come.set() if isinstance(event, kind) else None)
        async with asyncio.timeout(SOON):
            await come.wait()

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The events of one kind, in their order."""
        return [event for event in self.events if isinstance(event, kind)]

    def begun(self) -> list[tuple[int, dict[str, Any], int]]:
        """Number, axes and repeat of each cell that began."""
        return [(event.cell, dict(event.axes), event.repeat) for event in self.of(CellStarted)]

    def outcomes(self) -> list[tuple[str, list[str]]]:
        """Outcome and reasons of each cell that ended."""
        return [(event.outcome, event.reasons) for event in self.of(CellEnded)]

    def stored(self) -> list[Event]:
        """The events that the store kept."""
        with RunReader(self.folder.store) as reader:
            return [event for _, event in reader.events()]

    def raw(self) -> list[tuple[int, RawOutput]]:
        """The raw output that the store kept, by cell."""
        with RunReader(self.folder.store) as reader:
            return reader.raw_outputs()


def launched(run: str, overrides: Overrides, parts: launcher.LauncherParts) -> list[Event]:
    """The events of the run of that id that the launcher starts by `parts`, whose runner does nothing."""
    plan = make_plan(read(Path("two.yaml"), SCENARIO), overrides, HOST)
    folder = RunFolder.of(run)
    lock = folder.make()
    write_request(folder, RunRequest(folder.id, "two.yaml", overrides, plan.seed), SCENARIO, HOST)
    before = {number: signal.getsignal(number) for number in HELD}
    try:
        launcher.launch(folder, lock, lock, parts)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
        os.close(lock)
    with RunReader(folder.store) as reader:
        return [event for _, event in reader.events()]
