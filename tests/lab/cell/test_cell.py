"""A cell's phases with the fake hypervisor; its clients are real processes that print what sysbench printed."""

import asyncio
import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.boot import AS_THE_LAB
from tests.lab.one_cell import lab_of
from vmlab.guests.host_shell import HostChannel
from vmlab.model.cell_event import (
    NeighboursCounted,
    PhaseEnded,
    StepEnded,
    WorkloadEnded,
    WorkloadStarted,
)
from vmlab.model.errors import WorkloadError
from vmlab.model.event import Notice
from vmlab.model.results import NeighbourUse
from vmlab.model.run import Outcome
from vmlab.telemetry.domains.neighbour_readings import NeighbourCounters
from vmlab.telemetry.host_counters import HostCounters
from vmlab.workloads.kinds.cpu import Cpu
from vmlab.workloads.workload_steps import WorkloadContext


async def test_a_cell_that_goes_well_has_all_phases_figures_and_raw_output(
    tmp_path: Path, captured_events: int
) -> None:
    lab = lab_of(tmp_path, captured_events)
    assert await lab.cell().run() is Outcome.PASSED
    assert [event.phase for event in lab.of(PhaseEnded)] == ["provision", "prepare", "execute", "collect", "clean up"]
    ended = lab.ended()
    assert ended.outcome == "passed"
    assert ended.provision.guests == 2
    assert ended.provision.seconds is not None and ended.provision.seconds > 0
    assert ended.wall_seconds is not None
    late = [start.late_ms for start in lab.of(WorkloadStarted)]
    assert ended.start_skew_ms == pytest.approx(max(late) - min(late))
    run_times = {m.workload: m.value for m in lab.measured() if m.metric == "run_time"}
    assert run_times.keys() == {"quick", "slow"}
    assert all(value and value > 0 for value in run_times.values())
    assert {output.workload for _, output in lab.raw.kept} == {"quick", "slow"}
    assert any("total number of events" in output.text for _, output in lab.raw.kept)
    assert lab.hypervisor.running == {}
    assert all(guest.closed for guest in lab.guests)


async def test_each_step_is_timed_under_its_part(tmp_path: Path, captured_events: int) -> None:
    lab = lab_of(tmp_path, captured_events)
    await lab.cell().run()
    taken = {(step.part, step.step, step.place) for step in lab.of(StepEnded)}
    for workload in ("quick", "slow"):
        assert {
            ("prepare", "prepare", workload),
            ("prepare", "hold the client", workload),
            ("execute", "settle", workload),
            ("collect", "verify", workload),
        } <= taken
    assert {
        ("prepare", "prove the cache modes", ""),
        ("start", "announce the start", ""),
        ("collect", "look at the guests' boots", ""),
        ("clean up", "destroying the guests", ""),
    } <= taken
    assert {place for part, step, place in taken if step == "empty the caches"} == {g.name for g in lab.guests}


async def test_shares_that_were_set_and_got_are_measured_where_guests_have_them(
    tmp_path: Path, captured_events: int
) -> None:
    lab = lab_of(tmp_path, captured_events)
    await lab.cell().run()
    for metric in ("cpu_share_configured", "cpu_share_got"):
        shares = {m.workload: m.value for m in lab.measured() if m.metric == metric}
        assert shares == {"quick": pytest.approx(2 / 3), "slow": pytest.approx(1 / 3)}


async def test_clients_start_together_and_say_when(tmp_path: Path, captured_events: int) -> None:
    lab = lab_of(tmp_path, captured_events)
    await lab.cell().run()
    starts = lab.of(WorkloadStarted)
    assert len(starts) == 2
    # None goes ahead of the moment that was broadcast; how late one is, is up to the machine.
    assert all(start.late_ms >= -start.uncertainty_ms for start in starts)
    assert all(start.uncertainty_ms > 0 for start in starts)


async def test_work_that_was_not_all_done_is_failed_and_has_no_figure(tmp_path: Path, captured_events: int) -> None:
    lab = lab_of(tmp_path, captured_events + 1)
    assert await lab.cell().run() is Outcome.FAILED
    assert not [m for m in lab.measured() if m.metric == "run_time"]
    assert lab.ended().reasons
    assert "events" in lab.ended().reasons[0]
    assert {output.name for _, output in lab.raw.kept} >= {"sysbench"}
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
    assert [m for m in lab.measured() if m.metric == "run_time"]


