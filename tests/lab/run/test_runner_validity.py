"""What makes a cell of a run invalid, and how the run ends then: each rule at its limit and just over it."""

from __future__ import annotations

import asyncio
import math
import re
from dataclasses import replace

import pytest

from tests.fakes.scripted_guest import Script
from tests.lab.runs import REPORT, MemoryRun
from vmlab.lab.process.run_ending import Verdict
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    MeasurementTaken,
    PhaseEnded,
    PhaseStarted,
    StepEnded,
)
from vmlab.model.errors import ExitCode
from vmlab.model.event import Event, MeasuredAgain, Notice
from vmlab.model.run import Outcome
from vmlab.plan.terms import Overrides
from vmlab.telemetry.host_counters import HostCounters

CELL = "axes: {cache: [none]}\nagain: 0\n"
OTHER, STEAL = "cpu_outside_lab_percent", "cpu_steal_percent"
LIMITS = {OTHER: 20.0, STEAL: 25.0}
"""What holds where the scenario says nothing."""
ABOVE = {
    OTHER: "the host's other work took 20 % of the CPUs; the limit is 20 %",
    STEAL: "steal: the hypervisor that this host runs on took 25 % of the CPUs; the limit is 25 %",
}
INVALID = Verdict(Outcome.INVALID, ExitCode.INVALID, "cache none: no valid repeat")
PASSED = Verdict(Outcome.PASSED, ExitCode.PASSED)

pytestmark = pytest.mark.usefixtures("own_folders")


def reasons(run: MemoryRun) -> list[str]:
    """Those of the only cell."""
    ((_, found),) = run.outcomes()
    return found


def figures(run: MemoryRun) -> int:
    """How many run times were measured."""
    return len([event for event in run.of(MeasurementTaken) if event.figure.metric == "run_time"])


@pytest.mark.parametrize("figure", [OTHER, STEAL])
async def test_other_work_and_steal_hold_at_their_limit_and_not_above_it(figure: str) -> None:
    run = MemoryRun(CELL)
    run.host[figure] = LIMITS[figure]
    assert await run.run() == PASSED
    assert reasons(run) == []


@pytest.mark.parametrize("figure", [OTHER, STEAL])
async def test_above_its_limit_other_work_or_steal_makes_cell_and_run_invalid_and_keeps_the_figures(
    figure: str,
) -> None:
    run = MemoryRun(CELL)
    run.host[figure] = math.nextafter(LIMITS[figure], 100)
    assert await run.run() == INVALID
    assert reasons(run) == [ABOVE[figure]]
    assert figures(run) == 2


@pytest.mark.parametrize(("percent", "told"), [(5.0, 0), (math.nextafter(5.0, 100), 1)])
async def test_other_work_is_told_from_five_percent_on(percent: float, told: int) -> None:
    run = MemoryRun(CELL)
    run.host[OTHER] = percent
    assert await run.run() == PASSED
    notices = [event.text for event in run.of(Notice)]
    assert notices == ["cell 1: the host's other work took 5 % of the CPUs while the workloads ran"] * told


async def test_a_scenarios_own_limits_hold() -> None:
    run = MemoryRun(CELL + "limits: {host_other_percent: 5, host_steal_percent: 1}\n")
    run.host |= {OTHER: 5.1, STEAL: 1.1}
    assert await run.run() == INVALID
    assert [reason.partition(";")[2] for reason in reasons(run)] == [" the limit is 5 %", " the limit is 1 %"]


async def test_a_processor_that_was_throttled_while_the_workloads_ran_makes_the_cell_invalid() -> None:
    run = MemoryRun(CELL + "limits: {clock_drift_percent: 100}\n")
    run.counters = [HostCounters(0.0, heat={"core 0": 3}), HostCounters(1.0, heat={"core 0": 4})]
    assert await run.run() == INVALID
    assert reasons(run) == ["the processor became too hot and slowed down (events: 1)"]


async def test_a_figure_that_nobody_has_breaks_no_rule() -> None:
    run = MemoryRun(CELL)
    run.host = dict.fromkeys(LIMITS, math.nan)
    assert await run.run() == PASSED


# The true start is known by a clock that was measured. What the limit is to the last digit is in test_validity.
@pytest.mark.parametrize(("late", "verdict"), [(0.2, PASSED), (0.4, INVALID)])
async def test_clients_may_start_apart_by_the_limit(late: float, verdict: Verdict) -> None:
    run = MemoryRun(CELL + "limits: {start_skew: 300 ms}\n", scripts={"slow": Script(REPORT, late=late)})
    assert await run.run() == verdict
    (ended,) = run.of(CellEnded)
    assert ended.start_skew_ms == pytest.approx(late * 1e3, abs=80)
    assert ended.skew_uncertainty_ms
    assert [reason.partition(";")[2] for reason in reasons(run)] == [" the limit is 300 ms"] * (verdict == INVALID)


