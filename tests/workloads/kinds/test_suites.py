"""The suites that users bring: their reports, and UnixBench's way from the user's source into a guest.

Neither suite is part of vmlab, so the reports are written here in the formats that their sources publish, see the
modules that read them; the source that is compiled is one of our own with the same folders.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import tarfile
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.fakes.shell import FakeShell, says
from vmlab.model.errors import WorkloadError
from vmlab.workloads.assets import asset_folder, packed, read_assets
from vmlab.workloads.suites import unixbench
from vmlab.workloads.suites.specjvm import Specjvm, SpecjvmParams, groups_of
from vmlab.workloads.suites.unixbench import OPTIONS, TESTS, Unixbench, UnixbenchParams, built, parse_unixbench, passes
from vmlab.workloads.workload_steps import Finished, StagingContext, WorkloadContext

UNIX = Unixbench(UnixbenchParams(iterations=4, copies=2))
JAVA = Specjvm(SpecjvmParams(benchmarks=("compress", "crypto.aes", "scimark.monte_carlo"), iterations=2))


@pytest.fixture
def unix_report() -> str:
    scores = [
        ("Dhrystone 2 using register variables", 34839728.4, "lps", 10.0, 3, 116700.0, 2985.4),
        ("Double-Precision Whetstone", 4368.3, "MWIPS", 9.9, 3, 55.0, 794.2),
        ("File Copy 4096 bufsize 8000 maxblocks", 1825548.4, "KBps", 30.0, 1, 5800.0, 3147.5),
    ]
    lines = [
        "   BYTE UNIX Benchmarks (Version 5.1.6)",
        "",
        "   System: guest: GNU/Linux",
        "-" * 72,
        "Benchmark Run: Sun Nov 22 2026 10:00:00 - 10:03:00",
        "2 CPUs in system; running 2 parallel copies of tests",
        "",
        *(
            f"{name:<40} {score:12.1f} {label:<5} ({time:.1f} s, {kept} samples)"
            for name, score, label, time, kept, *_ in scores
        ),
        "",
        f"{'System Benchmarks Partial Index':<40} {'BASELINE':>12} {'RESULT':>12} {'INDEX':>8}",
        *(f"{name:<40} {base:12.1f} {score:12.1f} {index:8.1f}" for name, score, _, _, _, base, index in scores),
        f"{'':<40} {'':>12} {'':>12} {'========':>8}",
        f"{'System Benchmarks Index Score (Partial Only)':<66} {1954.2:8.1f}",
        "",
    ]
    return "\n".join(lines)


@pytest.fixture
def java_report() -> str:
    return specjvm_report()


def specjvm_report() -> str:
    def detail(name: str, stage: str, milliseconds: int, operations: float) -> str:
        score = 60000 * operations / milliseconds
        return f"{name:<30}{stage:<15}{milliseconds:<15}{milliseconds:<15}{operations:<15.2f}{score:<15.2f}"

    names = ("compress", "crypto.aes", "scimark.monte_carlo")
    stages = (("warmup", 120000, 250.0), ("iteration 1", 240000, 494.85), ("iteration 2", 240000, 499.0))
    return "\n".join(
        [
            *("=" * 32, "SPECjvm2008 Base", "=" * 32, "n/a n/a", "OpenJDK 64-Bit Server VM"),
            "Tested by: n/a Test date: Sun Nov 22 10:00:00 UTC 2026",
            *("Run is valid, but not compliant", "", "=" * 32),
            *(f"{name:<30}{score:<40}" for name, score in (("compress", 124.75), ("crypto", 124.0))),
            *(f"{name:<30}{123.8:<40}" for name in ("scimark.large", "scimark.small")),
            *("Noncompliant composite result: 124.09 ops/m", "=" * 32, ""),
            *(f"{'Tester':<30}{'anyuser':<40}", f"{'Memory size':<30}{'n/a':<40}", ""),
            *("Not a compliant sequence of benchmarks for publication.", "", "Details of Runs", "-" * 15, ""),
            *(detail(name, *stage) for name in names for stage in stages),
            *("", "SPECjvm2008 Version: [SPECjvm2008 1.01 (20090519)]"),
        ]
    )


def test_scores_of_unixbench_come_in_units_of_ours(unix_report: str) -> None:
    values = UNIX.figures({"report": unix_report}, 200.0)
    assert values == {
        "run_time": pytest.approx(3 * 10.0 + 3 * 9.9 + 30.0),
        "dhrystones_per_second": 34839728.4,
        "whetstones_per_second": pytest.approx(4368.3e6),
        "copy_4096_throughput": pytest.approx(1825548.4 * 1024),
        "index": 1954.2,
    }
    assert set(values) <= set(Unixbench.metrics)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("2 parallel copies", "1 parallel copy", "parallel copies of UnixBench's tests: 1, but 2 were asked for"),
        ("2 CPUs in system", "no CPUs in system", "report has 0 runs of the tests, not one"),
        ("9.9 s, 3 samples", "9.9 s, 2 samples", "Double-Precision Whetstone: 2, but 3 were asked for"),
        ("MWIPS", "KWIPS", "Double-Precision Whetstone in KWIPS, which should be MWIPS"),
        ("30.0 s, 1 samples", "3.0 s, 1 samples", "a pass of .* 4096 .* took 3 s, not 34 s"),
        ("34839728.4 lps", "       0.0 lps", "Dhrystone 2 using register variables has the score 0"),
        ("1825548.4 KBps", "+++++ KBps", "report lacks File Copy 4096 bufsize 8000 maxblocks"),
        ("4096 bufsize 8000", "256 bufsize 500", "report (lacks|has, unasked,) File Copy"),
        ("  1954.2", "  1964.3", "the index 1964.3, and its scores make 1954.2"),
        ("4368.3 MWIPS", "9368.3 MWIPS", "the index 1954.2, and its scores make 2520"),
    ],
)
def test_a_report_of_unixbench_that_is_not_whole_fails(unix_report: str, old: str, new: str, reason: str) -> None:
    assert old in unix_report
    with pytest.raises(WorkloadError, match=reason):
        UNIX.figures({"report": unix_report.replace(old, new)}, 200.0)


def test_two_runs_in_one_report_are_none(unix_report: str) -> None:
    with pytest.raises(WorkloadError, match="2 runs of the tests"):
        parse_unixbench(unix_report * 2)


def test_each_test_of_unixbench_that_may_be_asked_for_is_known() -> None:
    assert [passes(TESTS[name], 10) for name in ("dhry2reg", "fsdisk")] == [10, 3]
    assert [passes(TESTS[name], 1) for name in ("dhry2reg", "fsdisk")] == [1, 1]


def test_scores_of_specjvm_are_those_of_its_groups(java_report: str) -> None:
    values = JAVA.figures({"report": java_report}, 3000.0)
    assert values["run_time"] == 3 * 480
    assert values["score"] == 124.09
    assert values["compress_score"] == 124.75 and values["scimark_large_score"] == 123.8
    assert values["operations"] == pytest.approx(3 * (494.85 + 499.0))
    assert set(values) <= set(Specjvm.metrics)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("Run is valid, but not compliant", "Run is not valid", "^SPECjvm2008 says: Run is not valid$"),
        ("Run is valid, but not compliant", "Runs", "0 lines on the run's state"),
        ("Noncompliant composite result: 124.09", "Composite result: n/a", "0 composite results"),
        ("crypto  ", "crypt   ", "no score of crypto"),
        ("124.0 ", "n/a  ", "SPECjvm2008's crypto has no score, but 'n/a'"),
        (
            "crypto.aes                    iteration 2",
            "crypto.aes                    warmup",
            "iterations of .* crypto.aes: 1, but 2",
        ),
        ("compress                      warmup ", "compress                      warm ", "did not warm compress up"),
        ("494.85", "594.85", "compress, iteration 1, has the score 123.71, and its operations make 148.71 a minute"),
        ("124.0 ", "36.5 ", "SPECjvm2008's crypto is 36.5, but its iterations have 123.71 to 124.75"),
        ("124.09", "224.09", "SPECjvm2008's composite result is 224.09, but its groups have 123.8 to 124.75"),
        ("scimark.monte_carlo", "serial", "iterations of SPECjvm2008's scimark.monte_carlo: 0, but 2"),
    ],
)
def test_a_report_of_specjvm_that_is_not_whole_fails(java_report: str, old: str, new: str, reason: str) -> None:
    assert old in java_report
    with pytest.raises(WorkloadError, match=reason):
        JAVA.figures({"report": java_report.replace(old, new)}, 3000.0)


def test_a_benchmark_that_nobody_asked_for_fails(java_report: str) -> None:
    fewer = Specjvm(SpecjvmParams(benchmarks=("compress", "crypto.aes"), iterations=2))
    with pytest.raises(WorkloadError, match=r"ran scimark\.monte_carlo, which was not asked for"):
        fewer.figures({"report": java_report}, 3000.0)
    warmer = Specjvm(JAVA.params.model_copy(update={"warmup": 300.0}))
    with pytest.raises(
        WorkloadError, match=r"the warm-up of SPECjvm2008's compress took 120.0 s, but 300 s were asked"
    ):
        warmer.figures({"report": java_report}, 3000.0)
    longer = Specjvm(JAVA.params.model_copy(update={"time": 300.0}))
    with pytest.raises(WorkloadError, match=r"an iteration of SPECjvm2008's compress took .* but 300 s were asked for"):
        longer.figures({"report": java_report}, 3000.0)


def test_groups_of_benchmarks() -> None:
    assert groups_of(["crypto.aes", "xml.transform", "scimark.lu.small"]) == {"crypto", "xml", "scimark.small"}
    assert groups_of(["scimark.monte_carlo"]) == {"scimark.large", "scimark.small"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"benchmarks": ["nonsense"]},
        {"benchmarks": ["--help"]},
        {"benchmarks": ["serial", "serial"]},
        {"heap": 2**28 + 1},
        {"time": 1.5},
    ],
)
def test_amounts_of_specjvm_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SpecjvmParams.model_validate(wrong)


async def test_specjvm_keeps_its_report_and_its_raw_result(source: FakeShell, java_report: str) -> None:
    alone = WorkloadContext(workload="suite", tile=1, cell=1, seed=1, source=source)
    client = JAVA.client(alone)
    folder = f"{asset_folder(source, 'suite')}/specjvm2008"
    assert client.argv[:3] == ("env", "-C", folder) and client.argv[-3:] == JAVA.params.benchmarks
    report = f"{folder}/results/SPECjvm2008.001/SPECjvm2008.001.txt"
    source.answers |= {"find": says(f"{report}\n{folder}/results/other.txt\n")}
    source.files |= {report: java_report.encode(), report.replace(".txt", ".raw"): b"<raw/>"}
    collected = await JAVA.collect(alone, Finished(0, 3000.0, "", ""))
    assert collected.raw["report"] == java_report and collected.raw["raw"] == "<raw/>"
    source.answers["find"] = says(f"{report}\n{report.replace('001', '002')}\n")
    with pytest.raises(WorkloadError, match="wrote 2 reports"):
        await JAVA.collect(alone, Finished(0, 3000.0, "", ""))


async def test_unixbench_keeps_its_report_and_its_log(source: FakeShell, unix_report: str) -> None:
    alone = WorkloadContext(workload="ub", tile=2, cell=3, seed=1, source=source)
    client = UNIX.client(alone)
    assert client.argv[-7:] == ("-c", "2", "-i", "4", "dhry2reg", "whetstone-double", "fsdisk")
    report = f"{client.environment['UB_RESULTDIR']}/guest-2026-11-22-01"
    source.answers |= {"find": says(f"{report}\n{report}.html\n{report}.log\n")}
    source.files |= {report: unix_report.encode(), f"{report}.log": b"#### Pass 1"}
    collected = await UNIX.collect(alone, Finished(0, 200.0, "", ""))
    assert collected.raw["report"] == unix_report and collected.raw["log"] == "#### Pass 1"


def _source(place: Path, program: str) -> Path:
    """A source with UnixBench's folders, whose one program says what it was compiled as."""
    for folder in ("pgms", "src"):
        (place / folder).mkdir(parents=True)
    for file in ("pgms/index.base", "src/whets.c", "src/fstime.c"):
        (place / file).write_text("")
    (place / "src/dhry_1.c").write_text(program)
    (place / "Run").write_text("#!/usr/bin/perl\n")
    (place / "Run").chmod(0o755)
    (place / "Makefile").write_text(
        "OPTON = -march=native\n"
        "programs: pgms/dhry2reg\n"
        "pgms/dhry2reg: src/dhry_1.c\n"
        "\t$(CC) $(OPTON) -o pgms/dhry2reg src/dhry_1.c\n"
        "\techo '$(CC) $(OPTON)' > pgms/options; id -u > pgms/who\n"
        "\ttail -n +3 /proc/net/dev | cut -d: -f1 > pgms/cards\n"
        "\t! touch /vmlab-was-here 2>/dev/null\n"
    )
    return place


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
async def test_the_source_is_compiled_apart_and_for_every_processor(tmp_path: Path) -> None:
    place = _source(tmp_path / "UnixBench", '#include <stdio.h>\nint main(void) { puts("ran"); return 0; }\n')
    archive = await built(read_assets([f"unixbench={tmp_path}"])["unixbench"])
    with tarfile.open(fileobj=io.BytesIO(archive)) as found:
        files = {one.name: found.extractfile(one).read() for one in found if one.isfile()}  # type: ignore[union-attr]
        program = found.getmember("unixbench/pgms/dhry2reg")
    assert files["unixbench/pgms/options"].decode().strip() == f"gcc -static {OPTIONS}"
    assert files["unixbench/pgms/who"] == b"65534\n" and files["unixbench/pgms/cards"] == b"    lo\n"
    (tmp_path / "program").write_bytes(files["unixbench/pgms/dhry2reg"])
    (tmp_path / "program").chmod(program.mode)
    ran = await asyncio.create_subprocess_exec(tmp_path / "program", stdout=asyncio.subprocess.PIPE)
    assert (await ran.communicate())[0] == b"ran\n"
    assert not (place / "pgms/dhry2reg").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
