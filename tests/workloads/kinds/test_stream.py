"""The four kernels: what the program printed, and the program itself, compiled as for the image."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.fakes.shell import FakeShell
from vmlab.guests.image.recipe import PAYLOAD
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.stream import Stream, StreamParams
from vmlab.workloads.workload_steps import Finished, WorkloadContext

ASKED = StreamParams(array=8_000_000, runs=4, threads=2)


@pytest.fixture
def text(captured: Path) -> str:
    return (captured / "stream.txt").read_text()


@pytest.fixture
def alone(source: FakeShell) -> WorkloadContext:
    return WorkloadContext(workload="kernels", tile=1, cell=1, seed=1, source=source)


async def test_rates_follow_from_the_times_without_the_first(alone: WorkloadContext, text: str) -> None:
    values = (await Stream(ASKED).collect(alone, Finished(0, 1.0, text, ""))).values
    times = json.loads(text.splitlines()[-1])["kernels"]["triad"]["times"]
    assert values["triad_bandwidth_best"] == 24_000_000 / min(times[1:])
    assert values["triad_bandwidth_worst"] == 24_000_000 / max(times[1:])
    assert values["triad_bandwidth"] == pytest.approx(24_000_000 * 3 / sum(times[1:]))
    assert values["bytes"] == 4 * 10 * 8_000_000


def _spoil(text: str, kernel: str | None, **changes: Any) -> str:
    said = json.loads(text.splitlines()[-1])
    (said["kernels"][kernel] if kernel else said).update(changes)
    return json.dumps(said) + "\n"


@pytest.mark.parametrize(
    ("kernel", "changes", "reason"),
    [
        (None, {"checked": 2_999_999}, "elements that stream checked: 2999999, but 3000000"),
        (None, {"threads": 1}, "threads of stream: 1, but 2"),
        ("add", {"best": 1e12}, "best of add, 1000000000000.0, does not follow"),
        ("add", {"avg": 1.0}, "avg of add"),
        ("copy", {"times": [0.1, 0.1]}, "runs of stream's copy: 2, but 4"),
        ("copy", {"bytes": 1}, "bytes of stream's copy"),
        ("scale", {"times": [0.1, 0.1, 0.1, 0.00002]}, "too quick to be measured; make array larger"),
        ("scale", {"times": "none"}, "printed no times of scale"),
    ],
)
async def test_figures_that_do_not_follow_fail(
    alone: WorkloadContext, text: str, kernel: str | None, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(WorkloadError, match=reason):
        await Stream(ASKED).collect(alone, Finished(0, 1.0, _spoil(text, kernel, **changes), ""))


def test_progress_is_told_by_run(text: str) -> None:
    steps = [step for line in text.splitlines() if (step := Stream(ASKED).progress(line))]
    assert [(step.done, step.total) for step in steps] == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("wrong", [{"array": 81}, {"array": 8, "threads": 2}, {"runs": 1}, {"runs": 201}])
def test_amounts_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        StreamParams.model_validate({"array": 80, **wrong})


def _compile(folder: Path, root: Path) -> Path:
    subprocess.run(["sh", folder / "compile", root], check=True)
    return root / "usr/lib/vmlab/stream"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _compile(PAYLOAD / "programs", tmp_path_factory.mktemp("root"))


@pytest.fixture
def printed(program: Path) -> str:
    done = subprocess.run([program, "3", "1000001", "3"], capture_output=True, text=True, check=True)
    return done.stdout


async def test_the_figures_of_the_program_are_taken(alone: WorkloadContext, printed: str) -> None:
    asked = StreamParams(array=8 * 1_000_001, runs=3, threads=3)
    assert (await Stream(asked).collect(alone, Finished(0, 1.0, printed, ""))).values["triad_bandwidth"] > 0


def test_the_program_refuses_what_is_no_amount(program: Path) -> None:
    refused = subprocess.run([program, "0", "10", "2"], capture_output=True, text=True)
    assert (refused.returncode, refused.stderr) == (2, "stream: 0 is not a whole number from 1 to 256\n")


def test_one_wrong_element_fails_the_program(tmp_path: Path) -> None:
    source = shutil.copytree(PAYLOAD / "programs", tmp_path / "source")
    right = (source / "stream.c").read_text()
    wrong = right.replace("z[i] = x[i] + y[i];", "z[i] = x[i] + y[i] + (i == 4711 ? 1e-9 : 0);")
    assert wrong != right
    (source / "stream.c").write_text(wrong)
    done = subprocess.run([_compile(source, tmp_path), "2", "10000", "2"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("element 4711 of array a is ")
