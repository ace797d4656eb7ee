"""Reads and writes of files by fio, in a folder of the place where it runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from vmlab.model.names import DATA_FOLDER, WORKLOADS_FOLDER
from vmlab.model.run import RUN_TIME
from vmlab.model.units import Bytes, Pace, Seconds
from vmlab.workloads.metrics import Metric, ToolTime, latencies, with_run_time
from vmlab.workloads.programs import (
    Contents,
    Folder,
    accounted,
    demand_disk,
    draw,
    file_seed,
    install,
    make_own_folder,
    own_folder,
    own_seed,
    parse_account,
    remove_own_folder,
    tool_seed,
    windows_folder,
    windows_place,
    windows_report,
)
from vmlab.workloads.reports.fio_report import (
    MIXES,
    PERCENTILES,
    demand_access,
    demand_layout,
    demand_sizes,
    demand_work,
    parse_fio,
)
from vmlab.workloads.tool_workload import ToolWorkload
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

_BLOCK_SECONDS = {"kvm": 0.0001, "tcg": 0.001}
_BYTES_PER_SECOND = {"kvm": 300e6, "tcg": 80e6}
"""One block at any depth, and the bytes in it; also of laying out. Measured on the host itself; for TCG a guess."""
_ON_WINDOWS = 3
"""How much longer Windows may take to start a program: a guess."""
_LAYOUT_BLOCK = 2**20
_DONE = re.compile(r"\[ ?([0-9]+(?:\.[0-9])?)%\]")
_WINDOWS = "windowsaio"
"""The engine of guests with Windows, and of no other place."""
_NO_QUEUE = ("psync", "sync", "pvsync2", "mmap")


MOST_BETWEEN_SYNCS = 2**20
MOST_AT_RANDOM = 10_000
"""Blocks a second of a job: fio takes each time between two for whole microseconds (`usec_for_io`)."""


def is_rate_at_random(rate: float) -> bool:
    """Whether fio's blocks can come at random at this rate: it divides by whole numbers."""
    return rate == round(rate) and 1 <= rate <= MOST_AT_RANDOM


