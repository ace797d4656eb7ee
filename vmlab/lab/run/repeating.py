"""Whether a run needs more repeats, where its scenario names no number of them but a spread, planned looks
at its claims or its table, or a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from vmlab.analysis.comparison.difference import Difference, Verdict
from vmlab.analysis.comparison.repeats_needed import repeats_needed, widest_percent
from vmlab.analysis.document import run_document
from vmlab.analysis.figures.over_tiles import Directions
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.analysis.reference.published import beside_reference
from vmlab.analysis.tiles.throughput import throughput_metrics
from vmlab.model.axes import axes_words
from vmlab.model.cell_event import (
    SWITCHED,
    CellEnded,
    CellStarted,
    MeasurementTaken,
    SnapshotMade,
    WorkloadEnded,
    WorkloadStarted,
)
from vmlab.model.event import CellWithdrawn, Event, MeasuredAgain, Notice, RepeatsEnded, TogetherEnded
from vmlab.model.quantities import format_seconds
from vmlab.model.run import RUN_TIME, Outcome
from vmlab.model.scenarios.repetition import LooksAt, Until
from vmlab.model.scenarios.table_words import TABLE
from vmlab.plan.terms import Plan
from vmlab.store.reader import RunReader

_HEARD = (
    CellStarted,
    CellWithdrawn,
    MeasuredAgain,
    *SWITCHED,
    WorkloadStarted,
    WorkloadEnded,
    MeasurementTaken,
    CellEnded,
    TogetherEnded,
)


class BlockClock:
    """How long the blocks of a run take, on the clock of its events; freezing guests is counted apart."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._freezing = 0.0
        self._first: dict[int, float] = {}
        self._now = 0.0

    def hear(self, event: Event) -> None:
        """Take one event of the run."""
        self._began = event.mono if self._began is None else self._began
        self._now = event.mono
        if isinstance(event, SnapshotMade):
            self._freezing += event.seconds
        elif isinstance(event, CellStarted):
            self._first.setdefault(event.repeat, event.mono)

    def has_room(self, seconds: float, repeat: int) -> bool:
        """Whether, after `repeat` has ended, another one fits that takes as long as the last, or as all on average."""
        if self._began is None or not self._first:
            return True
        last = self._now - self._first.get(repeat, self._now)
        spent = self._now - min(self._first.values())
        average = max(0.0, spent - self._freezing) / max(1, repeat)
        block = average if repeat == 1 else max(last, average)
        return self._now - self._began + block <= seconds


