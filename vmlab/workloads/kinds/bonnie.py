"""Writing, rewriting, reading and seeking in large files by bonnie++."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field, model_validator

from vmlab.model.errors import WorkloadError
from vmlab.model.names import DATA_FOLDER
from vmlab.model.run import RUN_TIME
from vmlab.model.units import Bytes
from vmlab.workloads.metrics import Metric, ToolTime, with_run_time
from vmlab.workloads.programs import (
    Folder,
    accounted,
    draw,
    install,
    make_own_folder,
    own_folder,
    parse_account,
    remove_own_folder,
)
from vmlab.workloads.services import LAB_USER
from vmlab.workloads.tool_workload import ToolWorkload
from vmlab.workloads.verification import demand_equal, demand_one_report
from vmlab.workloads.workload_steps import (
    Client,
    Finished,
    Footprint,
    Progress,
    StagingContext,
    Stored,
    WorkloadContext,
    WorkloadParams,
)

_MIB = 2**20
STAGES = ("putc", "put_block", "rewrite", "getc", "get_block", "seeks")
BY_CHARACTER = ("putc", "getc")
_ROUNDED = 0.5
"""Rates are whole KiB in a second, and whole seeks below 10,000."""
_FIRST = 9
"""Fields 9 to 20: rate and CPU of each stage in this order."""
_FIELDS = 50
_FORMAT = "1.98"
_UNITS = {"k": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_KIB = 1024
MACHINE = "vmlab"
"""The name that bonnie++ is given for its table."""
_TABLE = re.compile(rf"^{MACHINE} +[0-9]+[kMGT](?::([0-9]+)(k?))? ", re.MULTILINE)
_USUAL_CHUNK = 8192
_CHARACTERS_PER_SECOND = {"kvm": 1.8e6, "tcg": 0.2e6}
_BYTES_PER_SECOND = {"kvm": 200e6, "tcg": 40e6}
_SEEKS = 8192
_SEEK_SECONDS = {"kvm": 0.0002, "tcg": 0.002}
"""bonnie++ always seeks 8,192 times. Measured on the host itself; for TCG a guess."""
_TIMES_WRITTEN = 2
"""Once by block, and again by rewriting: bonnie++ syncs its files in between."""
_TIMES_READ = 2
"""By rewriting, and then by block."""
_UNTIMED = 0.05
_WORDS = {
    "putc": "writing by character",
    "put_block": "writing by block",
    "rewrite": "rewriting",
    "getc": "reading by character",
    "get_block": "reading by block",
    "seeks": "seeks",
}
_CPU_STAGES = tuple(name for name in STAGES if name != "seeks")
"""Stages whose CPU is a figure. Seeking, bonnie++ counts the CPU of its whole process for each of its five threads."""


class BonnieParams(WorkloadParams):
    """Amounts of the ``bonnie`` workload."""

    size: Bytes = Field(ge=_MIB, le=2**46)
    """Size of all files together, in whole MiB; bonnie++ makes one for each GiB."""
    ram: Bytes = Field(default=0, ge=0, le=2**46)
    """Memory of the guest or host where it runs, in whole MiB: `size` must be at least twice as much; 0: no check."""
    chunk: Bytes = Field(default=8192, ge=256, le=_MIB)
    """Size of the blocks that are written and read; a power of two."""
    characters: Bytes = Field(default=20 * _MIB, ge=0, le=2**40)
    """How much is written and read a character at a time, in whole MiB; 0 leaves both stages out."""
    user: str = Field(default=LAB_USER, pattern=r"^[a-z_][a-z0-9_-]{0,31}$")
    """The user that runs bonnie++ and owns its files; must exist there."""
    folder: Folder = DATA_FOLDER
    """Where the workload makes its own folder of files."""

    @model_validator(mode="after")
    def _possible(self) -> BonnieParams:
        for name in ("size", "ram", "characters"):
            if getattr(self, name) % _MIB:
                raise ValueError(f"{name} must be a whole number of MiB")
        if self.chunk & (self.chunk - 1):
            raise ValueError("chunk must be a power of two, such as 8 KiB")
        if self.size < 2 * self.ram:
            raise ValueError("size must be at least twice ram, or it is the memory that is measured")
        return self

    @property
    def stages(self) -> tuple[str, ...]:
        """Those that run."""
        return tuple(name for name in STAGES if self.characters or name not in BY_CHARACTER)


class Bonnie(ToolWorkload[BonnieParams]):
    """``bonnie++`` without its test of many small files."""

    kind = "bonnie"
    Params = BonnieParams
    tools = (("bonnie++",), ())
    texts = ("bonnie",)
    tool = "bonnie++"
    around: ClassVar = {"kvm": 1.0, "tcg": 3.0}
    """Starting, syncing between stages, and removing the files: measured beside other guests under TCG."""
    summary = "bonnie++ writes, rewrites and reads large files, and seeks in them."
    metrics = with_run_time(
        **{
            name: Metric("1/s" if name == "seeks" else "B/s", "more", words, of_stage=True)
            for name, words in _WORDS.items()
        },
        **{f"{name}_cpu": Metric("%", "less", f"CPU of {_WORDS[name]}") for name in _CPU_STAGES},
        bytes=Metric("B", None, "bytes"),
    )

    _done = 0
    """Stages that have ended."""

    @classmethod
    def left_out(cls, params: Mapping[str, Any]) -> frozenset[str]:
        """Both stages by character, where nothing is written by character."""
        names = () if params.get("characters", 1) else BY_CHARACTER
        return frozenset(name for one in names for name in (one, f"{one}_cpu"))

    def footprint(self, accelerator: str) -> Footprint:
        """The files are written once and rewritten in place; characters go into a file of their own."""
        params = self.params
        by_block = 4 * params.size / _BYTES_PER_SECOND[accelerator]
        by_character = 2 * params.characters / _CHARACTERS_PER_SECOND[accelerator]
        seeks = _SEEKS * _SEEK_SECONDS[accelerator]
        return Footprint(disk_bytes=params.size + params.characters, seconds=3 + by_block + by_character + seeks)

    def stored(self) -> tuple[Stored, ...]:
        """The files of all stages."""
        return (Stored("source", self.params.size + self.params.characters, "size", self.params.folder),)

    async def stage(self, context: StagingContext) -> None:
        """Put the program in place that accounts for bonnie++; it makes its files itself."""
        await install(context.shell, "accounted")

    async def prepare(self, context: WorkloadContext) -> None:
        """Make an empty folder that the user may write to."""
        own = await make_own_folder(context.source, self.params.folder, context.workload)
        await context.source.run(["chown", self.params.user, own])

    def client(self, context: WorkloadContext) -> Client:
        """bonnie++, under account; it prints each stage when it has ended."""
        params = self.params
        characters = f"-f{params.characters // _MIB}" if params.characters else "-f"
        argv = (
            *("bonnie++", "-d", own_folder(params.folder, context.workload), "-u", params.user, "-m", MACHINE),
            *("-s", f"{params.size // _MIB}:{params.chunk}", "-r", str(params.ram // _MIB), "-n", "0"),
            *(characters, "-z", str(draw(context))),
        )
        return Client(accounted(argv), deadline=600 + 60 * self.footprint("tcg").seconds)

    def progress(self, line: str) -> Progress | None:
        """Stages that have ended."""
        if "...done" not in line:
            return None
        total = len(self.params.stages)
        self._done = min(self._done + 1, total)
        return Progress(self._done, total, "stages")

    async def verified(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """All is told by the texts; the files go."""
        await remove_own_folder(context.source, self.params.folder, context.workload)
        return {}

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From bonnie++'s line of figures, which the account of the kernel beside it bears out."""
        params = self.params
        try:
            report = parse_bonnie(texts["bonnie"])
        except TooQuick as quick:
            more = "characters" if quick.stage in BY_CHARACTER else "size"
            raise WorkloadError(f"{quick}: make {more} larger") from None
        demand_equal("bytes of bonnie++'s files", report.size, params.size)
        demand_equal("bytes of bonnie++'s chunks", report.chunk, params.chunk)
        demand_equal("concurrency of bonnie++", report.concurrency, 1)
        if tuple(report.stages) != params.stages:
            raise WorkloadError(f"bonnie++ ran {', '.join(report.stages)}, not {', '.join(params.stages)}")
        account = parse_account(texts["bonnie"])
        if account.written < _TIMES_WRITTEN * params.size + params.characters:
            raise WorkloadError(
                f"bonnie++ was to write {params.size} bytes, to rewrite them, and {params.characters} by character; "
                f"the kernel counted {account.written} in all"
            )
        # Each time, at most the memory's worth of the files can have been in the page cache.
        least = _TIMES_READ * (params.size - params.ram) if params.ram else 0
        if account.read < least:
            raise WorkloadError(
                f"bonnie++ was to read at least {least} bytes from storage, but the kernel counted {account.read}: "
                "the page cache was read; size and ram must be those of the guest"
            )
        return {
            RUN_TIME: account.seconds,
            **{name: stage.rate for name, stage in report.stages.items()},
            **{f"{name}_cpu": stage.cpu for name, stage in report.stages.items() if name in _CPU_STAGES},
            "bytes": params.size,
        }

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """Of all stages, by their rates; files are made before and removed afterwards."""
        params, stages = self.params, parse_bonnie(texts["bonnie"]).stages
        took = sum(stage_seconds(*one, params.size, params.characters, _SEEKS) for one in stages.items())
        return ToolTime(took, self.around[accelerator] + _UNTIMED * took)


