"""A run whose cells all hosts of a fleet run together: one common start, and one outcome for all."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from vmlab.fleet.clock import ClockOffset, Skew, Start, skew_of
from vmlab.fleet.fleet_host import FleetHost
from vmlab.fleet.fleet_run import FleetRun, Places
from vmlab.fleet.hosts_file import FleetRequest
from vmlab.fleet.link import HostLost
from vmlab.fleet.placed_units import CellBook, Unit
from vmlab.lab.run.repeating import Repeating
from vmlab.model.cell_event import CellEnded, WorkloadStarted
from vmlab.model.errors import CommandFailed, VmlabError, in_one_line
from vmlab.model.event import (
    CommonStartSet,
    Event,
    StartAwaited,
    TogetherEnded,
)
from vmlab.model.names import HOST_PLACE
from vmlab.model.run import Outcome, worst
from vmlab.plan.terms import CellPlan, Plan
from vmlab.store.writer import FleetWriter, Source

_MARGIN_SECONDS = 2.0
"""What hosts have to hear of the moment, and to read their counters before it, beyond what each says it needs."""
_GONE_SECONDS = 60.0
_POLL_SECONDS = 0.05


class TogetherRun(FleetRun):
    """Each unit is one cell on every host. They are run in turn, and each begins when all hosts are here."""

    def __init__(
        self,
        units: Sequence[Unit],
        writer: FleetWriter,
        book: CellBook,
        asked: FleetRequest,
        before: Mapping[str, Source],
        plan: Plan,
        recorded: Iterable[Event],
    ) -> None:
        """`recorded` is what a controller that was killed has recorded."""
        super().__init__(units, writer, book, asked, before)
        self._here: set[str] = set()
        self._most_skew = plan.scenario.limits.start_skew
        self._repeating = Repeating(plan)
        self._leads: defaultdict[int, asyncio.Future[float]] = defaultdict(asyncio.get_running_loop().create_future)
        self._beginnings: defaultdict[int, list[Start]] = defaultdict(list)
        self._moments: dict[int, float] = {}
        self._reasons: dict[int, str] = {}
        self._causes: dict[int, str] = {}
        for event in recorded:
            self._note(event)

    def on_event(self, host: str, event: Event) -> None:
        """Something has happened to a cell on a host, and is recorded."""
        super().on_event(host, event)
        self._note(event)

    def _note(self, event: Event) -> None:
        self._repeating.hear(event)
        match event:
            case StartAwaited() if not self._leads[event.cell].done():
                self._leads[event.cell].set_result(event.lead_seconds)
            case WorkloadStarted(round=1):
                self._beginnings[event.cell].append(Start(event.late_ms / 1e3, event.uncertainty_ms / 1e3))
            case CellEnded():
                self._reasons[event.cell] = "; ".join(event.reasons)
            case CommonStartSet():
                self._moments |= dict(zip(event.cells, event.moments, strict=True))
            case TogetherEnded():
                self._settled |= {unit.number for unit in self._units.values() if _numbers(unit) == event.cells}

    @asynccontextmanager
    async def _places(self) -> AsyncIterator[Places]:
        self._tasks[0] = asyncio.create_task(self._in_turn())
        yield self

    async def open_host(self, host: str) -> None:
        """Now it is here."""
        self._here.add(host)

    async def close_host(self, host: str) -> None:
        """Now it is not."""
        self._here.discard(host)

    def _abandon_units_of(self, name: str) -> None:
        """Without one host no further cell can be measured: `_all_here` says so."""

    async def _in_turn(self) -> None:
        try:
            for unit in self._units.values():
                if self._has_enough(unit):
                    break
                if unit.number not in self._settled:
                    await self._run_unit(unit)
                self._settled.add(unit.number)
            self._over.set()
        except Exception as error:  # noqa: BLE001 - whatever ends the placing ends the run, with the error
            self._fail(error)

    def _has_enough(self, unit: Unit) -> bool:
        """Whether the run ends before this unit, as there are enough repeats; that is recorded then."""
        before, repeat = self._units.get(unit.number - 1), unit.cells[0].repeat
        if before is None or before.cells[0].repeat == repeat or unit.number in self._settled:
            return False
        events = self._repeating.ended_by(before.cells[0].repeat)
        for event in events:
            self._writer.append(event)
        return bool(events)

    async def _run_unit(self, unit: Unit) -> None:
        """Have its cells measured at once, and record their one outcome."""
        offsets: dict[int, ClockOffset] = {}
        if await self._all_here():
            await self._together(unit, offsets)
        else:
            why = "; ".join(f"host {name} was left out: {reason}" for name, reason in self._left_out.items())
            for cell in unit.cells:
                self._abort(cell, why)
        ended = self._ended(unit, offsets)
        self._writer.append(ended)
        self._repeating.hear(ended)

    async def _all_here(self) -> bool:
        """Whether all hosts take part, once those that joined anew are here."""
        while not self._left_out:
            if len(self._here) == len(self._hosts) and not any(host.gone.done() for host in self._hosts.values()):
                return True
            await asyncio.sleep(_POLL_SECONDS)
        return False

    async def _together(self, unit: Unit, offsets: dict[int, ClockOffset]) -> None:
        """Have the cells of a unit measured; `offsets` is filled with the best known one of each cell's host."""
        starting = asyncio.create_task(self._started(unit, offsets))
        measuring = [asyncio.create_task(self._one(unit, cell)) for cell in unit.cells]
        try:
            await asyncio.gather(*measuring)
            if all(self._has_begun(cell) for cell in unit.cells):
                await starting
        finally:
            for task in (starting, *measuring):
                task.cancel()
            await asyncio.gather(starting, *measuring, return_exceptions=True)

    async def _one(self, unit: Unit, cell: CellPlan) -> None:
        """Have one cell of a unit measured on its host, and the others called off if it fails."""
        host = self._host_of(cell)
        if why := await self._measured_on(cell, host):
            await self._call_off(unit, f"host {host.name} failed: {why}")

    async def _measured_on(self, cell: CellPlan, host: FleetHost) -> str:
        """Why a cell has failed on its host; empty where it has not."""
        was = self._book.placed.get(cell.index)
        if cell.index not in self._book.ended:
            try:
                if was is not None and not host.goes_on:
                    raise HostLost("its host's run is over")
                if was is None:
                    host.expect(cell.index)
                    host.place(cell.index)
                    self._book.place(cell.index, host.name)
                await host.measure(cell.index)
            except HostLost as error:
                self._withdraw(cell.index, host.name, str(error))
                self._abort(cell, str(error))
        failed = self._book.outcomes[cell.index] in (Outcome.FAILED, Outcome.ABORTED)
        return (self._reasons.get(cell.index) or "it gave no reason") if failed else ""

    def _abort(self, cell: CellPlan, reason: str) -> None:
        self._reasons[cell.index] = reason
        self._give_up(cell, reason)

    async def _call_off(self, unit: Unit, why: str) -> None:
        """End what still runs of a unit as failed; the first reason is that of the unit."""
        self._causes.setdefault(unit.number, why)
        others = [cell for cell in unit.cells if cell.index not in self._book.ended]
        await asyncio.gather(*(self._host_of(cell).call_off(cell.index, f"called off: {why}") for cell in others))

    async def _started(self, unit: Unit, offsets: dict[int, ClockOffset]) -> None:
        """Set the moment once all hosts are ready, and measure their clocks once more when they have started."""
        try:
            leads = [await asyncio.shield(self._leads[cell.index]) for cell in unit.cells]
            if unit.cells[0].index not in self._moments:
                await self._set_moment(unit, max(leads), offsets)
            await self._all_started(unit)
            offsets |= {
                number: min(offsets.get(number, one), one, key=_error) for number, one in await self._clocks(unit)
            }
        except (VmlabError, OSError) as error:
            await self._call_off(unit, in_one_line(error))

    async def _set_moment(self, unit: Unit, lead: float, offsets: dict[int, ClockOffset]) -> None:
        offsets |= dict(await self._clocks(unit))
        moment = time.monotonic() + lead + _MARGIN_SECONDS
        moments = [moment - offsets[cell.index].mono for cell in unit.cells]
        errors = {self._host_of(cell).name: offsets[cell.index].uncertainty_ms for cell in unit.cells}
        event = CommonStartSet(cells=_numbers(unit), moment=moment, moments=moments, uncertainty_ms=errors)
        self._writer.append(event)
        self._note(event)
        await asyncio.gather(
            *(self._host_of(cell).start_at(cell.index, there) for cell, there in zip(unit.cells, moments, strict=True))
        )

    async def _all_started(self, unit: Unit) -> None:
        """Raises CommandFailed where the moment came from a controller that was killed before all hosts heard it."""
        end = time.monotonic() + _GONE_SECONDS
        while any(len(self._beginnings[cell.index]) < len(cell.workloads) for cell in unit.cells):
            if time.monotonic() > end:
                raise CommandFailed(f"not all hosts started within {_GONE_SECONDS:.0f} s")
            await asyncio.sleep(_POLL_SECONDS)

    async def _clocks(self, unit: Unit) -> list[tuple[int, ClockOffset]]:
        """How far the clock of each cell's host is from the one here, now."""
        found = await asyncio.gather(*(self._host_of(cell).offset() for cell in unit.cells))
        return list(zip(_numbers(unit), found, strict=True))

    def _host_of(self, cell: CellPlan) -> FleetHost:
        return self._hosts[str(cell.axes[HOST_PLACE])]

    def _ended(self, unit: Unit, offsets: Mapping[int, ClockOffset]) -> TogetherEnded:
        """The one outcome of all cells of a unit, which then is that of each."""
        outcome = worst(self._book.outcomes[cell.index] for cell in unit.cells)
        skew = self._skew(unit, offsets)
        reason = "" if outcome is Outcome.PASSED else self._causes.get(unit.number) or self._why(unit, outcome)
        if outcome is Outcome.PASSED and (skew is None or skew.seconds > self._most_skew):
            outcome, reason = Outcome.INVALID, _apart(skew, self._most_skew)
        for cell in unit.cells:
            self._book.end(cell.index, self._book.ended[cell.index], outcome)
        return TogetherEnded(
            cells=_numbers(unit),
            outcome=str(outcome),
            reason=reason,
            starts_ms={} if skew is None else {name: 1e3 * late for name, late in skew.starts.items()},
            skew_ms=None if skew is None else 1e3 * skew.seconds,
            skew_uncertainty_ms=None if skew is None else 1e3 * skew.uncertainty,
        )

    def _why(self, unit: Unit, outcome: Outcome) -> str:
        first = next(cell for cell in unit.cells if self._book.outcomes[cell.index] is outcome)
        return f"host {self._host_of(first).name}: {self._reasons.get(first.index, '')}"

    def _skew(self, unit: Unit, offsets: Mapping[int, ClockOffset]) -> Skew | None:
        """None where a workload did not start, or the clock of a host is not known."""
        if any(cell.index not in offsets or not self._has_begun(cell) for cell in unit.cells):
            return None
        begun = {
            self._host_of(cell).name: [
                one.on(self._moments[cell.index], offsets[cell.index]) for one in self._beginnings[cell.index]
            ]
            for cell in unit.cells
        }
        return skew_of(begun)

    def _has_begun(self, cell: CellPlan) -> bool:
        return len(self._beginnings[cell.index]) >= len(cell.workloads) > 0


def _apart(skew: Skew | None, most: float) -> str:
    if skew is None:
        return "it is not known when all hosts started"
    return f"hosts started {1e3 * skew.seconds:.0f} ms apart; the limit is {1e3 * most:.0f} ms"


def _error(offset: ClockOffset) -> float:
    return offset.uncertainty


def _numbers(unit: Unit) -> list[int]:
    return [cell.index for cell in unit.cells]
