"""An array copied in memory by mbw, with up to three methods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from vmlab.model.errors import WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.model.units import Bytes
from vmlab.workloads.metrics import Metric, ToolTime, with_run_time
from vmlab.workloads.tool_workload import EACH_ONCE, ToolWorkload
from vmlab.workloads.verification import demand_equal, demand_one_report
from vmlab.workloads.workload_steps import Footprint, Progress, WorkloadContext, WorkloadParams

Method = Literal["memcpy", "dumb", "mcblock"]

_OPTIONS: dict[Method, str] = {"memcpy": "-t0", "dumb": "-t1", "mcblock": "-t2"}
_MIB = 2**20
_LINE = re.compile(
    r"(?P<run>AVG|[0-9]+)\tMethod: (?P<method>[A-Z]+)\tElapsed: (?P<elapsed>[0-9]+\.[0-9]{5})"
    r"\tMiB: (?P<mib>[0-9]+\.[0-9]+)\tCopy: (?P<rate>[0-9]+\.[0-9]{3}) MiB/s"
)
_ELAPSED_GRAIN = 0.5e-5
_RATE_GRAIN = 0.5e-3
"""Half of the last digit that mbw prints, in seconds and in MiB/s."""
_SLACK = 1.001
_LEAST_SECONDS = 1e-4
"""mbw takes its times from gettimeofday(2), in microseconds: below this a step of them would be more than 1 %."""
_BLOCK = re.compile(r"^Using ([0-9]+) bytes as blocks for memcpy block copy test\.$", re.MULTILINE)
_COPY_BYTES_PER_SECOND = {"kvm": 8e9, "tcg": 1e9}
_FILL_BYTES_PER_SECOND = {"kvm": 1.2e9, "tcg": 0.15e9}
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


class Memcpy(ToolWorkload[MemcpyParams]):
    """``mbw``."""

    kind = "memcpy"
    Params = MemcpyParams
    tools = (("mbw",), ())
    texts = ("mbw",)
    tool = "mbw"
    around: ClassVar = {"kvm": 0.1, "tcg": 0.5}
    first_run = ("mbw", "-q", "-n", "1", "1")
    needs_cpu = True
    summary = "mbw copies an array in memory with up to three methods."
    metrics = with_run_time(
        memcpy_bandwidth=Metric("B/s", "more", "bandwidth of memcpy", of_stage=True),
        dumb_bandwidth=Metric("B/s", "more", "bandwidth of a loop over words", of_stage=True),
        mcblock_bandwidth=Metric("B/s", "more", "bandwidth of memcpy by blocks", of_stage=True),
        copies=Metric("1", None, "copies"),
        bytes=Metric("B", None, "bytes"),
    )
    chosen = ("methods", {name: (f"{name}_bandwidth",) for name in _OPTIONS})

    _done = 0
    """Copies that have ended."""

    @property
    def _copies(self) -> int:
        return self.params.runs * len(self.params.methods)

    def footprint(self, accelerator: str) -> Footprint:
        """Both arrays are filled, then copied."""
        array = self.params.array
        filled = 2 * array / _FILL_BYTES_PER_SECOND[accelerator]
        return Footprint(disk_bytes=0, seconds=1 + filled + self._copies * array / _COPY_BYTES_PER_SECOND[accelerator])

    def argv(self, context: WorkloadContext) -> tuple[str, ...]:
        """mbw itself, with nothing around it. It prints into a buffer: under TCG a line written out between two copies
        slowed them by a quarter, so progress comes late.
        """
        params = self.params
        methods = (_OPTIONS[method] for method in params.methods)
        size = str(params.array // _MIB)
        return ("mbw", "-n", str(params.runs), *methods, "-b", str(params.block), size)

    def progress(self, line: str) -> Progress | None:
        """Copies done, a line each."""
        if "Method:" not in line or line.startswith("AVG"):
            return None
        self._done = min(self._done + 1, self._copies)
        return Progress(self._done, self._copies, "copies")

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From mbw's readings of each copy, which agree with its averages."""
        reports = parse_mbw(texts["mbw"])
        wanted = {method.upper(): method for method in self.params.methods}
        if set(reports) != set(wanted):
            raise WorkloadError(f"mbw ran {', '.join(sorted(reports)) or 'nothing'}, not {', '.join(sorted(wanted))}")
        if "mcblock" in self.params.methods:
            demand_equal("bytes of mbw's blocks", parse_block(texts["mbw"]), self.params.block)
        for method, report in reports.items():
            demand_equal(f"runs of mbw's {method}", len(report.copies), self.params.runs)
            for copy in (*report.copies, report.average):
                demand_equal(f"MiB of a copy of mbw's {method}", copy.mib, self.params.array / _MIB)
            demand_average(method, report)
            demand_measurable(method, report)
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
        return ToolTime(values[RUN_TIME], self.around[accelerator] + filled + values[RUN_TIME] / self._copies)

    def _rate(self, report: MethodReport) -> float:
        """Bytes per second over all copies, as mbw's own average: the amount divided by the mean time."""
        return self.params.array * len(report.copies) / report.seconds


