"""A run without a lab: the recorded cells are played into a new store, with a fake hypervisor behind them.

Everything around it is the real thing: `start_run` makes the folder and takes the lock, the control socket is the
runner's, cells to come are the engine's own `ComingCells`, and the events are those of a recorded run.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.hypervisor import FakeHypervisor
from tests.tui.conftest import RECORDED
from vmlab.hypervisor.domain_spec import BootImage, DomainSpec
from vmlab.lab.commands.coming_cells import ComingCells
from vmlab.lab.commands.command_server import ControlServer
from vmlab.lab.commands.verbs import Obeying
from vmlab.lab.process.prepared import plan_of
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    PhaseStarted,
)
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.event import (
    CommandReceived,
    Event,
    HostProbed,
    RunEnded,
    RunStarted,
)
from vmlab.model.sample import Sample
from vmlab.plan.terms import CellPlan
from vmlab.store.samples import SampleWriter
from vmlab.store.writer import RunWriter
from vmlab.tui.feed.recorded_run import RecordedRun

SPEED = 12.0
"""How many recorded seconds pass in one."""
_RUNNING_SECONDS = 10.0
"""The recorded seconds for which workloads have run when a cell is held."""


class PlayedRun(Obeying):
    """Runs the cells of a plan by playing recorded ones, in a thread; obeys ``stop`` and ``set``.

    A cell is played until its workloads have run for a while, and to its end when `released` is its number or above.
    """

    def __init__(self, folder: RunFolder, lock: int, measuring: int) -> None:
        self._folder = folder
        self._held = (lock, measuring)
        self._hypervisor = FakeHypervisor()
        self._recording = RecordedRun(RECORDED)
        self._stop = False
        self.released = 0
        self.thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    async def _run(self) -> None:
        plan = plan_of(self._folder)
        self._writer = RunWriter(self._folder.store)
        self._samples = SampleWriter(self._writer)
        self.coming = ComingCells(self._folder, plan.cells, self._tell)
        cells, seconds = len(plan.cells), plan.seconds
        self._tell(
            RunStarted(
                run=self._folder.id, scenario="tile", size=plan.size, seed=1, cells=cells, expected_seconds=seconds
            )
        )
        self._writer.document("scenario", plan.scenario.model_dump_json(by_alias=True))
        self._tell(HostProbed(accelerator=await self._hypervisor.accelerator(), host=await self._hypervisor.facts()))
        control = ControlServer(self._folder.control, self.obey)
        await control.open()
        while not self._stop and (cell := self.coming.take()) is not None:
            await self._cell(cell)
        await control.close()
        outcome, code = ("aborted", 130) if self._stop else ("passed", 0)
        self._tell(RunEnded(outcome=outcome, exit_code=code, reason="stopped" if self._stop else ""))
        self._writer.close()
        for lock in self._held:
            os.close(lock)

    async def _cell(self, cell: CellPlan) -> None:
        """The recorded cell with the same cache mode, with this cell's number."""
        specs = [DomainSpec(g.key, g.guest, g.tile, g.resources, "52:54:00:00:00:01") for g in cell.guests]
        await self._hypervisor.create(BootImage(Path("/none"), Path("/none"), Path("/none"), ""), specs)
        events, mode = self._recording.events, cell.axes["cache"]
        began = next(e.mono for e in events if isinstance(e, CellStarted) and e.axes["cache"] == mode)
        ended = next(e.mono for e in events if isinstance(e, CellEnded) and e.mono > began)
        execute = next(
            e.mono for e in events if isinstance(e, PhaseStarted) and e.mono > began and e.phase == "execute"
        )
        position = began - 0.001
        while position < ended and not self._stop:
            held = position > execute + _RUNNING_SECONDS and cell.index > self.released
            following = position if held else min(ended, position + 0.05 * SPEED)
            events, samples = self._recording.between(position, following)
            for event in events:
                self._tell(_moved(event, cell))
            for sample in samples:
                self._keep(sample)
            position = following
            await asyncio.sleep(0.05)
        if self._stop:
            self._tell(
                CellEnded(
                    cell=cell.index, outcome="aborted", reasons=["stopped"], wall_seconds=None, start_skew_ms=None
                )
            )
        await self._hypervisor.destroy([spec.name for spec in specs])
        assert self._hypervisor.running == {}

    def _tell(self, event: Event) -> None:
        self._writer.append(event)

    def _keep(self, sample: Sample) -> None:
        self._samples(sample._replace(wall=time.time(), mono=time.monotonic()))

    async def change_now(self, what: str, value: str | int, origin: str) -> Mapping[str, Any]:
        """Refuse it."""
        raise UsageError("the guests of a played run are not switched")

    def stop(self, code: ExitCode, origin: str) -> None:
        """End after the events of this moment."""
        self._tell(CommandReceived(command="stop", origin=origin))
        self.end()

    def end(self) -> None:
        """End after the events of this moment."""
        self._stop = True


def _moved(event: Event, cell: CellPlan) -> Event:
    """The event as if it happened now, in this cell."""
    changes: dict[str, Any] = {"wall": time.time(), "mono": time.monotonic()}
    if hasattr(event, "cell"):
        changes["cell"] = cell.index
    if isinstance(event, CellStarted):
        changes |= {"axes": dict(cell.axes), "repeat": cell.repeat}
    return replace(event, **changes)


@contextmanager
def launcher_played(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[PlayedRun]]:
    """In place of the launcher's process, a `PlayedRun`; gives those that were started."""
    started: list[PlayedRun] = []

    def spawn(folder: RunFolder, lock: int, measuring: int) -> int:
        run = PlayedRun(folder, os.dup(lock), os.dup(measuring))
        started.append(run)
        run.thread.start()
        return os.getpid()

    monkeypatch.setattr("vmlab.lab.process.launch.spawn_launcher", spawn)
    try:
        yield started
    finally:
        for run in started:
            run.end()
            run.thread.join(60)
