"""The four kernels of STREAM over arrays in memory, by a program of our own that is part of the guest image."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, model_validator

from vmlab.model.errors import WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.model.scenarios.lever import Threads
from vmlab.model.units import Bytes
from vmlab.workloads.metrics import Metric, ToolTime, with_run_time
from vmlab.workloads.programs import told_progress
from vmlab.workloads.tool_workload import ToolWorkload
from vmlab.workloads.verification import demand_equal, last_object, number_of
from vmlab.workloads.workload_steps import Footprint, Progress, WorkloadContext, WorkloadParams

PROGRAM = "/usr/lib/vmlab/stream"
"""Compiled when the image is built, from ``stream.c`` of its payload."""
KERNELS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
"""How many arrays each kernel reads or writes, as STREAM counts them."""

_WORD = 8
_ARRAYS_MOVED = sum(KERNELS.values())
_BYTES_PER_SECOND = {"kvm": 10e9, "tcg": 1e9}
_FILL_BYTES_PER_SECOND = {"kvm": 1.2e9, "tcg": 0.15e9}
"""Measured on the host itself; for TCG a guess."""
_LEAST_SECONDS = 1e-4
"""Waking the threads takes some ten microseconds."""
_AGREEMENT = 1e-6


class StreamParams(WorkloadParams):
    """Amounts of the ``stream`` workload."""

    array: Bytes = Field(default=80_000_000, ge=_WORD, le=2**40)
    """Size of each of the three arrays, a multiple of 8 B; STREAM asks for four times the processor's largest cache."""
    runs: int = Field(default=10, ge=2, le=200)
    """How often each kernel runs; the first time is not counted."""
    threads: Threads = Field(default=1, ge=1, le=256)
    """Threads, which share the arrays."""

    @model_validator(mode="after")
    def _whole_words(self) -> StreamParams:
        if self.array % _WORD:
            raise ValueError("array must be a multiple of 8 B")
        if self.array < _WORD * self.threads:
            raise ValueError(f"array must have 8 B for each thread, {_WORD * self.threads} B here")
        return self


class Stream(ToolWorkload[StreamParams]):
    """COPY, SCALE, ADD and TRIAD; the program checks every element of its arrays afterwards."""

    kind = "stream"
    Params = StreamParams
    tools = ((PROGRAM,), ())
    texts = ("stream",)
    tool = "stream"
    around: ClassVar = {"kvm": 0.1, "tcg": 1.0}
    first_run = (PROGRAM, "1", "1", "2")
    needs_cpu = True
    summary = "Four kernels (copy, scale, add, triad) run over arrays in memory, as in STREAM."
    metrics = with_run_time(
        **{f"{name}_bandwidth": Metric("B/s", "more", f"bandwidth of {name}") for name in KERNELS},
        **{
            f"{name}_bandwidth_{end}": Metric("B/s", "more", f"{end} bandwidth of {name}", of_stage=True)
            for end in ("best", "worst")
            for name in KERNELS
        },
        bytes=Metric("B", None, "bytes"),
    )

    def footprint(self, accelerator: str) -> Footprint:
        """Arrays are filled, worked on and checked."""
        params = self.params
        moved = params.runs * _ARRAYS_MOVED * params.array / _BYTES_PER_SECOND[accelerator]
        return Footprint(disk_bytes=0, seconds=1 + moved + 3 * params.array / _FILL_BYTES_PER_SECOND[accelerator])

    def argv(self, context: WorkloadContext) -> tuple[str, ...]:
        """The program itself, with nothing around it."""
        params = self.params
        return (PROGRAM, str(params.threads), str(params.array // _WORD), str(params.runs))

    def progress(self, line: str) -> Progress | None:
        """Runs of all four kernels."""
        return told_progress(line, "runs", done="run", total=self.params.runs)

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From the times of each kernel, which agree with the program's summary."""
        params = self.params
        said = last_object(texts["stream"], "stream")
        for name, asked in (("threads", params.threads), ("runs", params.runs), ("elements", params.array // _WORD)):
            demand_equal(f"{name} of stream", number_of(said, name, "stream", "its work"), asked)
        checked = number_of(said, "checked", "stream", "its work")
        demand_equal("elements that stream checked", checked, 3 * params.array // _WORD)
        values: dict[str, float] = {}
        total = 0.0
        for name, arrays in KERNELS.items():
            times = _times(said, name, arrays * params.array, params.runs)
            total += sum(times)
            counted = times[1:]
            moved = arrays * params.array
            values[f"{name}_bandwidth"] = moved * len(counted) / sum(counted)
            values[f"{name}_bandwidth_best"] = moved / min(counted)
            values[f"{name}_bandwidth_worst"] = moved / max(counted)
        return {RUN_TIME: total, **values, "bytes": params.runs * _ARRAYS_MOVED * params.array}

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """The kernels; the arrays are filled before and checked afterwards."""
        filled = 3 * self.params.array / _FILL_BYTES_PER_SECOND[accelerator]
        # Where memory is slow, as in a guest that is swapped out, filling and checking are as slow as the kernels.
        alike = values[RUN_TIME] * 6 / (_ARRAYS_MOVED * self.params.runs)
        return ToolTime(values[RUN_TIME], self.around[accelerator] + filled + alike)


def _times(said: dict[str, Any], name: str, moved: int, runs: int) -> list[float]:
    """Seconds of one kernel, each run of it. Raises WorkloadError where the program's summary says something else."""
    kernels = said.get("kernels")
    kernel = kernels.get(name) if isinstance(kernels, dict) else None
    times = kernel.get("times") if isinstance(kernel, dict) else None
    if not isinstance(kernel, dict) or not isinstance(times, list) or not all(isinstance(t, float) for t in times):
        raise WorkloadError(f"stream printed no times of {name}")
    demand_equal(f"runs of stream's {name}", len(times), runs)
    demand_equal(f"bytes of stream's {name}", number_of(kernel, "bytes", "stream", name), moved)
    if min(times) < _LEAST_SECONDS:
        raise WorkloadError(f"stream's {name} took {min(times):.6f} s, too quick to be measured; make array larger")
    counted = times[1:]
    summary = {"min": min(counted), "max": max(counted), "avg": sum(counted) / len(counted)}
    for key, value in {**summary, "best": moved / min(counted)}.items():
        if not math.isclose(number_of(kernel, key, "stream", name), value, rel_tol=_AGREEMENT + 1e-9 / min(counted)):
            raise WorkloadError(f"stream's {key} of {name}, {kernel[key]}, does not follow from its times: {value}")
    return times
