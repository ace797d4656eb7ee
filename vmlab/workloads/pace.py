"""A fixed load: operations that are due at a pace, whatever the server does, and the proof that they were begun.

A client that begins the next operation when the last one is over offers less to a server that has become slow, and so
never sees how long others would have waited: Schroeder, Wierman and Harchol-Balter, Open versus closed: a cautionary
tale (NSDI 2006). With a pace, operations are due at moments of their own, wait for a free connection where there is
none, and their latency counts from the moment at which they were due.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from vmlab.model.errors import WorkloadError
from vmlab.model.quantities import format_seconds
from vmlab.model.scenarios.lever import Lever
from vmlab.workloads.metrics import Metric
from vmlab.workloads.verification import is_amount, objects

DELIVERED = "delivered_percent"
PACE_METRICS: Mapping[str, Metric] = MappingProxyType({DELIVERED: Metric("%", "more", "delivered share of the pace")})
"""What every kind with a pace gives besides, where it was given one; see `delivered_percent`."""
PACE = Lever("pace", within=5.0, unit="1/s")
"""A convention: what is not delivered is load that was never offered to the host, so figures beside it would be of a
smaller one."""
SHORTEST = 5.0
"""Seconds that a fixed load lasts at least: in a shorter one a single late operation decides."""
_EARLY = 0.01
"""Seconds that a sleep may end ahead of time by the clock that is read afterwards."""
MOST_OPERATIONS = 100_000
"""In one paced load, whose client prints the latency of each."""


def check_pace(operations: int, pace: float | None, unit: str) -> None:
    """Raises ValueError where so many operations at this pace are no load that could be judged."""
    if pace is None:
        return
    if operations / pace < SHORTEST:
        raise ValueError(
            f"{operations} {unit} at {pace:g}/s are over after {format_seconds(operations / pace)}; "
            f"a pace needs work for {format_seconds(SHORTEST)} at least"
        )
    if operations > MOST_OPERATIONS:
        raise ValueError(f"with a pace at most {MOST_OPERATIONS} {unit} are possible, not {operations}")


def paced_seconds(operations: int, pace: float | None) -> float:
    """How long so many operations take at their pace, in seconds; 0 without a pace."""
    return 0.0 if pace is None else operations / pace


def idle_of_pace(alone: float, operations: int, pace: float | None) -> float:
    """How long a client waits for its pace, in seconds, where as fast as it can it would take `alone` seconds."""
    return max(0.0, paced_seconds(operations, pace) - alone)


def delivered_percent(begun: int, due: float) -> float:
    """Of the operations that were due at a moment, the share that had begun by then, in percent; never above 100.

    The moment is the one at which the last operation began. It is 100 where each began before the next was due, and
    50 where the load was offered twice as fast as it was taken. What is still under way then is not held against it,
    as its latency tells of it.
    """
    return 100.0 * begun / max(begun, math.floor(due))


def demand_not_early(last_began: float, operations: int, pace: float, client: str) -> None:
    """Raises WorkloadError where the last of the operations began before it was due: then the pace was another one."""
    due = (operations - 1) / pace
    if last_began < due - _EARLY:
        raise WorkloadError(
            f"{client} began its last operation after {last_began:.3f} s, and it was due at {due:.3f} s"
        )


def due_operations(last_began: float, pace: float) -> float:
    """How many were due by `last_began` seconds after the first, at even intervals, the first included."""
    return last_began * pace + 1


def percentile(latencies: Sequence[float], percent: float) -> float:
    """The smallest latency that `percent` of them do not exceed (nearest rank). Raises WorkloadError for none."""
    if not latencies:
        raise WorkloadError("a paced client told no latency")
    return sorted(latencies)[max(1, math.ceil(percent / 100 * len(latencies))) - 1]


def told_latencies(text: str, operations: int, client: str) -> list[float]:
    """The latencies in seconds that a paced client printed, in lines of ``{"latencies": [...]}``.

    Raises WorkloadError unless there is one for each operation.
    """
    parts = [said["latencies"] for said in objects(text) if isinstance(said.get("latencies"), list)]
    latencies = [value for part in parts for value in part]
    if len(latencies) != operations or not all(map(is_amount, latencies)):
        raise WorkloadError(f"{client} told {len(latencies)} latencies that can be read, of {operations}")
    return [float(one) for one in latencies]
