"""The tests of a system: what the program printed, the program itself as the image has it, and the copied files."""

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.fakes.shell import FakeShell, says
from tests.workloads.spoiling import Change, put, spoil
from vmlab.guests.image.recipe import PAYLOAD
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds import system
from vmlab.workloads.kinds.system import BUFFERS, System, SystemParams
from vmlab.workloads.payload.copy_source import content
from vmlab.workloads.workload_steps import Finished, WorkloadContext

ASKED = SystemParams(runs=2_000_000, cycles=200, passes=20)
OWN = "/data/vmlab-small"


@pytest.fixture
def text(captured: Path) -> str:
    """Of the program that the image has, by a processor's own instructions."""
    return (captured / "system.txt").read_text()


@pytest.fixture
def alone(source: FakeShell) -> WorkloadContext:
    return WorkloadContext(workload="small", tile=1, cell=1, seed=1, source=source)


async def _copies(context: WorkloadContext) -> dict[str, bytes]:
    """The files that the guest would have: what it makes of the seed that it is told."""
    workload = System(ASKED)
    shell = FakeShell("guest", "198.18.0.13")
    await workload.prepare(WorkloadContext("small", context.tile, 1, context.seed, shell))
    (made,) = (line for line in shell.commands if "copy_source" in line)
    options = json.loads(made[made.index("{") :])
    return {
        f"{options['folder']}/{name.replace('source', 'copy')}": content(options["seed"], name, size)
        for name, size in options["sizes"].items()
    }


def _digests(files: dict[str, bytes]) -> str:
    return "".join(f"{hashlib.sha256(held).hexdigest()}  {path}\n" for path, held in files.items())


async def test_rates_follow_from_amounts_and_times(alone: WorkloadContext, source: FakeShell, text: str) -> None:
    files = await _copies(alone)
    assert sorted(files) == sorted(f"{OWN}/copy.{size}" for size in BUFFERS)
    source.answers["sha256sum"] = says(_digests(files))
    values = (await System(ASKED).collect(alone, Finished(0, 60.0, text, ""))).values
    times = {said["test"]: sum(said["times"]) for line in text.splitlines() if "times" in (said := json.loads(line))}
    assert values["run_time"] == pytest.approx(sum(times.values()))
    assert values["dhrystones_per_second"] == pytest.approx(2_000_000 / times["dhrystone"])
    assert values["whetstones_per_second"] == pytest.approx(200e6 / times["whetstone"])
    assert values["copy_1024_throughput"] == pytest.approx(20 * 2_048_000 / times["copy-1024"])
    assert values["bytes"] == 20 * 2_000 * (256 + 1024 + 4096)
    assert set(values) == set(System.metrics)


async def test_a_copy_with_one_wrong_byte_fails(alone: WorkloadContext, source: FakeShell, text: str) -> None:
    files = await _copies(alone)
    path = f"{OWN}/copy.1024"
    files[path] = files[path][:-1] + bytes([files[path][-1] ^ 1])
    source.answers["sha256sum"] = says(_digests(files))
    with pytest.raises(WorkloadError, match=rf"{path} has the digest [0-9a-f]{{12}}, its source [0-9a-f]{{12}}$"):
        await System(ASKED).collect(alone, Finished(0, 60.0, text, ""))


async def test_a_copy_that_nobody_found_fails(alone: WorkloadContext, source: FakeShell, text: str) -> None:
    with pytest.raises(WorkloadError, match=r"copy\.256 has the digest none"):
        await System(ASKED).collect(alone, Finished(0, 60.0, text, ""))


async def test_files_of_tiles_differ(alone: WorkloadContext) -> None:
    other = WorkloadContext(workload="small", tile=2, cell=1, seed=1, source=alone.source)
    ours, others = await _copies(alone), await _copies(other)
    assert not set(ours.values()) & set(others.values())


@pytest.mark.parametrize(
    ("test", "change", "reason"),
    [
        ("dhrystone", lambda said: said["values"].__setitem__(5, 2_000_009), r"Arr_2_Glob\[8\]\[7\] = 2000009, and"),
        ("dhrystone", lambda said: said["values"].__setitem__(19, "DHRYSTONE"), "computed Str_2_Loc = 'DHRYSTONE'"),
        ("dhrystone", lambda said: said["values"].pop(), "printed no values of dhrystone"),
        ("dhrystone", put("amount", 1), "amount of system's dhrystone: 1, but 2000000"),
        ("whetstone", lambda said: said["values"][9].__setitem__(3, 0.83457), "computed 930 2 3 8.3457e-01"),
        ("whetstone", lambda said: said["values"].pop(), "printed no values of whetstone"),
        ("whetstone", put("equal", 199), "cycles of whetstone with the values of its first: 199, but 200"),
        ("whetstone", put("times", [0.1] * 9), "slices of system's whetstone: 9, but 10"),
        ("whetstone", put("times", [0.00009] * 10), "whetstone took 0.000900 s, too quick to be measured"),
        (
            "copy-256",
            put("writes", 39_999),
            "writes of system's copy-256, as the kernel counted them: 39999, but 40000",
        ),
        ("copy-256", put("blocks", 1_999), "blocks of system's copy-256: 1999, but 2000"),
        ("copy-1024", put("read", 40_959_999), "counted 40959999 B read by system's copy-1024, and should 40960000 B"),
        ("copy-4096", put("written", 170_000_000), "counted 170000000 B written by system's copy-4096"),
        ("copy-4096", put("test", "copy-256"), "values of copy-256 twice"),
        ("copy-4096", put("test", "pipes"), "system did dhrystone, whetstone, copy-256, copy-1024, pipes, not "),
    ],
)
def test_work_that_is_not_whole_or_not_right_fails(text: str, test: str, change: Change, reason: str) -> None:
    spoilt = spoil(text, "test", test, "times", change)
    with pytest.raises(WorkloadError, match=reason):
        System(ASKED).figures({"system": spoilt}, 60.0)


