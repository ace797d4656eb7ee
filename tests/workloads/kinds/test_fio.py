"""fio against a scripted guest."""

import json
import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.fakes.shell import FakeShell, says
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.fio import Fio, FioParams
from vmlab.workloads.reports.fio_report import Direction, demand_work, parse_fio
from vmlab.workloads.workload_steps import Collected, Finished, WorkloadContext

MIB = 2**20
COMMON: dict[str, Any] = {"engine": "posixaio", "size": 32 * MIB, "depth": 16, "jobs": 2, "end_fsync": True}
READ = FioParams.model_validate({"rw": "randread", "time": "2 s", **COMMON})
MIXED = FioParams(rw="randrw", bytes=8 * MIB, **COMMON)
WRITE = FioParams(rw="randwrite", bytes=8 * MIB, verify=True, **COMMON)


@pytest.fixture
def alone(source: FakeShell) -> WorkloadContext:
    return WorkloadContext(workload="disk", tile=1, cell=1, seed=1, source=source)


class Replayed:
    """fio's captured run `name`, with parts of what it printed replaced."""

    def __init__(self, captured: Path, alone: WorkloadContext, shell: FakeShell) -> None:
        self._captured, self._alone, self._shell = captured, alone, shell

    async def collect(self, params: FioParams, name: str, changed: str = "", into: str = "") -> Collected:
        """Replace the first match of the pattern `changed`, in the report or else in the account."""
        report = (self._captured / f"fio-{name}.json").read_text()
        account = (self._captured / f"fio-{name}.txt").read_bytes().decode()
        if changed:
            report, times = re.subn(changed, into, report, count=1)
            if not times:
                account, times = re.subn(changed, into, account, count=1)
            assert times
        self._shell.answers["/run/vmlab/workloads/disk.fio"] = says(report)
        return await Fio(params).collect(self._alone, Finished(0, 3.0, account, ""))


@pytest.fixture
def replayed(captured: Path, alone: WorkloadContext, source: FakeShell) -> Replayed:
    return Replayed(captured, alone, source)


async def test_rates_follow_from_exact_counts(replayed: Replayed) -> None:
    values = (await replayed.collect(READ, "randread")).values
    assert values["bytes"] == values["blocks"] * 4096
    assert values["iops"] == values["blocks"] / values["run_time"]
    assert values["throughput"] == values["bytes"] / values["run_time"]
    assert 0 < values["latency_p50"] <= values["latency_p95"] <= values["latency_p99"]
    assert 2 <= values["run_time"] < 2.1
    assert "read_iops" not in values


async def test_a_mix_has_figures_for_both_directions(replayed: Replayed) -> None:
    values = (await replayed.collect(MIXED, "randrw")).values
    assert values["bytes"] == 16 * MIB
    assert values["iops"] == pytest.approx(values["read_iops"] + values["write_iops"], rel=0.01)
    assert {"read_latency_p99", "write_latency_mean"} <= set(values)
    assert "latency_mean" not in values


async def test_what_is_read_again_to_verify_is_no_figure(replayed: Replayed) -> None:
    values = (await replayed.collect(WRITE, "randwrite")).values
    assert values["bytes"] == 16 * MIB


@pytest.mark.parametrize(
    ("params", "name", "changed", "into", "reason"),
    [
        (READ, "randread", '"error" : 0', '"error" : 84', "fio ended with error 84"),
        (READ, "randread", '"ioengine" : "posixaio"', '"ioengine" : "psync"', "ioengine=psync, not with posixaio"),
        (READ, "randread", '"direct" : "1"', '"direct" : "0"', "direct=0, not with 1"),
        (READ, "randread", '"iodepth" : "16"', '"iodepth" : "1"', "iodepth=1, not with 16"),
        (READ, "randread", '"bs" : "4096"', '"bs" : "8192"', "bs=8192, not with 4096"),
        (
            READ,
            "randread",
            '"bs" : "4096"',
            '"bs" : "4096", "random_distribution" : "zipf:1.2"',
            "with random_distri.*=zipf",
        ),
        (
            READ,
            "randread",
            r'("lat_ns" : \{\s*"min" : \d+,\s*"max" : \d+,\s*"mean" : )[0-9.]+',
            r"\g<1>1000000000.0",
            "latencies of fio's reads contradict each other: the mean is 1 s, which must be",
        ),
        (READ, "randread", '"short_ios" : 0', '"short_ios" : 3', "short reads of fio: 3, but 0"),
        (READ, "randread", '"io_bytes" : [0-9]+', '"io_bytes" : 4097', "bytes of fio's reads, which are"),
        (READ, "randread", '"runtime" : 2[0-9]+,', '"runtime" : 1900,', "ran for 1.900 s, but 2 s were asked for"),
        (READ, "randread", '/file.0": true', '/file.0": false', "file.0 open without O_DIRECT, but direct is true"),
        (READ, "randread", ', "[^"]*file.1": true', "", "before 1 of its 2 open files could be looked at"),
        (READ, "randread", '"read": [0-9]+', '"read": 4096', "claims [0-9]+ bytes read from storage; the kernel"),
        (WRITE, "randwrite", '"written": [0-9]+', '"written": 0', "claims 16777216 bytes written to storage"),
        (MIXED.model_copy(update={"bytes": 4 * MIB}), "randrw", "", "", "io_size=8388608, not with 4194304"),
        (READ, "randread", '"jobs"', '"work"', "fio's JSON cannot be read"),
    ],
)
async def test_other_work_than_was_asked_for_fails(
    replayed: Replayed, params: FioParams, name: str, changed: str, into: str, reason: str
) -> None:
    with pytest.raises(WorkloadError, match=reason):
        await replayed.collect(params, name, changed, into)


