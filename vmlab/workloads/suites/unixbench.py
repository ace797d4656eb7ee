"""UnixBench from the user's own source: its own script, its own tests, its own report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from vmlab.model.asset import AssetForm
from vmlab.model.errors import WorkloadError
from vmlab.model.names import DATA_FOLDER, WORKLOADS_FOLDER
from vmlab.model.run import RUN_TIME
from vmlab.workloads.account import Folder, demand_disk, make_own_folder, own_folder, remove_own_folder
from vmlab.workloads.assets import asset_folder, asset_of, unpack
from vmlab.workloads.contract import (
    Client,
    Collected,
    Finished,
    Footprint,
    StagingContext,
    Workload,
    WorkloadContext,
    WorkloadParams,
)
from vmlab.workloads.listed_names import EACH_ONCE
from vmlab.workloads.metrics import Metric, with_run_time
from vmlab.workloads.suites.reports.unixbench_report import TESTS, figures_of, parse_unixbench, passes
from vmlab.workloads.suites.unixbench_build import built
from vmlab.workloads.tool_time import ToolTime
from vmlab.workloads.verification import demand_success

Test = Literal[
    "dhry2reg",
    "whetstone-double",
    "execl",
    "fstime",
    "fsbuffer",
    "fsdisk",
    "pipe",
    "context1",
    "spawn",
    "syscall",
    "shell1",
    "shell8",
]

_BEFORE_A_PASS = 3.0
"""Run empties the buffers and sleeps before each pass."""
_LARGEST_FILES = 2 * 4096 * 8000
"""Source and copy of the largest file copy, ``fsdisk``."""


class UnixbenchParams(WorkloadParams):
    """Amounts of the ``unixbench`` workload."""

    tests: Annotated[tuple[Test, ...], EACH_ONCE] = Field(
        default=("dhry2reg", "whetstone-double", "fsdisk"), min_length=1
    )
    """Which tests of UnixBench's index run, by the names that its Run takes."""
    iterations: int = Field(default=3, ge=1, le=100)
    """Iterations, as `Run -i` takes them: long tests (files, processes, scripts) have a third of them."""
    copies: int = Field(default=1, ge=1, le=256)
    """How many copies of each test run at once, as `Run -c` takes it."""
    folder: Folder = DATA_FOLDER
    """Where the files of the file copies lie, in a folder of the workload's own."""


class Unixbench(Workload[UnixbenchParams]):
    """``Run`` of the user's copy, with programs that were compiled on the host."""

    kind = "unixbench"
    sides = 1
    Params = UnixbenchParams
    asset = AssetForm(
        "unixbench",
        "the folder of UnixBench's source, with Run, Makefile, pgms and src in it",
        files=("Run", "Makefile", "pgms/index.base", "src/dhry_1.c", "src/whets.c", "src/fstime.c"),
        within="UnixBench",
    )
    tools = (("perl", "tar"), ())
    texts = ("report",)
    summary = "UnixBench, compiled from your own copy of its source (`--asset unixbench=PATH`)."
    metrics = with_run_time(
        **{test.metric: Metric(test.unit, "more", test.title) for test in TESTS.values()},
        index=Metric("1", "more", "index score of the tests that ran"),
    )
    throughput = "index"
    needs_cpu = True

    @classmethod
    def left_out(cls, params: Mapping[str, Any]) -> frozenset[str]:
        """The figures of tests that do not run."""
        ran = params.get("tests", tuple(TESTS))
        return frozenset(test.metric for name, test in TESTS.items() if name not in ran)

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

    async def collect(self, context: WorkloadContext, finished: Finished) -> Collected:
        """Read the report that ``Run`` has written; it is kept whole, with the log of all passes."""
        demand_success(finished, "UnixBench")
        listed = (await context.source.run(["find", _results(context), "-type", "f"])).stdout.split()
        reports = [path for path in listed if not path.endswith((".html", ".log", ".csv"))]
        if len(reports) != 1:
            raise WorkloadError(f"UnixBench wrote {len(reports)} reports, not one")
        report = (await context.source.run(["cat", reports[0]])).stdout
        log = (await context.source.run(["cat", f"{reports[0]}.log"], check=False)).stdout
        texts = {"report": report}
        values = self.figures(texts, finished.seconds)
        await remove_own_folder(context.source, self.params.folder, context.workload)
        return Collected(values, {**texts, "log": log, "stdout": finished.stdout, "stderr": finished.stderr})

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
