"""Java programs of our own and of Debian's libraries, one after another in one virtual machine of Java."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from vmlab.model.errors import WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.model.scenarios.lever import Threads
from vmlab.model.units import Bytes
from vmlab.workloads.metrics import Metric, ToolTime, with_run_time
from vmlab.workloads.programs import told_progress
from vmlab.workloads.shell import Shell
from vmlab.workloads.tool_workload import EACH_ONCE, ToolWorkload
from vmlab.workloads.verification import demand_equal, figures_by_name, number_of
from vmlab.workloads.workload_steps import Footprint, Progress, WorkloadContext, WorkloadParams

FOLDER = "/usr/lib/vmlab/jvm"
"""Sources and, compiled when the image is built, classes."""
SETTINGS = "@/run/vmlab-java"
"""Java's argument file, as `prepare_java` writes it."""
EMULATED = "-XX:TieredStopAtLevel=1"
"""Java's second compiler replaces code of the first one while it runs, which QEMU before 8.1 does not always see."""
_LIBRARIES = (
    *("eclipse-jdt-core", "eclipse-jdt-core-compiler-batch", "jl"),
    *("sunflow", "janino", "commons-compiler", "derby"),
)
"""The second is part of the first before Debian 13, and Java passes over what is not there."""
_SETTINGS = ("-XX:+UseG1GC", "-XX:-UsePerfData")
"""Java would choose its collector by the guest's processors and memory; and it would write counters to /tmp."""
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Member:
    """A program of the suite. `seconds` is the processor time of one of its first operations, measured in a guest under
    TCG beside other work; `checksum` that of its result, as its source defines it. Those of compress, crypto and derby
    are tested against other implementations.
    """

    seconds: float
    checksum: str


MEMBERS: Mapping[str, Member] = {
    "compiler": Member(0.75, "fffff68a8edecb55"),
    "compress": Member(0.1, "b9a3f9cd"),
    "crypto": Member(0.17, "f50f2439"),
    "derby": Member(1.6, "49a3f5de"),
    "mpegaudio": Member(0.11, "7c270838"),
    "scimark": Member(0.16, "99c27b8c1e7ed950"),
    "scimark.large": Member(0.6, "7bb868e881cd3ac2"),
    "serial": Member(0.19, "5b3b2a1c"),
    "startup": Member(1.6, "2d6e89d4790"),
    "sunflow": Member(0.7, "579ec7c0"),
    "xml": Member(0.35, "5fdfd178"),
}
if TYPE_CHECKING:
    MemberName = str
else:
    MemberName = Literal[*MEMBERS]
_START_SECONDS = 0.2
_EMULATED = 20.0
"""How much longer TCG takes, as it was with most members."""

_LEAST_SECONDS = 0.001
_CLOCK = 1e-6
"""Sums of times that were printed, one by one."""


def score_name(member: str) -> str:
    """The metric of a member's score."""
    return f"{member.replace('.', '_')}_score"


class JvmParams(WorkloadParams):
    """Amounts of the ``jvm`` workload."""

    members: Annotated[tuple[MemberName, ...], EACH_ONCE] = Field(default=tuple(MEMBERS), min_length=1)
    """Which members run, one after another, in this order; all by default."""
    operations: int = Field(default=20, ge=1, le=100_000)
    """Timed operations of each member, all threads together."""
    warmup: int = Field(default=2, ge=0, le=10_000)
    """Operations of each thread before the timed ones, checked but not timed, as Java compiles while it runs."""
    threads: Threads = Field(default=2, ge=1, le=256)
    """Threads, which share the operations; SPECjvm2008 uses one per processor."""
    heap: Bytes = Field(default=512 * _MIB, ge=64 * _MIB, le=2**40)
    """Fixed size of Java's heap, in whole MiB."""

    @model_validator(mode="after")
    def _possible(self) -> JvmParams:
        if self.heap % _MIB:
            raise ValueError("heap must be a whole number of MiB")
        if self.operations < self.threads:
            raise ValueError(f"operations must be one for each thread at least, {self.threads} here")
        return self


