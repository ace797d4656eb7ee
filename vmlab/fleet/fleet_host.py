"""A host as the controller has it: its line, its own run with held cells, and what comes of them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from vmlab.fleet.asset_files import AssetFiles
from vmlab.fleet.clock import ClockOffset
from vmlab.fleet.host_answers import Cleaned, Condition, Done, RawOfCell, Rows, Started
from vmlab.fleet.hosts_file import FleetRequest, HostEntry
from vmlab.fleet.link import HostLink, HostLost, hung_up_after
from vmlab.fleet.taking import Taking
from vmlab.model.cell_event import CellEnded
from vmlab.model.errors import CommandFailed, RefusedError, UsageError, VmlabError
from vmlab.model.event import (
    CellPlaced,
    Event,
    HostJoined,
    HostProbed,
    Notice,
)
from vmlab.store.writer import FleetWriter, Source

A = TypeVar("A", bound=BaseModel)
Connect = Callable[[str, HostEntry], Awaitable[HostLink]]
_WAIT_SECONDS = 1.0
"""How long the host holds a question for rows that are new."""
_AGAIN_SECONDS = 0.5
_RELEASED_SECONDS = 30.0
_PROBE_SECONDS = 900.0
_STOP_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class HostRequest:
    """What a host's own run is asked to be: the scenario, its overrides, the cells that it must plan, and the assets
    that these need, which a host that lacks them is sent.
    """

    source: str
    text: str
    overrides: dict[str, Any]
    cells: list[tuple[int, dict[str, Any], int]]
    asked: FleetRequest
    assets: AssetFiles


@dataclass(eq=False)
class FleetHost:
    """One host. `join` it, have cells measured, `finish` it; once `gone` says why, it must join anew."""

    name: str
    _entry: HostEntry
    _request: HostRequest
    _writer: FleetWriter
    _on_event: Callable[[str, Event], None]
    """Called with this host's name and each event of its cells, once it is recorded."""
    _connect: Connect = HostLink.open
    goes_on: bool = field(default=False, init=False)
    """Whether its run was begun for a controller that was killed since."""
    _link: HostLink | None = field(default=None, init=False)
    _source: Source | None = field(default=None, init=False)
    _taking: Taking | None = field(default=None, init=False)
    _feeding: asyncio.Task[None] | None = field(default=None, init=False)
    _awaited: dict[int, asyncio.Future[CellEnded]] = field(default_factory=dict, init=False)
    _finishing: bool = field(default=False, init=False)
    _kept: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done once no further cell can be had from it; why, and empty where it finished."""

    async def join(self, before: Source | None = None) -> HostProbed:
        """Connect, and go on with the run `before` if that still lives, else start one; what the host is.

        Raises HostLost, RefusedError, CommandFailed.
        """
        self.gone = asyncio.get_running_loop().create_future()
        self._finishing = False
        link = self._link = await self._connect(self.name, self._entry)
        try:
            offset = await link.offset()
            self.goes_on = before is not None and await self._goes_on(link, before)
            if before is not None and self.goes_on:
                source = before
            else:
                await link.ask(Cleaned, "clean", deadline=_STOP_SECONDS)
                started = await self._start(link)
                source = self._writer.add_source(self.name, started.run, offset.wall, offset.mono)
            self._source = source
            self._taking = self._new_taking(source)
            if source is before:
                # What it said of itself stands before the rows that were taken.
                first = await _rows(link, source.run, self._taking, events=0)
                said = (row.event() for row in first.events)
                self._taking.probed = next((one for one in said if isinstance(one, HostProbed)), None)
            self._feeding = asyncio.create_task(self._feed())
            probed = await self._probed()
        except BaseException:
            await self.leave()
            raise
        self._emit(
            HostJoined(
                name=self.name,
                run=source.run,
                accelerator=probed.accelerator,
                facts=probed.host,
                offset_ms=offset.ahead_ms,
                uncertainty_ms=offset.uncertainty_ms,
            )
        )
        return probed

    def _new_taking(self, source: Source) -> Taking:
        return Taking(self._writer, source, self._awaited.__contains__, self._raw)

    async def _goes_on(self, link: HostLink, before: Source) -> bool:
        """Whether the run `before` still lives and takes cells. One that does not is taken to its end, and removed."""
        taking = self._new_taking(before)
        try:
            rows = await _rows(link, before.run, taking)
        except UsageError:
            return False
        if rows.alive:
            return True
        self._source = before
        while rows.events or rows.samples:
            for event in await taking.take(rows):
                self._heard(event)
            rows = await _rows(link, before.run, taking)
        await link.ask(Cleaned, "clean", deadline=_STOP_SECONDS)
        with contextlib.suppress(RefusedError, UsageError, CommandFailed):
            await link.ask(Done, "forget", run=before.run)
        return False

    async def _start(self, link: HostLink) -> Started:
        request = self._request
        await request.assets.send_lacking(link, lambda text: self._emit(Notice(level="info", text=text)))
        started = await link.ask(
            Started,
            "start",
            source=request.source,
            text=request.text,
            overrides=request.overrides,
            patience=request.asked.hold,
            assets=request.assets.described,
            deadline=300.0,
        )
        planned = [(cell.index, cell.axes, cell.repeat) for cell in started.cells]
        if planned != request.cells:
            await link.ask(Done, "stop", run=started.run, deadline=_STOP_SECONDS)
            raise RefusedError(f"host {self.name} plans other cells: a point is absent there, or not here")
        return started

    async def _probed(self) -> HostProbed:
        assert self._taking is not None
        end = time.monotonic() + _PROBE_SECONDS
        while self._taking.probed is None:
            if self.gone.done():
                raise CommandFailed(f"host {self.name}: {self.gone.result()}")
            if time.monotonic() > end:
                raise CommandFailed(f"host {self.name} was not ready within {_PROBE_SECONDS:.0f} s")
            await asyncio.sleep(0.05)
        return self._taking.probed

    def expect(self, cell: int) -> None:
        """Take what comes of this cell, which was given to the host before."""
        self._awaited.setdefault(cell, asyncio.get_running_loop().create_future())

    async def measure(self, cell: int) -> CellEnded:
        """Have a cell measured, and taken with all that belongs to it. Raises HostLost."""
        if self.gone.done():
            raise HostLost(self.gone.result() or f"host {self.name} has finished")
        self.expect(cell)
        heard = self._awaited[cell]
        try:
            await self._released(cell)
            both: list[asyncio.Future[Any]] = [heard, self.gone]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if heard.done():
                return heard.result()
            raise HostLost(self.gone.result())
        finally:
            self._awaited.pop(cell, None)

    async def _released(self, cell: int) -> None:
        """Release a cell; after a cut, the feed releases it once more when the line is back."""
        while not self.gone.done():
            try:
                await self._release(cell, deadline=90.0)
            except HostLost:
                return
            except VmlabError:
                # Its run has just ended, and the feed says how; or its runner was too busy to answer.
                heard: list[asyncio.Future[Any]] = [self.gone, self._awaited[cell]]
                await asyncio.wait(heard, timeout=_RELEASED_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if not self._awaited[cell].done():
                    continue
            return

    async def _release(self, cell: int, **how: float) -> None:
        await self._ask(Done, "release", cell=cell, together=self._request.asked.together, **how)

    async def offset(self) -> ClockOffset:
        """How far its clocks are from those here, now. Raises HostLost."""
        assert self._link is not None
        return await self._link.offset()

    async def start_at(self, cell: int, mono: float) -> None:
        """Give the moment at which a cell starts, by the host's monotonic clock. Raises HostLost and what it raised."""
        await self._ask(Done, "start-at", cell=cell, mono=mono)

    async def call_off(self, cell: int, reason: str) -> None:
        """End a cell that runs there as failed, unless it has ended, or no more comes from this host."""
        while cell in self._awaited and not self.gone.done():
            # While a line is cut, another one is tried; and a cell that was just released begins a moment later.
            with contextlib.suppress(VmlabError):
                await self._ask(Done, "call-off", cell=cell, reason=reason[:1000])
                return
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _ask(self, answer: type[A], ask: str, **question: Any) -> A:
        """Ask about its run, over its line."""
        assert self._link is not None and self._source is not None
        return await self._link.ask(answer, ask, run=self._source.run, **question)

    async def _raw(self, cell: int) -> RawOfCell:
        return await self._ask(RawOfCell, "raw", cell=cell)

    async def _feed(self) -> None:
        """Take what is recorded, until the run is over or the line stays cut."""
        assert self._taking is not None and self._source is not None
        why = ""
        try:
            while True:
                try:
                    if await self._more():
                        break
                except HostLost as error:
                    why = str(error)
                    if not await self._reconnected(why):
                        break
                    why = ""
            ended = self._taking.ended
            if not why and (not self._finishing or ended is None or ended.exit_code == 5):
                why = "its run ended" + (f": {ended.reason}" if ended is not None and ended.reason else "")
        except (VmlabError, OSError) as error:
            why = str(error)
        if not self.gone.done():
            self.gone.set_result(why)

    async def _more(self) -> bool:
        """Take what is new; whether the run is over and all of it was taken."""
        assert self._taking is not None and self._source is not None and self._link is not None
        taking = self._taking
        if time.monotonic() - self._kept > self._request.asked.hold / 4:
            self._kept = time.monotonic()
            # A runner that is too busy to answer is kept by the next one, long before it gives up.
            with contextlib.suppress(CommandFailed, UsageError):
                await self._ask(Done, "keep")
        rows = await _rows(self._link, self._source.run, taking, wait=min(_WAIT_SECONDS, self._request.asked.hold / 8))
        for event in await taking.take(rows):
            self._heard(event)
        return not rows.alive and not rows.events and not rows.samples

    def _heard(self, event: Event) -> None:
        self._on_event(self.name, event)
        if isinstance(event, CellEnded):
            heard = self._awaited.get(event.cell)
            if heard is not None and not heard.done():
                heard.set_result(event)

    async def _reconnected(self, why: str) -> bool:
        """Try to have the line again, for as long as it may be cut."""
        self._emit(Notice(level="warning", text=f"{why}; tried again for {self._request.asked.reconnect:.0f} s"))
        end = time.monotonic() + self._request.asked.reconnect
        while time.monotonic() < end:
            try:
                async with asyncio.timeout(max(1.0, end - time.monotonic())):
                    self._link = await self._connect(self.name, self._entry)
                    for cell in list(self._awaited):
                        await self._release(cell)
            except (HostLost, CommandFailed, UsageError, TimeoutError):
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            self._emit(Notice(level="info", text=f"host {self.name} is back, and its run goes on"))
            return True
        return False

    def _emit(self, event: Event) -> None:
        self._writer.append(event)

    def place(self, cell: int) -> None:
        """Record that a cell is given to this host."""
        self._emit(CellPlaced(cell=cell, name=self.name))

    async def finish(self, *, stop: bool = False) -> str:
        """Let its run end, or `stop` it, take what it still records, and remove it there; what is wrong."""
        if self._source is None or self._link is None or self._feeding is None:
            return ""
        self._finishing = True
        try:
            if stop:
                await self._ask(Done, "stop", deadline=_STOP_SECONDS)
            else:
                await self._ask(Done, "release")
            async with asyncio.timeout(_STOP_SECONDS):
                why = await asyncio.shield(self.gone)
            if not why or stop:
                await self._ask(Done, "forget")
            return "" if stop else why
        except (VmlabError, TimeoutError) as error:
            return str(error) or f"host {self.name} did not end its run within {_STOP_SECONDS:.0f} s"
        finally:
            await self.leave()

    async def stop_before(self, before: Source | None) -> None:
        """Stop the run that it had, if that still lives, and remove it there. Raises HostLost and RefusedError."""
        if before is None:
            return
        async with hung_up_after(await self._connect(self.name, self._entry)) as link:
            # A machine that has booted may have lost the run, or the run may be damaged: then there is nothing to stop.
            with contextlib.suppress(UsageError, CommandFailed):
                await link.ask(Done, "stop", run=before.run, deadline=_STOP_SECONDS)
                await link.ask(Cleaned, "clean", deadline=_STOP_SECONDS)
                await link.ask(Done, "forget", run=before.run)

    async def leave(self) -> None:
        """Hang up; its run ends by itself when no further cell is released."""
        if self._feeding is not None:
            self._feeding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._feeding
            self._feeding = None
        if self._link is not None:
            await self._link.close()
            self._link = None

    @property
    def source(self) -> Source | None:
        """Its run, as far as it was taken."""
        if self._source is None or self._taking is None:
            return self._source
        return next((one for one in self._writer.sources() if one.id == self._source.id), None)


async def _rows(link: HostLink, run: str, taking: Taking, *, events: int | None = None, wait: float = 0.0) -> Rows:
    """What is new in a host's run after what was taken of it; of its events, after row `events` where that is given."""
    seen = taking.seen if events is None else events
    known = max(taking.layouts, default=0)
    return await link.ask(Rows, "rows", run=run, events=seen, samples=taking.sample, layouts=known, wait=wait)


async def condition_of(link: HostLink, kinds: Sequence[str] = (), packages: Sequence[str] = ()) -> Condition:
    """What a host has, and which of these kinds of workloads, and of Debian's packages, it lacks; doctor's checks take
    some seconds.
    """
    return await link.ask(Condition, "condition", deadline=180.0, kinds=list(kinds), packages=list(packages))
