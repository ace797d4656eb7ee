"""The real runner with a hypervisor in memory and cells that take a while; it may be deaf to the wish to stop."""

import asyncio
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.fakes.hypervisor import FakeHypervisor
from tests.lab.programs.faked_vmlab import roots
from tests.priority import stay_nice
from tests.waiting import until
from vmlab.guests.image.catalog import Image
from vmlab.hypervisor.emulated_disk.emulated_disk import EmulatedDisk
from vmlab.hypervisor.journal import Journal
from vmlab.hypervisor.protocols import GuestDisk
from vmlab.hypervisor.settings_keeper import SettingsKeeper, Tell
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.cell.common_start import HostsStart
from vmlab.lab.cell.live_switch import LiveKsm
from vmlab.lab.cell.surroundings import CellSurroundings
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.run import runner
from vmlab.lab.run.parts import RunnerParts
from vmlab.lab.run.recording import HostRecording
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    MeasurementTaken,
    WorkloadEnded,
    WorkloadStarted,
)
from vmlab.model.concurrency import run_with_alarm
from vmlab.model.errors import VmlabError
from vmlab.model.event import MeasuredAgain, Notice
from vmlab.model.results import Measurement
from vmlab.model.run import Outcome
from vmlab.model.scenarios.disk_profiles import DISK_PROFILES
from vmlab.plan.cell_settings import settings_of
from vmlab.plan.terms import CellPlan, Plan

CELL_SECONDS = "FAKED_CELL_SECONDS"
CELL_FILE = "FAKED_CELL_FILE"
"""Names a file: cells last until it is there, and `CELL_SECONDS` more."""
LOAD = "FAKED_LOAD"
"""JSON: for each cache mode the seconds of latency that each further tile costs, or the outcome of its cells."""
ENDS = "FAKED_ENDS"
"""JSON: by a cell's number ``disturbed``, or its outcome, where that is not passed."""
DEAF = "FAKED_DEAF"
HUNG = "hung"
LOOP_MAJOR = 7


def on_a_loop_device(file: Path) -> bool:
    """Whether the file system of `file` does."""
    return file.exists() and os.major(file.stat().st_dev) == LOOP_MAJOR


