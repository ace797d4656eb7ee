"""Whether a run needs more repeats, where its scenario names no number of them but a spread, or looks at its claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from vmlab.analysis.comparison.repeats_needed import widest_percent
from vmlab.analysis.figures.over_tiles import Directions
from vmlab.analysis.record.timeline import RunTimeline
from vmlab.analysis.reference.claims import AnsweredClaim
from vmlab.analysis.tiles.throughput import throughput_metrics
from vmlab.model.cell_event import (
    SWITCHED,
    CellEnded,
    CellStarted,
    MeasurementTaken,
    WorkloadEnded,
    WorkloadStarted,
)
from vmlab.model.event import (
    CellWithdrawn,
    Event,
    MeasuredAgain,
    Notice,
    RepeatsEnded,
    TogetherEnded,
)
from vmlab.model.run import RUN_TIME, Outcome
from vmlab.model.scenarios.repetition import Until
from vmlab.plan.terms import Plan

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


class Repeating:
    """Hears the events of a run, and decides after each block of cells whether there are enough."""

    def __init__(self, plan: Plan, claims: Callable[[], Sequence[AnsweredClaim]] = tuple) -> None:
        self._claims = claims
        """Answers the claims by what is recorded."""
        self._until = plan.scenario.until
        self._metrics = plan.table.metrics or (RUN_TIME,)
        kind_of = {name: entry.kind for name, entry in plan.scenario.workloads.items()}
        self._throughput = None if plan.table.metrics else throughput_metrics(kind_of)
        self._directions = Directions(kind_of)
        self._timeline = RunTimeline()
        self._cells = 0

    def hear(self, event: Event) -> None:
        """Take one event of the run."""
        self._cells += isinstance(event, CellStarted) - isinstance(event, CellWithdrawn | MeasuredAgain)
        if self._until is not None and self._until.looks is None and isinstance(event, _HEARD):
            self._timeline.apply(event)

    def ended_by(self, repeat: int) -> list[Event]:
        """What is to be emitted if the run ends with this repeat, all cells of which have run; else nothing."""
        until = self._until
        if until is None or repeat < until.at_least:
            return []
        if until.spread is None:
            return self._ended_by_claims(until, repeat)
        widest = self._widest()
        reached = widest is not None and widest <= until.spread
        if not reached and repeat < until.at_most:
            return []
        wanted = f"± {until.spread:g} %"
        if reached:
            notice = Notice(level="info", text=f"after {repeat} repeats every figure is known to {wanted} or better")
        else:
            notice = Notice(level="warning", text=f"after {repeat} repeats {_known(widest)}; {wanted} was asked for")
        finite = None if widest is None or math.isinf(widest) else widest
        return [self._ended(repeat, finite, reached=reached), notice]

    def _ended_by_claims(self, until: Until, repeat: int) -> list[Event]:
        if repeat not in (until.looks or ()):
            return []
        claims = self._claims()
        left = sum(claim.open for claim in claims)
        if left and repeat < until.at_most:
            return []
        if left:
            notice = Notice(
                level="warning", text=f"after {repeat} repeats {left} of {len(claims)} claims have no answer"
            )
        else:
            notice = Notice(level="info", text=f"after {repeat} repeats no claim is left that more repeats may answer")
        return [self._ended(repeat, None, reached=not left), notice]

    def _ended(self, repeat: int, widest: float | None, *, reached: bool) -> RepeatsEnded:
        return RepeatsEnded(repeats=repeat, cells=self._cells, widest_percent=widest, reached=reached)

    def _widest(self) -> float | None:
        cells = [cell.document(Outcome.ABORTED, self._directions) for cell in self._timeline.cells.values()]
        return widest_percent(cells, self._metrics, self._throughput)


def _known(widest: float | None) -> str:
    if widest is None:
        return "no figure is known"
    if math.isinf(widest):
        return "not every figure has a spread"
    return f"the least certain figure is known to ± {widest:.2g} %"
