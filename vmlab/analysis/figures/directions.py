"""Whether more of a metric is better: as declared by its kind of workload, or else by its unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vmlab.workloads.registry import kinds


@dataclass(frozen=True, slots=True)
class Directions:
    """Which end of a metric is better; `kinds` has the kind of every workload of a run by its name."""

    kinds: Mapping[str, str] = field(default_factory=dict)

    def more_is_better(self, workload: str, metric: str, unit: str) -> bool | None:
        """True where more is better, False where less is, None where neither is."""
        kind = kinds().get(self.kinds.get(workload, ""))
        declared = kind.metrics.get(metric) if kind is not None else None
        if declared is None:
            return unit_direction(unit)
        return None if declared.better is None else declared.better == "more"


def unit_direction(unit: str) -> bool | None:
    """Less is better of times, more of rates; None for other units."""
    if unit in ("s", "ms"):
        return False
    return True if unit.endswith("/s") else None
