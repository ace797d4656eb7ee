"""One whole run, from the launcher's begin to its last word, with one call of it spoilt; and what was seen of it."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.anomaly.files import spoilt_below
from tests.anomaly.injector import Fault, Injector, unspoilt
from tests.anomaly.spoilt import (
    SpoiltConnect,
    SpoiltHypervisor,
    spoilt_connect,
    spoilt_host,
    spoilt_host_tiles,
)
from tests.fakes.hypervisor import FakeHypervisor
from tests.fakes.image import small_image
from tests.fakes.scripted_guest import ScriptedGuest
from tests.fakes.sysbench import EVENTS, cpu_report, few_lines
from vmlab.guests.image.catalog import Image
from vmlab.hypervisor.domain_spec import BootImage
from vmlab.hypervisor.journal import Journal
from vmlab.lab.process import launcher, measuring_runs
from vmlab.lab.process.dead_runs import clean
from vmlab.lab.process.prepared import RunRequest, write_request
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.process.signals import HELD, hold_back
from vmlab.lab.provision.timing import Timing
from vmlab.lab.run.parts import RunnerParts
from vmlab.lab.run.recording import HostRecording
from vmlab.lab.run.runner import run_in
from vmlab.model.cell_event import CellEnded, MeasurementTaken
from vmlab.model.errors import StoreError
from vmlab.model.event import Event, RunEnded
from vmlab.model.results import RawOutput
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.store.reader import RunReader
from vmlab.store.writer import RunWriter

LIMIT_SECONDS = 120.0
"""No run takes longer, whatever hangs, on a busy machine either: all its deadlines together are far below that."""
_PATIENCE_SECONDS = 60.0
_REPORT = few_lines(cpu_report())
_SCENARIO = f"""
name: two
guests:
  quick: {{memory: 128 MiB, cpu_shares: 200}}
  slow:  {{memory: 128 MiB, cpu_shares: 100, role: database}}
workloads:
  quick: {{kind: cpu, on: quick, threads: 1, max_prime: 1000, events: {EVENTS}}}
  slow:  {{kind: cpu, on: slow,  threads: 1, max_prime: 1000, events: {EVENTS}}}
  bare:  {{kind: cpu, on: host,  threads: 1, max_prime: 1000, events: {EVENTS}}}
axes:
  cache: [none, writeback]
again: 0
limits: {{start_skew: 1 h, clock_drift_percent: 100}}
allow: {{noise: true}}
"""
_HOST = HostFacts(2**34, 2**34, 2**40, 2, "tcg")
_QUICK = Timing(cause=0.01, store=0.4, lead=0.02, lead_a_client=0.0, tick=0.05)
"""With the deadlines of every run, for whatever is not reached on a busy machine either."""
_SHORT = replace(
    _QUICK,
    boot=2.0,
    boot_a_guest=0.0,
    boot_template=2.0,
    identify=2.0,
    hold=2.0,
    clock=2.0,
    close_client=1.0,
    clean_up=3.0,
    statistics=2.0,
    client_share=0.004,
)
"""For a call that hangs, which is waited for."""


class Died(BaseException):
    """A signal for whom nobody has asked ended the runner's process."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


@dataclass
class Seen:
    """What one run left for its checks. `stuck` is where its tasks hung when it exceeded its limit."""

    fault: Fault | None
    fired: bool = False
    stopped: bool = False
    where: str = ""
    seconds: float = 0.0
    stuck: str = ""
    unsaid: str = ""
    """Why the runner has kept no verdict, as the log has it."""
    crash: str = ""
    runner_crash: str = ""
    complaints: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    raw: list[tuple[int, RawOutput]] = field(default_factory=list)
    before: list[Event] = field(default_factory=list)
    raw_before: list[tuple[int, RawOutput]] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    left_in_journal: list[str] = field(default_factory=list)
    left_after_clean: list[str] = field(default_factory=list)
    running: list[str] = field(default_factory=list)
    counts: Mapping[str, int] = field(default_factory=dict)

    def of(self, kind: type[Event]) -> list[Any]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def last(self) -> RunEnded | None:
        """The run's last word."""
        return self.events[-1] if self.events and isinstance(self.events[-1], RunEnded) else None

    @property
    def ended_before(self) -> set[int]:
        """Cells that had ended when the fault came."""
        return {event.cell for event in self.before if isinstance(event, CellEnded)}

    def figures(self, cell: int) -> list[MeasurementTaken]:
        """The measurements of one cell."""
        return [event for event in self.of(MeasurementTaken) if event.cell == cell]


