"""The real `Runner` over guests in memory: the order of its cells, what each is run with, failures."""

from __future__ import annotations

import pytest

from tests.fakes.scripted_guest import Script
from tests.lab.runs import CACHES, GRID, PASSED, PHASES, REPORT, SOON, MemoryRun
from vmlab.lab.cell.execution import Contention
from vmlab.lab.process.run_ending import Verdict
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    MeasurementTaken,
    PhaseEnded,
    PhaseStarted,
    WorkloadEnded,
    WorkloadProgressed,
    WorkloadStarted,
)
from vmlab.model.errors import ExitCode, HypervisorError, WorkloadError
from vmlab.model.event import Event
from vmlab.model.run import DONE, SETTLING, Outcome
from vmlab.plan.terms import Overrides
from vmlab.workloads.kinds.cpu import Cpu
from vmlab.workloads.workload_steps import StagingContext

pytestmark = pytest.mark.usefixtures("own_folders")


async def test_cells_run_repeats_outermost_and_then_as_the_axes_are_written() -> None:
    run = MemoryRun(GRID + "repeats: 2\n")
    seen: list[tuple[int, set[str]]] = []

    def look(event: Event, run: MemoryRun) -> None:
        if isinstance(event, WorkloadStarted):
            seen.append((event.cell, {spec.resources.cache for spec in run.hypervisor.running.values()}))

    run.on.append(look)
    assert await run.run() == Verdict(Outcome.PASSED, ExitCode.PASSED)
    points = [(tiles, cache) for tiles in (1, 2) for cache in ("none", "writeback")]
    wanted = [({"tiles": tiles, "cache": cache}, repeat) for repeat in (1, 2) for tiles, cache in points]
    assert run.begun() == [(1 + place, axes, repeat) for place, (axes, repeat) in enumerate(wanted)]
    assert run.outcomes() == [PASSED] * 8
    assert [event.phase for event in run.of(PhaseEnded)] == PHASES * 8
    assert [event.guests for event in run.of(CellStarted)] == [2, 2, 4, 4] * 2
    assert seen == [(cell, {axes["cache"]}) for cell, axes, _ in run.begun() for _ in range(2 * int(axes["tiles"]))]