class Repeating:
    """Hears the events of a run, and decides after each block of cells whether there are enough."""

    def __init__(self, plan: Plan, store: Path | None = None) -> None:
        """`store` has what is recorded, which looks are at; a plan without any needs none."""
        self._store = store
        self._until = plan.scenario.until
        self._metrics = plan.table.metrics or (RUN_TIME,)
        kind_of = {name: entry.kind for name, entry in plan.scenario.workloads.items()}
        self._throughput = None if plan.table.metrics else throughput_metrics(kind_of)
        params = {name: entry.params for name, entry in plan.scenario.workloads.items()}
        self._directions = Directions(kind_of, params)
        self._timeline = RunTimeline()
        self._cells = 0
        self._clock = BlockClock()
        self._most = max((cell.repeat for cell in plan.cells), default=0)
        compared = len({axes_words(cell.axes) for cell in plan.cells}) > 1
        self._least = repeats_needed(plan.scenario).difference if compared else 1
        self.short = ""
        """Why the run has fewer repeats than its table's question takes, where its time was up."""

    def hear(self, event: Event) -> None:
        """Take one event of the run."""
        self._clock.hear(event)
        self._cells += isinstance(event, CellStarted) - isinstance(event, CellWithdrawn | MeasuredAgain)
        if self._until is not None and self._until.looks is None and isinstance(event, _HEARD):
            self._timeline.apply(event)

    def ended_by(self, repeat: int) -> list[Event]:
        """What is to be emitted if the run ends with this repeat, all cells of which have run; else nothing."""
        until = self._until
        if until is None:
            return []
        found = self._ended_by_figures(until, repeat)
        if not found and until.time is not None:
            if repeat == self._most:
                return self._ended_by_time(repeat, f"at most {repeat} repeats were planned")
            if not self._clock.has_room(until.time, repeat):
                fit = f"{repeat} repeat{'s fit' if repeat > 1 else ' fits'}"
                return self._ended_by_time(repeat, f"{fit} into {format_seconds(until.time)}")
        return found

    def _ended_by_time(self, repeat: int, fit: str) -> list[Event]:
        if repeat < self._least:
            self.short = f"{fit}; to prove a difference takes {self._least} at least"
        notice = Notice(level="warning" if self.short else "info", text=self.short or fit)
        return [self._ended(repeat, None, reached=self._until_is_met(repeat)), notice]

    def _until_is_met(self, repeat: int) -> bool:
        """Whether a time that is up ends no question: there was none but the table's, and it has its repeats."""
        until = self._until
        return until is not None and until.spread is None and until.looks is None and repeat >= self._least

    def _ended_by_figures(self, until: Until, repeat: int) -> list[Event]:
        if repeat < until.at_least or (until.spread is None and until.looks is None):
            return []
        if until.spread is None:
            return self._ended_by_look(until, repeat)
        widest = self._widest()
        reached = widest is not None and widest <= until.spread
        if not reached and repeat < until.at_most:
            return []
        wanted = f"± {until.spread:g} %"
        if reached:
            notice = Notice(level="info", text=f"after {repeat} repeats every metric is known to {wanted} or better")
        else:
            notice = Notice(level="warning", text=f"after {repeat} repeats {_known(widest)}; {wanted} was asked for")
        finite = None if widest is None or math.isinf(widest) else widest
        return [self._ended(repeat, finite, reached=reached), notice]

    def _ended_by_look(self, until: Until, repeat: int) -> list[Event]:
        if repeat not in (until.looks or ()) or self._store is None:
            return []
        look = look_at(until.looks_at, self._store)
        if look.open and repeat < until.at_most:
            return []
        notice = Notice(level="warning" if look.open else "info", text=f"after {repeat} repeats {look.words}")
        return [self._ended(repeat, None, reached=not look.open), notice]

    def _ended(self, repeat: int, widest: float | None, *, reached: bool) -> RepeatsEnded:
        return RepeatsEnded(repeats=repeat, cells=self._cells, widest_percent=widest, reached=reached)

    def _widest(self) -> float | None:
        cells = [cell.document(Outcome.ABORTED, self._directions) for cell in self._timeline.cells.values()]
        return widest_percent(cells, self._metrics, self._throughput)


def _known(widest: float | None) -> str:
    if widest is None:
        return "no metric is known"
    if math.isinf(widest):
        return "not every metric has a spread"
    return f"the least certain metric is known to ± {widest:.2g} %"


_DECIDED = (Verdict.PROVEN, Verdict.SAME, Verdict.ONE_A_SIDE)
"""More repeats prove no more of these; those of one snapshot a side have no verdict however many there are."""


@dataclass(frozen=True, slots=True)
class Look:
    """How many questions are `open`, which more repeats may answer, and the state of all in words."""

    open: int
    words: str


def look_at(what: LooksAt | None, store: Path) -> Look:
    """Look at a run's tables, or else its claims. Raises StoreError."""
    with RunReader(store) as reader:
        if what == TABLE:
            tables = run_document(reader).tables
            return _at_differences([one.difference for table in tables for *_, one in table.each() if one.difference])
        claims = beside_reference(reader).claims
    left = sum(claim.open for claim in claims)
    if left:
        return Look(left, f"{left} of {len(claims)} claims have no answer")
    return Look(0, "no claim is left that more repeats may answer")


def _at_differences(found: list[Difference]) -> Look:
    """Whether each difference of the tables is proven. What cannot be compared, or is the same amount, is not asked."""
    compared = [one for one in found if one.is_compared]
    left = sum(one.verdict not in _DECIDED for one in compared)
    if left:
        return Look(left, f"{left} of {len(compared)} differences are not proven")
    if compared and all(one.proven for one in compared):
        return Look(0, "every difference is proven")
    return Look(0, "no difference is left that more repeats may prove")
