"""Small tests of a system, one after another: whole numbers and texts, floating point, files copied through buffers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from vmlab.model.errors import WorkloadError
from vmlab.model.names import DATA_FOLDER
from vmlab.model.run import RUN_TIME
from vmlab.workloads.metrics import Metric, with_run_time
from vmlab.workloads.programs import (
    Folder,
    command,
    demand_disk,
    draw,
    install,
    make_own_folder,
    own_folder,
    remove_own_folder,
    told_progress,
)
from vmlab.workloads.tool_workload import EACH_ONCE, ToolWorkload
from vmlab.workloads.verification import demand_equal, figures_by_name, number_of
from vmlab.workloads.workload_steps import (
    Client,
    Finished,
    Footprint,
    Progress,
    StagingContext,
    WorkloadContext,
    WorkloadParams,
)

PROGRAM = "/usr/lib/vmlab/system"
"""Compiled when the image is built, from the sources in ``system/`` of its payload."""
BUFFERS = (256, 1024, 4096)
SLICES = 10
BLOCKS = 2000
"""Blocks of a file that is copied: as many as UnixBench's files of 500, 2000 and 8000 KiB have."""
_LEAST_SECONDS = 0.001
"""Of a whole test; reading the clock takes less than a microsecond."""
_OWN_BYTES = 4096
"""What the program reads and writes beside the copied files: its counters, and a line for each slice."""

DHRYSTONE_NAMES = (
    *("Int_Glob", "Bool_Glob", "Ch_1_Glob", "Ch_2_Glob", "Arr_1_Glob[8]", "Arr_2_Glob[8][7]"),
    *("Ptr_Glob->Discr", "Ptr_Glob->Enum_Comp", "Ptr_Glob->Int_Comp", "Ptr_Glob->Str_Comp"),
    *("Next_Ptr_Glob->Discr", "Next_Ptr_Glob->Enum_Comp", "Next_Ptr_Glob->Int_Comp", "Next_Ptr_Glob->Str_Comp"),
    *("Int_1_Loc", "Int_2_Loc", "Int_3_Loc", "Enum_Loc", "Str_1_Loc", "Str_2_Loc"),
)
_SOME, _FIRST, _SECOND = (f"DHRYSTONE PROGRAM, {word} STRING" for word in ("SOME", "1'ST", "2'ND"))

WHETSTONE_VALUES = (
    "0 0 0 1.0000e+00 -1.0000e+00 -1.0000e+00 -1.0000e+00",
    "120 140 120 -6.8342e-02 -4.6264e-01 -7.2972e-01 -1.1240e+00",
    "140 120 120 -5.5336e-02 -4.4744e-01 -7.1097e-01 -1.1031e+00",
    "3450 1 1 1.0000e+00 -1.0000e+00 -1.0000e+00 -1.0000e+00",
    "2100 1 2 6.0000e+00 6.0000e+00 -7.1097e-01 -1.1031e+00",
    "320 1 2 4.9041e-01 4.9041e-01 4.9039e-01 4.9039e-01",
    "8990 1 2 1.0000e+00 1.0000e+00 9.9994e-01 9.9994e-01",
    "6160 1 2 3.0000e+00 2.0000e+00 3.0000e+00 -1.1031e+00",
    "0 2 3 1.0000e+00 -1.0000e+00 -1.0000e+00 -1.0000e+00",
    "930 2 3 8.3467e-01 8.3467e-01 8.3467e-01 8.3467e-01",
)
"""N, J, K, X1 to X4 as Whetstone prints them with LOOP = 10, at the end of its modules 1 to 4 and 6 to 11."""

Test = Literal["dhrystone", "whetstone", "copy"]

_INSTRUCTIONS = 1e6
"""Whetstone instructions of one cycle."""
_RUN_SECONDS = {"kvm": 3e-8, "tcg": 5e-7}
_CYCLE_SECONDS = {"kvm": 1.1e-4, "tcg": 1.3e-3}
_BLOCK_SECONDS = {"kvm": 1.2e-6, "tcg": 7e-6}
"""One run of Dhrystone, one cycle of Whetstone, one block read and written: measured on the host itself, and in a
guest under TCG beside other work."""
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
    """Where the workload makes its own folder for the files of ``copy``."""


