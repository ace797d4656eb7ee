"""The yardstick: its work and its result, and what a run makes of it before and after each cell."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lab.faked import until
from tests.lab.runs import MemoryRun
from vmlab.analysis.document import run_document
from vmlab.lab.cell import yardstick
from vmlab.lab.cell.yardstick import WrongResult, YardstickError, measure_yardstick
from vmlab.lab.run.run_verdict import Verdict
from vmlab.model.errors import ExitCode
from vmlab.model.event import CellEnded, CellStarted, Event, Notice, PhaseEnded, PhaseStarted, YardstickTaken
from vmlab.model.run import Outcome
from vmlab.report.run.cell_text import cell_text
from vmlab.store.reader import RunReader

PASSED = Verdict(Outcome.PASSED, ExitCode.PASSED)
INVALID = Verdict(Outcome.INVALID, ExitCode.INVALID)
CALM = "limits: {clock_drift_percent: 100, start_skew: 30 s}\n"
CELL = CALM + "axes: {cache: [none]}\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of the test's own."""
    for name, folder in (("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache"), ("VMLAB_RUNTIME_DIR", "run")):
        monkeypatch.setenv(name, str(tmp_path / folder))


async def test_the_work_gives_its_result_and_takes_a_part_of_a_second_of_cpu() -> None:
    taken = await measure_yardstick(200.0)
    assert taken.compute_seconds > 0 and taken.memory_seconds > 0
    assert taken.seconds == taken.compute_seconds + taken.memory_seconds
    # What a machine of our days takes; the wall clock of one that is busy is another matter.
    assert 0.03 < taken.cpu_seconds < 30


def works_as(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program in the place of the yardstick's."""
    program = folder / "work.py"
    program.write_text(text)
    monkeypatch.setattr(yardstick, "_PROGRAM", program)


async def test_a_wrong_result_is_an_error_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = '{"compute_seconds": 1, "memory_seconds": 1, "cpu_seconds": 1, "result": 7}'
    works_as(f"print('{taken}')", tmp_path, monkeypatch)
    with pytest.raises(WrongResult, match="does not calculate reliably"):
        await measure_yardstick(60.0)


async def test_work_that_fails_or_hangs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works_as("raise MemoryError", tmp_path, monkeypatch)
    with pytest.raises(YardstickError, match=r"^it exited with 1: MemoryError$"):
        await measure_yardstick(60.0)
    works_as("import time; time.sleep(600)", tmp_path, monkeypatch)
    with pytest.raises(YardstickError, match=r"^it took longer than 0\.5 s$"):
        await measure_yardstick(0.5)


async def test_a_stop_ends_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "begun"
    works_as(f"import time; open('{mark}', 'w').close(); time.sleep(600)", tmp_path, monkeypatch)
    measuring = asyncio.ensure_future(measure_yardstick(60.0))
    await asyncio.to_thread(until, mark.exists, "the beginning of the work", 60.0)
    measuring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await measuring


def document(run: MemoryRun) -> Any:
    """As `vmlab show --json` has the run."""
    with RunReader(run.folder.store) as reader:
        return run_document(reader)


def warnings(run: MemoryRun) -> list[str]:
    """The notices of a run."""
    return [event.text for event in run.of(Notice)]


async def test_it_stands_around_each_cell_and_on_its_document() -> None:
    run = MemoryRun(CELL, yardsticks=[0.30, 0.32])
    assert await run.run() == PASSED
    kinds = (CellStarted, YardstickTaken, PhaseStarted, PhaseEnded, CellEnded)
    order = [type(event) for event in run.events if isinstance(event, kinds)]
    assert order[:3] == [CellStarted, YardstickTaken, PhaseStarted]
    assert order[-3:] == [PhaseEnded, YardstickTaken, CellEnded]
    (cell,) = document(run)["cells"]
    assert cell["yardstick"]["before"] == {
        "seconds": 0.3,
        "compute_seconds": 0.15,
        "memory_seconds": 0.15,
        "cpu_seconds": 0.3,
    }
    assert cell["yardstick"]["after"]["seconds"] == 0.32
    assert cell["yardstick"]["moved_percent"] == pytest.approx(100 / 15)
    assert "yardstick 0.300 s before, 0.320 s after the cell: 6.67 % apart" in cell_text(document(run), cell)
    assert warnings(run) == []


async def test_one_that_moved_during_a_cell_is_told() -> None:
    run = MemoryRun(CELL, yardsticks=[0.30, 0.36])
    assert await run.run() == PASSED
    assert warnings(run) == [
        "cell 1: the yardstick took 0.300 s before the cell and 0.360 s after it: the host's speed moved by 20 %; "
        "10 % is the limit"
    ]


async def test_one_that_moved_from_cell_to_cell_is_told() -> None:
    run = MemoryRun(CELL + "repeats: 3\n", yardsticks=[0.3, 0.3, 0.3, 0.3, 0.36])
    assert await run.run() == PASSED
    assert warnings(run) == [
        "cell 3: the yardstick took 0.360 s around it, 0.300 s around others: the host's speed moved by 20 %; "
        "10 % is the limit"
    ]


@pytest.mark.parametrize("error", [YardstickError("it exited with 1: MemoryError"), OSError(12, "Cannot allocate")])
async def test_one_that_was_not_measured_is_told_and_spoils_nothing(error: Exception) -> None:
    run = MemoryRun(CELL, yardsticks=[error, 0.3])
    assert await run.run() == PASSED
    (told,) = warnings(run)
    assert told.startswith("cell 1: the yardstick before the cell was not measured: ")
    (cell,) = document(run)["cells"]
    assert (cell["yardstick"]["before"], cell["yardstick"]["moved_percent"]) == (None, None)
    assert "yardstick 0.300 s after the cell" in cell_text(document(run), cell)


async def test_a_machine_that_miscalculates_makes_the_cell_invalid() -> None:
    run = MemoryRun(CELL, yardsticks=[0.3, WrongResult("its result is wrong")])
    assert await run.run() == INVALID
    ((_, reasons),) = run.outcomes()
    assert reasons == ["the yardstick after the cell: its result is wrong"]


async def test_a_run_that_is_stopped_takes_no_more_of_it() -> None:
    def stop(event: Event, run: MemoryRun) -> None:
        if isinstance(event, PhaseStarted) and event.phase == "execute":
            run.runner.stop(ExitCode.TERMINATED, "SIGTERM")

    run = MemoryRun(CELL, on=[stop])
    assert (await run.run()).outcome is Outcome.ABORTED
    assert [event.when for event in run.of(YardstickTaken)] == ["before"]
