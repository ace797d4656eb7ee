"""Small tests of a system, one after another: whole numbers and texts, floating point, files copied through buffers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from vmlab.model.errors import WorkloadError
from vmlab.model.names import DATA_FOLDER
from vmlab.model.run import RUN_TIME
from vmlab.workloads.account import Folder, demand_disk, draw, make_own_folder, own_folder, remove_own_folder
from vmlab.workloads.contract import (
    Client,
    Collected,
    Finished,
    Footprint,
    Progress,
    StagingContext,
    Workload,
    WorkloadContext,
    WorkloadParams,
)
from vmlab.workloads.listed_names import EACH_ONCE
from vmlab.workloads.metrics import Metric, with_run_time
from vmlab.workloads.programs import command, install, line_object
from vmlab.workloads.reports.system_report import (
    BLOCKS,
    demand_copy,
    demand_dhrystone,
    demand_whetstone,
    number,
    parse_system,
    seconds_of,
)
from vmlab.workloads.tool_time import ToolTime
from vmlab.workloads.verification import demand_success

PROGRAM = "/usr/lib/vmlab/system"
"""Compiled when the image is built, from the sources in ``system/`` of its payload."""
BUFFERS = (256, 1024, 4096)

Test = Literal["dhrystone", "whetstone", "copy"]

_INSTRUCTIONS = 1e6
"""Whetstone instructions of one cycle."""
_RUN_SECONDS = {"kvm": 3e-8, "tcg": 5e-7}
_CYCLE_SECONDS = {"kvm": 1.1e-4, "tcg": 1.3e-3}
_BLOCK_SECONDS = {"kvm": 1.2e-6, "tcg": 7e-6}
"""One run of Dhrystone, one cycle of Whetstone, one block read and written: measured on the host itself, and in a
guest under TCG beside other work."""
_AROUND = {"kvm": 0.1, "tcg": 0.6}
_ONE_CODE = "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4"
"""glibc otherwise chooses the code of its sine and logarithm by the processor, and a guest's may be another model."""


class SystemParams(WorkloadParams):
    """Amounts of the ``system`` workload."""

    tests: Annotated[tuple[Test, ...], EACH_ONCE] = Field(default=("dhrystone", "whetstone", "copy"), min_length=1)
    """Which tests run, one after another, in this order; all three by default."""
    runs: int = Field(default=200_000_000, ge=10, le=2_000_000_000)
    """Runs of ``dhrystone``."""
    cycles: int = Field(default=50_000, ge=10, le=100_000_000)
    """Cycles of ``whetstone``, each a million Whetstone instructions."""
    passes: int = Field(default=1_000, ge=10, le=10_000_000)
    """How often ``copy`` copies each of its files, of 2,000 blocks each, with buffers of 256, 1,024 and 4,096 B."""
    folder: Folder = DATA_FOLDER
    """Where the files of ``copy`` lie, in a folder of the workload's own."""


