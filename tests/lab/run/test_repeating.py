"""Repeats, their order, the warm-up and the caches that cells find: the real `Runner` over guests in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.fakes.scripted_guest import Script, ScriptedGuest
from tests.fakes.sysbench import cpu_report, few_lines
from tests.lab.runs import REPORT, HeldHypervisor, MemoryRun
from vmlab.analysis.document import run_document
from vmlab.analysis.reference.published import beside_reference
from vmlab.analysis.shape import RunDocument
from vmlab.lab.process.run_ending import Verdict
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    MeasurementTaken,
    PhaseStarted,
)
from vmlab.model.errors import ExitCode, GuestError
from vmlab.model.event import (
    CellsReplanned,
    CellWithdrawn,
    CommandReceived,
    Event,
    Notice,
    RepeatsEnded,
    RunStarted,
)
from vmlab.model.run import Outcome
from vmlab.plan.terms import Overrides
from vmlab.report.run.run_page import run_table
from vmlab.store.reader import RunReader
from vmlab.store.run_summary import summarise
from vmlab.store.writer import RunWriter

CALM = "limits: {clock_drift_percent: 100, start_skew: 30 s}\n"
"""What a machine under load might break, and is not asked about here."""
CACHES = CALM + "axes: {cache: [none, writeback]}\n"
PASSED = Verdict(Outcome.PASSED, ExitCode.PASSED)
IN_ORDER = Overrides(size="full", cold=True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of the test's own."""
    for name, folder in (("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache"), ("VMLAB_RUNTIME_DIR", "run")):
        monkeypatch.setenv(name, str(tmp_path / folder))


def document(run: MemoryRun) -> RunDocument:
    """As `vmlab show --json` has the run."""
    with RunReader(run.folder.store) as reader:
        return run_document(reader)


def _keep_scenario(run: MemoryRun) -> None:
    """Write it into the store, as the launcher does."""
    with contextlib.closing(RunWriter(run.folder.store)) as writer:
        writer.document("scenario", run.plan.scenario.model_dump_json(by_alias=True))


async def test_cells_run_in_the_order_of_the_plan_and_their_document_has_block_and_position() -> None:
    run = MemoryRun(CALM + "axes: {tiles: [1, 2], cache: [none, writeback]}\nrepeats: 2\n", IN_ORDER)
    assert await run.run() == PASSED
    assert run.begun() == [(cell.index, cell.axes, cell.repeat) for cell in run.plan.cells]
    cells = document(run).cells
    assert [(cell.block, cell.position) for cell in cells] == [(b, p) for b in (1, 2) for p in (1, 2, 3, 4)]
    assert not any(cell.warm_up for cell in cells)


async def test_until_ends_the_run_after_a_whole_block_and_the_run_says_so() -> None:
    run = MemoryRun(CACHES + "until: {spread: 2 %, at_least: 3, at_most: 9}\n")
    assert await run.run() == PASSED
    assert [repeat for _, _, repeat in run.begun()] == [1, 1, 2, 2, 3, 3]
    (ended,) = run.of(RepeatsEnded)
    assert (ended.repeats, ended.cells, ended.reached) == (3, 6, True)
    assert [notice.text for notice in run.of(Notice)] == ["after 3 repeats every metric is known to ± 2 % or better"]
    part = document(run).run
    assert part.cells_planned == summarise(run.folder.store).cells_planned == 6
    assert part.until is None or part.until.reached