def looked_at(captured: Path, name: str, syncs: int = 0, **more: str) -> None:
    """A captured run as if it had been asked for some options more, and had counted so many flushes."""
    report = parse_fio((captured / f"fio-{name}.json").read_text())
    asked = report.options | more
    demand_work(replace(report, options={**report.options, **more}, syncs=syncs), asked)


def slower(one: Direction, times: float) -> Direction:
    """All of its latencies so many times as long."""
    percentiles = {percent: value * times for percent, value in one.percentiles.items()}
    longest, mean = one.latency_max * times, one.latency_mean * times
    return replace(one, latency_mean=mean, latency_max=longest, percentiles=percentiles)


def test_latencies_fit_the_queues_of_direct_blocks(captured: Path) -> None:
    report = parse_fio((captured / "fio-randread.json").read_text())
    asked = {**report.options, "end_fsync": "0"}

    def judge(times: float, **more: str) -> None:
        options = asked | more
        demand_work(replace(report, options=options, read=slower(report.read, times)), options)

    judge(1)
    with pytest.raises(WorkloadError, match=r"blocks took .* s together, more than 32 at a time"):
        judge(2)
    with pytest.raises(WorkloadError, match=r"latencies of fio's blocks are too short: .* 32 at a time"):
        judge(0.1)
    for something in ({"direct": "0"}, {"end_fsync": "1"}, {"rate": f"{2**40}"}):
        judge(0.1, **something)


@pytest.mark.parametrize(
    ("percentiles", "longest", "reason"),
    [
        ({50: 0.1, 95: 1.0, 99: 2.0}, 3.0, "the mean is 0.01 s, which must be 0.105 to"),
        ({50: 0.001, 95: 0.001, 99: 0.001}, 0.002, "the mean is 0.01 s, which must be 0.0005 to 0.0010"),
        ({50: 0.01, 95: 0.001, 99: 0.02}, 0.03, "0.001 s as percentile 95 and 0.01 s as percentile 50"),
        ({50: 0.01, 95: 0.01, 99: 0.02}, 0.01, "0.0102 s as percentile 100 and 0.02 s as percentile 99"),
    ],
)
def test_latencies_that_contradict_each_other_are_refused(
    captured: Path, percentiles: dict[int, float], longest: float, reason: str
) -> None:
    document = json.loads((captured / "fio-randread.json").read_text())
    known = {f"{one:.6f}": value * 1e9 for one, value in percentiles.items()}
    latency = document["jobs"][0]["read"]["lat_ns"]
    latency.update(mean=1e7, max=longest * 1e9, percentile=known)
    with pytest.raises(WorkloadError, match=reason):
        parse_fio(json.dumps(document))


def test_latencies_of_the_last_bucket_may_be_any(captured: Path) -> None:
    document = json.loads((captured / "fio-randread.json").read_text())
    latency = document["jobs"][0]["read"]["lat_ns"]
    latency.update(mean=50e9, max=90e9, percentile={f"{one:.6f}": 17_112_760_320 for one in (50, 95, 99)})
    assert parse_fio(json.dumps(document)).read.latency_mean == 50


def test_a_rate_that_was_exceeded_fails(captured: Path) -> None:
    report = parse_fio((captured / "fio-randread.json").read_text())
    each = round(report.read.bytes / report.read.seconds / 2)
    looked_at(captured, "randread", rate=f"{each}")
    with pytest.raises(WorkloadError, match="bytes a second, more than its rate of"):
        looked_at(captured, "randread", rate=f"{each // 2}")
    assert FioParams(rw="read", size=MIB, rate="12.5/s").most_bytes_per_second == 51_200
    work = Fio(FioParams(rw="read", size=MIB, rate="13/s", rate_process="poisson"))._work()
    assert (work["rate"], work["rate_process"]) == ("53248", "poisson")
    for rate in ("12.7/s", "0.5/s", "10001/s"):
        with pytest.raises(ValidationError, match="needs a rate of a whole number a second, 10000 at most"):
            FioParams(rw="read", size=MIB, rate=rate, rate_process="poisson")