def test_tests_that_were_not_asked_for_have_no_figures(text: str) -> None:
    one = "".join(line + "\n" for line in text.splitlines() if '"whetstone"' in line)
    values = System(ASKED.model_copy(update={"tests": ("whetstone",)})).figures({"system": one}, 60.0)
    assert set(values) == {"run_time", "whetstones", "whetstones_per_second"}


def test_mathematics_are_the_same_code_on_every_processor(alone: WorkloadContext) -> None:
    """Tried once by hand: with these settings glibc takes ``__sin_sse2`` where it otherwise takes ``__sin_fma``."""
    client = System(ASKED).client(alone)
    assert client.environment == {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4"}
    assert client.argv[1:] == (OWN, "dhrystone:2000000", "whetstone:200", *(f"copy-{size}:20" for size in BUFFERS))


def test_progress_is_told_by_slice(text: str) -> None:
    steps = [step for line in text.splitlines() if (step := System(ASKED).progress(line))]
    assert [(step.stage, step.done, step.total) for step in steps][9:11] == [
        ("dhrystone", 10, 10),
        ("whetstone", 1, 10),
    ]
    assert len(steps) == 5 * 10


@pytest.mark.parametrize("wrong", [{"tests": ["copy", "copy"]}, {"tests": []}, {"runs": 2**31}, {"passes": 0}])
def test_amounts_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SystemParams.model_validate(wrong)


def _compile(folder: Path, root: Path) -> Path:
    subprocess.run(["sh", folder / "compile", root], check=True)
    return root / "usr/lib/vmlab/system"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _compile(PAYLOAD / "programs", tmp_path_factory.mktemp("root"))


def _source(folder: Path, size: int, blocks: int = system.BLOCKS) -> bytes:
    held = content("4711", f"source.{size}", size * blocks)
    (folder / f"source.{size}").write_bytes(held)
    return held


def test_what_the_program_computes_is_what_is_published(program: Path, tmp_path: Path) -> None:
    held = {size: _source(tmp_path, size) for size in BUFFERS}
    amounts = ["dhrystone:300007", "whetstone:11", *(f"copy-{size}:10" for size in BUFFERS)]
    done = subprocess.run([program, tmp_path, *amounts], capture_output=True, text=True, check=True)
    asked = SystemParams(runs=300_007, cycles=11, passes=10)
    values = System(asked).figures({"system": done.stdout}, 3600.0)
    assert min(values.values()) > 0
    assert {size: (tmp_path / f"copy.{size}").read_bytes() for size in BUFFERS} == held


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["dhrystone:0"], "0 is not a whole number from 1 to 2000000000"),
        (["dhrystone"], "dhrystone has no amount"),
        (["pipes:10"], "there is no test pipes:10"),
        (["copy-x:10"], "x:10 is not a whole number from 1 to 1048576"),
    ],
)
def test_the_program_refuses_what_is_no_test(program: Path, words: list[str], reason: str) -> None:
    refused = subprocess.run([program, "/nowhere", *words], capture_output=True, text=True)
    assert (refused.returncode, refused.stderr) == (2, f"system: {reason}\n")


def test_a_source_that_is_not_whole_or_not_there_fails_the_program(program: Path, tmp_path: Path) -> None:
    absent = subprocess.run([program, tmp_path, "copy-256:10"], capture_output=True, text=True)
    assert (absent.returncode, absent.stderr) == (1, f"{tmp_path}/source.256: No such file or directory\n")
    (tmp_path / "source.256").write_bytes(b"half a block")
    half = subprocess.run([program, tmp_path, "copy-256:10"], capture_output=True, text=True)
    assert (half.returncode, half.stderr) == (1, "system: copy: the source must be whole blocks of 256 bytes\n")


@pytest.mark.parametrize(
    ("file", "right", "wrong", "reason"),
    [
        (
            "dhrystone.c",
            "sum = left + 2;",
            "sum = left + 3;",
            "dhrystone computed Arr_1_Glob[8] = 8, and should 7",
        ),
        ("whetstone.c", "t1 = 0.50025", "t1 = 0.5003", "whetstone computed 930 2 3 "),
        ("whetstone.c", "long loop = 10;", "long loop = 9;", "whetstone computed 108 126 108 "),
        ("copy.c", "i < blocks; i++", "i < blocks - 1; i++", "writes of system's copy-256"),
    ],
)
def test_a_program_that_computes_something_else_fails(
    tmp_path: Path, file: str, right: str, wrong: str, reason: str
) -> None:
    folder = shutil.copytree(PAYLOAD / "programs", tmp_path / "programs")
    was = (folder / "system" / file).read_text()
    assert right in was
    (folder / "system" / file).write_text(was.replace(right, wrong))
    _source(tmp_path, 256)
    test = file.removesuffix(".c")
    amount = "copy-256:10" if test == "copy" else f"{test}:20000" if test == "dhrystone" else f"{test}:20"
    done = subprocess.run([_compile(folder, tmp_path), tmp_path, amount], capture_output=True, text=True, check=True)
    said = system.parse_system(done.stdout)[amount.split(":")[0]]
    with pytest.raises(WorkloadError, match=f"^{re.escape(reason)}"):
        if test == "dhrystone":
            system.demand_dhrystone(said, 20_000)
        elif test == "whetstone":
            system.demand_whetstone(said, 20)
        else:
            system.demand_copy(said, 256, 10)