class AnomalousLab:
    """A lab in a folder of its own, in which `run` runs one run at a time, each with new state, runtime and cache."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, *, cold: bool) -> None:
        self._folder = folder
        self._patch = patch
        self._cold = cold
        self._runs = 0
        self._image = small_image(folder / "image")
        # Made before the run, in which each file that is made is a call of its own.
        (folder / "image/use.lock").touch()
        # All that the test's process has loaded so far is left out of the collections after each run.
        gc.collect()
        gc.freeze()

    def run(self, fault: Fault | None = None) -> Seen:
        """One run, to its end and cleared up after."""
        self._runs += 1
        place = self._folder / str(self._runs)
        for name, variable in (("s", "XDG_STATE_HOME"), ("c", "XDG_CACHE_HOME"), ("r", "VMLAB_RUNTIME_DIR")):
            (place / name).mkdir(parents=True)
            self._patch.setenv(variable, str(place / name))
        self._patch.setattr(measuring_runs, "RUN_FOLDERS", (place / "r",))
        return _OneRun(place, self._image, fault, cold=self._cold).seen()


class _OneRun:
    def __init__(self, place: Path, image: Image, fault: Fault | None, *, cold: bool) -> None:
        self._place = place
        self._image = image
        self._overrides = Overrides(size="full", seed=1, cold=cold)
        self._seen = Seen(fault)
        self._injector = Injector(fault, self._note_what_is_there)
        self._guests: list[ScriptedGuest] = []
        self._store = partial(RunWriter, connect=spoilt_connect(self._injector))

    def seen(self) -> Seen:
        self._folder, lock = self._asked_for()
        before = _descriptors(), set(threading.enumerate())
        began = time.monotonic()
        with spoilt_below(self._place, self._injector):
            try:
                with _signals():
                    launcher.launch(self._folder, lock, lock, self._launcher_parts())
            except Exception:  # noqa: BLE001 - what a launcher's crash leaves is looked at, too
                self._seen.crash = traceback.format_exc()
        self._seen.seconds = time.monotonic() - began
        self._seen.fired, self._seen.stopped = self._injector.fired, self._injector.stopped
        self._seen.where, self._seen.counts = self._injector.where, self._injector.counts
        self._look_around(*before)
        os.close(lock)
        self._seen.left_in_journal = self._remains()
        clean()
        self._seen.left_after_clean = self._remains()
        self._seen.events, self._seen.raw = _read(self._folder.store)
        return self._seen

    def _asked_for(self) -> tuple[RunFolder, int]:
        file = read(Path("two.yaml"), _SCENARIO)
        plan = make_plan(file, self._overrides, _HOST)
        folder = RunFolder.of("run-1")
        lock = folder.make()
        request = RunRequest(folder.id, "two.yaml", self._overrides, plan.seed)
        write_request(folder, request, _SCENARIO, _HOST)
        return folder, lock

    def _launcher_parts(self) -> launcher.LauncherParts:
        return launcher.LauncherParts(
            ensure_image=lambda tell: self._image, isolated=self._isolated, open_store=self._store, patience=0.2
        )

    def _parts(self) -> RunnerParts:
        return RunnerParts(
            hypervisor=self._hypervisor,
            connect=SpoiltConnect(self._injector, _REPORT, self._guests),
            host_place=lambda folder, _image: spoilt_host(folder, self._injector, _REPORT),
            host_tiles=partial(spoilt_host_tiles, self._injector),
            open_store=self._store,
            timing=_SHORT if self._seen.fault is not None and self._seen.fault.is_waited_for else _QUICK,
            neighbours=tuple,
            recording=HostRecording,
        )

    def _hypervisor(
        self, folder: RunFolder, _plan: Plan, image: BootImage, notice: Callable[[str], None], _ordered: object
    ) -> SpoiltHypervisor:
        self._fake = FakeHypervisor(
            disks=folder.disks,
            journal=Journal(folder.journal),
            runtime=folder.runtime,
            lab=folder.id,
            files_of_its_own=unspoilt,
        )
        return SpoiltHypervisor(self._fake, self._injector)

    def _isolated(
        self, argv: Sequence[str], *, env: Mapping[str, str], pass_fds: Sequence[int], own_network: bool
    ) -> int:
        """In the place of namespaces and a process: the runner runs here, and its death is an exception."""
        try:
            asyncio.run(self._watched(int(argv[-1])))
        except Died as death:
            return death.status
        except StoreError as error:
            self._seen.unsaid = str(error)
            return 1
        except Exception:  # noqa: BLE001 - a runner that dies of an error is told by its launcher
            self._seen.runner_crash = traceback.format_exc()
            return 1
        finally:
            hold_back()
        return 0

    async def _watched(self, place: int) -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, told: self._seen.complaints.append(f"{told.get('message')}: {told.get('exception')!r}")
        )
        running = asyncio.ensure_future(run_in(self._folder, place, self._parts()))
        await asyncio.wait([running], timeout=LIMIT_SECONDS)
        if not running.done():
            self._seen.stuck = _stacks()
            running.cancel()
            await asyncio.wait([running], timeout=60)
        # A connection to the control socket or a callback may need a turn of the loop.
        for _ in range(3):
            await asyncio.sleep(0)
        self._seen.leftovers += [f"task {task}" for task in asyncio.all_tasks() - {asyncio.current_task(), running}]
        self._seen.running = list(self._fake.running) if hasattr(self, "_fake") else []
        if running.done():
            running.result()

    def _note_what_is_there(self) -> None:
        self._seen.before, self._seen.raw_before = _read(self._folder.store)

    def _look_around(self, descriptors: dict[int, str], threads: set[threading.Thread]) -> None:
        def left() -> list[str]:
            open_now = _descriptors()
            found = [f"descriptor {path}" for number, path in open_now.items() if descriptors.get(number) != path]
            return found + [f"thread {one.name}" for one in set(threading.enumerate()) - threads if one.is_alive()]

        began = time.monotonic()
        while left() and (waited := time.monotonic() - began) < _PATIENCE_SECONDS:
            # Threads that have been told to end need a moment, and what hangs in a cycle of references a collection.
            if waited > 0.1:
                gc.collect()
            time.sleep(0.005)
        self._seen.leftovers += left()

    def _remains(self) -> list[str]:
        """Whatever of the run lies where no run should leave anything."""
        disks = self._folder.disks
        found = [str(path) for path in disks.iterdir()] if disks.is_dir() else []
        found += [str(self._folder.runtime)] if self._folder.runtime.exists() else []
        found += [f"{entry.kind} {entry.what}" for entry in Journal(self._folder.journal).open_entries()]
        cache = self._place / "c/vmlab/snapshots"
        return found + [str(path) for name in (".making-*", ".removing-*") for path in cache.glob(name)]


def _die(number: int, _frame: object) -> NoReturn:
    raise Died(number)


@contextmanager
def _signals() -> Iterator[None]:
    """Signals wait as in a launcher's process. One that still waits at the end of the run is thrown away."""
    before = {number: signal.getsignal(number) for number in HELD}
    for number in HELD:
        signal.signal(number, _die)
    hold_back()
    try:
        yield
    finally:
        for number in HELD:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
        for number, handler in before.items():
            signal.signal(number, handler)


def _descriptors() -> dict[int, str]:
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        try:
            found[int(path.name)] = str(path.readlink())
        except OSError:
            continue  # The one that listed them.
    return found


def _stacks() -> str:
    text = io.StringIO()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.print_stack(file=text)
    return text.getvalue()


def _read(store: Path) -> tuple[list[Event], list[tuple[int, RawOutput]]]:
    if not store.exists():
        return [], []
    try:
        with RunReader(store) as reader:
            return [event for _, event in reader.events()], reader.raw_outputs()
    except Exception:  # noqa: BLE001 - a store without tables has nothing in it
        return [], []
