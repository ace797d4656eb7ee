"""One metric of a workload over all tiles of a cell, and which end of it is better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vmlab.analysis.cell_shape import OverTilesDocument, WorkloadDocument
from vmlab.analysis.statistics.descriptive import finite, jain, mean, standard_deviation, total, variation
from vmlab.model.grouping import grouped
from vmlab.model.results import Measurement
from vmlab.model.scenarios.table_words import Statistic
from vmlab.workloads.metrics import Metric
from vmlab.workloads.registry import kinds


@dataclass(frozen=True, slots=True)
class Directions:
    """Which end of a metric is better; `kinds` has the kind of every workload of a run by its name, and `params` its
    parameters, as far as they are known.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _known: dict[str, Mapping[str, Metric]] = field(default_factory=dict, init=False, compare=False, repr=False)
    """By workload, as a kind may read its parameters to know its metrics."""

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
        if workload not in self._known:
            kind = kinds().get(self.kinds.get(workload, ""))
            self._known[workload] = {} if kind is None else kind.declared(self.params.get(workload, {}))
        return self._known[workload].get(metric)


def unit_direction(unit: str) -> bool | None:
    """Less is better of times, more of rates; None for other units."""
    if unit in ("s", "ms"):
        return False
    return True if unit.endswith("/s") else None


def statistic_of(values: Sequence[float], statistic: Statistic, more_is_better: bool | None) -> float | None:
    """A statistic of at least one value; None where it has none, such as the deviation of a single one.

    `best` and `worst` have none where `more_is_better` is None.
    """
    match statistic:
        case "mean":
            return mean(values)
        case "sum":
            return finite(total(values))
        case "sd":
            return finite(standard_deviation(values)) if len(values) > 1 else None
        case "cv":
            return variation(values)
        case "jain":
            return jain(values)
        case _:
            if more_is_better is None:
                return None
            return max(values) if more_is_better == (statistic == "best") else min(values)


def over_tiles(
    measurements: Iterable[Measurement], workloads: Sequence[WorkloadDocument], directions: Directions
) -> list[OverTilesDocument]:
    """Every workload's metrics over the tiles, in the order in which they first came."""
    known = ((one, one.value) for one in measurements if one.value is not None)
    groups = grouped(((one.workload, one.metric, one.unit), value) for one, value in known)
    return [
        of_values(
            *key,
            values,
            directions.more_is_better(*key),
            # When each tile was in a stage is not recorded.
            None if len(values) > 1 and directions.of_stage(*key[:2]) else overlap_of(workloads, key[0]),
        )
        for key, values in groups.items()
    ]


def of_values(
    workload: str, metric: str, unit: str, values: Sequence[float], more: bool | None, overlap: float | None
) -> OverTilesDocument:
    """A metric by its value in each tile."""
    return OverTilesDocument(
        workload=workload,
        metric=metric,
        unit=unit,
        tiles=len(values),
        mean=mean(values),
        worst=statistic_of(values, "worst", more),
        best=statistic_of(values, "best", more),
        sum=finite(total(values)),
        sd=statistic_of(values, "sd", more),
        cv=variation(values),
        jain=jain(values),
        more_is_better=more,
        overlap=overlap,
    )


def overlap_of(workloads: Sequence[WorkloadDocument], name: str) -> float | None:
    """The span in which `name` ran in every tile, as a share of the span in which it ran in any.

    None where the beginning or the end of one is not known.
    """
    spans = [(one.began, one.ended) for one in workloads if one.workload == name]
    begins = [begin for begin, _ in spans if begin is not None]
    ends = [end for _, end in spans if end is not None]
    if not spans or len(begins) < len(spans) or len(ends) < len(spans):
        return None
    whole = max(ends) - min(begins)
    return max(0.0, min(ends) - max(begins)) / whole if whole > 0 else None
