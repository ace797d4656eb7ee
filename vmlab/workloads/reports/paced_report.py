"""What ``paced_requests`` says at its end, as figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from vmlab.model.errors import WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.workloads.pace import (
    DELIVERED,
    delivered_percent,
    demand_not_early,
    due_operations,
    percentile,
    told_latencies,
)
from vmlab.workloads.programs import is_amount, last_object
from vmlab.workloads.verification import demand_equal

_CLIENT = "the paced client"


@dataclass(frozen=True, slots=True)
class PacedReport:
    """Bytes with headers, and figures by the metrics of the kind ``http``; latencies count from the due moments."""

    bytes: int
    values: Mapping[str, float]


def parse_paced(text: str, requests: int, pace: float) -> PacedReport:
    """Read the end of a client that was asked for `requests` at `pace` a second. Raises WorkloadError."""
    said = last_object(text, _CLIENT)
    keys = ("requests", "bytes", "seconds", "last_began")
    if not all(is_amount(said.get(key)) for key in keys) or not said["seconds"] > 0:
        raise WorkloadError(f"{_CLIENT} printed a line that cannot be read: {str(said)[:200]!r}")
    demand_equal(f"requests of {_CLIENT}", said["requests"], requests)
    demand_not_early(float(said["last_began"]), requests, pace, _CLIENT)
    latencies = told_latencies(text, requests, _CLIENT)
    values = {
        RUN_TIME: float(said["seconds"]),
        "requests": requests,
        "requests_per_second": requests / said["seconds"],
        "latency_mean": math.fsum(latencies) / requests,
        **{f"latency_p{percent}": percentile(latencies, percent) for percent in (50, 95, 99)},
        "latency_max": max(latencies),
        DELIVERED: delivered_percent(requests, due_operations(float(said["last_began"]), pace)),
    }
    return PacedReport(int(said["bytes"]), values)
