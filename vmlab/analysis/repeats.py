"""How many repeats a scenario's question takes at least, which is known before anything is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vmlab.analysis.compare import asked_of
from vmlab.analysis.figure import WALL_SECONDS
from vmlab.analysis.power import readings_needed
from vmlab.workloads.registry import kinds

if TYPE_CHECKING:
    from vmlab.model.scenario import Scenario


@dataclass(frozen=True, slots=True)
class RepeatsNeeded:
    """How many repeats it takes to prove a difference in one of `figures`, and to answer each of the claims, at least.

    With fewer no reading whatever proves anything; how large a difference so many find depends on the host's noise.
    """

    figures: int
    difference: int
    claims: tuple[int, ...]

    @property
    def most(self) -> int:
        """So many are enough for all of it."""
        return max(self.difference, *self.claims, 0)


def repeats_needed(scenario: Scenario) -> RepeatsNeeded:
    """What the figures that the scenario's table asks for take, as one family, and what its publication's claims do."""
    asked = asked_of(scenario.table.metrics if scenario.table else ())
    known = [kinds()[entry.kind].metrics for entry in scenario.workloads.values() if entry.kind in kinds()]
    figures = max(1, sum(metric in asked for metrics in known for metric in metrics) + (WALL_SECONDS in asked))
    claims = scenario.reference.claims if scenario.reference else ()
    return RepeatsNeeded(figures, readings_needed(figures), tuple(readings_needed(one.comparisons) for one in claims))