class System(ToolWorkload[SystemParams]):
    """A program of our own, which prints what it computed; and the digests of the copied files."""

    kind = "system"
    Params = SystemParams
    tools = ((PROGRAM,), ())
    texts = ("system",)
    tool = "system"
    around: ClassVar = {"kvm": 0.1, "tcg": 0.6}
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
    chosen = (
        "tests",
        {
            "dhrystone": ("dhrystones", "dhrystones_per_second"),
            "whetstone": ("whetstones", "whetstones_per_second"),
            "copy": ("bytes", *(f"copy_{size}_throughput" for size in BUFFERS)),
        },
    )

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
        return Client((PROGRAM, own, *amounts), self.patience, environment={"GLIBC_TUNABLES": _ONE_CODE})

    def progress(self, line: str) -> Progress | None:
        """Slices of each test."""
        return told_progress(line, "slices", done="slice", total="of", stage="test")

    async def verified(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """Each copied file is what its source was made to be."""
        if "copy" in self.params.tests:
            await self._demand_files(context)
            await remove_own_folder(context.source, self.params.folder, context.workload)
        return {}

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


def dhrystone_values(runs: int) -> tuple[int | str, ...]:
    """The final values that version 2.1 of Dhrystone says its variables should have, in the order of the names."""
    whole = (5, 1, "A", "B", 7, runs + 10)
    return (*whole, 0, 2, 17, _SOME, 0, 1, 18, _SOME, 5, 13, 7, 1, _FIRST, _SECOND)


def parse_system(text: str) -> dict[str, dict[str, Any]]:
    """The line of figures of each test, by its name. Raises WorkloadError where one stands twice."""
    return figures_by_name(text, "system", "test", "times")


def seconds_of(said: Mapping[str, Any], amount: int) -> float:
    """The seconds of a test, which did as much as was asked of it, in its slices. Raises WorkloadError."""
    name = said["test"]
    demand_equal(f"amount of system's {name}", number(said, "amount"), amount)
    times = said["times"]
    if not isinstance(times, list) or not all(isinstance(one, float) and one >= 0 for one in times):
        raise WorkloadError(f"system printed no times of {name}")
    demand_equal(f"slices of system's {name}", len(times), min(amount, SLICES))
    if sum(times) < _LEAST_SECONDS:
        raise WorkloadError(f"system's {name} took {sum(times):.6f} s, too quick to be measured; ask for more of it")
    return float(sum(times))


def demand_dhrystone(said: Mapping[str, Any], runs: int) -> None:
    """Raises WorkloadError, naming the first variable whose final value is not the published one."""
    found, right = said.get("values"), dhrystone_values(runs)
    if not isinstance(found, list) or len(found) != len(right):
        raise WorkloadError("system printed no values of dhrystone")
    for name, one, other in zip(DHRYSTONE_NAMES, found, right, strict=True):
        if one != other:
            raise WorkloadError(f"dhrystone computed {name} = {one!r}, and should {other!r}")


def demand_whetstone(said: Mapping[str, Any], cycles: int) -> None:
    """Raises WorkloadError, naming the first module whose values are not the published ones, or were not always so."""
    found = said.get("values")
    if not isinstance(found, list) or len(found) != len(WHETSTONE_VALUES):
        raise WorkloadError("system printed no values of whetstone")
    for row, right in zip(found, WHETSTONE_VALUES, strict=True):
        if not isinstance(row, list) or not all(isinstance(one, int | float) for one in row):
            raise WorkloadError("system printed no values of whetstone")
        written = " ".join([*(f"{one:.0f}" for one in row[:3]), *(f"{one:.4e}" for one in row[3:])])
        if written != right:
            raise WorkloadError(f"whetstone computed {written}, and should {right}")
    demand_equal("cycles of whetstone with the values of its first", number(said, "equal"), cycles)


def demand_copy(said: Mapping[str, Any], block: int, passes: int) -> None:
    """Raises WorkloadError where the kernel counted other reads and writes than copying the file takes."""
    name = said["test"]
    demand_equal(f"blocks of system's {name}", number(said, "blocks"), BLOCKS)
    demand_equal(f"writes of system's {name}, as the kernel counted them", number(said, "writes"), passes * BLOCKS)
    moved = passes * BLOCKS * block
    for word in ("read", "written"):
        counted = number(said, word)
        if not moved <= counted <= moved + _OWN_BYTES:
            raise WorkloadError(f"the kernel counted {counted:.0f} B {word} by system's {name}, and should {moved} B")


def number(said: Mapping[str, Any], name: str) -> float:
    """A number of a test's figures. Raises WorkloadError where there is none."""
    return number_of(said, name, "system", said["test"])