def test_a_few_blocks_more_are_no_fault_where_they_come_at_random(captured: Path) -> None:
    read = parse_fio((captured / "fio-randread.json").read_text()).read
    # Three standard errors more than were due.
    rate = f"{round(read.bytes / read.seconds / 2 / 1.05 * (1 - 3 / math.sqrt(read.blocks)))}"
    looked_at(captured, "randread", rate=rate, rate_process="poisson")
    with pytest.raises(WorkloadError, match="bytes a second, more than its rate of"):
        looked_at(captured, "randread", rate=rate)


def test_flushes_are_counted(captured: Path) -> None:
    writes = parse_fio((captured / "fio-randwrite.json").read_text()).write.blocks
    looked_at(captured, "randwrite", writes // 2, fdatasync="2")
    with pytest.raises(WorkloadError, match=f"fio called fdatasync 10 times for {writes} writes"):
        looked_at(captured, "randwrite", 10, fdatasync="2")


async def test_buffered_reads_must_be_buffered(replayed: Replayed) -> None:
    asked = FioParams(rw="read", direct=False, **COMMON)
    collected = await replayed.collect(asked, "buffered", '"direct" : "1"', '"direct" : "0"')
    assert collected.values["iops"] > 0


async def test_files_are_laid_out_in_full_in_a_folder_of_its_own(alone: WorkloadContext, source: FakeShell) -> None:
    full = f"{32 * MIB} {32 * MIB // 512} 512\n"
    source.answers["stat -f"] = says("ext2/ext3\n")
    source.answers["stat -c"] = says(full * 2)
    await Fio(READ).prepare(alone)
    layout = next(words for words in source.commands if "--name=layout" in words)
    assert "--directory=/data/vmlab-disk" in layout
    assert "--fallocate=none" in layout
    for listed, reason in [(full, "files laid out: 1, but 2"), (f"{32 * MIB} 8 512\n" * 2, "it has holes")]:
        source.answers["stat -c"] = says(listed)
        with pytest.raises(WorkloadError, match=reason):
            await Fio(READ).prepare(alone)


async def layouts(contents: str | None, alone: WorkloadContext, source: FakeShell) -> list[str]:
    """The options that decide what is in the files of two tiles, and of the first one's second workload."""
    source.answers["stat -c"] = says(f"{32 * MIB} {32 * MIB // 512} 512\n")
    params = FioParams.model_validate({"rw": "read", "size": 32 * MIB, "direct": False, "contents": contents})
    source.commands.clear()
    for context in (alone, replace(alone, tile=2), replace(alone, workload="other"), replace(alone, seed=2)):
        await Fio(params).prepare(context)
    layout = [words.split() for words in source.commands if "--name=layout" in words]
    return [" ".join(word for word in words if "seed" in word or "refill" in word) for words in layout]


async def test_contents_are_those_of_the_run_or_of_each_guest_alone(alone: WorkloadContext, source: FakeShell) -> None:
    assert await layouts(None, alone, source) == [""] * 4
    same = await layouts("identical", alone, source)
    assert same[0] == same[1] == same[2] != same[3]
    own = await layouts("unique", alone, source)
    assert len(set(own)) == 4
    assert all(re.fullmatch(r"--randseed=[1-9]\d* --refill_buffers=1", words) for words in (*same, *own))


@pytest.mark.parametrize("other", [{"rw": "write"}, {"rw": "randrw"}, {"rw": "read", "verify": True}])
def test_contents_of_what_fio_itself_marks_or_writes_are_refused(other: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="contents needs reads, without verify"):
        FioParams.model_validate({"size": MIB, "contents": "unique", **other})


async def test_direct_reads_of_memory_are_refused(alone: WorkloadContext, source: FakeShell) -> None:
    source.answers["stat -f"] = says("tmpfs\n")
    with pytest.raises(WorkloadError, match="/data/vmlab-disk on near is in memory"):
        await Fio(READ).prepare(alone)


def test_progress_is_the_last_percentage_of_a_line(captured: Path) -> None:
    load = Fio(READ)
    step = load.progress("Jobs: 2 (f=2)\rJobs: 2 (f=2): [m(2)][75.0%][r=16.4MiB/s][r=4205 IOPS][eta 00m:01s]\r")
    assert step is not None
    assert (step.done, step.total) == (75, 100)
    assert load.progress("Jobs: 2 (f=2): [r(2)][-.-%][r=32.1MiB/s]") is None


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"size": 4097}, "whole blocks"),
        ({"time": "2 s", "bytes": 4096}, "must not both be given"),
        ({"engine": "psync", "depth": 2}, "has no queue"),
        ({"engine": "libaio", "direct": False, "depth": 2}, "depth must be 1 with libaio without direct"),
        ({"engine": "mmap"}, "direct must be false"),
        ({"rw": "randrw", "verify": True}, "does not go with a mix"),
        ({"rw": "write", "verify": True, "time": "2 s"}, "needs bytes, not time"),
        ({"rw": "randrw", "rate": "80/s"}, "rate does not go with a mix"),
        ({"fdatasync": 1}, "fdatasync needs writes alone"),
        ({"rw": "write", "verify": True, "fdatasync": 1}, "goes with neither windowsaio nor verify"),
        ({"folder": "/data/../etc"}, "must be an absolute path"),
        ({"folder": "data:x"}, "must be an absolute path"),
    ],
)
def test_amounts_that_make_no_sense(wrong: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        FioParams.model_validate({"rw": "read", "size": 4096, **wrong})


@dataclass
class WindowsShell(FakeShell):
    """A guest with Windows whose files are in memory: `folders` has the sizes in each."""

    folders: dict[str, dict[str, int]] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)

    async def make_folder(self, path: str) -> None:
        self.folders.setdefault(path, {})

    async def sizes(self, path: str) -> dict[str, int]:
        return self.folders[path]

    async def read(self, path: str) -> str:
        return self.files[path].decode()

    async def remove_folder(self, path: str) -> None:
        self.removed.append(path)


