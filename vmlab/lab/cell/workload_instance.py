"""One workload of one tile, from its preparation to its figures."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from vmlab.guests.channel import Launching
from vmlab.guests.held_client import ClockOffset, HeldClient, HostSpan, TrueStart
from vmlab.hypervisor.protocols import Hypervisor
from vmlab.lab.provision.snapshot_provider import run_step
from vmlab.lab.provision.timing import USUAL, Timing
from vmlab.model.cell_event import (
    RoundEnded,
    StepEnded,
    WorkloadEnded,
    WorkloadProgressed,
    WorkloadStarted,
)
from vmlab.model.concurrency import run_all
from vmlab.model.errors import VmlabError, WorkloadError
from vmlab.model.event import Event
from vmlab.model.names import HOST_PLACE
from vmlab.model.results import CpuUse
from vmlab.model.run import DONE, RUN_TIME, SETTLING, Outcome, Part
from vmlab.plan.terms import WorkloadPlan
from vmlab.system.kvm_device import in_virtual_machine
from vmlab.workloads.metrics import Reading, demand_tool_time
from vmlab.workloads.verification import last_words, read_from_a_guest
from vmlab.workloads.workload_steps import AnyWorkload, Collected, Finished, StagingContext, WorkloadContext


@contextmanager
def timed_step(
    emit: Callable[[Event], object], cell: int, part: str, step: str, tile: int = 0, place: str = ""
) -> Iterator[None]:
    """Emits the time that the block took, also where it fails."""
    began = time.monotonic()
    try:
        yield
    finally:
        emit(StepEnded(cell=cell, part=part, step=step, seconds=time.monotonic() - began, tile=tile, place=place))


_PROGRESS_SECONDS = 0.5


def disagreement(seconds: float, host: HostSpan) -> float:
    """How far two clocks are apart over one span at least, as a fraction of the host's; 0 where it saw no span.

    What the uncertainty of the host's span explains is not counted.
    """
    if host.seconds <= 0:
        return 0.0
    return max(0.0, abs(seconds - host.seconds) - host.uncertainty) / host.seconds


@dataclass(eq=False)
class WorkloadInstance:
    """A workload of one tile. It keeps its own error, so that its failure does not stop other workloads."""

    _cell: int
    plan: WorkloadPlan
    _workload: AnyWorkload
    context: WorkloadContext
    _emit: Callable[[Event], object]
    _timing: Timing = USUAL
    looped: bool = False
    hypervisor: Hypervisor | None = None
    virtual: Sequence[str] = ()
    """Those of its places that are guests of `hypervisor`, by their keys."""
    error: VmlabError | None = field(default=None, init=False)
    finished: Finished | None = field(default=None, init=False)
    collected: Collected | None = field(default=None, init=False)
    readings: tuple[Reading, ...] = field(default=(), init=False)
    notes: list[str] = field(default_factory=list, init=False)
    ready: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    """Set when the client waits before its exec, and neither side is used until the start."""
    said_ended: bool = field(default=False, init=False)
    _held: HeldClient | None = field(default=None, init=False)
    _shown: float = field(default=0.0, init=False)
    _host_span: HostSpan | None = field(default=None, init=False)
    _used: dict[str, CpuUse] = field(default_factory=dict, init=False)

    @property
    def label(self) -> str:
        """``tile 2 web``, for people."""
        return f"tile {self.plan.tile} {self.plan.name}"

    @property
    def started(self) -> TrueStart | None:
        """When the client really started, if it did."""
        return self._held.started if self._held else None

    @property
    def stopped_seconds(self) -> float:
        """For how long its client was stopped in its place, as far as it has ended."""
        return self._held.stopped_seconds if self._held and self.finished else 0.0

    async def stage(self, *, host_alone: bool = False) -> None:
        """Make ready what each side needs on its own; with `host_alone` only the sides that are the host."""
        contexts = self._host_contexts() if host_alone else self._staging_contexts()
        await run_all(run_step(self.plan.kind, self._workload.stage, context) for context in contexts)

    async def rehearse_on_host(self) -> None:
        """Do beforehand on the host what `make_ready` does there, as it is done in a guest before it is frozen."""
        contexts = self._host_contexts()
        await run_all(run_step(self.plan.kind, self._workload.rehearse, context) for context in contexts)

    def _host_contexts(self) -> Iterator[StagingContext]:
        return (context for context in self._staging_contexts() if context.shell.name == HOST_PLACE)

    def _staging_contexts(self) -> Iterator[StagingContext]:
        name, seed, asset = self.plan.name, self.context.seed, self.plan.asset
        yield StagingContext(name, "source", seed, self.context.source, asset)
        if self.context.target is not None:
            yield StagingContext(name, "target", seed, self.context.target, asset)

    async def make_ready(self) -> None:
        """Make ready what needs both sides, of guests that were staged; fork the client up to its exec."""
        await run_all([self._prepare(), self._hold()])
        self.ready.set()

    def _step(self, part: Part, step: str) -> AbstractContextManager[None]:
        if self.looped:
            # Steps are of parts of a cell that follow each other, and rounds do not.
            return contextlib.nullcontext()
        return timed_step(self._emit, self._cell, part, step, self.plan.tile, self.plan.name)

    async def _prepare(self) -> None:
        with self._step(Part.PREPARE, "prepare"):
            try:
                await run_step(self.plan.kind, self._workload.prepare, self.context)
            except WorkloadError as error:
                # The cell fails by it, and keeps its texts.
                self._fail(error)
                raise WorkloadError(f"{self.label}: {error}") from error

    async def _hold(self) -> None:
        client = self._workload.client(self.context)
        launching = cast(Launching, self.context.source)
        with self._step(Part.PREPARE, "hold the client"):
            self._held = await HeldClient.hold(self.context.source, launching, client, self._timing.hold)

    async def measure_clock(self) -> ClockOffset:
        """The offset of the source's clock."""
        assert self._held is not None
        return await self._held.measure_clock(deadline=self._timing.clock)

    async def start_at(self, host_mono: float) -> None:
        """Broadcast the start."""
        assert self._held is not None
        await self._held.start_at(host_mono)

    async def execute(self, lead: float) -> None:
        """Follow the client until it ends, then wait for `settle`; errors are kept, not raised.

        The common start is `lead` seconds ahead.
        """
        assert self._held is not None
        try:
            before = await self._cpu_use()
            async for line in self._held.follow(self._on_start, self._timing.of_client(self._held.client) + lead):
                self._on_line(line)
            self.finished = self._held.finished
            after = await self._cpu_use()
            self._used = {key: after[key] - before[key] for key in before if key in after}
            self._check_status(self.finished)
            self._show(1, 1, "", SETTLING, force=True)
            with self._step(Part.EXECUTE, "settle"), self._reading():
                await self._workload.settle(self.context, self.finished)
            self._show(1, 1, "", DONE, force=True)
        except VmlabError as error:
            self._fail(error)

    async def _cpu_use(self) -> dict[str, CpuUse]:
        """What its guests did so far; nothing where that is not known."""
        if self.hypervisor is None or not self.virtual:
            return {}
        try:
            async with asyncio.timeout(self._timing.reading):
                return await self.hypervisor.statistics.cpu_use(self.virtual)
        except (VmlabError, OSError, TimeoutError):
            return {}

    def ran(self, guest: str) -> float:
        """For how many seconds a guest used a CPU while the client ran; 0 where that is not known."""
        return self._used[guest].ran if guest in self._used else 0.0

    async def run_again(self) -> None:
        """A round after the first: make both sides ready, hold the client, and `execute` it, started by itself."""
        try:
            await run_step(self.plan.kind, self._workload.renew, self.context)
            await self._hold()
            await self.measure_clock()
            lead = self._timing.lead_of(1)
            await self.start_at(time.monotonic() + lead)
        except VmlabError as error:
            self._fail(error)
        else:
            await self.execute(lead)

    def _check_status(self, finished: Finished) -> None:
        if finished.status != 0:
            program = self._workload.client(self.context).argv[0]
            raise WorkloadError(f"{program} exited with {finished.status}{last_words(finished)}")

    def _on_start(self, start: TrueStart) -> None:
        self._emit(
            WorkloadStarted(
                cell=self._cell,
                workload=self.plan.name,
                tile=self.plan.tile,
                guest=self.context.source.name,
                benchmark=self.plan.kind,
                late_ms=start.late * 1e3,
                uncertainty_ms=start.uncertainty * 1e3,
                round=self.context.round,
            )
        )

    def _on_line(self, line: str) -> None:
        with self._reading():
            progress = self._workload.progress(line)
        if progress is not None:
            self._show(progress.done, progress.total, progress.unit, progress.stage)

    def _show(self, done: float, total: float, unit: str, stage: str, *, force: bool = False) -> None:
        now = time.monotonic()
        if force or done >= total or now - self._shown >= _PROGRESS_SECONDS:
            self._shown = now
            name, tile = self.plan.name, self.plan.tile
            self._emit(
                WorkloadProgressed(
                    cell=self._cell, workload=name, tile=tile, done=done, total=total, unit=unit, stage=stage
                )
            )

    async def compare_clocks(self) -> None:
        """Measure the source's clock once more, after the workloads; errors are kept, not raised."""
        if self._held is None or self.started is None or self.finished is None or self.error is not None:
            return
        try:
            self._host_span = await self._held.host_span(self._timing.clock)
        except VmlabError as error:
            self._fail(error)

    async def collect(self, lost: float = 0.0) -> None:
        """Verify and take the figures, once; errors are kept, not raised.

        For `lost` seconds it may not have gone on, which makes the cell invalid by itself.
        """
        if self.error is None and self.finished is not None and self.collected is None:
            try:
                with self._step(Part.COLLECT, "verify"), self._reading():
                    self.collected = await self._workload.collect(self.context, self.finished)
                    await self._demand_tool_time(self.collected, self.finished.seconds, lost + self.stopped_seconds)
                    self.readings = self._workload.readings(self.collected)
            except VmlabError as error:
                self._fail(error)

    async def _demand_tool_time(self, collected: Collected, seconds: float, lost: float) -> None:
        """The tool's own time fits that of its client."""
        accelerator = "kvm"
        if self.hypervisor is not None and self.plan.source in self.virtual:
            # The processor below a nested guest may be emulated, and nothing tells.
            accelerator = "tcg" if in_virtual_machine() else await self.hypervisor.accelerator()
        time = self._workload.tool_time(collected.values, collected.raw, accelerator)
        used = self._used.values() if len(self._used) == len(self.virtual) else ()
        expected = self._workload.footprint(accelerator).seconds if self._workload.needs_cpu else None
        demand_tool_time(self.plan.kind, time, seconds, used, lost, expected)

    def say_round_ended(self) -> None:
        """Emit RoundEnded with the figures that were collected."""
        values = {reading.metric: reading.value for reading in self.readings}
        kind = self._workload
        self._emit(
            RoundEnded(
                cell=self._cell,
                workload=self.plan.name,
                tile=self.plan.tile,
                guest=self.context.source.name,
                round=self.context.round,
                outcome=Outcome.PASSED if self.error is None else Outcome.FAILED,
                seconds=self.finished.seconds if self.finished else 0.0,
                values=values,
                units={reading.metric: reading.unit for reading in self.readings},
                throughput=kind.throughput if kind.throughput in values else RUN_TIME,
                latency=kind.latency if kind.latency in values else RUN_TIME,
                reason=str(self.error) if self.error else "",
            )
        )

    def say_ended(self, outcome: Outcome | None = None) -> None:
        """Emit WorkloadEnded with what is known; the outcome is passed or failed unless given."""
        if outcome is None:
            outcome = Outcome.PASSED if self.error is None else Outcome.FAILED
        self.said_ended = True
        self._emit(
            WorkloadEnded(
                cell=self._cell,
                workload=self.plan.name,
                tile=self.plan.tile,
                guest=self.context.source.name,
                outcome=outcome,
                seconds=self.finished.seconds if self.finished else 0.0,
                reason=str(self.error) if self.error else "",
            )
        )

    def clock_disagreement(self) -> float:
        """How far the source's own seconds are from the host's for the same span, as a fraction of the span.

        Both from the client's true start to its end, settling not included; 0 before `compare_clocks`.
        """
        if self.finished is None or self._host_span is None:
            return 0.0
        return disagreement(self.finished.seconds, self._host_span)

    def raw(self) -> dict[str, str]:
        """What the client printed and what `collect` kept, even if that failed."""
        texts = dict(self.error.texts) if isinstance(self.error, WorkloadError) else {}
        texts |= self.collected.raw if self.collected else {}
        if self.finished is not None:
            texts.setdefault("client stdout", self.finished.stdout)
            texts.setdefault("client stderr", self.finished.stderr)
        return texts

    async def close(self) -> None:
        """End the client if it still runs; nothing is sent to a guest that was lost."""
        if self._held is not None:
            try:
                async with asyncio.timeout(self._timing.close_client):
                    await self._held.close()
            except (VmlabError, OSError) as error:
                why = str(error) or f"it took longer than {self._timing.close_client:g} s"
                self.notes.append(f"{self.label}: the client's channel did not close: {why}")

    def _reading(self) -> AbstractContextManager[None]:
        return read_from_a_guest(self.plan.kind)

    def _fail(self, error: VmlabError) -> None:
        if self.error is None:
            self.error = error


