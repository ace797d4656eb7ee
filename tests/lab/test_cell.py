"""A cell's phases with the fake hypervisor; its clients are real processes that print what sysbench printed."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import asyncssh
import pytest

from tests.fakes.hypervisor import FakeHypervisor
from tests.fakes.local_guest import LocalGuest
from vmlab.hypervisor.contract import BootImage
from vmlab.lab.cell import CellRun, CellSurroundings
from vmlab.model.event import CellEnded, Event, MeasurementTaken, Notice, PhaseEnded, WorkloadEnded, WorkloadStarted
from vmlab.model.run import Outcome, RawOutput
from vmlab.plan.loading import read
from vmlab.plan.planning import make_plan
from vmlab.plan.terms import HostFacts, Overrides, Plan
from vmlab.workloads.contract import Shell

SCENARIO = """
name: two
guests:
  quick: {memory: 128 MiB, cpu_shares: 200}
  slow:  {memory: 128 MiB, cpu_shares: 100}
workloads:
  quick: {kind: cpu, on: quick, threads: 1, max_prime: 1000, events: 10}
  slow:  {kind: cpu, on: slow,  threads: 1, max_prime: 1000, events: 10}
"""
Kind = TypeVar("Kind", bound=Event)
HOST = HostFacts(2**34, 2**34, 2**40, 2, "tcg")
REPORT = (Path(__file__).parents[1] / "workloads/captured/sysbench-cpu.txt").read_text()


class Raw:
    def __init__(self) -> None:
        self.kept: list[tuple[int, RawOutput]] = []

    def raw(self, cell: int, output: RawOutput) -> None:
        self.kept.append((cell, output))


class Lab:
    """Everything around one cell, with a stand-in for sysbench that runs `script`."""

    def __init__(self, folder: Path, script: str, plan: Plan) -> None:
        self.events: list[Event] = []
        self.begun = asyncio.Event()
        self.raw = Raw()
        self.guests: list[LocalGuest] = []
        self.failing: frozenset[str] = frozenset()
        self.figures = {"cpu_outside_lab_percent": 1.0, "cpu_steal_percent": 0.0}
        self.folder = folder
        (folder / "disks").mkdir()
        self.hypervisor = FakeHypervisor(disks=folder / "disks")
        self.plan = plan
        sysbench = folder / "sysbench"
        sysbench.write_text(f"#!/bin/sh\n{script}\n")
        sysbench.chmod(0o755)

    async def connect(
        self, name: str, address: str, *, key: asyncssh.SSHKey, host_key: asyncssh.SSHKey, deadline: float
    ) -> LocalGuest:
        self.guests.append(LocalGuest(name, address, self.folder, self.failing))
        return self.guests[-1]

    def take(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, WorkloadStarted):
            self.begun.set()

    def no_host(self) -> Shell:
        raise AssertionError("no workload of these runs on the host")

    def cell(self) -> CellRun:
        image = BootImage(Path("/none"), Path("/none"), Path("/none"), "")
        around = CellSurroundings(
            "run",
            self.plan,
            self.hypervisor,
            image,
            self.take,
            self.raw,
            self.no_host,
            lambda name, since, until: self.figures[name],
            self.connect,
        )
        return CellRun(self.plan.cells[0], around)

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]

    def ended(self) -> CellEnded:
        (ended,) = self.of(CellEnded)
        return ended


def scenario_plan(changes: Callable[[str], str] = str) -> Plan:
    return make_plan(read(Path("two.yaml"), changes(SCENARIO)), Overrides(size="full"), HOST)


@pytest.fixture
def captured_events() -> int:
    """How many events the captured report tells of."""
    line = next(line for line in REPORT.splitlines() if "total number of events" in line)
    return int(line.split()[-1])


def lab_of(folder: Path, captured: int, script: str | None = None) -> Lab:
    plan = scenario_plan(lambda text: text.replace("events: 10}", f"events: {captured}}}"))
    return Lab(folder, script or f"cat <<'END'\n{REPORT}\nEND", plan)


async def test_a_cell_that_goes_well_has_all_phases_figures_and_raw_output(
    tmp_path: Path, captured_events: int
) -> None:
    lab = lab_of(tmp_path, captured_events)
    assert await lab.cell().run() is Outcome.PASSED
    assert [event.phase for event in lab.of(PhaseEnded)] == ["provision", "prepare", "execute", "collect", "clean up"]
    ended = lab.ended()
    assert ended.outcome == "passed"
    assert ended.provision["guests"] == 2
    assert ended.provision["seconds"] > 0
    assert ended.wall_seconds is not None
    assert ended.start_skew_ms is not None
    assert 0 <= ended.start_skew_ms < 500
    run_times = {m.workload: m.value for m in lab.of(MeasurementTaken) if m.metric == "run_time"}
    assert run_times.keys() == {"quick", "slow"}
    assert all(value > 0 for value in run_times.values())
    assert {output.workload for _, output in lab.raw.kept} == {"quick", "slow"}
    assert any("total number of events" in output.text for _, output in lab.raw.kept)
    assert lab.hypervisor.running == {}
    assert all(guest.closed for guest in lab.guests)


async def test_shares_that_were_set_and_got_are_measured_where_guests_have_them(
    tmp_path: Path, captured_events: int
) -> None:
    lab = lab_of(tmp_path, captured_events)
    await lab.cell().run()
    for metric in ("cpu_share_configured", "cpu_share_got"):
        shares = {m.workload: m.value for m in lab.of(MeasurementTaken) if m.metric == metric}
        assert shares == {"quick": pytest.approx(2 / 3), "slow": pytest.approx(1 / 3)}


async def test_clients_start_together_and_say_when(tmp_path: Path, captured_events: int) -> None:
    lab = lab_of(tmp_path, captured_events)
    await lab.cell().run()
    starts = lab.of(WorkloadStarted)
    assert len(starts) == 2
    assert all(abs(start.late_ms) < 500 for start in starts)
    assert all(start.uncertainty_ms > 0 for start in starts)


async def test_work_that_was_not_all_done_is_failed_and_has_no_figure(tmp_path: Path, captured_events: int) -> None:
    lab = lab_of(tmp_path, captured_events + 1)
    assert await lab.cell().run() is Outcome.FAILED
    assert not [m for m in lab.of(MeasurementTaken) if m.metric == "run_time"]
    assert lab.ended().reasons
    assert "events" in lab.ended().reasons[0]
    assert lab.hypervisor.running == {}


async def test_a_client_that_exits_non_zero_fails_with_its_own_last_words(tmp_path: Path, captured_events: int) -> None:
    lab = lab_of(tmp_path, captured_events, "echo out of luck >&2; exit 4")
    assert await lab.cell().run() is Outcome.FAILED
    assert "exited with 4: out of luck" in lab.ended().reasons[0]
    assert any(output.text == "out of luck\n" for _, output in lab.raw.kept)


async def test_a_cache_mode_that_is_not_what_was_asked_makes_the_cell_invalid(
    tmp_path: Path, captured_events: int
) -> None:
    lab = lab_of(tmp_path, captured_events)
    lab.hypervisor.lying = frozenset({"slow"})
    assert await lab.cell().run() is Outcome.INVALID
    assert [reason.split(":")[0] for reason in lab.ended().reasons] == ["slow"]
    assert [m for m in lab.of(MeasurementTaken) if m.metric == "run_time"]


async def test_a_guest_that_cannot_prepare_fails_the_cell_and_leaves_nothing(
    tmp_path: Path, captured_events: int
) -> None:
    lab = lab_of(tmp_path, captured_events)
    lab.failing = frozenset({"sysbench"})
    assert await lab.cell().run() is Outcome.FAILED
    assert "scripted to fail" in lab.ended().reasons[0]
    assert lab.ended().wall_seconds is None
    assert lab.hypervisor.running == {}


async def test_a_domain_that_does_not_start_fails_the_cell(tmp_path: Path, captured_events: int) -> None:
    lab = lab_of(tmp_path, captured_events)
    lab.hypervisor.fail_create = "t1-slow"
    assert await lab.cell().run() is Outcome.FAILED
    assert "no room" in lab.ended().reasons[0]


async def test_a_stop_in_the_middle_keeps_what_is_known_and_clears_up(tmp_path: Path, captured_events: int) -> None:
    lab = lab_of(tmp_path, captured_events, "echo begun; sleep 30")
    running = asyncio.ensure_future(lab.cell().run())
    await lab.begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert lab.ended().outcome == "aborted"
    assert lab.ended().wall_seconds is None
    assert {event.outcome for event in lab.of(WorkloadEnded)} == {"aborted"}
    assert lab.hypervisor.running == {}
    assert all(guest.closed for guest in lab.guests)


@pytest.mark.parametrize(
    ("figure", "reason"),
    [("cpu_outside_lab_percent", "the host's other work took 90 %"), ("cpu_steal_percent", "took 90 % of the CPUs")],
)
async def test_a_host_that_was_not_the_labs_own_makes_the_cell_invalid(
    tmp_path: Path, captured_events: int, figure: str, reason: str
) -> None:
    lab = lab_of(tmp_path, captured_events)
    lab.figures[figure] = 90.0
    assert await lab.cell().run() is Outcome.INVALID
    assert reason in lab.ended().reasons[0]


async def test_a_little_other_work_is_told_and_lets_the_cell_stand(tmp_path: Path, captured_events: int) -> None:
    lab = lab_of(tmp_path, captured_events)
    lab.figures["cpu_outside_lab_percent"] = 20.0
    assert await lab.cell().run() is Outcome.PASSED
    assert [notice.text for notice in lab.of(Notice)] == [
        "cell 1: the host's other work took 20 % of the CPUs while the workloads ran"
    ]


async def test_starts_too_far_apart_are_invalid(tmp_path: Path, captured_events: int) -> None:
    lab = lab_of(tmp_path, captured_events)
    limits = lab.plan.scenario.limits.model_copy(update={"start_skew": 0.0})
    scenario = lab.plan.scenario.model_copy(update={"limits": limits})
    lab.plan = replace(lab.plan, scenario=scenario)
    assert await lab.cell().run() is Outcome.INVALID
    assert "apart; the limit is 0 ms" in lab.ended().reasons[0]
