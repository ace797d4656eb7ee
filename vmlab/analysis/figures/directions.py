"""What a kind of workload declares of its metrics: whether more is better, and whether they are of a part of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vmlab.workloads.metrics import Metric
from vmlab.workloads.registry import kinds


@dataclass(frozen=True, slots=True)
class Directions:
    """Which end of a metric is better; `kinds` has the kind of every workload of a run by its name."""

    kinds: Mapping[str, str] = field(default_factory=dict)

    def more_is_better(self, workload: str, metric: str, unit: str) -> bool | None:
        """True where more is better, False where less is, None where neither is."""
        declared = self._declared(workload, metric)
        if declared is None:
            return unit_direction(unit)
        return None if declared.better is None else declared.better == "more"

    def of_stage(self, workload: str, metric: str) -> bool:
        """Whether it is measured in a part of the workload's run alone."""
        declared = self._declared(workload, metric)
        return declared is not None and declared.of_stage

    def _declared(self, workload: str, metric: str) -> Metric | None:
        kind = kinds().get(self.kinds.get(workload, ""))
        return None if kind is None else kind.metrics.get(metric)


def unit_direction(unit: str) -> bool | None:
    """Less is better of times, more of rates; None for other units."""
    if unit in ("s", "ms"):
        return False
    return True if unit.endswith("/s") else None
