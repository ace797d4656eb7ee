"""For the entry points ``vmlab.workloads``: a class that is a `Workload`, whose ``kind`` is the entry point's name."""

from vmlab.model.errors import GuestError, WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.model.units import Bytes, Seconds
from vmlab.workloads.metrics import Metric, ToolTime, with_run_time
from vmlab.workloads.shell import Completed, Shell
from vmlab.workloads.verification import demand_equal, demand_success, demand_within, read_from_a_guest
from vmlab.workloads.workload_steps import (
    Client,
    Collected,
    Finished,
    Footprint,
    Progress,
    Side,
    StagingContext,
    Stored,
    Workload,
    WorkloadContext,
    WorkloadParams,
)

__all__ = [
    "RUN_TIME",
    "Bytes",
    "Client",
    "Collected",
    "Completed",
    "Finished",
    "Footprint",
    "GuestError",
    "Metric",
    "Progress",
    "Seconds",
    "Shell",
    "Side",
    "StagingContext",
    "Stored",
    "ToolTime",
    "Workload",
    "WorkloadContext",
    "WorkloadError",
    "WorkloadParams",
    "demand_equal",
    "demand_success",
    "demand_within",
    "read_from_a_guest",
    "with_run_time",
]
