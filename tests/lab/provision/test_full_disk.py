"""A whole run whose store's disk fills up: it ends by itself, cleared up, and the cells that were finished stay."""

import asyncio
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from tests.fakes.hypervisor import FakeHypervisor
from tests.fakes.image import small_image
from tests.fakes.local_guest import LocalGuest
from tests.fakes.store import FULL, FillableWriter
from tests.lab.cell.test_lost_guest import EVENTS
from tests.lab.one_cell import REPORT, scenario_plan
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.lab.process import launcher
from vmlab.lab.process.prepared import PreparedRun, RunRequest
from vmlab.lab.process.run_ending import Verdict
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.provision.timing import USUAL, Timing
from vmlab.lab.run.parts import RunnerParts
from vmlab.lab.run.recording import HostRecording
from vmlab.lab.run.runner import Runner
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    MeasurementTaken,
    WorkloadEnded,
)
from vmlab.model.errors import ExitCode, HypervisorError, StoreError
from vmlab.model.event import (
    Event,
    Notice,
    RunnerFinished,
)
from vmlab.model.run import Outcome
from vmlab.plan.terms import Overrides
from vmlab.store.outbox import Outbox
from vmlab.store.reader import RunReader

SOON = 60.0
PATIENCE = 0.1
NOISY = "repeats: 2\nallow: {noise: true}\n"
"""The recorder is the real one, and what this machine does beside the test spoils no cell of it."""


class ClingingHypervisor(FakeHypervisor):
    """Does not close."""

    async def close(self) -> None:
        await super().close()
        raise HypervisorError("closing libvirt took longer than 10 s")


class FillingWriter(FillableWriter):
    """Its disk is full from the start of the second cell on, until somebody makes room."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._filled = False

    def append(self, event: Event) -> int:
        if isinstance(event, CellStarted) and event.cell == 2 and not self._filled:
            self.full = self._filled = True
        return super().append(event)


class PassinglyFullWriter(FillingWriter):
    """There is room again when eight attempts and at least one tick of the recorder were refused."""

    _ticks_refused = 0

    def _insert(self, statement: str, values: tuple[Any, ...]) -> int:
        self.full = self.full and (self.refused < 8 or self._ticks_refused == 0)
        # The first tick also writes the names of all figures.
        self._ticks_refused += self.full and ("INTO samples" in statement or "INTO layouts" in statement)
        return super()._insert(statement, values)


class HangingWriter(FillableWriter):
    """Whatever is written from the start of the second cell on hangs until it is let go."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.hangs = False
        self.let_go = threading.Event()
        self.when_it_hangs: Callable[[], None] = lambda: None

    def _insert(self, statement: str, values: tuple[Any, ...]) -> int:
        if self.hangs:
            self.when_it_hangs()
            self.let_go.wait(SOON)
        return super()._insert(statement, values)

    def append(self, event: Event) -> int:
        self.hangs = self.hangs or (isinstance(event, CellStarted) and event.cell == 2)
        return super().append(event)


class Run:
    """A run of two cells over the fake hypervisor, in folders of its own."""

    timing = USUAL

    def __init__(
        self,
        folder: Path,
        patience: float,
        writer: Callable[[Path], FillableWriter] = FillingWriter,
    ) -> None:
        sysbench = folder / "sysbench"
        sysbench.write_text(f"#!/bin/sh\ncat <<'END'\n{REPORT}\nEND\n")
        sysbench.chmod(0o755)
        self._programs = folder
        self._folder = RunFolder.of("20261121-150000-two-0001")
        os.close(self._folder.make())
        self.hypervisor = FakeHypervisor(disks=self._folder.disks)
        self.writer = writer(self._folder.store)
        self.outbox = Outbox(self.writer, patience=patience)
        plan = scenario_plan(lambda text: text.replace("events: 10}", f"events: {EVENTS}}}") + NOISY)
        plan = replace(plan, scenario=plan.scenario.model_copy(update={"provision": "cold"}))
        request = RunRequest(self._folder.id, "two.yaml", Overrides(), plan.seed)
        built = small_image()
        image = BootImage(built.disk, built.kernel, built.initrd, built.command_line)
        self._prepared = PreparedRun(request, plan, image, {})

    async def connect(
        self, name: str, address: str, *, key: asyncssh.SSHKey, host_key: asyncssh.SSHKey, deadline: float
    ) -> LocalGuest:
        return LocalGuest(name, address, self._programs)

    async def run(self) -> Verdict:
        async with asyncio.timeout(SOON):
            return await self.runner().run()

    def runner(self) -> Runner:
        parts = RunnerParts(connect=self.connect, recording=HostRecording, timing=self.timing)
        return Runner(self._folder, self._prepared, self.outbox, self.hypervisor, parts)

    def events(self) -> list[Event]:
        with RunReader(self.writer.path) as reader:
            return [event for _, event in reader.events() if event is not None]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "run"))


