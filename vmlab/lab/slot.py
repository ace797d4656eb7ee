"""One workload of one tile, from its preparation to its figures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import cast

from vmlab.guests.channel import Launching
from vmlab.guests.held_client import ClockOffset, HeldClient, TrueStart
from vmlab.model.errors import DeadlineExceeded, GuestError, VmlabError, WorkloadError
from vmlab.model.event import Event, WorkloadEnded, WorkloadProgressed, WorkloadStarted
from vmlab.model.run import Outcome
from vmlab.model.together import together
from vmlab.plan.terms import WorkloadPlan
from vmlab.workloads.contract import AnyWorkload, Collected, Finished, Post, Site

_HOLD_SECONDS = 180.0
_PROGRESS_SECONDS = 0.5


class Slot:
    """A workload in its place. It keeps its own error, so that one failure never stops its neighbours."""

    def __init__(
        self, cell: int, plan: WorkloadPlan, workload: AnyWorkload, site: Site, emit: Callable[[Event], object]
    ):
        self.plan = plan
        self.site = site
        self.error: VmlabError | None = None
        self.finished: Finished | None = None
        self.collected: Collected | None = None
        self.notes: list[str] = []
        self.ready = asyncio.Event()
        """Set when the client waits before its exec and nothing more is asked of either side until the start."""
        self._cell = cell
        self._workload = workload
        self._emit = emit
        self._held: HeldClient | None = None
        self._shown = 0.0
        self._host_seconds = 0.0

    @property
    def label(self) -> str:
        """``tile 2 web``, for people."""
        return f"tile {self.plan.tile} {self.plan.name}"

    @property
    def started(self) -> TrueStart | None:
        """When the client really started, if it did."""
        return self._held.started if self._held else None

    async def stage(self) -> None:
        """Make ready what each side needs on its own."""
        await together(self._workload.stage(post) for post in self._posts())

    def _posts(self) -> Iterator[Post]:
        name, seed = self.plan.name, self.site.seed
        yield Post(name, "source", seed, self.site.source)
        if self.site.target is not None:
            yield Post(name, "target", seed, self.site.target)

    async def make_ready(self) -> None:
        """Make ready what needs both sides, of guests that were staged; fork the client up to its exec."""
        await together([self._workload.prepare(self.site), self._hold()])
        self.ready.set()

    async def _hold(self) -> None:
        client = self._workload.client(self.site)
        launching = cast(Launching, self.site.source)
        self._held = await HeldClient.hold(self.site.source, launching, client, _HOLD_SECONDS)

    async def measure_clock(self) -> ClockOffset:
        """The offset of the source's clock."""
        assert self._held is not None
        return await self._held.measure_clock()

    async def start_at(self, host_wall: float) -> None:
        """Broadcast the start."""
        assert self._held is not None
        await self._held.start_at(host_wall)

    async def execute(self, lead: float) -> None:
        """Follow the client to its end and let the system settle; errors are kept, not raised."""
        assert self._held is not None
        try:
            async for line in self._held.follow(self._on_start, self._held.client.deadline + lead):
                self._on_line(line)
            self.finished = self._held.finished
            self._host_seconds = time.time() - (self.started.host_wall if self.started else time.time())
            self._check_status(self.finished)
            self._show(1, 1, "", "settling", force=True)
            await self._workload.settle(self.site, self.finished)
            self._show(1, 1, "", "done", force=True)
        except VmlabError as error:
            self._fail(error)

    def _check_status(self, finished: Finished) -> None:
        if finished.status != 0:
            said = (finished.stderr.strip() or finished.stdout.strip()).splitlines()
            raise WorkloadError(
                f"{self._workload.client(self.site).argv[0]} exited with {finished.status}"
                + (f": {said[-1][:300]}" if said else "")
            )

    def _on_start(self, start: TrueStart) -> None:
        self._emit(
            WorkloadStarted(
                cell=self._cell,
                workload=self.plan.name,
                tile=self.plan.tile,
                guest=self.site.source.name,
                benchmark=self.plan.kind,
                late_ms=start.late * 1e3,
                uncertainty_ms=start.uncertainty * 1e3,
            )
        )

    def _on_line(self, line: str) -> None:
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

    async def collect(self) -> None:
        """Verify and take the figures; errors are kept, not raised."""
        if self.error is None and self.finished is not None:
            try:
                self.collected = await self._workload.collect(self.site, self.finished)
            except VmlabError as error:
                self._fail(error)

    def say_ended(self, outcome: Outcome | None = None) -> None:
        """Emit WorkloadEnded with what is known; passed or failed unless said."""
        if outcome is None:
            outcome = Outcome.PASSED if self.error is None else Outcome.FAILED
        self._emit(
            WorkloadEnded(
                cell=self._cell,
                workload=self.plan.name,
                tile=self.plan.tile,
                guest=self.site.source.name,
                outcome=outcome,
                seconds=self.finished.seconds if self.finished else 0.0,
                reason=str(self.error) if self.error else "",
            )
        )

    def clock_disagreement(self) -> float:
        """How far the source's own seconds are from the host's for the same span, as a fraction of the span.

        The end of the client is seen by the host with some lateness, so a quarter of a second is forgiven.
        """
        if self.finished is None or self._host_seconds <= 0:
            return 0.0
        apart = max(0.0, abs(self.finished.seconds - self._host_seconds) - 0.25)
        return apart / self._host_seconds

    def raw(self) -> dict[str, str]:
        """What the client printed, whatever became of it, and what `collect` kept."""
        texts = dict(self.collected.raw) if self.collected else {}
        if self.finished is not None:
            texts.setdefault("client stdout", self.finished.stdout)
            texts.setdefault("client stderr", self.finished.stderr)
        return texts

    async def close(self) -> None:
        """End the client if it still runs; a guest that has gone needs no goodbye."""
        if self._held is not None:
            try:
                async with asyncio.timeout(5):
                    await self._held.close()
            except (TimeoutError, GuestError, DeadlineExceeded) as error:
                self.notes.append(f"{self.label}: the client's channel did not close: {error}")

    def _fail(self, error: VmlabError) -> None:
        if self.error is None:
            self.error = error
