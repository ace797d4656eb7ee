"""The metrics of a kind: unit, label, and whether more or less is better; and one figure of a metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from vmlab.model.run import RUN_TIME

Unit = Literal["s", "1", "1/s", "B", "B/s", "%"]
"""Units of metrics; ``1`` is a plain count."""

Better = Literal["more", "less"]

SHARES = ("cpu_share_configured", "cpu_share_got", "cpu_seconds_contended")
"""What the lab measures of every workload whose guest has CPU shares, beside the metrics of its kind."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What one metric of a kind is, the same in every run.

    `better` says whether ``more`` or ``less`` of it is the better result: an ``is a times as good as`` of two values is
    ``value / baseline`` for ``more`` and ``baseline / value`` for ``less``, and the worst of several is the smallest or
    the largest. It is None for an amount that was asked for or only describes the work, such as a number of files:
    such a metric has no best and no worst. `label` names it for people, in lower case, without the unit.

    `of_stage` says that it is measured in a part of the run alone: guests that run together may be in different parts,
    so that rates of them do not add up.
    """

    unit: Unit
    better: Better | None
    label: str
    of_stage: bool = False


def with_run_time(**others: Metric) -> Mapping[str, Metric]:
    """The `Workload.metrics` of a kind: ``run_time``, which all have, and its others in their order."""
    return MappingProxyType({RUN_TIME: Metric("s", "less", "run time"), **others})


@dataclass(frozen=True, slots=True)
class Reading:
    """One figure, with what its kind declares of the metric; see `Metric`. `metric` is its name in snake_case."""

    metric: str
    value: float
    unit: Unit
    better: Better | None