async def test_programs_of_an_earlier_build_are_compiled_anew(tmp_path: Path) -> None:
    place = _source(tmp_path / "UnixBench", "int main(void) { return 0; }\n")
    (place / "pgms/dhry2reg").write_text("compiled in the folder itself, for that processor alone")
    archive = await built(read_assets([f"unixbench={place}"])["unixbench"])
    with tarfile.open(fileobj=io.BytesIO(archive)) as found:
        program = found.extractfile("unixbench/pgms/dhry2reg")
        assert program is not None and program.read(4) == b"\x7fELF"


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
async def test_a_source_that_cannot_be_compiled_is_one_line(tmp_path: Path) -> None:
    _source(tmp_path / "UnixBench", "int main(void) { return nothing; }\n")
    asset = read_assets([f"unixbench={tmp_path / 'UnixBench'}"])["unixbench"]
    with pytest.raises(WorkloadError, match=r"^UnixBench cannot be compiled: src/dhry_1\.c:1:\d+: error: .*nothing"):
        await built(asset)


async def test_staging_puts_what_was_compiled_into_the_guest(
    tmp_path: Path, source: FakeShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    _source(tmp_path / "UnixBench", "")
    asset = read_assets([f"unixbench={tmp_path}"])["unixbench"]

    async def made(given: object) -> bytes:
        assert given == asset
        return b"archive"

    monkeypatch.setattr(unixbench, "built", made)
    await UNIX.stage(StagingContext("ub", "source", 1, source, asset))
    folder = asset_folder(source, "ub")
    assert source.files == {f"{folder}.tar": b"archive"}
    assert any(re.search(rf"tar -xf {folder}\.tar .*-C {folder}$", one) for one in source.commands)
    with pytest.raises(WorkloadError, match="workload ub has no asset"):
        await UNIX.stage(StagingContext("ub", "source", 1, source))


async def test_a_setup_of_specjvm_that_installs_nothing_fails(tmp_path: Path, source: FakeShell) -> None:
    setup = tmp_path / "SPECjvm2008_1_01_setup.jar"
    setup.write_bytes(b"PK\x05\x06" + bytes(18))
    asset = read_assets([f"specjvm2008={setup}"])["specjvm2008"]
    source.answers |= {"find": says(f"/x/{setup.name}\n"), "test -e": says("", status=1)}
    with pytest.raises(WorkloadError, match=r"has not installed SPECjvm2008\.jar"):
        await JAVA.stage(StagingContext("suite", "source", 1, source, asset))
    assert any("-i silent" in one for one in source.commands)
    with tarfile.open(fileobj=io.BytesIO(packed(asset))) as found:
        assert found.getnames() == ["specjvm2008/SPECjvm2008_1_01_setup.jar"]