# A second of work; the clock of a guest in memory is known to less than a hundredth of a second.
@pytest.mark.parametrize(("rate", "verdict"), [(1.04, PASSED), (1.2, INVALID), (0.96, PASSED), (0.8, INVALID)])
async def test_a_guests_clock_may_run_apart_by_the_limit(rate: float, verdict: Verdict) -> None:
    run = MemoryRun(CELL, scripts={"slow": Script(REPORT, seconds=1.0, clock_rate=rate)})
    assert await run.run() == verdict
    assert [reason.partition(" by ")[0] for reason in reasons(run)] == [
        "tile 1 slow: its guest's clock and the host's disagree"
    ] * (verdict == INVALID)


@pytest.mark.parametrize(("phase", "verdict"), [("execute", INVALID), ("collect", PASSED)])
async def test_a_guest_that_stood_still_spoils_a_cell_only_while_its_workloads_ran(
    phase: str, verdict: Verdict
) -> None:
    run = MemoryRun(CELL)
    run.hypervisor.stopped = {"t1-slow": 2.0}

    def stand(event: Event, run: MemoryRun) -> None:
        if isinstance(event, PhaseStarted) and event.phase == phase:
            run.hypervisor.stopped = {"t1-slow": 2.001}

    run.on.append(stand)
    assert await run.run() == verdict
    assert [reason.partition(" for ")[0] for reason in reasons(run)] == ["t1-slow: its QEMU was stopped"] * (
        verdict == INVALID
    )


async def test_one_invalid_cell_among_passed_ones_makes_the_run_incomplete() -> None:
    run = MemoryRun(CELL + "repeats: 3\n")

    def disturb(event: Event, run: MemoryRun) -> None:
        if isinstance(event, PhaseStarted) and event.phase == "execute":
            run.host[OTHER] = 99.0 if event.cell == 2 else 0.0

    run.on.append(disturb)
    assert await run.run() == Verdict(Outcome.INCOMPLETE, ExitCode.INVALID, "cache none: 2 of 3 repeats valid")
    assert [outcome for outcome, _ in run.outcomes()] == ["passed", "invalid", "passed"]


async def test_a_disturbed_cell_is_measured_again_when_its_block_has_ended_and_then_at_the_end() -> None:
    run = MemoryRun("axes: {cache: [none, writeback]}\norder: as written\nrepeats: 2\nagain: 3\n")

    def disturb(event: Event, run: MemoryRun) -> None:
        if isinstance(event, PhaseStarted) and event.phase == "execute":
            run.host[OTHER] = 99.0 if event.cell in (1, 5) else 0.0

    run.on.append(disturb)
    assert await run.run() == PASSED
    assert [event.cell for event in run.of(CellStarted)] == [1, 2, 5, 3, 4, 6]
    assert [(event.cell, event.again_of) for event in run.of(MeasuredAgain)] == [(5, 1), (6, 5)]
    assert [event.disturbed for event in run.of(CellEnded)] == [True, False, True, False, False, False]


async def test_attempts_are_as_many_as_the_plan_allows() -> None:
    run = MemoryRun("axes: {cache: [none]}\n")
    run.host[OTHER] = 99.0
    verdict = await run.run()
    assert verdict == replace(INVALID, reason="cache none: no valid repeat after 2 further attempts")
    assert len(run.of(CellEnded)) == 3


async def test_workloads_wait_for_a_quiet_host_and_the_run_says_so_in_one_line() -> None:
    run = MemoryRun(CELL)
    run.host[OTHER] = 50.0

    def prepared(event: Event, run: MemoryRun) -> None:
        if isinstance(event, PhaseEnded) and event.phase == "prepare":
            asyncio.get_running_loop().call_later(0.1, run.host.update, {OTHER: 0.0})

    run.on.append(prepared)
    assert await run.run() == PASSED
    (told,) = [event for event in run.of(Notice) if "quiet" in event.text]
    assert told.level == "info"
    assert re.fullmatch(r"cell 1: waited \d s for a quiet host: the host's other work took 50 % .*", told.text)


@pytest.mark.parametrize(("no_wait", "noise"), [(True, False), (False, True)])
async def test_nobody_waits_who_does_not_want_to(no_wait: bool, noise: bool) -> None:
    run = MemoryRun(CELL, Overrides(size="full", cold=True, no_wait=no_wait, allow_noise=noise))
    run.host[OTHER] = 99.0
    await run.run()
    assert not [event for event in run.of(StepEnded) if event.step == "wait for a quiet host"]


async def test_after_so_long_workloads_start_on_a_busy_host_all_the_same() -> None:
    run = MemoryRun(CELL)
    run.host[OTHER] = 99.0
    assert await run.run() == INVALID
    (told,) = [event for event in run.of(Notice) if "quiet" in event.text]
    assert told.level == "warning" and told.text.startswith("cell 1: the host was not quiet within ")
