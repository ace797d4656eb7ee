"""A run of a fleet whose cells need all of its hosts: one unit after the other, each when every host is here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from vmlab.fleet.fleet_run import FleetRun, Places
from vmlab.fleet.placed_units import CellBook, Unit

if TYPE_CHECKING:
    from vmlab.store.writer import FleetWriter, Source

POLL_SECONDS = 0.05


class TurnsRun(FleetRun):
    """Nothing is placed: subclasses say in `run_unit` what a unit is on all hosts."""

    def __init__(
        self,
        units: Sequence[Unit],
        writer: FleetWriter,
        book: CellBook,
        *,
        before: Mapping[str, Source] | None = None,
        reconnect: float = 60.0,
    ) -> None:
        super().__init__(units, writer, book, before=before, unlike=True, reconnect=reconnect)
        self._here: set[str] = set()

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
        """Without one host no further cell can be measured: `all_here` says so."""

    async def _in_turn(self) -> None:
        try:
            for unit in self._units.values():
                if self.has_enough(unit):
                    break
                if unit.number not in self._settled:
                    await self.run_unit(unit)
                self._settled.add(unit.number)
            self._over.set()
        except Exception as error:  # noqa: BLE001 - whatever ends the placing ends the run, with the error
            self._fail(error)

    def has_enough(self, unit: Unit) -> bool:
        """Whether the run ends before this unit."""
        return False

    async def run_unit(self, unit: Unit) -> None:
        """Have its cells measured, or record why they are not."""
        raise NotImplementedError

    async def all_here(self) -> bool:
        """Whether all hosts take part, once those that joined anew are here."""
        while not self._left_out:
            if len(self._here) == len(self._hosts) and not any(host.gone.done() for host in self._hosts.values()):
                return True
            await asyncio.sleep(POLL_SECONDS)
        return False

    @property
    def left_out_words(self) -> str:
        """Why a host does not take part, for a cell that needs it."""
        return "; ".join(f"host {name} was left out: {why}" for name, why in self._left_out.items())
