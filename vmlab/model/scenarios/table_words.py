"""The words that say how results are laid out, which scenario, plan and all readers of a run have in common."""

from __future__ import annotations

from typing import Literal

WORKLOADS = "workloads"
METRICS = "metrics"
STATISTICS = "statistics"
PARTS = (WORKLOADS, METRICS, STATISTICS)
"""What a side of a table may have besides axes."""
TABLE = "table"
"""What `looks_at` of `until` says where a run is looked at by its tables, and not by claims."""

Statistic = Literal["mean", "sd", "cv", "sum", "jain", "best", "worst"]
Relative = Literal["difference", "percent", "ratio", "overhead", "slowdown"]