class Jvm(ToolWorkload[JvmParams]):
    """The suite ``members.Suite``, on the Java that Debian has."""

    kind = "jvm"
    Params = JvmParams
    texts = ("suite",)
    tool = "java"
    summary = (
        "Java programs compile, compress, encrypt, decode, calculate, render, start, and use SQL, XML and objects."
    )
    metrics = with_run_time(
        score=Metric("1", "more", "score: operations a minute, the geometric mean of all members"),
        **{score_name(name): Metric("1", "more", f"{name}: operations a minute") for name in MEMBERS},
        operations=Metric("1", None, "operations"),
    )
    chosen = ("members", {name: (score_name(name),) for name in MEMBERS})
    needs_cpu = True

    def footprint(self, accelerator: str) -> Footprint:
        """Threads share two processors at most, as the plan's idle host has two."""
        params = self.params
        each = params.operations + params.warmup * params.threads
        work = sum(MEMBERS[name].seconds * each for name in params.members) / min(params.threads, 2)
        return Footprint(disk_bytes=0, seconds=(_START_SECONDS + work) * (_EMULATED if accelerator == "tcg" else 1.0))

    async def prepare(self, context: WorkloadContext) -> None:
        """Settle how Java compiles, and start it once."""
        await prepare_java(context.source)

    def argv(self, context: WorkloadContext) -> tuple[str, ...]:
        """Java itself, with nothing around it, and with a heap that neither grows nor shrinks."""
        params = self.params
        heap = params.heap // _MIB
        path = ":".join([f"{FOLDER}/classes", *(f"/usr/share/java/{name}.jar" for name in _LIBRARIES)])
        return (
            *("java", SETTINGS, *_SETTINGS, f"-Xms{heap}m", f"-Xmx{heap}m"),
            *(f"-Dmembers.source={FOLDER}/source", "-cp", path),
            *("members.Suite", str(params.threads), str(params.warmup)),
            *(f"{name}:{params.operations}" for name in params.members),
        )

    def progress(self, line: str) -> Progress | None:
        """Operations of each member."""
        return told_progress(line, "operations", total="of", stage="member")

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
        warm = sum(MEMBERS[name].seconds for name in params.members) * each / min(params.threads, 2)
        alone = (2 * _START_SECONDS + 1.5 * warm) * (_EMULATED if accelerator == "tcg" else 1.0)
        return ToolTime(values[RUN_TIME], alone + values[RUN_TIME] * each / params.operations)


async def prepare_java(shell: Shell) -> None:
    """Write the argument file, and start Java once, so that the first cell does not pay for reading it."""
    found = await shell.run(["systemd-detect-virt", "--vm"], check=False)
    settings = f"{EMULATED}\n" if found.stdout.strip() == "qemu" else ""
    await shell.write(SETTINGS.removeprefix("@"), settings.encode())
    await shell.run(["java", SETTINGS, "-version"])


def parse_suite(text: str) -> dict[str, dict[str, Any]]:
    """The line of figures of each member, by its name. Raises WorkloadError where one stands twice."""
    return figures_by_name(text, "the suite", "member", "checksums")


def seconds_of(said: Mapping[str, Any], operations: int, threads: int, warmup: int, heap: int) -> float:
    """The seconds in which a member did all operations, each with the known result. Raises WorkloadError."""
    name = str(said["member"])
    demand_equal(f"threads of {name}", _number(said, "threads"), threads)
    demand_equal(f"heap of {name} in bytes", _number(said, "heap"), heap)
    _demand_results(name, said["checksums"], operations + threads * warmup)
    times, seconds = said.get("times"), _number(said, "seconds")
    if not isinstance(times, list) or not all(isinstance(one, float) and one > 0 for one in times):
        raise WorkloadError(f"the suite printed no times of {name}")
    demand_equal(f"operations of {name}", len(times), operations)
    if seconds < _LEAST_SECONDS:
        raise WorkloadError(f"{name} took {seconds:.6f} s, too quick to be measured; ask for more operations")
    if not max(times) - _CLOCK <= seconds or sum(times) > threads * seconds + _CLOCK * len(times):
        raise WorkloadError(f"the operations of {name} do not fit into its {seconds:.3f} s with {threads} threads")
    return seconds


def _demand_results(name: str, checksums: object, operations: int) -> None:
    if not isinstance(checksums, dict):
        raise WorkloadError(f"the suite printed no checksums of {name}")
    right = MEMBERS[name].checksum
    wrong = [checksum for checksum in checksums if checksum != right]
    if wrong:
        raise WorkloadError(f"{name} gave a wrong result: its checksum is {wrong[0]}, and should be {right}")
    demand_equal(f"results of {name}", checksums.get(right, 0), operations)


def _number(said: Mapping[str, Any], name: str) -> float:
    return number_of(said, name, "the suite", said["member"])