class Instances(Sequence[WorkloadInstance]):
    """The workload instances of a cell, in the plan's order, and the only place where there come more or fewer.

    `make` makes one from its plan, its position in the cell and the number of its round, from 1.
    """

    def __init__(self, make: Callable[[WorkloadPlan, int, int], WorkloadInstance]) -> None:
        self._make = make
        self._all: list[WorkloadInstance] = []
        self._earlier: list[WorkloadInstance] = []

    def __getitem__(self, index: Any) -> Any:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def made(self, plans: Sequence[WorkloadPlan], first: int = 0) -> list[WorkloadInstance]:
        """New instances, which are not added; `first` is the position of the first one."""
        return [self._make(one, first + place, 1) for place, one in enumerate(plans)]

    def add(self, those: Sequence[WorkloadInstance]) -> None:
        self._all += those

    def remove(self, those: Sequence[WorkloadInstance]) -> None:
        """Those that are not here are no error."""
        self._all = [one for one in self._all if one not in those]

    def stopped(self) -> Iterator[tuple[WorkloadInstance, float]]:
        """Those whose client was stopped, and for how many seconds; in a loop those of earlier rounds too."""
        return ((one, one.stopped_seconds) for one in (*self._earlier, *self._all) if one.stopped_seconds)

    def next_round(self, before: WorkloadInstance) -> WorkloadInstance:
        """The instance of a workload's next round, in the place of the one `before`."""
        made = self._make(before.plan, before.context.position, before.context.round + 1)
        if before.stopped_seconds:
            self._earlier.append(before)
        self._all[self._all.index(before)] = made
        return made