@dataclass(frozen=True, slots=True)
class Copy:
    """One reading, or an average: seconds and MiB/s as printed, and the MiB that were copied."""

    elapsed: float
    mib: float
    rate: float

    @property
    def seconds(self) -> float:
        """The time that follows from the rate, which is printed with more digits where the time is short."""
        return self.mib / self.rate


@dataclass(frozen=True, slots=True)
class MethodReport:
    """What mbw printed for one method."""

    copies: tuple[Copy, ...]
    average: Copy

    @property
    def seconds(self) -> float:
        """Of all copies together."""
        return sum(copy.seconds for copy in self.copies)


def parse_mbw(text: str) -> dict[str, MethodReport]:
    """Method to its readings. Raises WorkloadError for a line that cannot be read, and for a method without average."""
    copies: dict[str, list[Copy]] = {}
    averages: dict[str, Copy] = {}
    for line in text.splitlines():
        if "Method:" not in line:
            continue
        match = _LINE.fullmatch(line.strip())
        copy = Copy(float(match["elapsed"]), float(match["mib"]), float(match["rate"])) if match else None
        if match is None or copy is None or copy.rate <= 0:
            raise WorkloadError(f"mbw printed a line that cannot be read: {line[:200]!r}")
        if match["method"] in averages:
            raise WorkloadError(f"mbw printed more of {match['method']} behind its average, so it is not one report")
        if match["run"] == "AVG":
            averages[match["method"]] = copy
        elif int(match["run"]) != len(copies.setdefault(match["method"], [])):
            raise WorkloadError(f"mbw printed the runs of {match['method']} out of order: {line[:200]!r}")
        else:
            copies[match["method"]].append(copy)
    for method in copies:
        if method not in averages:
            raise WorkloadError(f"mbw printed no average of {method}")
    return {method: MethodReport(tuple(made), averages[method]) for method, made in copies.items()}


def parse_block(text: str) -> int:
    """The size of the blocks of ``mcblock``, in bytes. Raises WorkloadError."""
    demand_one_report(text, _BLOCK.pattern, tool="mbw")
    match = _BLOCK.search(text)
    if match is None:
        raise WorkloadError("mbw did not print the size of its blocks")
    return int(match[1])


def demand_measurable(method: str, report: MethodReport) -> None:
    """Raises WorkloadError for a copy that was too quick for mbw's clock."""
    shortest = min(copy.seconds for copy in report.copies)
    if shortest < _LEAST_SECONDS:
        raise WorkloadError(
            f"a copy of mbw's {method} took {shortest:.6f} s, too quick to be measured; make array larger"
        )


def demand_average(method: str, report: MethodReport) -> None:
    """Raises WorkloadError when mbw's average does not follow from its single readings.

    mbw divides the sum of the times by the number of runs, and the amount by that. Both sides may differ by what
    rounding takes from each printed number.
    """
    mean = report.seconds / len(report.copies)
    copies = report.copies
    grain = sum(copy.seconds * _RATE_GRAIN / copy.rate for copy in copies) / len(copies)
    said = report.average
    by_time = abs(said.elapsed - mean) <= (_ELAPSED_GRAIN + grain) * _SLACK
    by_rate = abs(said.seconds - mean) <= (grain + said.seconds * _RATE_GRAIN / said.rate) * _SLACK + _ELAPSED_GRAIN
    if not (by_time and by_rate):
        raise WorkloadError(
            f"mbw's average of {method}, {said.rate:.3f} MiB/s in {said.elapsed:.5f} s, does not agree with its "
            f"{len(copies)} runs, whose mean time is {mean:.5f} s"
        )
