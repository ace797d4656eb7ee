"""One cell of a run: provision, prepare, execute, collect, clean up."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from vmlab.guests.snapshots import Snapshot
from vmlab.guests.ssh import SshShell
from vmlab.hypervisor.contract import BootImage, Hypervisor
from vmlab.lab.contention import Contention
from vmlab.lab.freezer import Freezer
from vmlab.lab.guest_set import Connect, GuestSet, forget_pages
from vmlab.lab.slot import Slot
from vmlab.lab.start import StartSkew, start_together
from vmlab.lab.validity import HostNoise, broken_rules
from vmlab.model.errors import DeadlineExceeded, SnapshotError, VmlabError
from vmlab.model.event import (
    CacheProved,
    CellEnded,
    CellStarted,
    Event,
    GuestStateChanged,
    MeasurementTaken,
    Notice,
    PhaseEnded,
    PhaseStarted,
)
from vmlab.model.run import CacheProof, Outcome, Phase, RawOutput, worst
from vmlab.model.together import together
from vmlab.plan.terms import CellPlan, GuestPlan, Plan
from vmlab.workloads.contract import Shell, Site
from vmlab.workloads.registry import kinds

_CLEAN_UP_SECONDS = 120.0
Emit = Callable[[Event], object]


class KeepsRaw(Protocol):
    """Where raw tool output goes."""

    def raw(self, cell: int, output: RawOutput) -> None:
        """Keep one text."""
        ...


@dataclass(frozen=True, slots=True)
class CellSurroundings:
    """What a cell needs and does not own. `host_shell` gives the host as a place for workloads.

    `host_mean` is the mean of one host figure over a span of the monotonic clock. Without `freezer` guests boot.
    """

    run: str
    plan: Plan
    hypervisor: Hypervisor
    image: BootImage
    emit: Emit
    raw: KeepsRaw
    host_shell: Callable[[], Shell]
    host_mean: Callable[[str, float, float], float]
    connect: Connect = SshShell.connect
    freezer: Freezer | None = None


class CellRun:
    """Runs one cell once. `run` always cleans up and always says CellEnded."""

    def __init__(self, plan: CellPlan, around: CellSurroundings) -> None:
        self.plan = plan
        self._around = around
        self._emit = around.emit
        self._guests = GuestSet(around.run, plan, around.hypervisor, around.image, self._on_guest, around.connect)
        self._slots: list[Slot] = []
        self._proofs: list[CacheProof] = []
        self._contention: Contention | None = None
        self._skew: StartSkew | None = None
        self._noise = HostNoise(math.nan, math.nan)
        self._reasons: list[str] = []
        self._outcomes: list[Outcome] = []
        self._wall_seconds: float | None = None
        self._provision_seconds: float | None = None
        self._began = time.monotonic()
        self._how = "cold"
        self._snapshots: dict[str, Snapshot] = {}

    async def run(self) -> Outcome:
        """The cell's outcome. Raises CancelledError, after clean-up, when the run is stopped."""
        self._emit(
            CellStarted(
                cell=self.plan.index, axes=self.plan.axes, repeat=self.plan.repeat, guests=len(self.plan.guests)
            )
        )
        self._began = time.monotonic()
        try:
            await self._measure()
        except asyncio.CancelledError:
            self._end_as(Outcome.ABORTED, "stopped")
            for slot in self._slots:
                if slot.finished is None:
                    slot.say_ended(Outcome.ABORTED)
            self._keep_raw()
            raise
        except VmlabError as error:
            self._end_as(Outcome.FAILED, str(error))
        finally:
            await asyncio.shield(self._clean_up())
            self._say_ended()
        return worst(self._outcomes)

    async def _measure(self) -> None:
        freezer = self._around.freezer if self.plan.guests else None
        if freezer is None:
            with self._phase(Phase.PROVISION):
                await self._guests.boot()
            await self._prepare_and_execute(staged=False)
            return
        self._how = "restored"
        try:
            await self._from_frozen(freezer)
        except SnapshotError as error:
            freezer.discard(self._snapshots, str(error))
            await self._from_frozen(freezer)

    async def _from_frozen(self, freezer: Freezer) -> None:
        async with freezer.frozen(self.plan, self._guests.specs) as self._snapshots:
            self._began = time.monotonic()
            with self._phase(Phase.PROVISION):
                await self._guests.restore({key: one.folder for key, one in self._snapshots.items()})
            await self._prepare_and_execute(staged=True)

    async def _prepare_and_execute(self, *, staged: bool) -> None:
        with self._phase(Phase.PREPARE):
            await self._prepare(staged=staged)
        self._provision_seconds = time.monotonic() - self._began
        await self._execute()
        with self._phase(Phase.COLLECT):
            await self._collect()

    async def _prepare(self, *, staged: bool) -> None:
        self._slots = [self._slot(index) for index in range(len(self.plan.workloads))]
        if not staged:
            await together(slot.stage() for slot in self._slots)
        await together(
            [
                *(slot.make_ready() for slot in self._slots),
                *(self._drop_caches(guest) for guest in self.plan.guests),
                self._prove_cache(),
            ]
        )
        await forget_pages(Path(proof.file) for proof in self._proofs)

    async def _drop_caches(self, guest: GuestPlan) -> None:
        """Empty one guest's caches as soon as nothing more is asked of it."""
        for slot in self._slots:
            if guest.key in (slot.plan.source, slot.plan.target):
                await slot.ready.wait()
        await self._guests.drop_caches(guest)

    async def _prove_cache(self) -> None:
        self._proofs = await self._guests.prove_cache()
        for proof in self._proofs:
            self._emit(CacheProved(cell=self.plan.index, **asdict(proof)))

    def _slot(self, index: int) -> Slot:
        plan = self.plan.workloads[index]
        site = Site(
            workload=plan.name,
            tile=plan.tile,
            cell=self.plan.index,
            seed=self._around.plan.seed,
            source=self._shell(plan.source),
            target=None if plan.target is None else self._shell(plan.target),
        )
        return Slot(self.plan.index, plan, kinds()[plan.kind](plan.params), site, self._emit)

    def _shell(self, key: str) -> Shell:
        return self._around.host_shell() if key == "host" else self._guests.shells[key]

    async def _execute(self) -> None:
        start = await start_together(self._slots)
        self._contention = Contention.of(self.plan, self._around.hypervisor)
        following = [asyncio.ensure_future(slot.execute(start.lead)) for slot in self._slots]
        try:
            await start.moment()
            began = time.monotonic()
            with self._phase(Phase.EXECUTE):
                await self._contention.measure(following)
                await asyncio.gather(*following)
            self._noise = self._host_noise(began, time.monotonic())
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
        self._skew = start.skew(self._slots)
        ends = [s.started.host_wall + s.finished.seconds for s in self._slots if s.started and s.finished]
        if ends and len(ends) == len(self._slots):
            self._wall_seconds = max(ends) - start.host_wall

    def _host_noise(self, since: float, until: float) -> HostNoise:
        mean = self._around.host_mean
        return HostNoise(mean("cpu_outside_lab_percent", since, until), mean("cpu_steal_percent", since, until))

    async def _collect(self) -> None:
        await asyncio.gather(*(slot.collect() for slot in self._slots))
        for slot in self._slots:
            slot.say_ended()
            self._take_figures(slot)
            if slot.error is not None:
                self._end_as(Outcome.FAILED, f"{slot.label}: {slot.error}")
        if self._contention is not None and all(slot.error is None for slot in self._slots):
            for measurement in self._contention.measurements(self._slots):
                self._emit(MeasurementTaken(cell=self.plan.index, **asdict(measurement)))
        self._keep_raw()
        limits = self._around.plan.scenario.limits
        if (told := self._noise.notice(self._wall_seconds)) is not None:
            self._emit(Notice(level="warning", text=f"cell {self.plan.index}: {told}"))
        for reason in broken_rules(limits, self._slots, self._proofs, self._skew, self._noise):
            self._end_as(Outcome.INVALID, reason)

    def _take_figures(self, slot: Slot) -> None:
        for reading in slot.collected.readings if slot.collected else ():
            self._emit(
                MeasurementTaken(
                    cell=self.plan.index,
                    workload=slot.plan.name,
                    tile=slot.plan.tile,
                    guest=slot.site.source.name,
                    metric=reading.metric,
                    value=reading.value,
                    unit=reading.unit,
                )
            )

    def _keep_raw(self) -> None:
        for slot in self._slots:
            for name, text in slot.raw().items():
                output = RawOutput(slot.plan.name, slot.plan.tile, slot.site.source.name, name, text)
                self._around.raw.raw(self.plan.index, output)

    async def _clean_up(self) -> None:
        with self._phase(Phase.CLEAN_UP):
            try:
                async with asyncio.timeout(_CLEAN_UP_SECONDS):
                    for slot in self._slots:
                        await slot.close()
                        for note in slot.notes:
                            self._emit(Notice(level="warning", text=note))
                    await self._guests.destroy()
            except TimeoutError:
                self._end_as(Outcome.FAILED, f"clean-up took longer than {_CLEAN_UP_SECONDS:.0f} s")
            except (VmlabError, DeadlineExceeded) as error:
                self._end_as(Outcome.FAILED, f"clean-up: {error}")

    def _end_as(self, outcome: Outcome, reason: str) -> None:
        self._outcomes.append(outcome)
        self._reasons.append(reason)

    def _say_ended(self) -> None:
        self._emit(
            CellEnded(
                cell=self.plan.index,
                outcome=worst(self._outcomes),
                reasons=list(self._reasons),
                wall_seconds=self._wall_seconds,
                start_skew_ms=None if self._skew is None else self._skew.seconds * 1e3,
                skew_uncertainty_ms=None if self._skew is None else self._skew.uncertainty * 1e3,
                provision={
                    "how": self._how,
                    "seconds": self._provision_seconds,
                    "guests": len(self.plan.guests),
                    "snapshots": {key: one.sha256 for key, one in self._snapshots.items()},
                },
            )
        )

    def _on_guest(self, guest: GuestPlan, state: str) -> None:
        self._emit(
            GuestStateChanged(
                cell=self.plan.index, tile=guest.tile, guest=guest.guest, role="+".join(guest.roles), state=state
            )
        )

    @contextmanager
    def _phase(self, phase: Phase) -> Iterator[None]:
        began = time.monotonic()
        self._emit(PhaseStarted(cell=self.plan.index, phase=phase))
        try:
            yield
        finally:
            self._emit(PhaseEnded(cell=self.plan.index, phase=phase, seconds=time.monotonic() - began))