class FioParams(WorkloadParams):
    """Amounts of the ``fio`` workload; `size` and `bytes` are those of each job."""

    rw: Literal["read", "write", "randread", "randwrite", "rw", "randrw"]
    """Order and direction of the blocks; ``rw`` and ``randrw`` mix reads and writes."""
    block: Bytes = Field(default=4096, ge=512, le=2**30)
    """Size of each read and write."""
    size: Bytes = Field(ge=4096, le=2**46)
    """Size of the file that each job has."""
    depth: int = Field(default=1, ge=1, le=4096)
    """Blocks that each job keeps in flight."""
    jobs: int = Field(default=1, ge=1, le=256)
    """Processes, each with a file of its own."""
    time: Seconds = Field(default=0.0, ge=0, le=86_400)
    """How long to read and write; 0: until `bytes` are done."""
    bytes: Bytes = Field(default=0, ge=0, le=2**50)
    """How much each job reads and writes; 0: the size of its file. Not together with `time`."""
    engine: Literal["posixaio", "libaio", "io_uring", "psync", "sync", "pvsync2", "mmap", "windowsaio"] = "libaio"
    """fio's ioengine. With the default and `direct`, the depth reaches the disk; windowsaio is for Windows."""
    direct: bool = True
    """Whether files are opened with O_DIRECT, bypassing the page cache of the guest or host where fio runs."""
    rate: Pace | None = None
    """The most blocks that each job begins a second, such as 80/s. Not in a mix."""
    rate_process: Literal["linear", "poisson"] = "linear"
    """Whether blocks come at `rate` evenly (linear), or at random (poisson), which takes a whole number a second."""
    fdatasync: int = Field(default=0, ge=0, le=MOST_BETWEEN_SYNCS)
    """After how many writes each job calls fdatasync, which flushes the disk; 0: never."""
    end_fsync: bool = False
    """Whether each job ends with a call of fsync, whose time counts."""
    read_percent: int = Field(default=50, ge=1, le=99)
    """Percentage of reads in a mix."""
    folder: Folder = DATA_FOLDER
    """Where the workload makes its own folder of files."""
    verify: bool = False
    """Whether each block has a checksum, verified while reading, or after all writes."""
    contents: Contents | None = None
    """What the files hold: the same in all guests (``identical``), or different in each (``unique``)."""

    @model_validator(mode="after")
    def _possible(self) -> FioParams:
        if self.size % self.block or self.bytes % self.block:
            raise ValueError(f"size and bytes must be whole blocks, multiples of {self.block} B here")
        if self.time and self.bytes:
            raise ValueError("time and bytes must not both be given")
        if self.engine in _NO_QUEUE and self.depth > 1:
            raise ValueError(f"depth must be 1 with the engine {self.engine}, which has no queue")
        if self.engine == "libaio" and not self.direct and self.depth > 1:
            raise ValueError("depth must be 1 with libaio without direct: the kernel then does one block after another")
        if self.engine == "mmap" and self.direct:
            raise ValueError("direct must be false with the engine mmap")
        if self.verify and self.mixed:
            raise ValueError("verify does not go with a mix of reads and writes")
        if self.verify and self.writes and (self.time or self.bytes > self.size):
            raise ValueError("verify of writes needs bytes, not time, and no more of them than size")
        if self.on_windows and not self.direct:
            raise ValueError("direct must be true with windowsaio: the lab cannot empty the file cache of Windows")
        if self.on_windows and self.folder != DATA_FOLDER:
            raise ValueError("folder does not go with windowsaio: its files lie below C:\\vmlab")
        if self.rate is not None and self.mixed:
            raise ValueError("rate does not go with a mix of reads and writes: give each a workload of its own")
        if self.at_random and (self.rate is None or not is_rate_at_random(self.rate)):
            raise ValueError(f"rate_process: poisson needs a rate of a whole number a second, {MOST_AT_RANDOM} at most")
        if self.fdatasync and not self.writes:
            raise ValueError("fdatasync needs writes alone")
        if self.fdatasync and (self.on_windows or self.verify):
            raise ValueError("fdatasync goes with neither windowsaio nor verify")
        if self.contents and (self.verify or self.mixed or self.writes):
            raise ValueError("contents needs reads, without verify: fio has its own for blocks that it writes or marks")
        return self

    @property
    def on_windows(self) -> bool:
        """Whether it runs in a guest with Windows."""
        return self.engine == _WINDOWS

    @property
    def mixed(self) -> bool:
        """Reads and writes."""
        return self.rw in MIXES

    @property
    def writes(self) -> bool:
        """Writes alone."""
        return self.rw in ("write", "randwrite")

    @property
    def each(self) -> int:
        """Bytes that each job moves, where no time ends it."""
        return self.bytes or self.size

    @property
    def most_bytes_per_second(self) -> int:
        """Those of each job by its `rate`, as fio takes them; 0 without one."""
        if self.rate is None:
            return 0
        return max(1, round(self.rate * self.block))

    @property
    def at_random(self) -> bool:
        """Whether blocks come at random."""
        return self.rate_process == "poisson"


def _metrics(prefix: str = "", words: str = "") -> dict[str, Metric]:
    return {
        f"{prefix}iops": Metric("1/s", "more", f"{words}blocks per second"),
        f"{prefix}throughput": Metric("B/s", "more", f"{words}throughput"),
        **latencies("mean", *(f"p{percent}" for percent in PERCENTILES), prefix=prefix, words=words),
    }


