"""A run of a fleet on its controller: hosts join, cells are placed, break off, are placed anew, and are recorded."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Protocol

from vmlab.analysis.record.fleet_hosts import common_facts, decisive, differences
from vmlab.fleet.engine import Engine
from vmlab.fleet.fleet_host import FleetHost
from vmlab.fleet.hosts_file import FleetRequest
from vmlab.fleet.link import HostLost
from vmlab.fleet.placed_units import CellBook, Unit
from vmlab.lab.process.run_ending import CODES, Verdict, run_outcome
from vmlab.model.axes import axes_words, repeat_words
from vmlab.model.cell_event import CellEnded, CellStarted
from vmlab.model.errors import ExitCode, StoreError, VmlabError, in_one_line
from vmlab.model.event import (
    CellWithdrawn,
    Event,
    HostLeftOut,
    HostProbed,
    Notice,
)
from vmlab.model.run import Outcome
from vmlab.plan.cell_settings import settings_of
from vmlab.plan.terms import CellPlan
from vmlab.store.writer import FleetWriter, Source

MOST_FAILURES = 2
"""A host that failed so often is left out."""
_AGAIN_SECONDS = 1.0


class Places(Protocol):
    """Where units are placed: the hosts that are here."""

    async def open_host(self, host: str) -> None:
        """A host takes units from now on."""

    async def close_host(self, host: str) -> None:
        """A host takes no more units; what runs there has broken off."""


class FleetRun:
    """Runs all units on the hosts, each cell once, and records why where that was not possible."""

    def __init__(
        self,
        units: Sequence[Unit],
        writer: FleetWriter,
        book: CellBook,
        asked: FleetRequest,
        before: Mapping[str, Source],
    ) -> None:
        """`before` are the hosts' runs of a controller that was killed."""
        self._units = {unit.number: unit for unit in units}
        self._hosts: dict[str, FleetHost] = {}
        self._writer = writer
        self._book = book
        self._asked = asked
        self._before = dict(before)
        # One host at a time measures a cell, in the order in which they became free.
        self._turn = asyncio.Lock() if asked.in_turn else nullcontext()
        self._failures: Counter[str] = Counter()
        self._left_out: dict[str, str] = {}
        self._settled: set[int] = set()
        self._over = asyncio.Event()
        self._trouble: BaseException | None = None
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        self._wanted: dict[int, str | None] = {}

    def add_host(self, host: FleetHost) -> None:
        """Make a host known, before `run`."""
        self._hosts[host.name] = host

    def on_event(self, host: str, event: Event) -> None:
        """Something has happened to a cell on a host, and is recorded."""
        if isinstance(event, CellEnded):
            self._book.end(event.cell, host, Outcome(event.outcome))

    async def run(self) -> Verdict:
        """Measure everything; the verdict. Cancel it to stop: what was measured is kept."""
        for cell, name in self._book.placed.items():
            # What hosts still measure, or have measured meanwhile, for a controller that was killed.
            if name in self._hosts:
                self._hosts[name].expect(cell)
        try:
            why = await self._begun()
            if why:
                return Verdict(Outcome.FAILED, ExitCode.REFUSED, why)
            await self._placed()
        except BaseException:
            await self._finished(stop=True)
            raise
        return self._verdict(await self._finished(stop=False))

    async def _begun(self) -> str:
        """Have every host join; why nothing can be measured, if so."""
        probed = dict(zip(self._hosts, await asyncio.gather(*map(self._first_join, self._hosts)), strict=True))
        known = {name: one for name, one in probed.items() if one is not None}
        if not known:
            return "no host can be used: " + "; ".join(self._left_out.values())
        found = differences({name: decisive(one.accelerator, one.host) for name, one in known.items()})
        if found and self._asked.spread and not self._asked.unlike:
            return f"the hosts are not alike: {'; '.join(found)} (--unlike spreads blocks over them all the same)"
        accelerators = {one.accelerator for one in known.values()}
        accelerator = "tcg" if "tcg" in accelerators else accelerators.pop()
        self._writer.append(
            HostProbed(accelerator=accelerator, host=common_facts([one.host for one in known.values()]))
        )
        return ""

    async def _first_join(self, name: str) -> HostProbed | None:
        host, before = self._hosts[name], self._before.pop(name, None)
        try:
            try:
                return await host.join(before)
            except HostLost as error:
                self._note_failure(name, str(error))
                await asyncio.sleep(_AGAIN_SECONDS)
                return await host.join(before)
        except (VmlabError, OSError) as error:
            self._leave_out(name, in_one_line(error))
            return None

    async def _placed(self) -> None:
        """Place all units and wait until each of them is settled."""
        async with self._places() as places:
            serving = [
                asyncio.create_task(self._served(name, places)) for name in self._hosts if name not in self._left_out
            ]
            for name in list(self._left_out):
                self._abandon_units_of(name)
            try:
                await self._over.wait()
            finally:
                for task in (*serving, *self._tasks.values()):
                    task.cancel()
                await asyncio.gather(*serving, *self._tasks.values(), return_exceptions=True)
        if self._trouble is not None:
            raise self._trouble

    @asynccontextmanager
    async def _places(self) -> AsyncIterator[Places]:
        """Where units are placed, with all of them submitted."""
        async with Engine(self._measure) as self._engine:
            for unit in self._units.values():
                self._submit(unit, unit.host or self._begun_by(unit))
            yield self._engine

    def _submit(self, unit: Unit, host: str | None) -> None:
        self._wanted[unit.number] = host
        task = self._tasks[unit.number] = self._engine.submit(unit.number, host)
        task.add_done_callback(partial(self._engine_ended, unit.number))

    def _begun_by(self, unit: Unit) -> str | None:
        """The host that began a block for a controller that was killed."""
        begun = [self._book.placed.get(cell.index) or self._book.ended.get(cell.index) for cell in unit.cells]
        return next((name for name in reversed(begun) if name and name not in self._left_out), None)

    async def _served(self, name: str, places: Places) -> None:
        """Keep a host among those that take units, until it has failed too often."""
        host = self._hosts[name]
        try:
            while True:
                await places.open_host(name)
                why = await asyncio.shield(host.gone)
                await places.close_host(name)
                await host.leave()
                while True:
                    if self._failures[name] + 1 >= MOST_FAILURES:
                        self._leave_out(name, why)
                        return
                    self._note_failure(name, why)
                    try:
                        await self._joined_anew(host)
                        break
                    except (VmlabError, OSError) as error:
                        why = in_one_line(error)
        except (StoreError, Exception) as error:  # noqa: BLE001 - whatever ends a host's care ends the run, with the error
            self._fail(error)

    def _note_failure(self, name: str, why: str) -> None:
        self._failures[name] += 1
        self._writer.append(Notice(level="warning", text=f"host {name} failed: {why}; it is tried once more"))

    async def _joined_anew(self, host: FleetHost) -> None:
        """Join again; a host that boots is waited for as long as a line that was cut."""
        loop = asyncio.get_running_loop()
        end, before = loop.time() + self._asked.reconnect, host.source
        while True:
            try:
                await host.stop_before(before)
                await host.join()
                return
            except HostLost:
                if loop.time() > end:
                    raise
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _measure(self, number: int, name: str) -> None:
        """Have a unit measured on a host, for the engine."""
        try:
            await self._measured(self._units[number], self._hosts[name])
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._fail(error)
            raise

    async def _measured(self, unit: Unit, host: FleetHost) -> None:
        if unit.number in self._settled:
            # The engine keeps a result where it was made, and has it made again when that worker goes.
            return
        for number in self._book.apart(unit, host.name):
            self._withdraw(number, self._book.ended[number], f"its block is measured as a whole on {host.name}")
        for cell in unit.cells:
            async with self._turn:
                await self._measured_cell(cell, host)
        self._settle(unit.number)

    async def _measured_cell(self, cell: CellPlan, host: FleetHost) -> None:
        if cell.index in self._book.ended:
            return
        was = self._book.placed.get(cell.index)
        if was is not None and not (was == host.name and host.goes_on):
            self._withdraw(cell.index, was, "its host's run is over")
            was = None
        if was is None:
            if not self._book.may_begin(cell.index):
                self._give_up(cell, "it broke off twice")
                return
            host.expect(cell.index)
            host.place(cell.index)
            self._book.place(cell.index, host.name)
        try:
            await host.measure(cell.index)
        except HostLost as error:
            self._withdraw(cell.index, host.name, str(error))
            # The engine takes it from here when the host is closed.
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            # The engine may close the host before the cell hears that it is gone.
            if host.gone.done() and cell.index not in self._book.ended:
                self._withdraw(cell.index, host.name, host.gone.result())
            raise

    def _withdraw(self, cell: int, host: str, reason: str) -> None:
        self._writer.withdraw(CellWithdrawn(cell=cell, name=host, reason=reason))
        self._book.withdraw(cell)

    def _give_up(self, cell: CellPlan, reason: str) -> None:
        """Record a cell that no host runs to its end."""
        if cell.index in self._book.ended:
            return
        axes, settings = dict(cell.axes), settings_of(cell)
        self._writer.append(CellStarted(cell=cell.index, axes=axes, repeat=cell.repeat, guests=0, settings=settings))
        outcome, reasons = str(Outcome.ABORTED), [reason]
        self._writer.append(
            CellEnded(cell=cell.index, outcome=outcome, reasons=reasons, wall_seconds=None, start_skew_ms=None)
        )
        self._book.end(cell.index, "", Outcome.ABORTED)

    def _leave_out(self, name: str, reason: str) -> None:
        self._left_out[name] = reason
        self._writer.append(HostLeftOut(name=name, reason=reason))
        if self._tasks:
            self._abandon_units_of(name)

    def _abandon_units_of(self, name: str) -> None:
        """Give up the units that only this host may run; all of them where no host is left."""
        none_left = len(self._left_out) == len(self._hosts)
        for unit in self._units.values():
            if unit.number in self._settled or not (none_left or self._wanted[unit.number] == name):
                continue
            if unit.host is None and not none_left:
                self._tasks[unit.number].cancel()
                self._submit(unit, None)
            else:
                for cell in unit.cells:
                    self._give_up(cell, f"host {name} was left out: {self._left_out[name]}")
                self._tasks[unit.number].cancel()
                self._settle(unit.number)

    def _settle(self, number: int) -> None:
        self._settled.add(number)
        if len(self._settled) == len(self._units):
            self._over.set()

    def _engine_ended(self, number: int, task: asyncio.Task[Any]) -> None:
        if task.cancelled() or self._over.is_set():
            return
        if (error := task.exception()) is not None and number not in self._settled:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._trouble = self._trouble or error
        self._over.set()

    async def _finished(self, *, stop: bool) -> list[str]:
        """Let all hosts end their runs; what is wrong with any."""
        found = await asyncio.gather(*(host.finish(stop=stop) for host in self._hosts.values()))
        return [why for name, why in zip(self._hosts, found, strict=True) if why and name not in self._left_out]

    def _verdict(self, left: Sequence[str]) -> Verdict:
        cells = {cell.index: cell for unit in self._units.values() for cell in unit.cells}
        outcome, lacking = run_outcome([(cells[index], outcome) for index, outcome in self._book.outcomes.items()])
        aborted = [cells[index] for index, one in sorted(self._book.outcomes.items()) if one is Outcome.ABORTED]
        reasons = [*filter(None, [lacking]), *left]
        if aborted:
            first = aborted[0]
            words = f"{axes_words(first.axes)}, {repeat_words(first.repeat)}"
            reasons.insert(0, f"{len(aborted)} cells have no values, the first of them {words}")
            reasons[1:1] = [f"host {name} was left out: {why}" for name, why in self._left_out.items()]
        code = CODES.get(outcome, ExitCode.FAILED)
        if left and code == ExitCode.PASSED:
            code = ExitCode.CLEANUP_INCOMPLETE
        return Verdict(outcome, code, "; ".join(reasons))