async def test_a_guest_that_booted_into_something_else_makes_the_cell_invalid(
    tmp_path: Path, captured_events: int
) -> None:
    lab = lab_of(tmp_path, captured_events)
    lab.boot = AS_THE_LAB.replace("vmlab.target", "multi-user.target")
    assert await lab.cell().run() is Outcome.INVALID
    elsewhere = "it was to boot as lab, into vmlab.target, and is in multi-user.target"
    assert {reason.partition(": ")[2] for reason in lab.ended().reasons} == {elsewhere}


async def test_a_guest_that_cannot_prepare_fails_the_cell_and_leaves_nothing(
    tmp_path: Path, captured_events: int
) -> None:
    lab = lab_of(tmp_path, captured_events)
    lab.failing = frozenset({"sysbench"})
    assert await lab.cell().run() is Outcome.FAILED
    assert "scripted to fail" in lab.ended().reasons[0]
    assert lab.ended().wall_seconds is None
    assert lab.hypervisor.running == {}


async def test_what_a_failing_prepare_printed_is_kept(
    tmp_path: Path, captured_events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(workload: Cpu, context: WorkloadContext) -> None:
        if context.workload == "slow":
            error = WorkloadError("prepare exited with 5")
            error.texts = {"errors of prepare": "all\nthat it printed\n"}
            raise error

    monkeypatch.setattr(Cpu, "prepare", fails)
    lab = lab_of(tmp_path, captured_events)
    assert await lab.cell().run() is Outcome.FAILED
    assert lab.ended().reasons == ["tile 1 slow: prepare exited with 5"]
    kept = [(output.workload, output.name, output.text) for _, output in lab.raw.kept]
    assert kept == [("slow", "errors of prepare", "all\nthat it printed\n")]


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


async def test_an_error_of_the_hosts_own_disk_fails_the_cell_and_not_the_runner(
    tmp_path: Path, captured_events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "journal.jsonl")

    lab = lab_of(tmp_path, captured_events)
    for method in ("create", "destroy"):
        monkeypatch.setattr(lab.hypervisor, method, full)
    assert await lab.cell().run() is Outcome.FAILED
    full_disk = "journal.jsonl: No space left on device"
    assert lab.ended().reasons == [full_disk, f"clean-up: {full_disk}"]


class Goodbye:
    """The closing of channels, which never comes back by itself; `most` is how many hung at the same time.

    A channel ends its program when its closing is given up, however long that takes.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = self._hanging = 0
        real = HostChannel.close

        async def hangs(channel: HostChannel) -> None:
            self._hanging += 1
            self.most = max(self.most, self._hanging)
            try:
                await asyncio.sleep(3600)
            finally:
                self._hanging -= 1
                await real(channel)

        monkeypatch.setattr(HostChannel, "close", hangs)


async def test_channels_that_hang_are_closed_side_by_side(
    tmp_path: Path, captured_events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_of(tmp_path, captured_events)
    lab.timing = replace(lab.timing, close_client=0.5)
    goodbye = Goodbye(monkeypatch)
    assert await lab.cell().run() is Outcome.PASSED
    assert [event.text.partition(":")[0] for event in lab.of(Notice)] == ["tile 1 quick", "tile 1 slow"]
    assert goodbye.most == 2
    assert lab.hypervisor.running == {}


async def test_guests_are_destroyed_although_the_clients_used_up_their_time(
    tmp_path: Path, captured_events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_of(tmp_path, captured_events)
    lab.timing = replace(lab.timing, clean_up=2.0)
    Goodbye(monkeypatch)
    assert await lab.cell().run() is Outcome.FAILED
    assert lab.hypervisor.running == {}
    assert lab.ended().reasons == ["clean-up: closing the clients took longer than 2 s"]
    assert all(guest.closed for guest in lab.guests)


async def test_what_the_host_s_own_guests_took_is_an_event_of_the_cell(tmp_path: Path, captured_events: int) -> None:
    lab = lab_of(tmp_path, captured_events)
    cpus = os.cpu_count() or 1
    lab.counters = [
        HostCounters(10.0, neighbours={(7, 70): NeighbourCounters("db", 100.0, 0)}),
        HostCounters(14.0, neighbours={(7, 70): NeighbourCounters("db", 100.0 + cpus, 4 << 20)}),
    ]
    assert await lab.cell().run() is Outcome.PASSED
    (counted,) = lab.of(NeighboursCounted)
    assert counted.neighbours == [NeighbourUse("db", 25.0, float(1 << 20))]


async def test_a_host_without_guests_of_its_own_is_one_on_which_none_took_anything(
    tmp_path: Path, captured_events: int
) -> None:
    lab = lab_of(tmp_path, captured_events)
    assert await lab.cell().run() is Outcome.PASSED
    assert [one.neighbours for one in lab.of(NeighboursCounted)] == [[]]