class Cell:
    """A cell that waits, and says how a child of the runner meets signals."""

    def __init__(
        self,
        cell: CellPlan,
        around: CellSurroundings,
        hosts_start: HostsStart | None = None,
    ) -> None:
        self._hosts_start = hosts_start
        self._cell = cell
        self._around = around
        guests: Any = None
        ksm = LiveKsm(cell, guests, CellEvents(cell, around.emit, around.raw), around.host.ksm)
        ksm.begin()
        self._ksm = ksm
        self.disturbed = json.loads(os.environ.get(ENDS, "{}")).get(str(cell.index)) == "disturbed"

    async def change(self, what: str, value: str, origin: str) -> dict[str, Any]:
        """Switch the host's KSM."""
        return {"what": what, **asdict(await self._ksm.switch(value, origin))}

    async def run(self) -> Outcome:
        """Begin, wait, end; or be called off."""
        if self._hosts_start is None:
            return await self._run()
        try:
            return await run_with_alarm(self._hosts_start.until_called_off(), self._run())
        except VmlabError as error:
            end = CellEnded(
                cell=self._cell.index, outcome="failed", reasons=[str(error)], wall_seconds=None, start_skew_ms=None
            )
            self._around.emit(end)
            return Outcome.FAILED

    async def _start_together(self, start: HostsStart) -> None:
        """At the moment that is given, by the clock that this process has."""
        moment = await start.moment(0.0)
        await asyncio.sleep(moment - time.monotonic())
        late = 1e3 * (time.monotonic() - moment)
        for one in self._cell.workloads:
            place: Any = {"cell": self._cell.index, "workload": one.name, "tile": one.tile, "guest": one.source}
            self._around.emit(WorkloadStarted(**place, benchmark=one.kind, late_ms=late, uncertainty_ms=0.1))

    async def _run(self) -> Outcome:
        cell = self._cell
        start = CellStarted(
            cell=cell.index, axes=dict(cell.axes), repeat=cell.repeat, guests=0, settings=settings_of(cell)
        )
        if cell.again_of:
            self._around.emit(MeasuredAgain(cell=cell.index, again_of=cell.again_of))
        self._around.emit(start)
        if os.environ.get(DEAF) == HUNG:
            # The event loop stands as soon as the cell is seen to have begun: no signal is heeded, no command answered.
            time.sleep(600)
        child = await asyncio.create_subprocess_exec("cat", "/proc/self/status", stdout=asyncio.subprocess.PIPE)
        status = (await child.communicate())[0].decode()
        masks = [line for line in status.splitlines() if line.startswith(("SigBlk", "SigIgn"))]
        self._around.emit(Notice(level="info", text=" ".join(masks)))
        lies = "lies" if on_a_loop_device(self._around.guests.image.disk) else "does not lie"
        self._around.emit(Notice(level="info", text=f"the image {lies} on a loop device"))
        if CELL_FILE in os.environ:
            await until(Path(os.environ[CELL_FILE]).exists, "the file that ends cells", deadline=3600)
        if self._hosts_start is not None:
            await self._start_together(self._hosts_start)
        await asyncio.sleep(float(os.environ.get(CELL_SECONDS, "3600")))
        outcome = self._loaded()
        reasons = [] if outcome is Outcome.PASSED else ["so the test says"]
        self._around.emit(
            CellEnded(
                cell=cell.index,
                outcome=str(outcome),
                reasons=reasons,
                wall_seconds=1.0,
                start_skew_ms=0.0,
                disturbed=self.disturbed,
            )
        )
        return outcome

    def _loaded(self) -> Outcome:
        """Give the figures of paced workloads, if the test has said how they grow with the tiles."""
        cell = self._cell
        end = json.loads(os.environ.get(ENDS, "{}")).get(str(cell.index))
        if end is not None:
            return Outcome.INVALID if self.disturbed else Outcome(end)
        said = json.loads(os.environ.get(LOAD, "{}")).get(cell.cache)
        if isinstance(said, str):
            return Outcome(said)
        for one in cell.workloads if said is not None else ():
            place: Any = {"cell": cell.index, "workload": one.name, "tile": one.tile, "guest": one.source}
            self._around.emit(WorkloadEnded(**place, outcome="passed", seconds=1.0))
            figures = {"latency_p95": (said * cell.tiles, "s"), "delivered_percent": (100.0, "%")}
            for metric, (value, unit) in figures.items():
                figure = Measurement(one.name, one.tile, one.source, metric, value, unit)
                self._around.emit(MeasurementTaken(cell=cell.index, figure=figure))
        return Outcome.PASSED


def no_image(folder: Path) -> Image:
    """An image without files: there is nothing in it to compare."""
    return Image("faked", folder, folder, folder, folder, "", folder, {})


def settings_keeper(folder: RunFolder, tell: Tell, warn: Tell) -> SettingsKeeper:
    """The host's settings, of the /sys that a test has."""
    return SettingsKeeper(Journal(folder.journal), folder.disks, tell, warn, roots())


def guest_disk(folder: RunFolder, plan: Plan) -> GuestDisk:
    """The disk that is ordered, unproved: how fast it is depends on how busy the machine of the test is."""
    profile, journal = plan.scenario.host.disk, Journal(folder.journal)
    if profile is None:
        return GuestDisk()
    places = (folder.disks, folder.runtime, folder.id, journal)
    return EmulatedDisk(DISK_PROFILES[profile], 2**30, plan.seed, *places, proof=lambda *_: [])


def made(*_arguments: Any, **_options: Any) -> FakeHypervisor:
    """In place of libvirt."""
    return FakeHypervisor()


if __name__ == "__main__":
    stay_nice()
    patched: Any = runner
    patched.CellRun = Cell
    patched.load_image = no_image
    if os.environ.get(DEAF) == "1":
        patched.Runner.stop = lambda *_: None
    runner.main(
        RunnerParts(
            hypervisor=made,
            settings_keeper=settings_keeper,
            guest_disk=guest_disk,
            recording=HostRecording,
            neighbours=tuple,
        )
    )
