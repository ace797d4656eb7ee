"""The host's KSM, switched on or off while the workloads of a cell run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import get_args

from vmlab.hypervisor.settings_keeper import SettingsKeeper
from vmlab.lab.cell.cell_events import CellEvents
from vmlab.lab.cell.live_switch import LiveSwitch
from vmlab.lab.provision.guest_set import GuestSet
from vmlab.model.concurrency import shielded
from vmlab.model.errors import DeadlineExceeded, HypervisorError, RefusedError, UsageError, in_one_line
from vmlab.model.event import KsmSwitched
from vmlab.model.quantities import format_bytes
from vmlab.model.scenarios.host_settings import HostSettings, Ksm
from vmlab.plan.terms import CellPlan
from vmlab.system.meminfo import host_memory

_POLL_SECONDS = 0.1
STATES: tuple[Ksm, ...] = get_args(Ksm)


@dataclass(frozen=True, slots=True)
class HostKsm:
    """The host's KSM, which the `keeper` of its settings changes and puts back.

    `others` gives the runs that measure on the host at the same time. With `ordered_memory` the guests have a limit on
    the memory that they take together. For `recount_seconds` at most KSM goes on to count what was unmerged.
    """

    keeper: SettingsKeeper
    others: Callable[[], Collection[object]] = tuple
    ordered_memory: bool = False
    recount_seconds: float = 15.0

    def why_none_is_unmerged(self) -> str:
        """Why merged pages must stay so, as each of them needs memory of its own then; empty where there is enough."""
        saved = self.keeper.merged_bytes()
        if self.ordered_memory:
            return "the ordered memory may be too small for them"
        if 2 * saved > (available := host_memory().available):
            return f"{format_bytes(saved)} is too much for the {format_bytes(available)} that the host has left"
        return ""


class LiveKsm(LiveSwitch[Ksm]):
    """Switches the host's KSM, and has the guests' memory unmerged where it goes off; without a `host` it refuses.

    What is switched lasts until the next cell, or the end of the run: the keeper puts back what that does not ask for.
    """

    what = "ksm"

    def __init__(self, plan: CellPlan, guests: GuestSet, events: CellEvents, host: HostKsm | None) -> None:
        super().__init__(plan, events)
        self._guests = guests
        self._host = host
        self._unmerged = False

    def _checked(self, state: str) -> Ksm:
        if state not in STATES:
            raise UsageError(f"KSM cannot be {state}; while guests run it is {' or '.join(STATES)}")
        if not self._plan.guests:
            raise UsageError(f"{self._cell} has no guests, whose memory could be merged")
        if self._host is None:
            raise RefusedError("the settings of this host are not changed here")
        if why := self._host.keeper.why_not(HostSettings(ksm=state)):
            raise RefusedError(f"KSM cannot be switched: {why}")
        if self._host.others():
            raise RefusedError("another run measures on this host at the same time, and KSM is one for all")
        if self._host.keeper.in_force()["ksm"] == state:
            raise UsageError(f"{self._cell} has ksm {state} already")
        return state

    async def _switched(self, state: Ksm, origin: str) -> KsmSwitched:
        assert self._host is not None, "it is checked before"
        await self._end_span()
        before = "off" if state == "on" else "on"
        switched = KsmSwitched(cell=self._plan.index, origin=origin, before=before, after=state)
        if self._unmerged:
            # Before KSM begins to look for pages again.
            await shielded(self._guests.make_mergeable(True))
            self._unmerged = False
        wanted = self._plan.host.model_copy(update={"ksm": state})
        if state == "on":
            self._host.keeper.apply(wanted)
            self._events.switched(switched)
        else:
            self._events.switched(switched)
            await self._unmerge(self._host)
            self._host.keeper.apply(wanted)
        return switched

    async def _unmerge(self, host: HostKsm) -> None:
        """KSM that stops leaves merged what is merged. The guests take theirs back; other programs keep theirs.

        What is unmerged is counted as merged until KSM comes by, so it goes on for two looks at all memory.
        """
        why_not = host.why_none_is_unmerged()
        if not why_not:
            try:
                self._unmerged = True
                self._doubt_pauses(await shielded(self._guests.make_mergeable(False)))
                await self._recounted(host)
                return
            except (HypervisorError, DeadlineExceeded) as error:
                why_not = in_one_line(error)
        self._events.warn(f"{self._cell}: KSM is off, and what it merged stays merged until it is written: {why_not}")

    async def _recounted(self, host: HostKsm) -> None:
        """Wait until KSM has counted anew, but not for long, and not beyond the end of the workloads."""
        began = host.keeper.ksm_scans()
        end = time.monotonic() + host.recount_seconds
        while self._open and began is not None and time.monotonic() < end:
            await asyncio.sleep(_POLL_SECONDS)
            if (host.keeper.ksm_scans() or 0) >= began + 2:
                return
