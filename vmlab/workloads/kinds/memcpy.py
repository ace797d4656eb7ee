"""An array copied in memory by mbw, with up to three methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from vmlab.model.errors import WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.model.units import Bytes
from vmlab.workloads.contract import (
    Client,
    Collected,
    Finished,
    Footprint,
    Progress,
    Workload,
    WorkloadContext,
    WorkloadParams,
)
from vmlab.workloads.listed_names import EACH_ONCE
from vmlab.workloads.metrics import Metric, with_run_time
from vmlab.workloads.reports.mbw_report import MethodReport, demand_average, demand_measurable, parse_block, parse_mbw
from vmlab.workloads.tool_time import ToolTime
from vmlab.workloads.verification import demand_equal, demand_success

Method = Literal["memcpy", "dumb", "mcblock"]

_OPTIONS: dict[Method, str] = {"memcpy": "-t0", "dumb": "-t1", "mcblock": "-t2"}
_MIB = 2**20
_COPY_BYTES_PER_SECOND = {"kvm": 8e9, "tcg": 1e9}
_FILL_BYTES_PER_SECOND = {"kvm": 1.2e9, "tcg": 0.15e9}
_AROUND = {"kvm": 0.1, "tcg": 0.5}
"""Measured on the host itself; for TCG a guess."""


class MemcpyParams(WorkloadParams):
    """Amounts of the ``memcpy`` workload."""

    array: Bytes = Field(ge=_MIB, le=2**40)
    """Size of the array that is copied, in whole MiB; a second one of the same size takes the copy."""
    runs: int = Field(default=10, ge=1, le=100_000)
    """Copies with each method."""
    methods: Annotated[tuple[Method, ...], EACH_ONCE] = Field(default=("memcpy", "dumb", "mcblock"), min_length=1)
    """``memcpy`` of the C library, ``dumb`` (word by word in a loop), ``mcblock`` (memcpy block by block)."""
    block: Bytes = Field(default=262_144, ge=1, le=2**40)
    """Size of the blocks of ``mcblock``."""

    @model_validator(mode="after")
    def _whole_array(self) -> MemcpyParams:
        if self.array % _MIB:
            raise ValueError("array must be a whole number of MiB")
        if self.block > self.array:
            raise ValueError("block must not be larger than array")
        return self


class Memcpy(Workload[MemcpyParams]):
    """``mbw``."""

    kind = "memcpy"
    sides = 1
    Params = MemcpyParams
    tools = (("mbw",), ())
    texts = ("mbw",)
    needs_cpu = True
    summary = "mbw copies an array in memory with up to three methods."
    metrics = with_run_time(
        memcpy_bandwidth=Metric("B/s", "more", "bandwidth of memcpy", of_stage=True),
        dumb_bandwidth=Metric("B/s", "more", "bandwidth of a loop over words", of_stage=True),
        mcblock_bandwidth=Metric("B/s", "more", "bandwidth of memcpy by blocks", of_stage=True),
        copies=Metric("1", None, "copies"),
        bytes=Metric("B", None, "bytes"),
    )

    @classmethod
    def left_out(cls, params: Mapping[str, Any]) -> frozenset[str]:
        """The rates of methods that do not run."""
        ran = params.get("methods", tuple(_OPTIONS))
        return frozenset(f"{name}_bandwidth" for name in _OPTIONS if name not in ran)

    def __init__(self, params: MemcpyParams) -> None:
        super().__init__(params)
        self._done = 0

    @property
    def _copies(self) -> int:
        return self.params.runs * len(self.params.methods)

    def footprint(self, accelerator: str) -> Footprint:
        """Both arrays are filled, then copied."""
        array = self.params.array
        filled = 2 * array / _FILL_BYTES_PER_SECOND[accelerator]
        return Footprint(disk_bytes=0, seconds=1 + filled + self._copies * array / _COPY_BYTES_PER_SECOND[accelerator])

    async def prepare(self, context: WorkloadContext) -> None:
        """Load program and libraries once, so that the first cell does not pay for reading them."""
        await context.source.run(["mbw", "-q", "-n", "1", "1"])

    def client(self, context: WorkloadContext) -> Client:
        """mbw itself, with nothing around it. It prints into a buffer: under TCG a line written out between two copies
        slowed them by a quarter, so progress comes late.
        """
        params = self.params
        methods = (_OPTIONS[method] for method in params.methods)
        size = str(params.array // _MIB)
        return Client(
            argv=("mbw", "-n", str(params.runs), *methods, "-b", str(params.block), size),
            deadline=300 + 60 * self.footprint("tcg").seconds,
        )

    def progress(self, line: str) -> Progress | None:
        """Copies done, a line each."""
        if "Method:" not in line or line.startswith("AVG"):
            return None
        self._done = min(self._done + 1, self._copies)
        return Progress(self._done, self._copies, "copies")

    async def collect(self, context: WorkloadContext, finished: Finished) -> Collected:
        """Each method ran as often as asked, over the whole array, and its average agrees with its readings."""
        demand_success(finished, "mbw")
        texts = {"mbw": finished.stdout}
        return Collected(self.figures(texts, finished.seconds), {**texts, "stderr": finished.stderr})

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From mbw's readings of each copy, which agree with its averages."""
        reports = parse_mbw(texts["mbw"])
        wanted = {method.upper(): method for method in self.params.methods}
        if set(reports) != set(wanted):
            raise WorkloadError(f"mbw ran {', '.join(sorted(reports)) or 'nothing'}, not {', '.join(sorted(wanted))}")
        if "mcblock" in self.params.methods:
            demand_equal("bytes of mbw's blocks", parse_block(texts["mbw"]), self.params.block)
        for method, report in reports.items():
            self._demand(method, report)
        rates = {f"{wanted[method]}_bandwidth": self._rate(report) for method, report in reports.items()}
        return {
            RUN_TIME: sum(report.seconds for report in reports.values()),
            **rates,
            "copies": self._copies,
            "bytes": self._copies * self.params.array,
        }

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """The copies; both arrays are filled before."""
        filled = 2 * self.params.array / _FILL_BYTES_PER_SECOND[accelerator]
        # Where memory is slow, as in a guest that is swapped out, filling is as slow as a copy.
        return ToolTime(values[RUN_TIME], _AROUND[accelerator] + filled + values[RUN_TIME] / self._copies)

    def _demand(self, method: str, report: MethodReport) -> None:
        demand_equal(f"runs of mbw's {method}", len(report.copies), self.params.runs)
        for copy in (*report.copies, report.average):
            demand_equal(f"MiB of a copy of mbw's {method}", copy.mib, self.params.array / _MIB)
        demand_average(method, report)
        demand_measurable(method, report)

    def _rate(self, report: MethodReport) -> float:
        """Bytes per second over all copies, as mbw's own average: the amount divided by the mean time."""
        return self.params.array * len(report.copies) / report.seconds