@pytest.mark.parametrize("kept", range(7))
async def test_a_run_that_goes_on_ends_where_it_would_have_ended(kept: int) -> None:
    """It was cut off in the cell after so many, which is recorded as withdrawn."""
    run = MemoryRun(CACHES + "until: {spread: 2 %, at_least: 3, at_most: 9}\n")
    assert await run.run() == PASSED
    run.recorded = []
    for event in run.events:
        run.recorded.append(event)
        if isinstance(event, CellStarted) and event.cell == kept + 1:
            run.recorded.append(CommandReceived(command="resume", origin="vmlab resume"))
            run.recorded.append(CellWithdrawn(cell=event.cell, name="", reason="the run was cut off"))
            break
        if isinstance(event, CellEnded) and event.cell == kept == 6:
            run.recorded.append(CommandReceived(command="resume", origin="vmlab resume"))
            break
    run.events.clear()
    run.hypervisor = HeldHypervisor(run.folder.disks)
    assert await run.run() == PASSED
    assert [number for number, _, _ in run.begun()] == list(range(kept + 1, 7))
    (ended,) = run.of(RepeatsEnded)
    assert (ended.repeats, ended.cells, ended.reached) == (3, 6, True)
    (replanned,) = run.of(CellsReplanned)
    assert [one["cell"] for one in replanned.coming or ()] == list(range(kept + 1, 19))


async def test_until_ends_after_the_most_repeats_with_a_warning() -> None:
    def vary(event: Event, run: MemoryRun) -> None:
        if isinstance(event, CellStarted):
            run.scripts["slow"] = Script(REPORT, late=0.2 * event.repeat)

    run = MemoryRun(CACHES + "until: {spread: 2 %, at_least: 2, at_most: 3}\n", on=[vary])
    assert await run.run() == PASSED
    assert len(run.begun()) == 6
    (ended,) = run.of(RepeatsEnded)
    assert (ended.repeats, ended.reached) == (3, False)
    assert ended.widest_percent is not None and ended.widest_percent > 2
    (notice,) = run.of(Notice)
    assert notice.level == "warning"
    assert notice.text.endswith("; ± 2 % was asked for")


REFERENCE = """
reference:
  source: '"Known beforehand"'
  host: a machine
  claims:
    - say: as fast
      source: ours
      metric: latency_avg
      equal_within: [{cache: none, workloads: slow}, {cache: writeback, workloads: slow}]
    - say: slower by half
      source: ours
      metric: latency_avg
      by: 50 %
      greater: [{cache: writeback, workloads: slow}, {cache: none, workloads: slow}]
"""


def works_for(seconds: float) -> Script:
    """A client whose tool says that its events took so long, within the same span of the client's."""
    return Script(few_lines(cpu_report(seconds=seconds)), seconds=0.12)


QUICK, SLOW = works_for(0.025), works_for(0.1)
"""The averages are 0.01 and 0.04 ms."""


@pytest.mark.parametrize(("written", "answers"), [(QUICK, ["reproduced", "not"]), (SLOW, ["not", "reproduced"])])
async def test_claims_whose_answer_is_known_end_the_run_at_its_first_look(written: Script, answers: list[str]) -> None:
    def slow_down(event: Event, run: MemoryRun) -> None:
        if isinstance(event, CellStarted):
            run.scripts["slow"] = written if event.axes["cache"] == "writeback" else QUICK

    run = MemoryRun(f"{CACHES}until: {{looks: [8, 10]}}\n{REFERENCE}", on=[slow_down])
    _keep_scenario(run)
    assert await run.run() == PASSED
    (ended,) = run.of(RepeatsEnded)
    assert (ended.repeats, ended.cells, ended.widest_percent, ended.reached) == (8, 16, None, True)
    with RunReader(run.folder.store) as reader:
        beside = beside_reference(reader)
    assert [claim.answer for claim in beside.claims] == answers
    # One comparison each, at two looks.
    assert {one.difference.confidence for claim in beside.claims for one in claim.comparisons} == {97.5}


async def test_a_claim_that_stays_undecided_is_looked_at_as_often_as_planned() -> None:
    def vary(event: Event, run: MemoryRun) -> None:
        if isinstance(event, CellStarted):
            slower = (event.repeat % 2 == 0) == (event.axes["cache"] == "none")
            run.scripts["slow"] = SLOW if slower else QUICK

    run = MemoryRun(f"{CACHES}until: {{looks: [8, 10]}}\n{REFERENCE}", on=[vary])
    _keep_scenario(run)
    assert await run.run() == PASSED
    (ended,) = run.of(RepeatsEnded)
    assert (ended.repeats, ended.reached) == (10, False)
    (notice,) = run.of(Notice)
    assert (notice.level, notice.text) == ("warning", "after 10 repeats 2 of 2 claims have no answer")