class Fio(ToolWorkload[FioParams]):
    """``fio``, over files that were written in full before."""

    kind = "fio"
    Params = FioParams
    tools = (("fio",), ())
    texts = ("fio", "client")
    tool = "fio"
    around: ClassVar = {"kvm": 0.4, "tcg": 4.5}
    """Until fio and the program that watches it have started, found the files and ended."""
    summary = "fio reads or writes blocks of files, in order or at random."
    metrics = with_run_time(
        **_metrics(),
        **_metrics("read_", "reads: "),
        **_metrics("write_", "writes: "),
        blocks=Metric("1", None, "blocks"),
        bytes=Metric("B", None, "bytes"),
    )
    throughput = "throughput"

    @classmethod
    def left_out(cls, params: Mapping[str, Any]) -> frozenset[str]:
        """A mix has latencies by direction alone; reads alone and writes alone have none by direction."""
        if params.get("rw") in MIXES:
            return frozenset(name for name in _metrics() if name.startswith("latency"))
        return frozenset((*_metrics("read_"), *_metrics("write_")))

    @classmethod
    def is_timed(cls, params: Mapping[str, Any]) -> bool:
        """With `time`."""
        return bool(params.get("time"))

    @classmethod
    def needs_windows(cls, params: Mapping[str, Any]) -> bool:
        """With the engine of Windows."""
        return params.get("engine") == _WINDOWS

    def footprint(self, accelerator: str) -> Footprint:
        """The files are laid out once; what is written later takes their place."""
        params = self.params
        laid_out = params.size * params.jobs
        blocks = params.each * params.jobs // params.block
        moving = params.time or max(
            blocks * _BLOCK_SECONDS[accelerator] + blocks * params.block / _BYTES_PER_SECOND[accelerator],
            0.0 if params.rate is None else params.each / params.block / params.rate,
        )
        return Footprint(disk_bytes=laid_out, seconds=3 + laid_out / _BYTES_PER_SECOND[accelerator] + moving)

    def stored(self) -> tuple[Stored, ...]:
        """Each job has a file of its own."""
        return (Stored("source", self.params.size * self.params.jobs, "size", self.params.folder),)

    async def stage(self, context: StagingContext) -> None:
        """Put the program in place that watches fio; files are made later, as none belongs into a snapshot."""
        if not self.params.on_windows:
            await install(context.shell, "accounted")

    async def prepare(self, context: WorkloadContext) -> None:
        """Write each job's file in full, and sync it. The engine empties the caches afterwards."""
        params, shell = self.params, context.source
        own = await self._make_folder(context)
        block = params.block if params.verify else min(_LAYOUT_BLOCK, params.size)
        argv = [
            *("fio", "--name=layout", "--rw=write", f"--ioengine={_WINDOWS if params.on_windows else 'psync'}"),
            *("--end_fsync=1", "--fallocate=none", f"--bs={block}", *self._files(own)),
            *("--output-format=json", f"--output={self._report(context)}"),
            *(("--verify=crc32c", "--do_verify=0") if params.verify else ()),
            *((f"--randseed={file_seed(params.contents, context)}", "--refill_buffers=1") if params.contents else ()),
        ]
        await shell.run(argv, deadline=self.patience)
        if params.on_windows:
            demand_sizes(await windows_place(shell).sizes(own), params.size, params.jobs)
            return
        files = (f"{own}/file.{number}" for number in range(params.jobs))
        sizes = await shell.run(["stat", "-c", "%s %b %B", *files])
        demand_layout(sizes.stdout, params.size, params.jobs)

    async def _make_folder(self, context: WorkloadContext) -> str:
        params, shell = self.params, context.source
        if params.on_windows:
            own = windows_folder(context.workload)
            await windows_place(shell).make_folder(own)
            return own
        own = await make_own_folder(shell, params.folder, context.workload)
        if params.direct:
            await demand_disk(shell, own)
        return own

    def _files(self, own: str) -> tuple[str, ...]:
        params = self.params
        # fio takes a colon for the end of a folder's name unless a backslash is before it, and Windows has no fork.
        return (
            *("--directory=" + own.replace(":", "\\:"), "--filename_format=file.$jobnum"),
            *(f"--size={params.size}", f"--numjobs={params.jobs}", "--group_reporting"),
            *(("--thread",) if params.on_windows else ()),
        )

    def _work(self) -> dict[str, str]:
        """What fio is to do, in its own options, which it repeats in its report."""
        params = self.params
        end = {"runtime": f"{params.time:g}"} if params.time else {"io_size": f"{params.each}"}
        asked = {
            "rwmixread": params.read_percent if params.mixed else None,
            "verify": "crc32c" if params.verify else None,
            "rate": params.most_bytes_per_second if params.rate is not None else None,
            "rate_process": params.rate_process if params.at_random else None,
            "fdatasync": params.fdatasync or None,
        }
        return {
            "rw": params.rw,
            "bs": f"{params.block}",
            "size": f"{params.size}",
            "numjobs": f"{params.jobs}",
            "iodepth": f"{params.depth}",
            "ioengine": params.engine,
            "direct": f"{int(params.direct)}",
            "end_fsync": f"{int(params.end_fsync)}",
            "overwrite": "1",
            "allow_file_create": "0",
            **end,
            **{name: f"{value}" for name, value in asked.items() if value is not None},
        }

    def _report(self, context: WorkloadContext) -> str:
        windows = self.params.on_windows
        return windows_report(context.workload) if windows else f"{WORKLOADS_FOLDER}/{context.workload}.fio"

    def client(self, context: WorkloadContext) -> Client:
        """fio, beside a program that looks at the files which it has open, and then waits."""
        params = self.params
        windows = params.on_windows
        own = windows_folder(context.workload) if windows else own_folder(params.folder, context.workload)
        work = [f"--{name}={value}" for name, value in self._work().items() if name not in ("size", "numjobs")]
        argv = (
            *("fio", "--name=job", *self._files(own), *work),
            *(("--time_based",) if params.time else ()),
            *(("--verify_fatal=1",) if params.verify else ()),
            *(f"--randseed={self._seed(context)}", "--lat_percentiles=1", "--clat_percentiles=0"),
            f"--percentile_list={':'.join(map(str, PERCENTILES))}",
            *("--output-format=json", f"--output={self._report(context)}", "--eta=always", "--eta-newline=1"),
        )
        deadline = 600 + 3 * params.time if params.time else self.patience
        return Client(argv if windows else accounted(argv, own, params.jobs), deadline)

    def _seed(self, context: WorkloadContext) -> int:
        """The same in each cell; where blocks come at random, another one in each repeat: one draw is no mean."""
        return tool_seed(f"{own_seed(context)}-{context.repeat}") if self.params.at_random else draw(context)

    def progress(self, line: str) -> Progress | None:
        """The percentage in fio's own line of each second."""
        found = _DONE.findall(line) if line.startswith("Jobs:") else []
        return Progress(float(found[-1]), 100.0, "%") if found else None

    async def printed(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """fio's report, and what the program beside it saw."""
        shell, report = context.source, self._report(context)
        if self.params.on_windows:
            text = await windows_place(shell).read(report)
        else:
            text = (await shell.run(["cat", report])).stdout
        return {"fio": text, "client": finished.stdout}

    async def verified(self, context: WorkloadContext, finished: Finished) -> dict[str, str]:
        """All is told by the texts; the files go."""
        if self.params.on_windows:
            await windows_place(context.source).remove_folder(windows_folder(context.workload))
        else:
            await remove_own_folder(context.source, self.params.folder, context.workload)
        return {}

    def figures(self, texts: Mapping[str, str], seconds: float) -> Mapping[str, float]:
        """From fio's report, which the account of a Linux kernel beside it bears out."""
        params = self.params
        report = parse_fio(texts["fio"])
        demand_work(report, self._work())
        if not params.on_windows:
            demand_access(parse_account(texts["client"]), report, params.jobs, params.direct)
        used = report.used(params.rw)
        run_time = max(one.seconds for one in used.values())
        blocks, moved = sum(one.blocks for one in used.values()), sum(one.bytes for one in used.values())
        values = {RUN_TIME: run_time, "iops": blocks / run_time, "throughput": moved / run_time}
        for name, one in used.items():
            prefix = f"{name}_" if params.mixed else ""
            if params.mixed:
                values |= {f"{prefix}iops": one.blocks / one.seconds, f"{prefix}throughput": one.bytes / one.seconds}
            values[f"{prefix}latency_mean"] = one.latency_mean
            values |= {f"{prefix}latency_p{percent}": value for percent, value in one.percentiles.items()}
        return {**values, "blocks": blocks, "bytes": moved}

    def tool_time(self, values: Mapping[str, float], texts: Mapping[str, str], accelerator: str) -> ToolTime | None:
        """fio's own, with what it reads again to verify; files are looked for before."""
        report, params = parse_fio(texts["fio"]), self.params
        again = report.read.seconds if params.verify and params.writes else 0.0
        around = self.around[accelerator] * (_ON_WINDOWS if params.on_windows else 1)
        return ToolTime(values[RUN_TIME] + again, around)