class System(Workload[SystemParams]):
    """A program of our own, which prints what it computed; and the digests of the copied files."""

    kind = "system"
    sides = 1
    Params = SystemParams
    tools = ((PROGRAM,), ())
    texts = ("system",)
    needs_cpu = True
    summary = "The algorithms of Dhrystone and Whetstone, and files copied with buffers of 256, 1,024 and 4,096 B."
    metrics = with_run_time(
        dhrystones_per_second=Metric("1/s", "more", "dhrystones per second", of_stage=True),
        whetstones_per_second=Metric("1/s", "more", "whetstone instructions per second", of_stage=True),
        **{
            f"copy_{size}_throughput": Metric("B/s", "more", f"throughput of copies by {size} B", of_stage=True)
            for size in BUFFERS
        },
        dhrystones=Metric("1", None, "dhrystones"),
        whetstones=Metric("1", None, "whetstone instructions"),
        bytes=Metric("B", None, "bytes copied"),
    )

    @classmethod
    def left_out(cls, params: Mapping[str, Any]) -> frozenset[str]:
        """The figures of tests that do not run."""
        copies = ("bytes", *(f"copy_{size}_throughput" for size in BUFFERS))
        figures: dict[Test, tuple[str, ...]] = {
            "dhrystone": ("dhrystones", "dhrystones_per_second"),
            "whetstone": ("whetstones", "whetstones_per_second"),
            "copy": copies,
        }
        ran = params.get("tests", tuple(figures))
        return frozenset(name for test, names in figures.items() if test not in ran for name in names)

    def footprint(self, accelerator: str) -> Footprint:
        """One test after another; a copied file takes as much room as its source."""
        params = self.params
        seconds: dict[Test, float] = {
            "dhrystone": params.runs * _RUN_SECONDS[accelerator],
            "whetstone": params.cycles * _CYCLE_SECONDS[accelerator],
            "copy": (params.passes + 1) * BLOCKS * len(BUFFERS) * _BLOCK_SECONDS[accelerator],
        }
        files = 2 * BLOCKS * sum(BUFFERS) if "copy" in params.tests else 0
        return Footprint(disk_bytes=files, seconds=2 + sum(seconds[test] for test in params.tests))

    async def stage(self, context: StagingContext) -> None:
        """Put the program in place that makes the files; they are made later, as none belongs into a snapshot."""
        if "copy" in self.params.tests:
            await install(context.shell, "copy_source")

    async def prepare(self, context: WorkloadContext) -> None:
        """Read the program once, so that the first cell does not pay for it; make the files that are copied."""
        await context.source.run([PROGRAM, self.params.folder, "dhrystone:1"])
        if "copy" not in self.params.tests:
            return
        own = await make_own_folder(context.source, self.params.folder, context.workload)
        await demand_disk(context.source, own)
        options = {
            "folder": own,
            "sizes": {f"source.{size}": BLOCKS * size for size in BUFFERS},
            "seed": _seed(context),
        }
        await context.source.run(command("copy_source", options))

    def client(self, context: WorkloadContext) -> Client:
        """The program itself, with nothing around it."""
        own = own_folder(self.params.folder, context.workload)
        amounts = [f"{name}:{amount}" for name, amount in self._asked()]
        deadline = 300 + 60 * self.footprint("tcg").seconds
        return Client((PROGRAM, own, *amounts), deadline, environment={"GLIBC_TUNABLES": _ONE_CODE})

    def progress(self, line: str) -> Progress | None:
        """Slices of each test."""
        said = line_object(line)
        if said is None or "slice" not in said:
            return None
        return Progress(float(said["slice"]), float(said["of"]), "slices", str(said["test"]))

    async def collect(self, context: WorkloadContext, finished: Finished) -> Collected:
        """The tests computed what is published, and each copied file is what its source was made to be."""
        demand_success(finished, "system")
        texts = {"system": finished.stdout}
        values = self.figures(texts, finished.seconds)
        if "copy" in self.params.tests:
            await self._demand_files(context)
            await remove_own_folder(context.source, self.params.folder, context.workload)
        return Collected(values, {**texts, "stderr": finished.stderr})

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From the times of each test, which did all that was asked and computed what it should."""
        said, asked = parse_system(texts["system"]), dict(self._asked())
        if list(said) != list(asked):
            raise WorkloadError(f"system did {', '.join(said) or 'nothing'}, not {', '.join(asked)}")
        took = {name: seconds_of(said[name], amount) for name, amount in asked.items()}
        values = {RUN_TIME: sum(took.values())}
        if "dhrystone" in asked:
            demand_dhrystone(said["dhrystone"], self.params.runs)
            values["dhrystones"] = number(said["dhrystone"], "amount")
            values["dhrystones_per_second"] = values["dhrystones"] / took["dhrystone"]
        if "whetstone" in asked:
            demand_whetstone(said["whetstone"], self.params.cycles)
            values["whetstones"] = _INSTRUCTIONS * number(said["whetstone"], "amount")
            values["whetstones_per_second"] = values["whetstones"] / took["whetstone"]
        if "copy" in self.params.tests:
            values |= self._copied(said, took)
        return values

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """The tests'; the program starts before."""
        return ToolTime(values[RUN_TIME], _AROUND[accelerator])

    def _asked(self) -> Iterator[tuple[str, int]]:
        params = self.params
        for test in params.tests:
            if test == "copy":
                yield from ((f"copy-{size}", params.passes) for size in BUFFERS)
            else:
                yield test, params.runs if test == "dhrystone" else params.cycles

    def _copied(self, said: Mapping[str, Mapping[str, object]], took: Mapping[str, float]) -> dict[str, float]:
        values = {"bytes": 0.0}
        for size in BUFFERS:
            demand_copy(said[f"copy-{size}"], size, self.params.passes)
            moved = float(self.params.passes * BLOCKS * size)
            values[f"copy_{size}_throughput"] = moved / took[f"copy-{size}"]
            values["bytes"] += moved
        return values

    async def _demand_files(self, context: WorkloadContext) -> None:
        """Raises WorkloadError where a copy is not what its source was made of."""
        own = own_folder(self.params.folder, context.workload)
        paths = [f"{own}/copy.{size}" for size in BUFFERS]
        listed = await context.source.run(["sha256sum", *paths])
        found = {path: digest for digest, path in map(str.split, listed.stdout.splitlines())}
        for size, path in zip(BUFFERS, paths, strict=True):
            made = hashlib.shake_128(f"{_seed(context)} source.{size}".encode()).digest(BLOCKS * size)
            right = hashlib.sha256(made).hexdigest()
            if found.get(path) != right:
                raise WorkloadError(f"{path} has the digest {found.get(path, 'none')[:12]}, its source {right[:12]}")


def _seed(context: WorkloadContext) -> str:
    return str(draw(context))