async def test_a_store_that_cannot_be_written_ends_the_run_with_that_cause(tmp_path: Path) -> None:
    run = Run(tmp_path, PATIENCE)
    verdict = await run.run()
    assert (verdict.outcome, verdict.exit_code) == (Outcome.FAILED, ExitCode.FAILED)
    assert FULL in verdict.reason
    assert run.hypervisor.running == {} and not run.hypervisor.is_open
    events = run.events()
    assert [(event.cell, event.outcome) for event in events if isinstance(event, CellEnded)] == [(1, "passed")]
    assert len([one for one in events if isinstance(one, MeasurementTaken) and one.figure.metric == "run_time"]) == 2
    with pytest.raises(StoreError, match=r"(event is|events are) lost"):
        run.outbox.close(0.2)
    run.writer.full = False
    run.writer.close()


async def test_a_store_that_hangs_ends_the_run_with_that_cause(tmp_path: Path) -> None:
    run = Run(tmp_path, SOON, HangingWriter)
    assert isinstance(run.writer, HangingWriter)
    # Before, a disk that is slow for a moment is no disk that hangs.
    run.writer.when_it_hangs = partial(setattr, run.outbox, "_hang", 0.5)
    # With ticks so close to each other, the recorder surely has one to hand over while the store hangs.
    run.timing = Timing(recorder=0.2, tick=0.02)
    verdict = await run.run()
    assert (verdict.outcome, verdict.exit_code) == (Outcome.FAILED, ExitCode.FAILED)
    assert "run.sqlite: an attempt has hung for 0.5 s" in verdict.reason
    assert run.hypervisor.running == {} and not run.hypervisor.is_open
    with pytest.raises(StoreError, match=r"(event is|events are) lost"):
        run.outbox.close(0.1)
    run.writer.let_go.set()
    run.outbox.close()
    run.writer.close()
    notices = [event.text for event in run.events() if isinstance(event, Notice)]
    assert "the recorder did not end within 0.2 s: its last ticks are lost" in notices


async def test_what_does_not_close_is_told_and_whether_it_is_left_is_not_the_runners_to_say(tmp_path: Path) -> None:
    run = Run(tmp_path, SOON, FillableWriter)
    run.hypervisor = ClingingHypervisor(disks=run.hypervisor.disks)
    verdict = await run.run()
    run.outbox.close()
    run.writer.close()
    assert (verdict.outcome, verdict.exit_code) == (Outcome.PASSED, ExitCode.PASSED)
    assert verdict.reason == "closing libvirt took longer than 10 s"


async def test_the_last_words_are_kept_where_the_clean_up_made_room(tmp_path: Path) -> None:
    run = Run(tmp_path, PATIENCE)
    verdict = await run.run()
    run.writer.full = False
    run.outbox.append(RunnerFinished(outcome=verdict.outcome, exit_code=1, reason=verdict.reason))
    run.outbox.close()
    run.writer.close()
    events = run.events()
    assert [(event.cell, event.outcome) for event in events if isinstance(event, CellEnded)] == [
        (1, "passed"),
        (2, "aborted"),
    ]
    (reason,) = next(event.reasons for event in events if isinstance(event, CellEnded) and event.cell == 2)
    assert reason == verdict.reason and FULL in reason
    assert isinstance(events[-1], RunnerFinished)


async def test_a_disk_that_was_full_for_a_while_costs_ticks_alone(tmp_path: Path) -> None:
    run = Run(tmp_path, SOON, PassinglyFullWriter)
    verdict = await run.run()
    run.outbox.close()
    assert verdict.outcome is Outcome.PASSED
    events = run.events()
    assert [event.outcome for event in events if isinstance(event, CellEnded)] == ["passed", "passed"]
    assert len([event for event in events if isinstance(event, WorkloadEnded)]) == 4
    assert [event for event in events if isinstance(event, Notice) and "lost to the recording" in event.text]
    run.writer.close()


def test_a_launcher_that_cannot_write_the_last_word_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder("20261121-150000-two-0002", tmp_path / "gone")

    def refuses(_folder: RunFolder) -> None:
        raise StoreError("cannot write run.sqlite: database or disk is full")

    monkeypatch.setattr(launcher, "plan_of", refuses)
    monkeypatch.setattr(launcher, "sweep_run", lambda _folder, _patience, *, roots: [])
    launcher.launch(folder, -1, -1, launcher.LauncherParts(patience=0.0))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("vmlab: cannot write ")