@dataclass(frozen=True, slots=True)
class Stage:
    """`rate` in bytes per second, seeks in seeks per second; `cpu` in percent of one processor."""

    rate: float
    cpu: float


@dataclass(frozen=True, slots=True)
class BonnieReport:
    """`size` of all files and `chunk` in bytes; only stages that ran."""

    size: int
    chunk: int
    concurrency: int
    stages: dict[str, Stage]


def stage_seconds(name: str, stage: Stage, size: int, characters: int, seeks: int) -> float:
    """The least that a stage took, by its rate as it was rounded: over all files, or over so many `characters`."""
    if name == "seeks":
        return seeks / (stage.rate + _ROUNDED)
    return (characters if name in BY_CHARACTER else size) / (stage.rate + _ROUNDED * _KIB)


class TooQuick(WorkloadError):
    """A stage took less than half a second, so that bonnie++ printed no figure; `stage` names it."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        super().__init__(f"bonnie++'s stage {stage} was too quick to be measured; give it more")


def parse_bonnie(text: str) -> BonnieReport:
    """Find the line in what bonnie++ printed. Raises TooQuick, or WorkloadError where there is none."""
    lines = [line.strip() for line in text.splitlines() if line.startswith(f"{_FORMAT},")]
    if len(lines) != 1:
        last = text.strip().splitlines()[-1][:200] if text.strip() else ""
        raise WorkloadError(f"bonnie++ printed {len(lines)} lines of values, not one; its last line is {last!r}")
    fields = lines[0].split(",")
    size = re.fullmatch(r"([0-9]+)([kMGT])", fields[5]) if len(fields) == _FIELDS else None
    if size is None or not fields[3].isdigit():
        raise WorkloadError(f"bonnie++ printed a line that cannot be read: {lines[0][:200]!r}")
    found = ((name, _stage(name, *fields[at : at + 2])) for name, at in zip(STAGES, range(_FIRST, 21, 2), strict=True))
    return BonnieReport(
        size=int(size[1]) * _UNITS[size[2]],
        chunk=_chunk(text),
        concurrency=int(fields[3]),
        stages={name: stage for name, stage in found if stage is not None},
    )


def _chunk(text: str) -> int:
    """Version 2.00a leaves this field of the line empty; its table has it after the size, unless it is the default."""
    row = _TABLE.search(text)
    if row is None:
        raise WorkloadError("bonnie++ printed no table")
    demand_one_report(text, _TABLE.pattern, tool="bonnie++")
    return int(row[1]) * (_KIB if row[2] else 1) if row[1] else _USUAL_CHUNK


def _stage(name: str, rate: str, cpu: str) -> Stage | None:
    """A stage that did not run has empty fields, and one that was too quick has plus signs."""
    if rate == "" and cpu == "":
        return None
    if rate.startswith("+"):
        raise TooQuick(name)
    try:
        return Stage(float(rate) * (1 if name == "seeks" else _KIB), float(cpu))
    except ValueError:
        raise WorkloadError(f"bonnie++ printed {rate!r} and {cpu!r} for its stage {name}") from None
