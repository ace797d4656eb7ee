"""SPECjvm2008 from the user's own copy: its own launcher, its own benchmarks, its own report."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from vmlab.model.asset import AssetForm
from vmlab.model.errors import WorkloadError
from vmlab.model.run import RUN_TIME
from vmlab.model.units import Bytes, Seconds
from vmlab.workloads.assets import asset_folder, asset_of, packed, unpack
from vmlab.workloads.kinds.jvm import SETTINGS, prepare_java, score_name
from vmlab.workloads.metrics import Metric, ToolTime, with_run_time
from vmlab.workloads.shell import Shell
from vmlab.workloads.tool_workload import EACH_ONCE, ToolWorkload
from vmlab.workloads.verification import demand_equal, only
from vmlab.workloads.workload_steps import Client, Finished, Footprint, StagingContext, WorkloadContext, WorkloadParams

_MIB = 2**20
GROUPS: tuple[str, ...] = (
    *("compiler", "compress", "crypto", "derby", "mpegaudio", "scimark.large", "scimark.small"),
    *("serial", "startup", "sunflow", "xml"),
)
"""The groups of benchmarks that have a score."""

_MONTE_CARLO = "scimark.monte_carlo"
"""It has no size, and counts in both groups of scimark."""
_STATES = ("Run is compliant", "Run is valid, but not compliant")
_GROUP = re.compile(r"(?P<group>[a-z]+(?:\.[a-z]+)?) +(?P<score>\S+)")
_COMPOSITE = re.compile(r"(?:Noncompliant c|C)omposite result: (?P<score>\d+(?:\.\d+)?) .*ops/m")
_DETAIL = re.compile(
    r"(?P<name>[a-z][\w.]*) +(?P<stage>warmup|iteration \d+) +\S+ +(?P<milliseconds>\d+) +"
    r"(?P<operations>\d+(?:\.\d+)?) +(?P<score>\d+(?:\.\d+)?)"
)
_REPORT_HAS = "SPECjvm2008's report has"
_REACHED = 0.99
_ROUNDED = 0.011
"""Operations and scores are printed with two decimals."""
_SIZES = ("large", "small")
_DEFAULT: tuple[str, ...] = (
    *("compress", "crypto.aes", "crypto.rsa", "crypto.signverify", "derby", "mpegaudio"),
    *(f"scimark.{kernel}.{size}" for size in _SIZES for kernel in ("fft", "lu", "sor", "sparse")),
    *("scimark.monte_carlo", "serial", "sunflow"),
)
_STARTS_SECONDS = 30.0
_INSTALL_SECONDS = 1800.0
_RESULT = re.compile(r"/results/SPECjvm2008\.(\d{3})/SPECjvm2008\.\1\.txt$")


class SpecjvmParams(WorkloadParams):
    """Amounts of the ``specjvm`` workload."""

    benchmarks: Annotated[tuple[str, ...], EACH_ONCE] = Field(default=_DEFAULT, min_length=1)
    """Which benchmarks run, by SPEC's names; by default those of a published report on Java 17."""
    warmup: Seconds = Field(default=120.0, ge=1, le=3600)
    """Warm-up of each benchmark, in whole seconds."""
    time: Seconds = Field(default=240.0, ge=1, le=36000)
    """Time of one iteration, in whole seconds; SPECjvm2008 makes it longer if fewer than five operations fit."""
    iterations: int = Field(default=1, ge=1, le=100)
    """Timed iterations of each benchmark."""
    threads: int = Field(default=2, ge=1, le=256)
    """Threads of each benchmark; SPECjvm2008 itself uses one per processor."""
    heap: Bytes = Field(default=512 * _MIB, ge=64 * _MIB, le=2**40)
    """Fixed size of Java's heap, in whole MiB."""

    @model_validator(mode="after")
    def _possible(self) -> SpecjvmParams:
        for name in self.benchmarks:
            if not re.fullmatch(r"[a-z]+(\.[a-z_]+)*", name) or not groups_of([name]) <= set(GROUPS):
                raise ValueError(f"benchmarks: {name[:40]!r} is of none of SPECjvm2008's groups: {', '.join(GROUPS)}")
        if self.heap % _MIB:
            raise ValueError("heap must be a whole number of MiB")
        if self.warmup % 1 or self.time % 1:
            raise ValueError("warmup and time must be whole seconds")
        return self


