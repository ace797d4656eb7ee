"""A run whose cells have guests on two hosts: one link for each cell, two halves that wait for each other, one cell."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from vmlab.fleet.fleet_host import Ended, FleetHost
from vmlab.fleet.frame_relay import WAY, FrameRelay
from vmlab.fleet.link import HostLost
from vmlab.fleet.placed_units import CellBook, Unit
from vmlab.fleet.units_in_turn import POLL_SECONDS, TurnsRun
from vmlab.lab.provision.addresses import macs
from vmlab.model.errors import VmlabError, in_one_line
from vmlab.model.event import CellLinked, CellStarted, Event, HalfReached, HostProbed
from vmlab.model.names import BRIDGE_MAC, OTHER_BRIDGE_MAC
from vmlab.model.run import Outcome, worst
from vmlab.plan.terms import CellPlan
from vmlab.store.fleet_writer import FleetWriter, Source

_ENDED = (Outcome.FAILED, Outcome.ABORTED)


class PairRun(TurnsRun):
    """Each unit is one cell on both hosts, in turn. The first host drives the workloads."""

    def __init__(
        self,
        units: Sequence[Unit],
        writer: FleetWriter,
        book: CellBook,
        *,
        before: Mapping[str, Source] | None = None,
        reconnect: float = 60.0,
    ) -> None:
        super().__init__(units, writer, book, before=before, reconnect=reconnect)
        self._attempts = 0
        self._started = asyncio.Event()
        self._passing: set[asyncio.Task[None]] = set()

    @property
    def _pair(self) -> tuple[FleetHost, FleetHost]:
        first, second = self._hosts.values()
        return first, second

    async def _first_join(self, name: str) -> HostProbed | None:
        """As any host; what a controller that was killed had begun is over, as its link was cut with it."""
        if (before := self._before.pop(name, None)) is not None:
            try:
                await self._hosts[name].stop_before(before)
            except (VmlabError, OSError) as error:
                self._leave_out(name, in_one_line(error))
                return None
        return await super()._first_join(name)

    def _expect_placed(self) -> None:
        for cell, name in list(self._book.placed.items()):
            self._withdraw(cell, name, "the controller was gone, and the link with it")

    def on_event(self, host: str, event: Event) -> None:
        """Something has happened to a cell on a host, and is recorded."""
        match event:
            case CellStarted():
                self._started.set()
            case HalfReached():
                other = next(one for one in self._pair if one.name != host)
                task = asyncio.create_task(self._passed_on(other, event))
                self._passing.add(task)
                task.add_done_callback(self._passing.discard)

    async def _passed_on(self, other: FleetHost, event: HalfReached) -> None:
        """Tell the other host. Where its line is cut, so is the link, and the cell ends with that."""
        try:
            await other.proceed(event.cell, event.stage)
        except (VmlabError, OSError) as error:
            if not other.gone.done():
                await other.call_off(event.cell, in_one_line(error))

    async def run_unit(self, unit: Unit) -> None:
        """Have its cell measured."""
        (cell,) = unit.cells
        while cell.index not in self._book.ended:
            await self._tried(cell)

    async def _tried(self, cell: CellPlan) -> None:
        """Have a cell measured; one that broke off is withdrawn, and is placed anew once."""
        if not await self.all_here():
            self._give_up(cell, self.left_out_words)
        elif not self._book.may_begin(cell.index):
            self._give_up(cell, "it broke off twice")
        else:
            here, _ = self._pair
            host = here.name
            self._book.place(cell.index, host)
            here.place(cell.index)
            ended, why = await self._linked(cell)
            if why:
                self._withdraw(cell.index, host, why)
            else:
                self._book.end(cell.index, host, worst(Outcome(one.outcome) for one in ended))

    async def _linked(self, cell: CellPlan) -> tuple[list[Ended], str]:
        """Join both hosts and have a cell measured: how it ended on each, and why it broke off, if so."""
        relay: FrameRelay | None = None
        try:
            relay = await self._relay(cell)
            return await self._measured_over(relay, cell)
        except (VmlabError, OSError) as error:
            return [], in_one_line(error)
        finally:
            if relay is not None:
                await relay.close()

    async def _relay(self, cell: CellPlan) -> FrameRelay:
        """The link of one cell, which frames of its guests and of both runners pass. Raises HostLost, CommandFailed."""
        cards = macs(cell.guests)
        near = [BRIDGE_MAC, *(cards[guest.key] for guest in cell.guests if not guest.other)]
        far = [OTHER_BRIDGE_MAC, *(cards[guest.key] for guest in cell.guests if guest.other)]
        here, other = self._pair
        ends = await asyncio.gather(here.link_end(near, far), other.link_end(far, near))
        relay = FrameRelay({here.name: ends[0], other.name: ends[1]})
        try:
            await relay.begin()
        except BaseException:
            await relay.close()
            raise
        return relay

    async def _measured_over(self, relay: FrameRelay, cell: CellPlan) -> tuple[list[Ended], str]:
        here, other = self._pair
        self._attempts += 1
        self._started.clear()
        given = {"secret": secrets.token_hex(32), "attempt": self._attempts}
        halves = [asyncio.create_task(here.measure(cell.index, **given))]
        watching = asyncio.create_task(self._watched(relay, halves, cell))
        begun = asyncio.create_task(self._started.wait())
        try:
            # What the other host records of a cell belongs to one that has begun.
            first: list[asyncio.Future[Any]] = [*halves, begun, relay.cut]
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if not halves[0].done() and not relay.cut.done():
                self._writer.append(self._said(cell))
                halves.append(asyncio.create_task(other.measure(cell.index, **given)))
            await asyncio.wait(halves)
            lost = [str(one.exception()) for one in halves if isinstance(one.exception(), HostLost)]
            if relay.cut.done():
                lost.insert(0, relay.cut.result())
            if lost:
                return [], "; ".join(dict.fromkeys(lost))
            return [one.result() for one in halves], ""
        finally:
            for task in (watching, begun, *halves):
                task.cancel()
            await asyncio.gather(watching, begun, *halves, return_exceptions=True)

    async def _watched(self, relay: FrameRelay, halves: Sequence[asyncio.Task[Ended]], cell: CellPlan) -> None:
        """End both halves where the link is cut, and the other one where one fails."""
        while True:
            why = relay.cut.result() if relay.cut.done() else ""
            for host, half in zip(self._pair, halves, strict=False):
                if not why and half.done() and (failed := _failed(half)):
                    why = f"host {host.name} failed: {failed}"
            if why:
                # A host without a line is tried for as long as it may come back.
                begun = [host for host, _ in zip(self._pair, halves, strict=False)]
                await asyncio.gather(*(host.call_off(cell.index, f"called off: {why}") for host in begun))
            await asyncio.sleep(POLL_SECONDS)

    def _said(self, cell: CellPlan) -> CellLinked:
        here, other = (host.name for host in self._pair)
        hosts = {guest.key: other if guest.other else here for guest in cell.guests}
        return CellLinked(cell=cell.index, here=here, other=other, hosts=hosts, way=WAY)


def _failed(half: asyncio.Task[Ended]) -> str:
    """Why a half has failed; empty where it has not."""
    if half.cancelled():
        return ""
    if (error := half.exception()) is not None:
        return str(error)
    ended = half.result()
    failed = Outcome(ended.outcome) in _ENDED
    return ("; ".join(ended.reasons) or "it gave no reason") if failed else ""
