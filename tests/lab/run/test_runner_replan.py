"""The cells to come are changed while the real `Runner` runs the first one."""

from __future__ import annotations

import asyncio

import pytest

from tests.lab.runs import CACHES, GRID, MemoryRun
from vmlab.lab.process.prepared import read_prepared
from vmlab.lab.process.run_ending import Verdict
from vmlab.model.cell_event import CellStarted
from vmlab.model.errors import UsageError
from vmlab.model.event import CellsReplanned, CommandReceived
from vmlab.model.run import Outcome

pytestmark = pytest.mark.usefixtures("own_folders")


async def replanned_in_first_cell(run: MemoryRun, **change: object) -> Verdict:
    """Change the cells to come while the first one waits for its guests; the verdict."""
    run.hypervisor.may_create.clear()
    running = asyncio.ensure_future(run.run())
    await run.until(CellStarted)
    try:
        answer = await run.command("set", **change)
        wanted = [(cell["index"], cell["axes"], cell["repeat"]) for cell in answer["cells"]]
    finally:
        run.hypervisor.may_create.set()
        verdict = await running
    assert run.begun()[1:] == wanted
    return verdict


async def test_another_cache_mode_holds_for_the_cells_to_come_and_not_for_the_running_one() -> None:
    run = MemoryRun(GRID)
    assert (await replanned_in_first_cell(run, cache="writethrough")).outcome is Outcome.PASSED
    # Points that thereby became the same are run once.
    assert [axes for _, axes, _ in run.begun()] == [
        {"tiles": 1, "cache": "none"},
        {"tiles": 1, "cache": "writethrough"},
        {"tiles": 2, "cache": "writethrough"},
    ]
    assert [number for number, _, _ in run.begun()] == [1, 2, 3]
    (change,) = run.of(CellsReplanned)
    assert (change.cells, change.next_axes) == (3, {"tiles": 1, "cache": "writethrough"})
    assert change.expected_seconds > 0
    assert [(event.command, event.origin) for event in run.of(CommandReceived)] == [("set cache writethrough", "test")]


async def test_another_number_of_tiles_holds_for_each_repeat_to_come() -> None:
    run = MemoryRun("axes: {tiles: [1]}\nrepeats: 3\n")
    assert (await replanned_in_first_cell(run, tiles=3)).outcome is Outcome.PASSED
    assert run.begun() == [(1, {"tiles": 1}, 1), (2, {"tiles": 3}, 2), (3, {"tiles": 3}, 3)]
    assert [event.guests for event in run.of(CellStarted)] == [2, 6, 6]


async def test_the_time_expected_after_a_change_is_that_of_all_cells_to_come() -> None:
    run = MemoryRun("axes: {tiles: [1]}\nrepeats: 4\n")
    await replanned_in_first_cell(run, tiles=1)
    (change,) = run.of(CellsReplanned)
    coming = read_prepared(run.folder).plan.cells[1:]
    assert len(coming) == 3 and change.expected_seconds == pytest.approx(sum(cell.seconds for cell in coming))


async def test_cache_and_tiles_may_change_together() -> None:
    run = MemoryRun(GRID)
    assert (await replanned_in_first_cell(run, cache="directsync", tiles=1)).outcome is Outcome.PASSED
    assert [axes for _, axes, _ in run.begun()][1:] == [{"tiles": 1, "cache": "directsync"}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "a change of the cells to come needs a cache mode or a number of tiles"),
        ({"cache": "warm"}, "the cells to come cannot have cache warm"),
        ({"tiles": 0}, "the cells to come cannot have tiles 0"),
        ({"tiles": True}, "tiles cannot be True"),
    ],
)
async def test_a_change_that_makes_no_sense_is_refused_and_changes_nothing(
    change: dict[str, object], words: str
) -> None:
    run = MemoryRun(CACHES)
    with pytest.raises(UsageError, match=words):
        await replanned_in_first_cell(run, **change)
    assert [axes["cache"] for _, axes, _ in run.begun()] == ["none", "writeback"]
    assert not run.of(CellsReplanned) and not run.of(CommandReceived)


async def test_in_the_last_cell_there_is_nothing_to_change() -> None:
    run = MemoryRun("axes: {cache: [none]}\n")
    with pytest.raises(UsageError, match="no cell is to come"):
        await replanned_in_first_cell(run, cache="writeback")


async def test_a_change_is_undone_and_no_cell_is_lost_or_run_twice() -> None:
    run = MemoryRun(GRID)
    run.hypervisor.may_create.clear()
    running = asyncio.ensure_future(run.run())
    await run.until(CellStarted)
    try:
        await run.command("set", cache="none")
        answer = await run.command("set", as_planned=True)
    finally:
        run.hypervisor.may_create.set()
        verdict = await running
    assert verdict.outcome is Outcome.PASSED
    assert run.begun() == [
        (1, {"tiles": 1, "cache": "none"}, 1),
        (2, {"tiles": 1, "cache": "writeback"}, 1),
        (3, {"tiles": 2, "cache": "none"}, 1),
        (4, {"tiles": 2, "cache": "writeback"}, 1),
    ]
    assert [cell["index"] for cell in answer["cells"]] == [2, 3, 4]
    assert [event.command for event in run.of(CommandReceived)] == ["set cache none", "set as planned"]


async def test_one_cell_is_changed_and_one_skipped_while_the_first_runs_and_the_list_tells_it() -> None:
    run = MemoryRun(GRID)
    run.hypervisor.may_create.clear()
    running = asyncio.ensure_future(run.run())
    await run.until(CellStarted)
    try:
        await run.command("set", cell=2, cache="directsync")
        await run.command("set", cell=3, skip=True)
        answer = await run.command("coming")
    finally:
        run.hypervisor.may_create.set()
        verdict = await running
    assert verdict.outcome is Outcome.PASSED
    assert [(one["cell"], one["state"]) for one in answer["coming"]] == [(2, "changed"), (3, "skipped"), (4, "planned")]
    assert run.begun() == [
        (1, {"tiles": 1, "cache": "none"}, 1),
        (2, {"tiles": 1, "cache": "directsync"}, 1),
        (4, {"tiles": 2, "cache": "writeback"}, 1),
    ]
    kept = [event for event in run.stored() if isinstance(event, CellsReplanned)]
    assert [event.coming for event in kept][-1] == answer["coming"]


async def test_a_run_whose_cells_to_come_are_all_skipped_ends_with_the_running_one() -> None:
    run = MemoryRun(CACHES)
    assert (await replanned_in_first_cell(run, cell=2, skip=True)).outcome is Outcome.PASSED
    assert [number for number, _, _ in run.begun()] == [1]
