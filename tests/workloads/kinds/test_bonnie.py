"""bonnie++ against a scripted guest."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.fakes.shell import FakeShell
from vmlab.model.errors import WorkloadError
from vmlab.workloads.kinds.bonnie import Bonnie, BonnieParams
from vmlab.workloads.workload_steps import Finished, WorkloadContext

ASKED = BonnieParams(size=2**30, chunk=65_536, characters=2**20)


@pytest.fixture
def text(captured: Path) -> str:
    return (captured / "bonnie.txt").read_text()


@pytest.fixture
def alone(source: FakeShell) -> WorkloadContext:
    return WorkloadContext(workload="files", tile=1, cell=1, seed=1, source=source)


async def test_rates_are_in_bytes_per_second_with_their_cpu(alone: WorkloadContext, text: str) -> None:
    collected = await Bonnie(ASKED).collect(alone, Finished(0, 32.0, text, ""))
    assert collected.values == {
        "run_time": 31.69687413400061,
        "putc": 252 * 1024,
        "put_block": 55967 * 1024,
        "rewrite": 718860 * 1024,
        "getc": 382 * 1024,
        "get_block": 1930624 * 1024,
        "seeks": 7143,
        "putc_cpu": 20,
        "put_block_cpu": 19,
        "rewrite_cpu": 16,
        "getc_cpu": 16,
        "get_block_cpu": 13,
        "bytes": 2**30,
    }


async def test_files_that_were_read_from_the_page_cache_fail(alone: WorkloadContext, text: str) -> None:
    """The captured run was on a machine whose memory held all of the files: the kernel counted 17 MB of reads."""
    asked = ASKED.model_copy(update={"ram": 2**29})
    with pytest.raises(WorkloadError, match="at least 1073741824 bytes from storage, but the kernel counted 17162240"):
        await Bonnie(asked).collect(alone, Finished(0, 32.0, text, ""))
    read = text.replace('"read": 17162240', '"read": 1073741824')
    assert (await Bonnie(asked).collect(alone, Finished(0, 32.0, read, ""))).values["get_block"] > 0


async def test_a_stage_that_did_not_run_has_no_figure(alone: WorkloadContext, text: str) -> None:
    without = text.replace("252,20,", ",,").replace("382,16,", ",,")
    asked = ASKED.model_copy(update={"characters": 0})
    values = (await Bonnie(asked).collect(alone, Finished(0, 32.0, without, ""))).values
    assert not {"putc", "putc_cpu", "getc", "getc_cpu"} & set(values)
    with pytest.raises(WorkloadError, match="ran put_block, rewrite, get_block, seeks, not putc, put_block"):
        await Bonnie(ASKED).collect(alone, Finished(0, 32.0, without, ""))


async def test_plus_signs_are_a_failure_and_never_0(alone: WorkloadContext, captured: Path, text: str) -> None:
    quick = (captured / "bonnie-quick.txt").read_text()
    asked = BonnieParams(size=64 * 2**20, chunk=512, characters=0)
    with pytest.raises(WorkloadError, match="get_block was too quick to be measured; give it more: make size larger"):
        await Bonnie(asked).collect(alone, Finished(0, 6.3, quick, ""))
    with pytest.raises(WorkloadError, match="putc was too quick to be measured; give it more: make characters larger"):
        await Bonnie(ASKED).collect(alone, Finished(0, 32.0, text.replace("252,20", "+++++,+++"), ""))


@pytest.mark.parametrize(
    ("changed", "into", "reason"),
    [
        (",1G,", ",2G,", "bytes of bonnie\\+\\+'s files: 2147483648, but 1073741824"),
        ("1G:64k", "1G:32k", "bytes of bonnie\\+\\+'s chunks: 32768, but 65536"),
        ("1G:64k", "1G    ", "chunks: 8192, but 65536"),
        ("vmlab,1,5", "vmlab,3,5", "concurrency of bonnie\\+\\+: 3, but 1"),
        ("2201034752", "2147483647", "the kernel counted 2147483647 in all"),
        ("2201034752", "2147483648", "and 1048576 by character; the kernel counted 2147483648 in all"),
        ("1.98,2.00a", "1.97,1.97", "printed 0 lines of values"),
        ("718860", "much", "printed 'much' and '16' for its stage rewrite"),
        (",,,,,,,,", "", "cannot be read"),
    ],
)
async def test_other_work_than_was_asked_for_fails(
    alone: WorkloadContext, text: str, changed: str, into: str, reason: str
) -> None:
    assert changed in text
    with pytest.raises(WorkloadError, match=reason):
        await Bonnie(ASKED).collect(alone, Finished(0, 32.0, text.replace(changed, into), ""))


async def test_the_user_owns_the_folder_and_nothing_is_left(
    alone: WorkloadContext, source: FakeShell, text: str
) -> None:
    load = Bonnie(ASKED)
    await load.prepare(alone)
    assert source.commands[-2:] == ["mkdir -p /data/vmlab-files", "chown lab /data/vmlab-files"]
    await load.collect(alone, Finished(0, 32.0, text, ""))
    assert source.commands[-2].startswith("find /data/vmlab-files -xdev -type f -delete")
    argv = " ".join(load.client(alone).argv)
    assert '"-s","1024:65536","-r","0","-n","0","-f1"' in argv


def test_progress_counts_stages(text: str) -> None:
    load = Bonnie(ASKED)
    steps = [step for line in text.splitlines() if (step := load.progress(line))]
    assert [(step.done, step.total) for step in steps] == [(number, 6) for number in range(1, 7)]


@pytest.mark.parametrize(
    "wrong",
    [{"size": 2**20 + 1}, {"chunk": 3000}, {"chunk": 2**21}, {"ram": 2**30}, {"user": "a b"}, {"folder": "/a/../b"}],
)
def test_amounts_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        BonnieParams.model_validate({"size": 2**30, **wrong})
