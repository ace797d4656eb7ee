"""mbw against a scripted guest."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.fakes.shell import FakeShell
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.memcpy import Memcpy, MemcpyParams
from vmlab.workloads.workload_steps import Finished, WorkloadContext

ASKED = MemcpyParams(array=64 * 2**20, runs=3)


@pytest.fixture
def text(captured: Path) -> str:
    return (captured / "mbw.txt").read_text()


@pytest.fixture
def alone(source: FakeShell) -> WorkloadContext:
    return WorkloadContext(workload="copying", tile=1, cell=1, seed=1, source=source)


async def test_each_method_has_the_average_that_mbw_printed(alone: WorkloadContext, text: str) -> None:
    collected = await Memcpy(ASKED).collect(alone, Finished(0, 1.0, text, ""))
    printed = {"memcpy": 1321.986, "dumb": 2598.528, "mcblock": 2765.256}
    for method, rate in printed.items():
        assert collected.values[f"{method}_bandwidth"] == pytest.approx(rate * 2**20, rel=1e-3)
    assert collected.values["copies"] == 9
    assert "Copy: 2278.229 MiB/s" in collected.raw["mbw"]


@pytest.mark.parametrize(
    ("changed", "into", "reason"),
    [
        ("1321.986", "2000.000", "average of MEMCPY, 2000.000 MiB/s in 0.04841 s, does not agree with its 3 runs"),
        ("Elapsed: 0.04841", "Elapsed: 0.04861", "average of MEMCPY"),
        ("1103.924", "1500.000", "average of MEMCPY"),
        (
            "2\tMethod: DUMB\tElapsed: 0.02836\tMiB: 64.00000\tCopy: 2257.098 MiB/s\n",
            "",
            "runs of mbw's DUMB: 2, but 3",
        ),
        ("AVG\tMethod: DUMB\tElapsed: 0.02463\tMiB: 64.00000\tCopy: 2598.528 MiB/s\n", "", "no average of DUMB"),
        ("1\tMethod: DUMB", "7\tMethod: DUMB", "out of order"),
        ("Copy: 3299.139 MiB/s", "Copy: inf MiB/s", "cannot be read"),
        ("Using 262144 bytes", "Using 262145 bytes", "bytes of mbw's blocks: 262145, but 262144"),
        ("Using 262144 bytes", "Using them", "did not print the size of its blocks"),
        (
            "0\tMethod: DUMB\tElapsed: 0.01940\tMiB: 64.0",
            "0\tMethod: DUMB\tElapsed: 0.01940\tMiB: 63.0",
            "MiB of a copy",
        ),
    ],
)
async def test_readings_that_do_not_agree_fail(
    alone: WorkloadContext, text: str, changed: str, into: str, reason: str
) -> None:
    assert changed in text
    with pytest.raises(WorkloadError, match=reason):
        await Memcpy(ASKED).collect(alone, Finished(0, 1.0, text.replace(changed, into), ""))


async def test_a_method_that_was_not_asked_for_fails(alone: WorkloadContext, text: str) -> None:
    with pytest.raises(WorkloadError, match="mbw ran DUMB, MCBLOCK, MEMCPY, not DUMB, MEMCPY"):
        await Memcpy(MemcpyParams(array=64 * 2**20, runs=3, methods=("memcpy", "dumb"))).collect(
            alone, Finished(0, 1.0, text, "")
        )


def test_only_the_methods_that_were_asked_for_are_run(alone: WorkloadContext) -> None:
    argv = Memcpy(MemcpyParams(array=2**20, runs=2, methods=("mcblock",), block=4096)).client(alone).argv
    assert argv == ("mbw", "-n", "2", "-t2", "-b", "4096", "1")


def test_progress_counts_copies(text: str) -> None:
    load = Memcpy(ASKED)
    steps = [step for line in text.splitlines() if (step := load.progress(line))]
    assert [step.done for step in steps] == list(range(1, 10))
    assert steps[0].total == 9


@pytest.mark.parametrize("wrong", [{"array": 2**20 + 1}, {"methods": ["memcpy", "memcpy"]}, {"block": 2**21}])
def test_amounts_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MemcpyParams.model_validate({"array": 2**20, **wrong})


async def test_a_copy_that_is_too_quick_for_mbws_clock_fails(alone: WorkloadContext, captured: Path) -> None:
    """As mbw 1.2.2 printed it for an array of 1 MiB, which stays in the processor's cache."""
    asked = MemcpyParams.model_validate({"array": "1 MiB", "runs": 3, "methods": ["memcpy"]})
    text = (captured / "mbw-quick.txt").read_text()
    with pytest.raises(WorkloadError, match=r"a copy of mbw's MEMCPY took 0\.0000.. s, too quick to be measured"):
        await Memcpy(asked).collect(alone, Finished(0, 0.1, text, ""))