TABLE = "table: {columns: cache, metrics: latency_avg}\n"
LOOKED = f"{CACHES}{TABLE}until: {{looks: [8, 10]}}\n"


def _slow_down(event: Event, run: MemoryRun, *workloads: str) -> None:
    """Writeback is ten times as slow to these workloads."""
    if isinstance(event, CellStarted):
        works = SLOW if event.axes["cache"] == "writeback" else QUICK
        run.scripts |= dict.fromkeys(workloads, works)


def _both_slow(event: Event, run: MemoryRun) -> None:
    _slow_down(event, run, "quick", "slow")


async def test_a_table_whose_differences_are_proven_ends_the_run_at_its_first_look() -> None:
    run = MemoryRun(LOOKED, on=[_both_slow])
    _keep_scenario(run)
    assert await run.run() == PASSED
    (ended,) = run.of(RepeatsEnded)
    assert (ended.repeats, ended.cells, ended.widest_percent, ended.reached) == (8, 16, None, True)
    assert [(one.level, one.text) for one in run.of(Notice)] == [("info", "after 8 repeats every difference is proven")]
    found = [one.difference for table in document(run).tables for *_, one in table.each() if one.difference]
    # Two figures at two looks, by Holm.
    assert [one.confidence for one in found] == [98.75, 97.5]
    assert "ended after 8, as more would prove no further difference: each judged at 2.5 %" in " ".join(
        run_table(document(run)).split()
    )


async def test_a_table_with_a_difference_that_is_not_proven_is_looked_at_as_often_as_planned() -> None:
    run = MemoryRun(LOOKED, on=[lambda event, run: _slow_down(event, run, "slow")])
    _keep_scenario(run)
    assert await run.run() == PASSED
    (ended,) = run.of(RepeatsEnded)
    assert (ended.repeats, ended.cells, ended.reached) == (10, 20, False)
    (notice,) = run.of(Notice)
    assert (notice.level, notice.text) == ("warning", "after 10 repeats 1 of 2 differences are not proven")
    assert document(run).run.notices == [notice.text]


async def test_a_side_that_never_passes_is_not_waited_for_by_looks_at_a_table() -> None:
    run = MemoryRun(LOOKED, scripts={name: Script("out of luck", status=3) for name in ("quick", "slow")})
    _keep_scenario(run)
    assert (await run.run()).outcome is Outcome.FAILED
    (notice,) = run.of(Notice)
    assert notice.text == "after 8 repeats no difference is left that more repeats may prove"


@pytest.mark.parametrize("kept", [3, 15, 16])
async def test_a_run_that_goes_on_is_looked_at_as_it_would_have_been(kept: int) -> None:
    """It was cut off after so many cells, sixteen being those before its first look."""
    run = MemoryRun(LOOKED, on=[_both_slow])
    _keep_scenario(run)
    assert await run.run() == PASSED
    run.recorded = []
    for event in run.events:
        run.recorded.append(event)
        if isinstance(event, CellEnded) and event.cell == kept:
            run.recorded.append(CommandReceived(command="resume", origin="vmlab resume"))
            break
    run.events.clear()
    run.hypervisor = HeldHypervisor(run.folder.disks)
    assert await run.run() == PASSED
    assert [number for number, _, _ in run.begun()] == list(range(kept + 1, 17))
    (ended,) = run.of(RepeatsEnded)
    assert (ended.repeats, ended.cells, ended.reached) == (8, 16, True)


async def test_claims_of_a_run_that_is_looked_at_by_its_table_have_its_level_once() -> None:
    run = MemoryRun(f"{CACHES}{TABLE}until: {{looks: [8, 10], looks_at: table}}\n{REFERENCE}", on=[_both_slow])
    _keep_scenario(run)
    assert await run.run() == PASSED
    with RunReader(run.folder.store) as reader:
        beside = beside_reference(reader)
    assert {one.difference.confidence for claim in beside.claims for one in claim.comparisons} == {97.5}


