"""Prime numbers by sysbench: the processor alone, with hardly any memory, disk or network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from vmlab.model.run import RUN_TIME
from vmlab.model.scenarios.lever import Threads
from vmlab.workloads.metrics import Metric, latencies, with_run_time
from vmlab.workloads.reports.sysbench_report import (
    IntervalCount,
    Report,
    demand_threads,
    half_of,
    parse_prime_limit,
    parse_sysbench,
)
from vmlab.workloads.tool_workload import ToolWorkload
from vmlab.workloads.verification import demand_equal
from vmlab.workloads.workload_steps import Footprint, Progress, WorkloadContext, WorkloadParams

_EVENT_SECONDS = {"kvm": 0.0022, "tcg": 0.014}
"""One event of max_prime 50,000: measured under TCG, and on the host itself, which KVM is close to."""
_PRIME_EXPONENT = 1.4
"""How an event grows with max_prime, from events of 10,000 and 50,000."""


class CpuParams(WorkloadParams):
    """Amounts of the ``cpu`` workload."""

    threads: Threads = Field(ge=1, le=256)
    """Threads of sysbench, which share the events."""
    max_prime: int = Field(default=50_000, ge=1_000, le=1_000_000)
    """Each event computes all primes up to this number."""
    events: int = Field(default=10_000, ge=1, le=10_000_000)
    """Events of all threads together."""


class Cpu(ToolWorkload[CpuParams]):
    """``sysbench cpu``, on a guest or on the host inside the image's own root file system.

    Under TCG an event takes 14 ms with max_prime 50,000, 4 ms with 20,000 and 1.6 ms with 10,000, against 2.1 ms,
    0.6 ms and 0.2 ms on the host: 2,000 events with 10,000 are the least that lasts long enough on both to compare.
    """

    kind = "cpu"
    Params = CpuParams
    tools = (("sysbench",), ())
    texts = ("sysbench",)
    tool = "sysbench cpu"
    around: ClassVar = {"kvm": 0.1, "tcg": 0.5}
    first_run = ("sysbench", "cpu", "--cpu-max-prime=100", "--events=1", "--time=0", "run")
    summary = "sysbench looks for prime numbers with a number of threads."
    metrics = with_run_time(
        events=Metric("1", None, "events"),
        events_per_second=Metric("1/s", "more", "events per second"),
        **latencies("avg", "p95", "max"),
        first_half_time=Metric("s", "less", "time of the first half of the events"),
        second_half_time=Metric("s", "less", "time of the second half of the events"),
    )
    throughput = "events_per_second"
    follows_speed = True
    needs_cpu = True
    latency = "latency_p95"
    loops = True

    def __init__(self, params: CpuParams) -> None:
        super().__init__(params)
        self._count = IntervalCount(params.events)

    def footprint(self, accelerator: str) -> Footprint:
        """Events share two processors at most, as the plan's idle host has two."""
        event = _EVENT_SECONDS[accelerator] * (self.params.max_prime / 50_000) ** _PRIME_EXPONENT
        return Footprint(disk_bytes=0, seconds=1 + self.params.events * event / min(self.params.threads, 2))

    def argv(self, context: WorkloadContext) -> tuple[str, ...]:
        """sysbench itself, with nothing around it."""
        params = self.params
        return (
            "sysbench",
            "cpu",
            f"--threads={params.threads}",
            f"--cpu-max-prime={params.max_prime}",
            f"--events={params.events}",
            "--time=0",
            "--report-interval=1",
            "run",
        )

    def progress(self, line: str) -> Progress | None:
        """Events done, from sysbench's own rate each second."""
        return self._count.progress(line, "events")

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From sysbench's report, which says that all events were done."""
        report = parse_sysbench(Report, texts["sysbench"])
        demand_equal("limit of sysbench's prime numbers", parse_prime_limit(texts["sysbench"]), self.params.max_prime)
        demand_threads(report, self.params.threads)
        demand_equal("events of sysbench cpu", report.events, self.params.events)
        half = half_of(texts["sysbench"], report.events)
        halves = {} if half is None else {"first_half_time": half, "second_half_time": report.total_time - half}
        return {
            RUN_TIME: report.total_time,
            "events": report.events,
            "events_per_second": report.events / report.total_time,
            "latency_avg": report.latency_avg,
            "latency_p95": report.latency_p95,
            "latency_max": report.latency_max,
            **halves,
        }
