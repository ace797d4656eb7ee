"""What a run has recorded before its runner works, how its cells ended, and which are measured again.

A cell that is invalid for causes outside of it is measured again, up to a number of times: first when its block has
ended, and after that at the end of the run. It is chosen by its validity, which no figure has a part in; what that
means for results is in docs/explanation/statistics.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from vmlab.analysis.record.fleet_hosts import decisive, differences
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.lab.process.run_ending import run_outcome
from vmlab.model.cell_event import CellEnded
from vmlab.model.errors import RefusedError
from vmlab.model.event import RESUME, CommandReceived, Event, HostProbed, ImageReady
from vmlab.model.run import WARM_UP, Outcome
from vmlab.plan.terms import CellPlan, Place, Plan, place_of


class Further(NamedTuple):
    """A further attempt at a cell, still without a number: at the end of its block, or of the run."""

    cell: CellPlan
    at_end: bool


class Attempts:
    """The newest attempt at each planned cell."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._granted = 0
        self._asked: frozenset[int] = frozenset()
        self._ended: dict[Place, tuple[CellPlan, Outcome]] = {}

    def take(self, known: RunTimeline) -> list[Further]:
        """Take what is recorded; the attempts that it calls for and that have not been made."""
        cells = {place_of(cell.axes, cell.repeat): cell for cell in self._plan.cells}
        self._asked = frozenset(known.asked_again)
        due: dict[int, Further] = {}
        for number, one in known.cells.items():
            planned = cells.get(place_of(one.told.axes, one.told.repeat))
            if planned is None or one.ended is None:
                continue
            cell = replace(planned, index=number, again_of=known.again.get(number, 0))
            due.pop(cell.again_of, None)
            if (further := self.ended(cell, Outcome(one.told.outcome), disturbed=one.disturbed)) is not None:
                due[number] = further
        return list(due.values())

    def begun(self, planned: Iterable[CellPlan]) -> Iterator[CellPlan]:
        """Those of the planned cells of which an attempt has ended."""
        return (cell for cell in planned if place_of(cell.axes, cell.repeat) in self._ended)

    def ended(self, cell: CellPlan, outcome: Outcome, *, disturbed: bool) -> Further | None:
        """Take the end of an attempt; the next attempt at the same cell, None where there is none."""
        self._ended[place_of(cell.axes, cell.repeat)] = cell, outcome
        wanted = disturbed or (outcome is Outcome.FAILED and self._plan.again_failed)
        allowed = cell.repeat != WARM_UP and self._granted < self._plan.again
        if cell.index not in self._asked:
            if not (wanted and allowed):
                return None
            self._granted += 1
        # A run that looks at its figures after each block has all attempts of a block before that.
        at_end = bool(cell.again_of) and self._plan.scenario.until is None
        return Further(replace(cell, again_of=cell.index), at_end)

    def verdict(self) -> tuple[Outcome, str]:
        """How the run ends by its cells, and the reason."""
        outcome, reason = run_outcome(self._ended.values())
        made = f" after {self._granted} further attempt{'s' if self._granted > 1 else ''}"
        return outcome, reason + made if reason and self._granted else reason


class MeasuredBefore:
    """Events of a run, in order; `timeline` is the run as far as they show it."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.timeline = timeline = RunTimeline.of(events)
        self.goes_on = any(isinstance(one, CommandReceived) and one.command == RESUME for one in events)
        self.decided = timeline.repeats_ended is not None
        """Whether it was decided that no repeat follows."""
        self._probed: HostProbed | None = None
        """The host, and below the images by name, with which the newest cell was measured."""
        self._then: dict[str, str] = {}
        self._now: dict[str, str] = {}
        probed = None
        for event in events:
            if isinstance(event, ImageReady):
                self._now[event.name] = event.image
            elif isinstance(event, HostProbed):
                probed = event
            elif isinstance(event, CellEnded) and event.cell in timeline.cells:
                self._probed, self._then = probed, dict(self._now)

    def demand_same(self, accelerator: str, host: dict[str, Any]) -> None:
        """Raise RefusedError where host or images are not those that cells were measured with before."""
        if self._probed is None:
            return
        hosts = {"then": decisive(self._probed.accelerator, self._probed.host), "now": decisive(accelerator, host)}
        found = differences(hosts)
        for name, image in self._then.items():
            if image != self._now[name]:
                found.append(f"image{f' {name}' if name else ''}: then {image}, now {self._now[name]}")
        if found:
            raise RefusedError(f"the host is not as it was, and its cells do not compare: {'; '.join(found)}")
