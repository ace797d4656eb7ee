"""Blocks of memory read or written by sysbench, until an amount has been moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from vmlab.model.errors import WorkloadError
from vmlab.model.quantities import format_bytes
from vmlab.model.run import RUN_TIME
from vmlab.model.scenarios.lever import Threads
from vmlab.model.units import Bytes
from vmlab.workloads.metrics import Metric, ToolTime, with_run_time
from vmlab.workloads.reports.sysbench_report import IntervalCount, MemoryReport, Report, demand_threads, parse_sysbench
from vmlab.workloads.tool_workload import ToolWorkload
from vmlab.workloads.verification import demand_equal
from vmlab.workloads.workload_steps import Footprint, Progress, WorkloadContext, WorkloadParams

_BLOCK_SECONDS = {"kvm": 0.16e-6, "tcg": 2e-6}
_BYTES_PER_SECOND = {"kvm": 20e9, "tcg": 2e9}
"""sysbench's own work for each block, and the bytes themselves. Measured on the host itself, which KVM is close to; for
TCG a guess from how much slower ``cpu`` is there."""
_FILL_BYTES_PER_SECOND = {"kvm": 1.2e9, "tcg": 0.15e9}
"""As with ``memcpy``."""
_LEAST_SECONDS = 0.05
"""sysbench rounds its total time to 0.1 ms; below this that would be more than 0.1 %."""


class MemoryParams(WorkloadParams):
    """Amounts of the ``memory`` workload."""

    total: Bytes = Field(ge=8, le=2**50)
    """Bytes to read or write, all threads together; each thread does the same number of whole blocks."""
    block: Bytes = Field(default=1024, ge=8, le=2**32)
    """Size of the block that each operation reads or writes; a power of two."""
    scope: Literal["local", "global"] = "global"
    """Whether each thread has a block of its own, or all share one."""
    oper: Literal["read", "write"] = "write"
    """Whether blocks are read or written."""
    threads: Threads = Field(default=1, ge=1, le=256)
    """Threads of sysbench, which share the amount."""

    @model_validator(mode="after")
    def _whole_blocks(self) -> MemoryParams:
        if self.block & (self.block - 1):
            raise ValueError("block must be a power of two, such as 1 KiB")
        if self.operations == 0:
            raise ValueError(f"total must be at least a block for each thread, {self.block * self.threads} B here")
        return self

    @property
    def operations(self) -> int:
        """Blocks of all threads; sysbench rounds each thread's share down."""
        return self.total // self.block // self.threads * self.threads


class Memory(ToolWorkload[MemoryParams]):
    """``sysbench memory``, with sequential access."""

    kind = "memory"
    Params = MemoryParams
    tools = (("sysbench",), ())
    texts = ("sysbench",)
    tool = "sysbench memory"
    around: ClassVar = {"kvm": 0.1, "tcg": 0.5}
    first_run = ("sysbench", "memory", "--memory-total-size=1M", "--time=0", "run")
    summary = "sysbench reads or writes blocks of memory with a number of threads."
    metrics = with_run_time(
        bandwidth=Metric("B/s", "more", "bandwidth"),
        operations=Metric("1", None, "operations"),
        operations_per_second=Metric("1/s", "more", "operations per second"),
        bytes=Metric("B", None, "bytes"),
    )
    throughput = "bandwidth"
    needs_cpu = True
    loops = True

    def __init__(self, params: MemoryParams) -> None:
        super().__init__(params)
        self._moved = IntervalCount(params.operations * params.block)

    def footprint(self, accelerator: str) -> Footprint:
        """Threads share two processors at most, as the plan's idle host has two."""
        params = self.params
        alone = params.operations * (_BLOCK_SECONDS[accelerator] + params.block / _BYTES_PER_SECOND[accelerator])
        return Footprint(disk_bytes=0, seconds=1 + alone / min(params.threads, 2))

    def argv(self, context: WorkloadContext) -> tuple[str, ...]:
        """sysbench itself, with nothing around it."""
        params = self.params
        return (
            *("sysbench", "memory", f"--threads={params.threads}"),
            f"--memory-block-size={params.block}",
            f"--memory-total-size={params.total}",
            f"--memory-scope={params.scope}",
            f"--memory-oper={params.oper}",
            *("--memory-access-mode=seq", "--time=0", "--report-interval=1", "run"),
        )

    def progress(self, line: str) -> Progress | None:
        """Bytes moved, from sysbench's own rate each second."""
        return self._moved.progress(line, "B")

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """The rates that sysbench prints are rounded; ours follow from the exact count of operations."""
        params = self.params
        report = parse_sysbench(Report, texts["sysbench"])
        memory = parse_sysbench(MemoryReport, texts["sysbench"])
        demand_equal("operations of sysbench memory", memory.operations, params.operations)
        demand_equal("events of sysbench memory", report.events, params.operations)
        demand_equal("KiB of sysbench's blocks", memory.block_kib, params.block // 1024)
        demand_equal("MiB of sysbench's total size", memory.total_mib, params.total // 2**20)
        demand_threads(report, params.threads)
        if (memory.operation, memory.scope) != (params.oper, params.scope):
            raise WorkloadError(
                f"sysbench did {memory.operation} with scope {memory.scope}, not {params.oper} with {params.scope}"
            )
        if report.total_time < _LEAST_SECONDS:
            raise WorkloadError(
                f"{format_bytes(params.total)} were moved within {report.total_time} s, too quick to be measured; "
                "make total larger"
            )
        moved = memory.operations * params.block
        return {
            RUN_TIME: report.total_time,
            "bandwidth": moved / report.total_time,
            "operations": memory.operations,
            "operations_per_second": memory.operations / report.total_time,
            "bytes": moved,
        }

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """sysbench's own; it starts and fills its blocks before."""
        blocks = self.params.block * (self.params.threads if self.params.scope == "local" else 1)
        return ToolTime(values[RUN_TIME], self.around[accelerator] + blocks / _FILL_BYTES_PER_SECOND[accelerator])
