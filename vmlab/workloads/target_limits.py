"""Targets: limits on metrics that every tile must deliver, where a host either carries the load of its tiles or not.

A metric of which less is better must be at most its limit, one of which more is better at least.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vmlab.model.quantities import Written, parse_bytes, parse_pace, parse_percent, parse_seconds, written
from vmlab.workloads.metrics import Metric
from vmlab.workloads.pace import DELIVERED, PACE
from vmlab.workloads.registry import kinds
from vmlab.workloads.workload_steps import AnyWorkload

Said = str | int | float
"""A limit as a scenario writes it."""


@dataclass(frozen=True, slots=True)
class Target:
    """One limit, in `unit`; `at_least` says which side of it is right, `implied` that it follows from a pace.

    `written_in` is the unit in which the scenario writes it, empty for a plain number.

    It is not `applicable` where the workload never gives the metric with its parameters, such as at one point of an
    axis.
    """

    workload: str
    metric: str
    unit: str
    limit: float
    at_least: bool
    implied: bool
    applicable: bool = True
    written_in: str = ""

    def met_by(self, value: float) -> bool:
        """Whether a figure is on the right side; the limit itself is."""
        return value >= self.limit if self.at_least else value <= self.limit

    def load(self, value: float) -> float:
        """How much of the limit a figure takes: 1 at the limit, more where it is missed, infinity where it is 0."""
        part, whole = (self.limit, value) if self.at_least else (value, self.limit)
        return part / whole if whole > 0 else float("inf")


def limit_of(metric: Metric, said: Said) -> float:
    """The limit in the metric's unit. Raises ValueError, with what would be right."""
    value = _in_base_unit(metric.unit, said)
    if value == 0 and metric.better == "more":
        raise ValueError("is reached by anything")
    return value


def limit_form(unit: str, limit: float, written_in: str) -> Written:
    """How a limit and the figures beside it are written: in the scenario's own unit, else as figures of this size."""
    if not written_in:
        return written(unit, [limit])
    return Written(written_in, 1 / _in_base_unit(unit, f"1 {written_in}"))


def _in_base_unit(unit: str, said: Said) -> float:
    """What a scenario writes, in `unit`. Raises ValueError, with what would be right."""
    match unit:
        case "s":
            return parse_seconds(said)
        case "1/s":
            return parse_pace(said)
        case "B":
            return float(parse_bytes(said))
        case "B/s":
            if not isinstance(said, str) or not said.strip().endswith("/s"):
                raise ValueError("needs bytes in a second, such as 20 MB/s")
            return float(parse_bytes(said.strip().removesuffix("/s")))
        case "%":
            return parse_percent(said)
        case _:
            if isinstance(said, str | bool) or said < 0:
                raise ValueError("needs a number")
            return float(said)


def judgeable(kind: type[AnyWorkload], params: Mapping[str, Any]) -> dict[str, Metric]:
    """The metrics that a target may name of a workload with these parameters: given, and with a better end."""
    left_out = kind.left_out(params)
    metrics = kind.declared(params)
    return {name: metric for name, metric in metrics.items() if metric.better is not None and name not in left_out}


@dataclass(frozen=True, slots=True)
class Configured:
    """One workload of a tile: its kind, and its parameters as records have them."""

    kind: str
    params: Mapping[str, Any]


def targets_of(said: Mapping[str, Mapping[str, Said]], workloads: Mapping[str, Configured]) -> Iterator[Target]:
    """All targets of a tile, those that follow from a pace included, in the order of the workloads.

    One that a workload with these parameters never gives is not `applicable`. What a kind does not know is passed over.
    """
    for workload, one in workloads.items():
        kind = kinds().get(one.kind)
        if kind is None:
            continue
        given, known, metrics = said.get(workload, {}), judgeable(kind, one.params), kind.declared(one.params)
        for name, limit in given.items():
            metric = metrics.get(name)
            if metric is not None and metric.better is not None:
                target = _target(workload, name, metric, limit_of(metric, limit), applicable=name in known)
                yield replace(target, written_in=limit.strip(" .0123456789") if isinstance(limit, str) else "")
        if DELIVERED in known and DELIVERED not in given:
            yield _target(workload, DELIVERED, known[DELIVERED], 100 - PACE.within, implied=True)


def _target(
    workload: str, name: str, metric: Metric, limit: float, *, implied: bool = False, applicable: bool = True
) -> Target:
    return Target(workload, name, metric.unit, limit, metric.better == "more", implied, applicable)
