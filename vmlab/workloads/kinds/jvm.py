"""Java programs of our own and of Debian's libraries, one after another in one virtual machine of Java."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

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
from vmlab.workloads.java import SETTINGS, prepare_java
from vmlab.workloads.listed_names import EACH_ONCE
from vmlab.workloads.metrics import Metric, with_run_time
from vmlab.workloads.programs import line_object
from vmlab.workloads.reports.jvm_report import parse_suite, score_name, seconds_of
from vmlab.workloads.tool_time import ToolTime
from vmlab.workloads.verification import demand_success

FOLDER = "/usr/lib/vmlab/jvm"
"""Sources and, compiled when the image is built, classes."""
_LIBRARIES = (
    *("eclipse-jdt-core", "eclipse-jdt-core-compiler-batch", "jl"),
    *("sunflow", "janino", "commons-compiler", "derby"),
)
"""The second is part of the first before Debian 13, and Java passes over what is not there."""
_SETTINGS = ("-XX:+UseG1GC", "-XX:-UsePerfData")
"""Java would choose its collector by the guest's processors and memory; and it would write counters to /tmp."""
_MIB = 2**20

Member = Literal[
    "compiler",
    "compress",
    "crypto",
    "derby",
    "mpegaudio",
    "scimark",
    "scimark.large",
    "serial",
    "startup",
    "sunflow",
    "xml",
]

_MEMBERS: tuple[Member, ...] = get_args(Member)
_SECONDS: Mapping[Member, float] = {
    "compiler": 0.75,
    "compress": 0.1,
    "crypto": 0.17,
    "derby": 1.6,
    "mpegaudio": 0.11,
    "scimark": 0.16,
    "scimark.large": 0.6,
    "serial": 0.19,
    "startup": 1.6,
    "sunflow": 0.7,
    "xml": 0.35,
}
"""Processor time of one of a member's first operations: measured in a guest under TCG, beside other work."""
_START_SECONDS = 0.2
_EMULATED = 20.0
"""How much longer TCG takes, as it was with most members."""


class JvmParams(WorkloadParams):
    """Amounts of the ``jvm`` workload."""

    members: Annotated[tuple[Member, ...], EACH_ONCE] = Field(default=_MEMBERS, min_length=1)
    """Which members run, one after another, in this order; all by default."""
    operations: int = Field(default=20, ge=1, le=100_000)
    """Operations of each member that are timed, of all threads together."""
    warmup: int = Field(default=2, ge=0, le=10_000)
    """Operations of each thread before these, which are checked, and not timed: Java compiles while it runs."""
    threads: int = Field(default=2, ge=1, le=256)
    """Threads, which share the operations; as many as the guest has processors, as SPECjvm2008 has it."""
    heap: Bytes = Field(default=512 * _MIB, ge=64 * _MIB, le=2**40)
    """Size of Java's heap, in whole MiB, from beginning to end."""

    @model_validator(mode="after")
    def _possible(self) -> JvmParams:
        if self.heap % _MIB:
            raise ValueError("heap must be a whole number of MiB")
        if self.operations < self.threads:
            raise ValueError(f"operations must be one for each thread at least, {self.threads} here")
        return self


class Jvm(Workload[JvmParams]):
    """The suite ``members.Suite``, on the Java that Debian has."""

    kind = "jvm"
    sides = 1
    Params = JvmParams
    texts = ("suite",)
    summary = (
        "Java programs compile, compress, encrypt, decode, calculate, render, start, and use SQL, XML and objects."
    )
    metrics = with_run_time(
        score=Metric("1", "more", "score: operations a minute, the geometric mean of all members"),
        **{score_name(name): Metric("1", "more", f"{name}: operations a minute") for name in _MEMBERS},
        operations=Metric("1", None, "operations"),
    )

    needs_cpu = True

    @classmethod
    def left_out(cls, params: Mapping[str, Any]) -> frozenset[str]:
        """The scores of members that do not run."""
        ran = params.get("members", _MEMBERS)
        return frozenset(score_name(name) for name in _MEMBERS if name not in ran)

    def footprint(self, accelerator: str) -> Footprint:
        """Threads share two processors at most, as the plan's idle host has two."""
        params = self.params
        each = params.operations + params.warmup * params.threads
        work = sum(_SECONDS[name] * each for name in params.members) / min(params.threads, 2)
        return Footprint(disk_bytes=0, seconds=(_START_SECONDS + work) * (_EMULATED if accelerator == "tcg" else 1.0))

    async def prepare(self, context: WorkloadContext) -> None:
        """Settle how Java compiles, and start it once."""
        await prepare_java(context.source)

    def client(self, context: WorkloadContext) -> Client:
        """Java itself, with nothing around it, and with a heap that neither grows nor shrinks."""
        params = self.params
        heap = params.heap // _MIB
        path = ":".join([f"{FOLDER}/classes", *(f"/usr/share/java/{name}.jar" for name in _LIBRARIES)])
        return Client(
            argv=(
                *("java", SETTINGS, *_SETTINGS, f"-Xms{heap}m", f"-Xmx{heap}m"),
                *(f"-Dmembers.source={FOLDER}/source", "-cp", path),
                *("members.Suite", str(params.threads), str(params.warmup)),
                *(f"{name}:{params.operations}" for name in params.members),
            ),
            deadline=300 + 60 * self.footprint("tcg").seconds,
        )

    def progress(self, line: str) -> Progress | None:
        """Operations of each member."""
        said = line_object(line)
        if said is None or "done" not in said:
            return None
        return Progress(float(said["done"]), float(said["of"]), "operations", str(said["member"]))

    async def collect(self, context: WorkloadContext, finished: Finished) -> Collected:
        """Each member did all operations, and each had the known result."""
        demand_success(finished, "java")
        texts = {"suite": finished.stdout}
        return Collected(self.figures(texts, finished.seconds), {**texts, "stderr": finished.stderr})

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From the times of each member."""
        params, said = self.params, parse_suite(texts["suite"])
        if list(said) != list(params.members):
            raise WorkloadError(f"the suite ran {', '.join(said) or 'nothing'}, not {', '.join(params.members)}")
        asked = (params.operations, params.threads, params.warmup, params.heap)
        took = {name: seconds_of(said[name], *asked) for name in params.members}
        scores = {name: 60 * params.operations / one for name, one in took.items()}
        return {
            RUN_TIME: sum(took.values()),
            "score": math.prod(scores.values()) ** (1 / len(scores)),
            **{score_name(name): score for name, score in scores.items()},
            "operations": params.operations * len(params.members),
        }

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """The members'; Java starts before, and each thread warms up."""
        params = self.params
        each = params.warmup * params.threads
        warm = sum(_SECONDS[name] for name in params.members) * each / min(params.threads, 2)
        alone = (2 * _START_SECONDS + 1.5 * warm) * (_EMULATED if accelerator == "tcg" else 1.0)
        return ToolTime(values[RUN_TIME], alone + values[RUN_TIME] * each / params.operations)