class Specjvm(ToolWorkload[SpecjvmParams]):
    """``SPECjvm2008.jar`` of the user's copy, on the Java that the guest has."""

    kind = "specjvm"
    Params = SpecjvmParams
    asset = AssetForm(
        "specjvm2008",
        "the folder where SPECjvm2008 is installed, with SPECjvm2008.jar and resources in it, or its setup as a .jar",
        files=("SPECjvm2008.jar", "resources"),
        suffix=".jar",
    )
    tools = (("java", "tar"), ())
    packages: ClassVar = {"java": "default-jre-headless"}
    texts = ("report",)
    tool = "SPECjvm2008"
    summary = "SPECjvm2008 from your own copy (`--asset specjvm2008=PATH`)."
    metrics = with_run_time(
        score=Metric("1", "more", "composite score: operations a minute"),
        **{score_name(group): Metric("1", "more", f"{group}: operations a minute") for group in GROUPS},
        operations=Metric("1", None, "operations"),
    )
    throughput = "score"
    needs_cpu = True

    @classmethod
    def left_out(cls, params: Mapping[str, Any]) -> frozenset[str]:
        """The scores of groups of which no benchmark runs."""
        ran = groups_of(params.get("benchmarks", _DEFAULT))
        return frozenset(score_name(group) for group in GROUPS if group not in ran)

    @classmethod
    def is_timed(cls, params: Mapping[str, Any]) -> bool:
        """Always: each benchmark does as much as it can in its time."""
        return True

    def footprint(self, accelerator: str) -> Footprint:
        """Warm-ups and iterations run for a time, whatever the processor does in it."""
        params = self.params
        each = params.warmup + params.iterations * params.time
        return Footprint(disk_bytes=200 * _MIB, seconds=_STARTS_SECONDS + len(params.benchmarks) * each)

    async def stage(self, context: StagingContext) -> None:
        """Put the user's copy into the guest; a setup installs itself there."""
        asset = asset_of(context)
        folder = asset_folder(context.shell, context.workload)
        await unpack(context.shell, await asyncio.to_thread(packed, asset), folder)
        if asset.path.endswith(".jar"):
            await self._install(context.shell, f"{folder}/specjvm2008")

    async def _install(self, shell: Shell, place: str) -> None:
        setup = (await shell.run(["find", place, "-maxdepth", "1", "-name", "*.jar"])).stdout.split()
        argv = ["java", "-jar", *setup[:1], f"-DUSER_INSTALL_DIR={place}", "-i", "silent"]
        await shell.run(argv, deadline=_INSTALL_SECONDS)
        if (await shell.run(["test", "-e", f"{place}/SPECjvm2008.jar"], check=False)).status != 0:
            raise WorkloadError("the setup of SPECjvm2008 ended, and has not installed SPECjvm2008.jar")

    async def prepare(self, context: WorkloadContext) -> None:
        """Settle how Java compiles, and start it once."""
        await prepare_java(context.source)

    def client(self, context: WorkloadContext) -> Client:
        """Java itself. The suite's own check of its files (`-ikv` leaves it out) is what the asset's digest is for."""
        params = self.params
        heap = params.heap // _MIB
        return Client(
            argv=(
                *("env", "-C", f"{asset_folder(context.source, context.workload)}/specjvm2008"),
                *("java", SETTINGS, "-Djava.awt.headless=true", f"-Xms{heap}m", f"-Xmx{heap}m"),
                *("-jar", "SPECjvm2008.jar"),
                *("-ikv", "-wt", f"{params.warmup:.0f}s", "-it", f"{params.time:.0f}s", "-i", str(params.iterations)),
                *("-bt", str(params.threads), *params.benchmarks),
            ),
            deadline=600 + 5 * self.footprint("tcg").seconds,
        )

    async def printed(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """The report that the suite has written; it and the raw result are kept whole."""
        place = f"{asset_folder(context.source, context.workload)}/specjvm2008/results"
        listed = (await context.source.run(["find", place, "-type", "f", "-name", "*.txt"], check=False)).stdout
        path = only([path for path in listed.splitlines() if _RESULT.search(path)], "SPECjvm2008 wrote", "reports")
        report = (await context.source.run(["cat", path])).stdout
        raw = (await context.source.run(["cat", f"{path.removesuffix('.txt')}.raw"], check=False)).stdout
        return {"report": report, "raw": raw, "stdout": finished.stdout}

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From the report alone."""
        params, report = self.params, parse_specjvm(texts["report"])
        values = figures_of(report, params.benchmarks, params.iterations)
        demand_lasted(report, params.time, params.warmup)
        return values

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """Of iterations and warm-ups; Java and each benchmark start before."""
        report = parse_specjvm(texts["report"])
        took = sum(
            one.seconds for stages in (report.iterations, report.warmups) for each in stages.values() for one in each
        )
        return ToolTime(took, _STARTS_SECONDS * (1 + len(self.params.benchmarks)))


@dataclass(frozen=True, slots=True)
class Iteration:
    """One timed iteration of a benchmark; `score` is in operations a minute."""

    seconds: float
    operations: float
    score: float


@dataclass(frozen=True, slots=True)
class Report:
    """What a report says: the composite score, that of each group, and each benchmark's iterations without warm-up."""

    score: float
    groups: Mapping[str, float]
    iterations: Mapping[str, tuple[Iteration, ...]]
    warmups: Mapping[str, tuple[Iteration, ...]]


def groups_of(benchmarks: Sequence[str]) -> set[str]:
    """The groups that benchmarks fall into."""
    found: set[str] = set()
    for name in benchmarks:
        if name == _MONTE_CARLO:
            found |= {"scimark.large", "scimark.small"}
        elif name.startswith("scimark."):
            found.add(f"scimark.{name.rpartition('.')[2]}")
        else:
            found.add(name.partition(".")[0])
    return found


def parse_specjvm(text: str) -> Report:
    """A report, read as a whole. Raises WorkloadError where it is not one of a valid run."""
    lines = [line.strip() for line in text.splitlines()]
    state = only([line for line in lines if line.startswith("Run is")], _REPORT_HAS, "lines on the run's state")
    if state not in _STATES:
        raise WorkloadError(f"SPECjvm2008 says: {state}")
    composites = [float(match["score"]) for line in lines if (match := _COMPOSITE.fullmatch(line))]
    return Report(only(composites, _REPORT_HAS, "composite results"), _groups(lines), *_iterations(lines))


def _groups(lines: Sequence[str]) -> dict[str, float]:
    groups: dict[str, float] = {}
    for match in (match for line in lines if (match := _GROUP.fullmatch(line))):
        if match["group"] not in GROUPS:
            continue
        try:
            score = float(match["score"])
        except ValueError:
            raise WorkloadError(f"SPECjvm2008's {match['group']} has no score, but {match['score']!r}") from None
        if match["group"] in groups:
            raise WorkloadError(f"SPECjvm2008's report has {match['group']} twice")
        groups[match["group"]] = score
    return groups


def _iterations(lines: Sequence[str]) -> tuple[dict[str, tuple[Iteration, ...]], dict[str, tuple[Iteration, ...]]]:
    timed: dict[str, tuple[Iteration, ...]] = {}
    warmups: dict[str, tuple[Iteration, ...]] = {}
    for match in (match for line in lines if (match := _DETAIL.fullmatch(line))):
        one = Iteration(int(match["milliseconds"]) / 1e3, float(match["operations"]), float(match["score"]))
        where = f"SPECjvm2008's {match['name']}, {match['stage']},"
        if one.seconds <= 0 or one.operations <= 0:
            raise WorkloadError(f"{where} has {one.operations:g} operations in {one.seconds:g} s")
        rate = 60 * one.operations / one.seconds
        if abs(rate - one.score) > _ROUNDED * (1 + 60 / one.seconds):
            raise WorkloadError(f"{where} has the score {one.score:g}, and its operations make {rate:.2f} a minute")
        found = warmups if match["stage"] == "warmup" else timed
        found[match["name"]] = (*found.get(match["name"], ()), one)
    return timed, warmups


def demand_lasted(report: Report, time: float, warmup: float) -> None:
    """Raises WorkloadError where an iteration or a warm-up was shorter than was asked for, or a warm-up is missing.

    The suite makes them longer where too few operations fit; those that start Java anew are of one operation each, and
    need no warm-up.
    """
    warmed = {name for name in report.iterations if warmup and not name.startswith("startup")}
    if cold := sorted(warmed - report.warmups.keys()):
        raise WorkloadError(f"SPECjvm2008 did not warm {cold[0]} up")
    for what, asked, stages in (("an iteration", time, report.iterations), ("the warm-up", warmup, report.warmups)):
        for name, one in ((name, one) for name, every in stages.items() for one in every):
            if one.seconds < _REACHED * asked and not name.startswith("startup"):
                raise WorkloadError(
                    f"{what} of SPECjvm2008's {name} took {one.seconds:.1f} s, but {asked:g} s were asked for"
                )


def figures_of(report: Report, benchmarks: Sequence[str], iterations: int) -> dict[str, float]:
    """The metrics of a report whose benchmarks ran as often as asked. Raises WorkloadError."""
    for name in benchmarks:
        demand_equal(f"iterations of SPECjvm2008's {name}", len(report.iterations.get(name, ())), iterations)
    if odd := sorted(set(report.iterations) - set(benchmarks)):
        raise WorkloadError(f"SPECjvm2008 ran {odd[0]}, which was not asked for")
    if lacking := sorted(groups_of(benchmarks) - set(report.groups)):
        raise WorkloadError(f"SPECjvm2008's report has no score of {lacking[0]}")
    _demand_within(report)
    timed = [one for every in report.iterations.values() for one in every]
    return {
        RUN_TIME: sum(one.seconds for one in timed),
        "score": report.score,
        **{score_name(group): score for group, score in report.groups.items()},
        "operations": sum(one.operations for one in timed),
    }


def _demand_within(report: Report) -> None:
    """Raises WorkloadError where a score lies outside of those that it summarizes: a group's iterations, all groups.

    Any mean, and the best one, lies between the least and the largest.
    """
    parts = [("composite result", report.score, "groups", list(report.groups.values()))]
    for group, score in report.groups.items():
        ran = [every for name, every in report.iterations.items() if group in groups_of([name])]
        parts.append((group, score, "iterations", [one.score for every in ran for one in every]))
    for what, score, of_what, among in parts:
        if not among or not min(among) - _ROUNDED <= score <= max(among) + _ROUNDED:
            least, most = (f"{bound:g}" for bound in (min(among, default=0.0), max(among, default=0.0)))
            raise WorkloadError(f"SPECjvm2008's {what} is {score:g}, but its {of_what} have {least} to {most}")