async def test_a_point_that_never_passes_is_not_waited_for() -> None:
    scripts = {name: Script("out of luck", status=3) for name in ("quick", "slow")}
    run = MemoryRun(CACHES + "until: {spread: 50 %, at_least: 2, at_most: 3}\n", scripts=scripts)
    assert (await run.run()).outcome is Outcome.FAILED
    assert len(run.begun()) == 6
    (notice,) = run.of(Notice)
    assert notice.text == "after 3 repeats no metric is known; ± 50 % was asked for"


async def test_a_warm_up_is_measured_first_and_counts_in_no_figure() -> None:
    run = MemoryRun(CACHES + "repeats: 2\nwarm_up: true\n")
    assert await run.run() == PASSED
    assert [repeat for _, _, repeat in run.begun()] == [0, 1, 1, 2, 2]
    assert [event.figure.metric for event in run.of(MeasurementTaken) if event.cell == 1]
    cells = document(run).cells
    assert [(cell.block, cell.position, cell.warm_up) for cell in cells] == [
        (0, 1, True),
        (1, 1, False),
        (1, 2, False),
        (2, 1, False),
        (2, 2, False),
    ]
    figures = [entry.figure for table in document(run).tables for *_, entry in table.each()]
    assert {figure.spread.count for figure in figures if figure.spread} == {2}
    assert "cell 1 (cache none) is the warm-up and does not count" in run_table(document(run))


async def test_a_warm_up_may_be_invalid_and_the_run_is_not() -> None:
    def disturb(event: Event, run: MemoryRun) -> None:
        if isinstance(event, PhaseStarted) and event.phase == "execute":
            run.host["cpu_outside_lab_percent"] = 99.0 if event.cell == 1 else 0.0

    run = MemoryRun(CACHES + "warm_up: true\n", on=[disturb])
    assert await run.run() == PASSED
    assert [outcome for outcome, _ in run.outcomes()] == ["invalid", "passed", "passed"]


class Stubborn(ScriptedGuest):
    """A guest whose caches cannot be emptied."""

    async def run(self, argv: list[str], **options: object) -> object:  # type: ignore[override]
        if "empty" in argv:
            self.asked += 1
            raise GuestError("OSError: [Errno 30] Read-only file system: '/proc/sys/vm/drop_caches'")
        return await super().run(argv, **options)  # type: ignore[arg-type]

    asked = 0


async def test_caches_that_could_not_be_emptied_make_the_cell_invalid_and_keep_its_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.lab.runs.ScriptedGuest", Stubborn)
    run = MemoryRun(CALM + "axes: {cache: [none]}\n")
    assert (await run.run()).outcome is Outcome.INVALID
    ((_, reasons),) = run.outcomes()
    assert sorted(reasons) == [
        f"t1-{guest}: its caches could not be emptied: "
        "OSError: [Errno 30] Read-only file system: '/proc/sys/vm/drop_caches'"
        for guest in ("quick", "slow")
    ]
    assert len([event for event in run.of(MeasurementTaken) if event.figure.metric == "run_time"]) == 2


@pytest.mark.parametrize(("warm", "guests", "host"), [("false", 1, True), ("host", 1, False), ("true", 0, False)])
async def test_the_caches_that_warm_names_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, warm: str, guests: int, host: bool
) -> None:
    async def emptied(files: Iterable[Path]) -> list[str]:
        return ["the host's caches were emptied"]

    monkeypatch.setattr("tests.lab.runs.ScriptedGuest", Stubborn)
    monkeypatch.setattr("vmlab.lab.cell.caches.emptied", emptied)
    text = f"axes: {{cache: [none]}}\nwarm: {warm}\n" if warm != "host" else "axes: {a: {points: {x: {warm: host}}}}\n"
    run = MemoryRun(CALM + text)
    await run.run()
    ((_, reasons),) = run.outcomes()
    assert {getattr(guest, "asked", None) for guest in run.guests} == {guests}
    assert ("the host's caches were emptied" in reasons) is host


def test_the_first_event_has_the_order() -> None:
    assert RunStarted(run="r", scenario="s", size="full", seed=1, cells=1, expected_seconds=1.0).order == "as written"
