"""A control run: the real `Runner` over guests in memory, and what the record says of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.lab.runs import MemoryRun
from vmlab.analysis.comparison.compare import compare
from vmlab.analysis.comparison.meetings import sides_by_axis
from vmlab.analysis.document import run_document
from vmlab.lab.process.launcher import begin
from vmlab.lab.process.run_ending import Verdict
from vmlab.model.cell_event import CellStarted
from vmlab.model.errors import ExitCode, UsageError
from vmlab.model.event import CellsReplanned, CommandReceived
from vmlab.model.run import Outcome
from vmlab.plan.terms import Overrides
from vmlab.report.listing import runs_text
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader
from vmlab.store.run_summary import summarise

SCENARIO = "limits: {clock_drift_percent: 100, start_skew: 30 s}\naxes: {cache: [none, writeback]}\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of the test's own."""
    for name, folder in (("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache"), ("VMLAB_RUNTIME_DIR", "run")):
        monkeypatch.setenv(name, str(tmp_path / folder))


@pytest.mark.parametrize("control", [True, False])
async def test_both_sides_run_and_the_record_says_that_it_is_a_control_run(control: bool) -> None:
    run = MemoryRun(SCENARIO, Overrides(size="full", cold=True, repeats=3, control=control))
    begin(run.folder, run.plan)
    assert await run.run() == Verdict(Outcome.PASSED, ExitCode.PASSED)
    assert run.begun() == [(cell.index, cell.axes, cell.repeat) for cell in run.plan.cells]
    with RunReader(run.folder.store) as reader:
        document = run_document(reader)
    assert document.run.control is control
    assert ("control run: one configuration as both sides" in run_table(document)) is control
    summary = summarise(run.folder.store)
    assert summary.control is control
    assert ("full, control  " in runs_text([summary], 120)) is control
    sides = sides_by_axis(document)
    assert [side.label for side in sides] == (["side A", "side B"] if control else ["cache none", "cache writeback"])
    assert {cell.settings["cache"] for side in sides for cell in side.cells} == (
        {"none"} if control else {"none", "writeback"}
    )
    assert {found.readings for row in compare(sides).rows for found in row.differences} == {3}


@pytest.mark.parametrize(
    "change",
    [{"cache": "writeback"}, {"tiles": 2}, {"cache": "writeback", "now": True}],
    ids=["cache", "tiles", "now"],
)
async def test_the_configuration_of_a_control_run_is_not_changed(change: dict[str, object]) -> None:
    run = MemoryRun(SCENARIO, Overrides(size="full", cold=True, repeats=2, control=True))
    run.hypervisor.may_create.clear()
    running = asyncio.ensure_future(run.run())
    await run.until(CellStarted)
    try:
        with pytest.raises(UsageError, match=r"^a control run has one configuration on both sides, and keeps it$"):
            await run.command("set", **change)
    finally:
        run.hypervisor.may_create.set()
        verdict = await running
    assert verdict == Verdict(Outcome.PASSED, ExitCode.PASSED)
    assert run.begun() == [(cell.index, cell.axes, cell.repeat) for cell in run.plan.cells]
    assert not run.of(CellsReplanned) and not run.of(CommandReceived)
