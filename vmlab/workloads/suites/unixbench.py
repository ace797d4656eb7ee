"""UnixBench from the user's own source: its own script, its own tests, its own report.

Its programs are compiled on the host: guests have no compiler, and other ones would run other code.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from vmlab.model.asset import Asset, AssetForm
from vmlab.model.errors import DeadlineExceeded, WorkloadError
from vmlab.model.names import DATA_FOLDER, WORKLOADS_FOLDER
from vmlab.model.run import RUN_TIME
from vmlab.workloads.assets import asset_folder, asset_of, packed, unpack
from vmlab.workloads.metrics import Metric, ToolTime, Unit, with_run_time
from vmlab.workloads.programs import Folder, demand_disk, make_own_folder, own_folder, remove_own_folder
from vmlab.workloads.tool_workload import EACH_ONCE, ToolWorkload
from vmlab.workloads.verification import demand_equal, only
from vmlab.workloads.workload_steps import Client, Finished, Footprint, StagingContext, WorkloadContext, WorkloadParams

_BEFORE_A_PASS = 3.0
"""Run empties the buffers and sleeps before each pass."""
_LARGEST_FILES = 2 * 4096 * 8000
"""Source and copy of the largest file copy, ``fsdisk``."""


_KIB = 1024.0


@dataclass(frozen=True, slots=True)
class Test:
    """A test of ``Run``: the name in reports, the unit there, and the metric with that unit's factor.

    `seconds` is what one pass takes; a `long` test has as many passes as there are iterations, others a third. The
    score of the machine whose index is 10 is `base` (UnixBench's pgms/index.base).
    """

    title: str
    label: str
    metric: str
    unit: Unit
    factor: float
    seconds: float
    base: float
    long: bool = False


def _rate(title: str, metric: str, seconds: float, base: float, *, long: bool = False) -> Test:
    return Test(title, "lps", metric, "1/s", 1.0, seconds, base, long)


def _copy(block: int, blocks: int, base: float) -> Test:
    title = f"File Copy {block} bufsize {blocks} maxblocks"
    # A copy of 30 s comes after 2 s of writing and 2 s of reading, which make the file.
    return Test(title, "KBps", f"copy_{block}_throughput", "B/s", _KIB, 34.0, base)


TESTS: Mapping[str, Test] = {
    "dhry2reg": _rate("Dhrystone 2 using register variables", "dhrystones_per_second", 10.0, 116700.0, long=True),
    "whetstone-double": Test(
        "Double-Precision Whetstone", "MWIPS", "whetstones_per_second", "1/s", 1e6, 10.0, 55.0, long=True
    ),
    "execl": _rate("Execl Throughput", "execs_per_second", 30.0, 43.0),
    "fstime": _copy(1024, 2000, 3960.0),
    "fsbuffer": _copy(256, 500, 1655.0),
    "fsdisk": _copy(4096, 8000, 5800.0),
    "pipe": _rate("Pipe Throughput", "pipe_messages_per_second", 10.0, 12440.0, long=True),
    "context1": _rate("Pipe-based Context Switching", "context_switches_per_second", 10.0, 4000.0, long=True),
    "spawn": _rate("Process Creation", "processes_per_second", 30.0, 126.0),
    "syscall": _rate("System Call Overhead", "system_calls_per_second", 10.0, 15000.0, long=True),
    "shell1": Test("Shell Scripts (1 concurrent)", "lpm", "shell_1_per_second", "1/s", 1 / 60, 60.0, 42.4),
    "shell8": Test("Shell Scripts (8 concurrent)", "lpm", "shell_8_per_second", "1/s", 1 / 60, 60.0, 6.0),
}
"""The tests of UnixBench's index, by the names that ``Run`` takes."""
if TYPE_CHECKING:
    TestName = str
else:
    TestName = Literal[*TESTS]

_SCORE = re.compile(
    r"(?P<title>\S++(?: \S+)*) +(?P<score>\d+\.\d) (?P<label>\S+) +\((?P<time>\d+\.\d) s, (?P<kept>\d+) samples\)"
)
_COPIES = re.compile(r"\d+ CPUs? in system; running (?P<copies>\d+) parallel (?:copy|copies) of tests")
_INDEX = re.compile(r"System Benchmarks Index Score(?: \(Partial Only\))? +(?P<index>\d+\.\d)")


class UnixbenchParams(WorkloadParams):
    """Amounts of the ``unixbench`` workload."""

    tests: Annotated[tuple[TestName, ...], EACH_ONCE] = Field(
        default=("dhry2reg", "whetstone-double", "fsdisk"), min_length=1
    )
    """Which tests of UnixBench's index run, by the names that its Run takes."""
    iterations: int = Field(default=3, ge=1, le=100)
    """Iterations, as for `Run -i`: long tests (files, processes, scripts) run a third of them."""
    copies: int = Field(default=1, ge=1, le=256)
    """How many copies of each test run at once, as for `Run -c`."""
    folder: Folder = DATA_FOLDER
    """Where the workload makes its own folder for the files of copy tests."""


class Unixbench(ToolWorkload[UnixbenchParams]):
    """``Run`` of the user's copy, with programs that were compiled on the host."""

    kind = "unixbench"
    Params = UnixbenchParams
    asset = AssetForm(
        "unixbench",
        "the folder of UnixBench's source, with Run, Makefile, pgms and src in it",
        files=("Run", "Makefile", "pgms/index.base", "src/dhry_1.c", "src/whets.c", "src/fstime.c"),
        within="UnixBench",
    )
    tools = (("perl", "tar"), ())
    texts = ("report",)
    tool = "UnixBench"
    summary = "UnixBench, compiled from your own copy of its source (`--asset unixbench=PATH`)."
    metrics = with_run_time(
        **{test.metric: Metric(test.unit, "more", test.title) for test in TESTS.values()},
        index=Metric("1", "more", "index score of the tests that ran"),
    )
    chosen = ("tests", {name: (test.metric,) for name, test in TESTS.items()})
    throughput = "index"
    needs_cpu = True

    @classmethod
    def is_timed(cls, params: Mapping[str, Any]) -> bool:
        """Always: each test does as much as it can in its time."""
        return True

    def footprint(self, accelerator: str) -> Footprint:
        """All tests run for a time, whatever the processor does in it."""
        ran = [(TESTS[name], passes(TESTS[name], self.params.iterations)) for name in self.params.tests]
        files = _LARGEST_FILES * self.params.copies if any(test.label == "KBps" for test, _ in ran) else 0
        return Footprint(files, 5 + sum(times * (test.seconds + _BEFORE_A_PASS) for test, times in ran))

    async def stage(self, context: StagingContext) -> None:
        """Compile the user's source on the host, and put it with its programs into the guest."""
        archive = await built(asset_of(context))
        await unpack(context.shell, archive, asset_folder(context.shell, context.workload))

    async def prepare(self, context: WorkloadContext) -> None:
        """Folders for its files and its report, which nothing else has written to."""
        own = await make_own_folder(context.source, self.params.folder, context.workload)
        await demand_disk(context.source, own)
        await context.source.run(["mkdir", "-p", _results(context)])

    def client(self, context: WorkloadContext) -> Client:
        """``Run`` itself; it need not call make, as all is made."""
        params = self.params
        place = f"{asset_folder(context.source, context.workload)}/unixbench"
        asked = ("-c", str(params.copies), "-i", str(params.iterations), *params.tests)
        return Client(
            argv=("env", "-C", place, "perl", f"{place}/Run", *asked),
            deadline=300 + 3 * self.footprint("tcg").seconds,
            environment={
                "MAKE": "true",
                "UB_TMPDIR": own_folder(params.folder, context.workload),
                "UB_RESULTDIR": _results(context),
            },
        )

    async def printed(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """The report that ``Run`` has written; it is kept whole, with the log of all passes."""
        listed = (await context.source.run(["find", _results(context), "-type", "f"])).stdout.split()
        reports = [path for path in listed if not path.endswith((".html", ".log", ".csv"))]
        path = only(reports, "UnixBench wrote", "reports")
        report = (await context.source.run(["cat", path])).stdout
        log = (await context.source.run(["cat", f"{path}.log"], check=False)).stdout
        return {"report": report, "log": log, "stdout": finished.stdout}

    async def verified(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """All is told by the report; the files go."""
        await remove_own_folder(context.source, self.params.folder, context.workload)
        return {}

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From the report alone."""
        params = self.params
        return figures_of(parse_unixbench(texts["report"]), params.tests, params.copies, params.iterations)

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """Of the passes that count; others, and the pauses before each, take what the times of the tests leave."""
        return ToolTime(values[RUN_TIME], max(0.0, self.footprint(accelerator).seconds - values[RUN_TIME]))


def _results(context: WorkloadContext) -> str:
    """A folder of this cell alone: places on the host outlive cells."""
    return f"{WORKLOADS_FOLDER}/unixbench-{context.cell}-{context.tile}-{context.workload}"


@dataclass(frozen=True, slots=True)
class Score:
    """One line of scores: the score in its label's unit, the mean seconds of a pass, the passes that were kept."""

    score: float
    label: str
    seconds: float
    kept: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a report says of its one run of the tests; `scores` by the tests' titles."""

    copies: int
    scores: Mapping[str, Score]
    index: float | None


def passes(test: Test, iterations: int) -> int:
    """How often ``Run -i ITERATIONS`` runs a test."""
    return iterations if test.long else max(1, (iterations + 1) // 3)


def parse_unixbench(text: str) -> Report:
    """A report, read as a whole. Raises WorkloadError where it is not one run of tests."""
    lines = [line.rstrip() for line in text.splitlines()]
    runs = [match for line in lines if (match := _COPIES.fullmatch(line))]
    copies = int(only(runs, "UnixBench's report has", "runs of the tests")["copies"])
    scores: dict[str, Score] = {}
    for match in (match for line in lines if (match := _SCORE.fullmatch(line))):
        if match["title"] in scores:
            raise WorkloadError(f"UnixBench's report has {match['title']} twice")
        scores[match["title"]] = Score(float(match["score"]), match["label"], float(match["time"]), int(match["kept"]))
    indexes = [float(match["index"]) for line in lines if (match := _INDEX.fullmatch(line))]
    if len(indexes) > 1:
        raise WorkloadError(f"UnixBench's report has {len(indexes)} index scores")
    return Report(copies, scores, indexes[0] if indexes else None)


def figures_of(report: Report, tests: Sequence[str], copies: int, iterations: int) -> dict[str, float]:
    """The metrics of the tests, each of which ran as often as asked. Raises WorkloadError."""
    demand_equal("parallel copies of UnixBench's tests", report.copies, copies)
    wanted = {TESTS[name].title for name in tests}
    if odd := sorted(wanted ^ set(report.scores)):
        raise WorkloadError(f"UnixBench's report {'lacks' if odd[0] in wanted else 'has, unasked,'} {odd[0]}")
    values = {RUN_TIME: 0.0}
    for test in (TESTS[name] for name in tests):
        found, ran = report.scores[test.title], passes(test, iterations)
        if found.label != test.label:
            raise WorkloadError(f"UnixBench has {test.title} in {found.label}, which should be {test.label}")
        # Run leaves out the worst third of the passes.
        demand_equal(f"passes that count of UnixBench's {test.title}", found.kept, ran - ran // 3)
        if found.score <= 0:
            raise WorkloadError(f"UnixBench's {test.title} has the score {found.score:g}")
        if found.seconds < (_CALIBRATED if test.label == "MWIPS" else _SHORTEST) * test.seconds:
            raise WorkloadError(f"a pass of UnixBench's {test.title} took {found.seconds:g} s, not {test.seconds:g} s")
        values[test.metric] = found.score * test.factor
        values[RUN_TIME] += found.seconds * found.kept
    if report.index is not None:
        _demand_follows(report.index, [(report.scores[TESTS[name].title].score, TESTS[name].base) for name in tests])
        values["index"] = report.index
    return values


def _demand_follows(said: float, ran: Sequence[tuple[float, float]]) -> None:
    """Raises WorkloadError where the index is not ten times the geometric mean of each test's score over its base."""
    index = 10 * math.exp(math.fsum(math.log(score / base) for score, base in ran) / len(ran))
    rounded = _ROUNDED * (1 + index * math.fsum(1 / score for score, _ in ran) / len(ran))
    if abs(index - said) > rounded:
        raise WorkloadError(f"UnixBench has the index {said:g}, and its scores make {index:.1f}")


_ROUNDED = 0.051
"""The index has one decimal, and so have the scores that it is made of."""


_SHORTEST = 0.8
"""The part of a pass's time that it took at least: programs look at their clock after so many rounds."""
_CALIBRATED = 0.5
"""The same of Whetstone, which measures its own speed first, and then does so many rounds."""
OPTIONS = "-O3 -ffast-math -march=x86-64 -mtune=generic"
_SECONDS = 600.0
_CONTAINED = (
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
)

_BUILD = r"""
set -eu
mount -t tmpfs -o size=512m,mode=1777 none /tmp
cd /tmp
exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --inh-caps=-all /bin/sh -euc '
    export HOME=/tmp LC_ALL=C
    tar -xf -
    mkdir -p unixbench/tmp unixbench/results
    make -B -C unixbench programs "CC=gcc -static" "OPTON=$1" >&2
    tar -cf - unixbench
' build "$1"
"""
"""Takes the archive of the source on standard input, and gives that of the source with its programs.

`-B` compiles also what a copy has from an earlier build, which make would keep: files of the archive have no times.
"""


async def built(asset: Asset) -> bytes:
    """The archive of the user's source with the programs compiled in it.

    Raises WorkloadError with the compiler's last line where that fails, and DeadlineExceeded.
    """
    source = await asyncio.to_thread(packed, asset)
    try:
        process = await asyncio.create_subprocess_exec(
            *_CONTAINED,
            *("/bin/sh", "-c", _BUILD, "build", OPTIONS),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise WorkloadError(f"UnixBench cannot be compiled: {error}") from error
    try:
        async with asyncio.timeout(_SECONDS):
            archive, said = await process.communicate(source)
    except TimeoutError as error:
        raise DeadlineExceeded(f"UnixBench was not compiled within {_SECONDS:g} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        lines = said.decode("utf-8", "replace").strip().splitlines()
        errors = [line for line in lines if "error:" in line or "***" in line or "not found" in line]
        last = (errors or lines or ["without a word"])[0 if errors else -1]
        raise WorkloadError(f"UnixBench cannot be compiled: {last[:200]}")
    return archive