ON_WINDOWS = FioParams.model_validate(
    {"engine": "windowsaio", "rw": "randread", "size": 16 * MIB, "bytes": 16 * MIB, "jobs": 2, "depth": 8}
)
OWN = "C:/vmlab/vmlab-disk"


@pytest.fixture
def windows() -> WindowsShell:
    return WindowsShell("win", "10.0.0.2")


async def test_on_windows_files_are_laid_out_by_its_engine_and_their_sizes_are_looked_at(windows: WindowsShell) -> None:
    context = WorkloadContext(workload="disk", tile=1, cell=1, seed=1, source=windows)
    windows.folders[OWN] = {"file.0": 16 * MIB, "file.1": 16 * MIB}
    await Fio(ON_WINDOWS).prepare(context)
    (layout,) = windows.commands
    assert {"--ioengine=windowsaio", "--thread", "--directory=C\\:/vmlab/vmlab-disk"} <= set(layout.split())
    windows.folders[OWN]["file.1"] -= 1
    with pytest.raises(WorkloadError, match="bytes of a file that was laid out: 16777215, but 16777216"):
        await Fio(ON_WINDOWS).prepare(context)
    del windows.folders[OWN]["file.1"]
    with pytest.raises(WorkloadError, match="files laid out: 1, but 2"):
        await Fio(ON_WINDOWS).prepare(context)


async def test_on_windows_fio_runs_without_a_program_beside_it_and_its_report_is_read(
    windows: WindowsShell, captured: Path
) -> None:
    context = WorkloadContext(workload="disk", tile=1, cell=1, seed=1, source=windows)
    argv = Fio(ON_WINDOWS).client(context).argv
    assert argv[0] == "fio" and "--output=C:/vmlab/disk.report" in argv and "--thread" in argv
    report = (captured / "fio-windows.json").read_text()
    windows.files["C:/vmlab/disk.report"] = report.encode()
    values = (await Fio(ON_WINDOWS).collect(context, Finished(0, 3.0, "", ""))).values
    assert values["bytes"] == 32 * MIB == values["blocks"] * 4096
    assert values["iops"] == values["blocks"] / values["run_time"] and windows.removed == [OWN]
    windows.files["C:/vmlab/disk.report"] = report.replace('"windowsaio"', '"sync"').encode()
    with pytest.raises(WorkloadError, match="ioengine=sync, not with windowsaio"):
        await Fio(ON_WINDOWS).collect(context, Finished(0, 3.0, "", ""))


def test_what_comes_at_random_is_another_draw_in_each_repeat(alone: WorkloadContext) -> None:
    def seeds(params: FioParams) -> set[str]:
        contexts = (replace(alone, cell=cell, repeat=repeat) for cell, repeat in ((1, 1), (2, 1), (3, 2)))
        words = (word for one in contexts for word in Fio(params).client(one).argv)
        return {word for word in words if "randseed=" in word}

    assert len(seeds(FioParams(rw="randread", size=MIB, time="5 s", rate="20/s"))) == 1
    assert len(seeds(FioParams(rw="randread", size=MIB, time="5 s", rate="20/s", rate_process="poisson"))) == 2