@pytest.mark.parametrize("seed", [1, 42])
async def test_every_cell_prepares_its_guests_by_the_seed_of_the_run(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []

    async def stage(_workload: Cpu, context: StagingContext) -> None:
        seeds.append(context.seed)

    monkeypatch.setattr(Cpu, "stage", stage)
    run = MemoryRun(CACHES, Overrides(size="full", cold=True, seed=seed))
    assert (await run.run()).outcome is Outcome.PASSED
    assert seeds == [seed] * 4


async def test_a_cell_begins_when_all_of_the_one_before_is_stored() -> None:
    run = MemoryRun("axes: {cache: [none]}\nrepeats: 3\n")
    await run.run()
    ended = [place for place, event in enumerate(run.events, 1) if isinstance(event, CellEnded)]
    assert run.settled == ended and len(ended) == 3


async def test_over_a_damaged_image_no_further_cell_is_run() -> None:
    def damage(event: Event, run: MemoryRun) -> None:
        if isinstance(event, PhaseStarted) and (event.cell, event.phase) == (2, "execute"):
            run.image.disk.write_bytes(b"X" + run.image.disk.read_bytes()[1:])

    run = MemoryRun("axes: {cache: [none]}\nrepeats: 4\n", on=[damage])
    verdict = await run.run()
    assert (verdict.outcome, verdict.exit_code) == (Outcome.INVALID, ExitCode.INVALID)
    damage_words, lacking = verdict.reason.split("; cache none: ")
    assert damage_words.startswith("guest image vmlab-1 is damaged") and lacking == "1 of 2 repeats valid"
    assert run.outcomes() == [PASSED, ("invalid", [damage_words])]


async def test_a_cell_that_fails_leaves_those_after_it_to_run() -> None:
    run = MemoryRun(CACHES + "repeats: 2\n")

    def spoil(event: Event, run: MemoryRun) -> None:
        if isinstance(event, CellStarted):
            run.hypervisor.fail_create = "t1-slow" if event.cell == 2 else None

    run.on.append(spoil)
    assert await run.run() == Verdict(Outcome.FAILED, ExitCode.FAILED)
    assert run.outcomes() == [PASSED, ("failed", ["t1-slow: starting: no room"]), PASSED, PASSED]
    assert [event.phase for event in run.of(PhaseEnded) if event.cell == 2] == ["provision", "clean up"]
    assert [event.phase for event in run.of(PhaseEnded) if event.cell == 3] == PHASES
    figures = [event.cell for event in run.of(MeasurementTaken) if event.figure.metric == "run_time"]
    assert figures == [1, 1, 3, 3, 4, 4]


async def test_a_workload_that_fails_keeps_its_neighbours_figures_and_its_own_words() -> None:
    run = MemoryRun(CACHES, scripts={"slow": Script("out of luck", status=3)})
    assert await run.run() == Verdict(Outcome.FAILED, ExitCode.FAILED)
    assert run.outcomes() == [("failed", ["tile 1 slow: sysbench exited with 3: out of luck"])] * 2
    taken = [event for event in run.of(MeasurementTaken) if event.figure.metric == "run_time"]
    figures = [(event.cell, event.figure.workload) for event in taken]
    assert figures == [(1, "quick"), (2, "quick")]
    texts = {output.workload: output.text for cell, output in run.raw() if cell == 1 and output.text}
    assert texts["slow"].strip() == "out of luck"
    assert texts["quick"].strip() == REPORT.strip()


async def test_a_workload_that_never_started_has_no_end_where_its_cell_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stage(_workload: Cpu, context: StagingContext) -> None:
        if context.shell.name == "slow":
            raise WorkloadError("no room")

    monkeypatch.setattr(Cpu, "stage", stage)
    run = MemoryRun("axes: {cache: [none]}\n")
    assert (await run.run()).outcome is Outcome.FAILED
    assert [reason.endswith("no room") for reason in run.outcomes()[0][1]] == [True]
    assert run.of(WorkloadEnded) == []


async def test_a_cell_does_not_wait_for_clients_that_work_when_measuring_beside_them_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def measure(_contention: Contention, _following: object) -> None:
        raise HypervisorError("no answer")

    monkeypatch.setattr(Contention, "measure", measure)
    run = MemoryRun("axes: {cache: [none]}\n", scripts={"slow": Script(REPORT, seconds=10 * SOON)})
    assert (await run.run()).outcome is Outcome.FAILED
    assert run.outcomes() == [("failed", ["no answer"])]


async def test_the_wall_time_of_a_cell_lasts_to_the_end_of_its_last_client() -> None:
    run = MemoryRun("axes: {cache: [none]}\n", scripts={"slow": Script(REPORT, seconds=0.6)})
    await run.run()
    (ended,) = run.of(CellEnded)
    assert ended.wall_seconds == pytest.approx(0.6, rel=0.01)


async def test_a_guests_caches_are_emptied_when_its_client_waits_for_the_start() -> None:
    run = MemoryRun("axes: {cache: [none]}\n")
    await run.run()
    for guest in run.guests:
        emptied = [place for place, words in enumerate(guest.commands) if "page_cache.py empty" in words]
        assert emptied and emptied[-1] > guest.commands.index("launch"), guest.commands


@pytest.mark.parametrize("warm", ["false", "true"])
async def test_what_a_client_runs_is_loaded_after_the_caches_are_emptied(warm: str) -> None:
    """No loading of programs is in a cell's figures: fio's own would add 33 MiB to what it reads."""
    run = MemoryRun(f"warm: {warm}\naxes: {{cache: [none]}}\n")
    await run.run()
    for guest in run.guests:
        after = guest.commands[guest.commands.index("launch") :]
        (words,) = [words.split("page_cache.py ")[1] for words in after if "page_cache.py" in words]
        what = "empty" if warm == "false" else "load"
        assert words == f"{what} /run/vmlab/workloads sh systemctl sysbench"


async def test_lines_of_progress_that_come_at_once_are_not_events_each() -> None:
    lines = "".join(f"[ {second}s ] thds: 1 eps: 0.01 lat (ms,95%): 1.06\n" for second in range(1, 200))
    run = MemoryRun("axes: {cache: [none]}\n", scripts={"slow": Script(lines + REPORT)})
    await run.run()
    slow = [event for event in run.of(WorkloadProgressed) if event.workload == "slow"]
    assert [event.stage for event in slow[-2:]] == [SETTLING, DONE]
    assert 3 <= len(slow) < 20


async def test_a_failed_cell_weighs_more_than_an_invalid_one_and_that_more_than_a_passed_one() -> None:
    run = MemoryRun("axes: {cache: [none, writeback, writethrough]}\n")

    def spoil(event: Event, run: MemoryRun) -> None:
        if isinstance(event, CellStarted):
            run.hypervisor.lying = frozenset({"slow"}) if event.cell == 1 else frozenset()
            run.hypervisor.fail_create = "t1-slow" if event.cell == 2 else None

    run.on.append(spoil)
    assert await run.run() == Verdict(Outcome.FAILED, ExitCode.FAILED)
    assert [outcome for outcome, _ in run.outcomes()] == ["invalid", "failed", "passed"]
