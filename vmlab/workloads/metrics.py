"""The metrics of a kind: unit, label, and whether more or less is better; and one figure of a metric.

How long a tool says that it worked is held against how long its client ran: the one rule for the times of all kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from vmlab.model.errors import WorkloadError
from vmlab.model.results import CpuUse
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


_LATENCIES = {"avg": "mean", "mean": "mean", "p50": "median", "max": "highest"}


def latencies(*which: str, prefix: str = "", words: str = "") -> dict[str, Metric]:
    """The metrics of latencies, such as ``mean``, ``p95`` and ``max``, with what stands before names and labels."""
    labels = {one: _LATENCIES.get(one, f"{one.removeprefix('p')}th percentile of") for one in which}
    return {f"{prefix}latency_{one}": Metric("s", "less", f"{words}{label} latency") for one, label in labels.items()}


@dataclass(frozen=True, slots=True)
class Reading:
    """One figure, with what its kind declares of the metric; see `Metric`. `metric` is its name in snake_case."""

    metric: str
    value: float
    unit: Unit
    better: Better | None


_TIMES = 3.0
_LEAST = 1.0
"""Seconds that are granted in any case."""
_WAITED_UNSEEN = 3.0
"""Seconds of waiting for each that is granted, where nobody counted: on the host, in guests of another one."""
_ROUNDED = 0.005
"""Seconds by which a tool may have rounded its time up."""


@dataclass(frozen=True, slots=True)
class ToolTime:
    """`seconds` of the client's run that the tool's figures account for, and those that it takes `around` them, alone
    on an idle host."""

    seconds: float
    around: float


def demand_not_longer(tool: str, time: ToolTime | None, seconds: float) -> None:
    """Raises WorkloadError where a tool accounts for more time than its client ran. None was not declared."""
    if time is not None and time.seconds > seconds + _ROUNDED:
        raise WorkloadError(f"{tool} reports {time.seconds:.3f} s of work, but its client ran for {seconds:.3f} s")


def demand_tool_time(
    tool: str,
    time: ToolTime | None,
    seconds: float,
    used: Iterable[CpuUse] = (),
    lost: float = 0.0,
    expected: float | None = None,
) -> None:
    """Raises WorkloadError where a tool accounts for more time than its client ran, or for much less.

    `used` is what the guests of both its sides did while the client ran for `seconds`; none where that is not known.
    For `lost` of these seconds something stood still: the tool's clock perhaps as well, and that is no fault of its.
    Work that is nothing but CPU time is `expected` to take so many seconds: a processor that takes longer for it is as
    much slower around it.
    """
    demand_not_longer(tool, time, seconds)
    if time is None:
        return
    alone = max(_LEAST, _TIMES * time.around)
    slower = [1 + one.waited / max(one.ran, alone) for one in used] or [1 + _WAITED_UNSEEN]
    if expected is not None:
        slower.append(time.seconds / expected)
    granted = alone * max(slower) + lost
    if seconds - time.seconds > granted:
        raise WorkloadError(
            f"{tool} reports {time.seconds:.3f} s of work, but its client ran for {seconds:.3f} s; "
            f"at most {granted:.1f} s go by around the work"
        )
