"""Rules that make a measured cell invalid, at their limits; and a guest that was paused, by a cell's own outcome."""

import asyncio
import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.guest_stops import WatchInside, is_watch
from tests.fakes.local_guest import LocalGuest
from tests.fakes.sysbench import cpu_report
from tests.lab.cell.test_lost_guest import EVENTS
from tests.lab.one_cell import REPORT, Lab, lab_of, scenario_plan
from vmlab.guests.channel import Channel, payload_file
from vmlab.guests.held_client import HostSpan
from vmlab.lab.cell.common_start import StartSkew
from vmlab.lab.cell.undisturbed import LONGEST_STOP, STOPPED_SHARE, Stood, told_of
from vmlab.lab.cell.validity import broken_rules, lever_faults, proof_faults
from vmlab.lab.cell.workload_instance import disagreement
from vmlab.model.cell_event import CellStarted, WorkloadStarted
from vmlab.model.event import Notice
from vmlab.model.results import CacheProof, LeverProof
from vmlab.model.run import Outcome
from vmlab.model.scenarios.scenario import Limits
from vmlab.telemetry.process_states import Standstill
from vmlab.telemetry.standstill import Seen
from vmlab.telemetry.steady_values import Changed, Throttled

LIMITS = Limits()


def broken(skew: float = 0.0) -> list[str]:
    return list(broken_rules(LIMITS, [], StartSkew(skew, 0.001)))


def test_at_its_limit_a_rule_holds_and_above_it_is_broken() -> None:
    assert broken(LIMITS.start_skew) == []
    assert len(broken(math.nextafter(LIMITS.start_skew, 9))) == 1


def test_what_stood_still_for_long_or_for_much_of_the_time_spoils_a_cell_and_less_is_told() -> None:
    """Many short stops count as one of their sum. A QEMU's, which the init times, count however short they are."""
    told = Stood("database: its QEMU", "stopped", 5.0123).finding(60.0)
    assert told.text == "database: its QEMU was stopped for 5.01 s while the workloads ran"
    long = [Stood("a", "stopped", LONGEST_STOP), Stood("a", "stopped", 1e-3, exact=True)]
    assert all(one.finding(3600.0).breaks for one in (*long, Stood("a", "stopped", 3600 * STOPPED_SHARE + 1)))
    brief = Stood("a", "stopped", 0.1)
    assert (brief.finding(4.3).breaks, brief.finding(60.0).breaks) == (True, False)


def test_what_was_changed_is_told_once_for_the_threads_of_a_process_and_the_rest_is_counted() -> None:
    own = [Changed(f"its thread CPU {number}/TCG", "CPUs 0,1", "CPUs 0", 2.0, pid=7) for number in range(4)]
    strangers = Changed("sysbench", "nice 0", "nice 5", 2.0, pid=8)
    settings = [Changed(f"/sys/{name}", "0", "1", 1.5) for name in "abc"]
    findings = list(told_of([*own, strangers, *settings], {7: "web: its QEMU"}))
    assert [one.text for one in findings] == [
        "web: its QEMU: its thread CPU 0/TCG was changed from CPUs 0,1 to CPUs 0 for 2 s while the workloads ran",
        "/sys/a was changed from 0 to 1 for 1.5 s while the workloads ran",
        "/sys/b was changed from 0 to 1 for 1.5 s while the workloads ran",
        "1 further settings were changed while the workloads ran",
    ]
    assert all(one.breaks for one in findings)


def test_a_late_start_says_in_milliseconds_how_late_and_what_the_limit_is() -> None:
    limits = LIMITS.model_copy(update={"start_skew": 0.25})
    reasons = list(broken_rules(limits, [], StartSkew(1.5, 0.001)))
    assert reasons == ["clients started 1500 ms apart; the limit is 250 ms"]
    assert list(broken_rules(limits, [], None)) == []


def test_each_file_whose_cache_mode_is_not_in_force_is_named_with_what_qemu_has() -> None:
    right = CacheProof("web", "/a.raw", True, True, True, False, "none: o_direct=yes", agrees=True)
    proofs = [right, replace(right, file="/b.raw", o_direct=False, agrees=False), right]
    reasons = list(proof_faults(proofs))
    assert reasons == [
        "web: cache=none: o_direct=yes is not what QEMU has on /b.raw: O_DIRECT off, write cache on, no-flush off"
    ]


@dataclass
class Client:
    """As much of a workload as the rule about clocks asks for."""

    label: str
    apart: float

    def clock_disagreement(self) -> float:
        return self.apart


def test_a_clock_at_its_limit_holds_and_above_it_its_workload_is_named() -> None:
    limit = LIMITS.clock_drift_percent / 100
    clients: Any = [Client("tile 1 web", limit), Client("tile 2 web", math.nextafter(limit, 1))]
    (reason,) = broken_rules(LIMITS, clients, None)
    assert reason.startswith("tile 2 web: its guest's clock and the host's disagree by 5.0 % over the run time")


@pytest.mark.parametrize(
    ("guest", "host", "apart"),
    [(10.0, 10.0, 0.0), (10.0, 10.25, 0.0), (9.0, 10.0, 0.075), (10.5, 10.0, 0.025), (18.7, 48.7, 0.611), (1, 0, 0)],
)
def test_two_clocks_are_apart_by_what_their_uncertainty_does_not_explain(
    guest: float, host: float, apart: float
) -> None:
    assert disagreement(guest, HostSpan(host, 0.25)) == pytest.approx(apart, abs=5e-4)


async def test_a_qemu_that_was_stopped_while_its_guest_worked_makes_the_cell_invalid(tmp_path: Path) -> None:
    """Its clocks agree: what was stopped goes on as if the time had passed in it, too."""
    lab = lab_of(tmp_path, EVENTS)
    lab.hypervisor.stopped = {"t1-quick": 3.0}
    take = lab.take

    def also(event: object) -> None:
        take(event)  # type: ignore[arg-type]
        if isinstance(event, WorkloadStarted):
            lab.hypervisor.stopped = {"t1-quick": 8.0}

    lab.take = also  # type: ignore[method-assign]
    assert await lab.cell().run() is Outcome.INVALID
    assert lab.ended().reasons == ["t1-quick: its QEMU was stopped for 5 s while the workloads ran"]
    assert [m for m in lab.measured() if m.metric == "run_time"], "the figure is kept, and marked"


class Watch:
    """A watch of ten seconds that saw what the test says."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.started = False

    def begin(self, *, links: bool) -> None:
        assert links and not self.started

    def start(self) -> None:
        self.started = True

    def stop(self) -> Seen:
        return self.seen if self.started else Seen()


async def ended_where(seen: Seen, lab: Lab) -> Outcome:
    """The outcome of a cell whose watch saw this."""
    lab.standstills = lambda: Watch(seen)  # type: ignore[assignment,return-value]
    return await lab.cell().run()


async def test_all_that_takes_part_is_named_with_how_long_and_how_it_stood_still(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS)
    lab.hypervisor.processes = {"t1-quick": 11, "t1-slow": 10}
    stood = (
        Standstill(11, "qemu-system-x86", "stopped by a debugger", 2.0),
        Standstill(10, "qemu-system-x86", "frozen by its cgroup", 2.5, "CPU 0/TCG"),
        Standstill(12, "sysbench", "stopped", 3.0),
        Standstill(12, "sysbench", "stopped", 3.0),
        Standstill(13, "sysbench", "stopped", 4.0),
        Standstill(os.getpid(), "", "stopped", 1.5),
    )
    assert await ended_where(Seen(10.0, stood), lab) is Outcome.INVALID
    assert lab.ended().reasons == [
        "t1-quick: its QEMU was stopped by a debugger for 2 s while the workloads ran",
        "t1-slow: its QEMU (thread CPU 0/TCG) was frozen by its cgroup for 2.5 s while the workloads ran",
        "sysbench on the host was stopped for 6 s while the workloads ran",
        "the lab's runner was stopped for 1.5 s while the workloads ran",
    ]


async def test_a_setting_that_something_changed_while_guests_were_prepared_is_not_the_cells(tmp_path: Path) -> None:
    """As ksmtuned(8) does: the cell is recorded with KSM off, and what is watched from its start on is on."""
    lab = lab_of(tmp_path, EVENTS)
    lab.settings = [{"ksm": "off", "swappiness": 60}, {"ksm": "on", "swappiness": 60}]
    assert await ended_where(Seen(10.0), lab) is Outcome.INVALID
    assert lab.ended().reasons == ["host.ksm was changed from off to on before the workloads started"]
    assert lab.of(CellStarted)[0].settings["host"] == {"ksm": "off", "swappiness": 60}


@pytest.mark.parametrize(
    ("seen", "outcome", "reasons", "notices"),
    [
        (
            WatchInside((("postgres", "stopped", 2.5), ("postgres", "stopped", 3.0), ("sshd", "frozen", 0.1))),
            Outcome.INVALID,
            ["t1-slow: postgres was stopped inside its guest for 3 s while the workloads ran"],
            ["t1-slow: sshd was frozen inside its guest for 0.1 s while the workloads ran"],
        ),
        (
            WatchInside((("eth0", "without a carrier", 0.0),)),
            Outcome.INVALID,
            ["t1-slow: eth0 was without a carrier inside its guest while the workloads ran"],
            [],
        ),
        (WatchInside(), Outcome.PASSED, [], []),
        (
            WatchInside(says=""),
            Outcome.PASSED,
            [],
            ["t1-slow: its processes were not watched: the watch inside said ''"],
        ),
        (
            WatchInside(says='{"stopped": [["a", "slept", 1]], "seconds": 1}'),
            Outcome.PASSED,
            [],
            ["t1-slow: its processes were not watched: the watch inside said"],
        ),
        *(
            (
                WatchInside(says=says),
                Outcome.PASSED,
                [],
                ["t1-slow: its processes were not watched: the watch inside said"],
            )
            for says in ('{"stopped": [["a", "stopped", 1, 2]], "seconds": 1}', '"stopped"')
        ),
    ],
    ids=["stopped", "without a carrier", "calm", "gone", "hostile", "longer", "a text"],
)
async def test_a_server_that_stands_still_inside_its_guest_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seen: WatchInside,
    outcome: Outcome,
    reasons: list[str],
    notices: list[str],
) -> None:
    class Inside(LocalGuest):
        async def launch(self, argv: list[str]) -> Channel:
            return seen if is_watch(argv) and self.name == "slow" else await super().launch(argv)

    monkeypatch.setattr("tests.lab.one_cell.LocalGuest", Inside)
    lab = lab_of(tmp_path, EVENTS)
    assert await lab.cell().run() is outcome
    assert lab.ended().reasons == reasons
    told = [notice.text for notice in lab.of(Notice)]
    assert len(told) == len(notices) and all(text in one for one, text in zip(told, notices, strict=True))


async def test_a_short_stop_is_told_and_forgiven(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS)
    assert await ended_where(Seen(10.0, [Standstill(12, "sysbench", "stopped", 0.1)]), lab) is Outcome.PASSED
    told = "cell 1: sysbench on the host was stopped for 0.1 s while the workloads ran"
    assert [one.text for one in lab.of(Notice)] == [told]


@pytest.mark.parametrize(
    ("group", "pids", "asked", "outcome"),
    [
        ("machine/qemu-1-quick/vcpu0", {11}, False, Outcome.INVALID),
        ("machine/qemu-1-quick/vcpu0", {11}, True, Outcome.PASSED),
        ("machine", {11}, True, Outcome.INVALID),
        ("machine", {11, 10}, True, Outcome.INVALID),
    ],
)
async def test_a_quota_that_was_asked_for_holds_back_its_own_guest_and_no_other(
    group: str, pids: set[int], asked: bool, outcome: Outcome, tmp_path: Path
) -> None:
    lab = lab_of(tmp_path, EVENTS)
    if asked:
        wanted = f"events: {EVENTS}}}"
        lab.plan = scenario_plan(
            lambda text: text.replace("200}", "200, cpu_quota: 50}").replace("events: 10}", wanted)
        )
    lab.hypervisor.processes = {"t1-quick": 11, "t1-slow": 10}
    held = Throttled(Path("/sys/fs/cgroup/cpu") / group, frozenset(pids), 4.0)
    assert await ended_where(Seen(10.0, throttled=[held]), lab) is outcome
    if outcome is Outcome.INVALID:
        (reason,) = lab.ended().reasons
        assert reason.startswith(f"a CPU quota on /sys/fs/cgroup/cpu/{group} held back t1-quick: its QEMU"), reason
        assert reason.endswith("for 40.0 % of the time; the limit is 5 %")


@pytest.mark.parametrize(
    ("group", "pid", "outcome"),
    [
        (r"machine.slice/machine-qemu\x2d1\x2dt1\x2dquick.scope/libvirt/vcpu0", -11, Outcome.PASSED),
        (r"machine.slice/machine-qemu\x2d2\x2dt1\x2dslow.scope", -10, Outcome.INVALID),
        ("user.slice", 12, Outcome.INVALID),
    ],
)
async def test_a_quota_of_one_guest_excuses_none_on_other_guests_of_the_host_s_libvirt_or_on_programs(
    group: str, pid: int, outcome: Outcome, tmp_path: Path
) -> None:
    lab = lab_of(tmp_path, EVENTS)
    wanted = f"events: {EVENTS}}}"
    lab.plan = scenario_plan(lambda text: text.replace("200}", "200, cpu_quota: 50}").replace("events: 10}", wanted))
    lab.hypervisor.hosts_processes = {"t1-quick": 11, "t1-slow": 10}
    held = Throttled(Path("/sys/fs/cgroup") / group, frozenset({pid}), 4.0)
    assert await ended_where(Seen(10.0, throttled=[held]), lab) is outcome
    if outcome is Outcome.INVALID:
        who = "t1-slow: its QEMU" if pid < 0 else "the lab's programs"
        assert f"held back {who} for 40.0 % of the time" in lab.ended().reasons[0]


async def test_a_quota_of_a_guest_that_has_left_meanwhile_stays_one_that_was_asked_for(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS)
    wanted = f"events: {EVENTS}}}"
    lab.plan = scenario_plan(lambda text: text.replace("200}", "200, cpu_quota: 50}").replace("events: 10}", wanted))
    lab.hypervisor.processes = {"t1-quick": 11}
    take = lab.take

    def also(event: object) -> None:
        take(event)  # type: ignore[arg-type]
        if isinstance(event, WorkloadStarted):
            lab.hypervisor.processes = {}

    lab.take = also  # type: ignore[method-assign]
    held = Throttled(Path("/sys/fs/cgroup/cpu/machine/qemu-1-quick"), frozenset({11}), 4.0)
    assert await ended_where(Seen(10.0, throttled=[held]), lab) is Outcome.PASSED


async def test_a_stop_of_a_guest_of_the_host_s_libvirt_is_told_once_and_by_its_name(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS)
    lab.hypervisor.hosts_processes = {"t1-quick": 11}
    stood = [Standstill(-11, "qemu-system-x86", "stopped", 2.0)]
    assert await ended_where(Seen(10.0, stood), lab) is Outcome.INVALID
    assert lab.ended().reasons == ["t1-quick: its QEMU was stopped for 2 s while the workloads ran"]


@pytest.mark.parametrize(("asked", "outcome"), [(True, Outcome.FAILED), (False, Outcome.INVALID)])
async def test_a_quota_that_was_asked_for_is_no_excuse_for_a_tool_that_reports_much_less_time(
    asked: bool, outcome: Outcome, tmp_path: Path
) -> None:
    """What was not asked for may have held back the tool around its work; then the cell is invalid by that."""
    lab = lab_of(tmp_path, EVENTS, f"sleep 2.5; cat <<'END'\n{cpu_report()}\nEND")
    lab.hypervisor.waited = 0.0
    if asked:
        lab.plan = scenario_plan(
            lambda text: text.replace("200}", "200, cpu_quota: 50}").replace("events: 10}", f"events: {EVENTS}}}")
        )
    lab.hypervisor.processes = {"t1-quick": 11, "t1-slow": 10}
    held = Throttled(Path("/sys/fs/cgroup/cpu/machine/qemu-1-quick"), frozenset({11}), 8.0)
    assert await ended_where(Seen(10.0, throttled=[held]), lab) is outcome


async def test_a_guest_that_a_quota_held_back_for_a_moment_is_told(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS)
    lab.hypervisor.processes = {"t1-quick": 11}
    held = Throttled(Path("/sys/fs/cgroup/cpu/machine"), frozenset({11}), 0.2)
    assert await ended_where(Seen(10.0, throttled=[held]), lab) is Outcome.PASSED
    assert "held back t1-quick: its QEMU for 2.0 % of the time" in lab.of(Notice)[0].text


async def test_what_was_changed_makes_the_cell_invalid(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS)
    assert await ended_where(Seen(10.0, changed=[Changed("/sys/x", "0", "1", 2.0)]), lab) is Outcome.INVALID
    assert lab.ended().reasons == ["/sys/x was changed from 0 to 1 for 2 s while the workloads ran"]


async def test_a_stop_before_the_workloads_spoils_nothing(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS)
    lab.hypervisor.stopped = {"t1-quick": 30.0}
    assert await lab.cell().run() is Outcome.PASSED


async def test_a_guest_whose_clock_stood_still_makes_the_cell_invalid(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS, f"sleep 1.5; cat <<'END'\n{REPORT}\nEND")
    limits = lab.plan.scenario.limits.model_copy(update={"clock_drift_percent": LIMITS.clock_drift_percent})
    lab.plan = replace(lab.plan, scenario=lab.plan.scenario.model_copy(update={"limits": limits}))
    program = payload_file("start_line.py").decode()
    (tmp_path / "start_line.py").write_text(program.replace("ended - began if", "(ended - began) / 2 if"))
    async with asyncio.timeout(60):
        assert await lab.cell().run() is Outcome.INVALID
    assert [reason.split(" by ")[0] for reason in lab.ended().reasons] == [
        f"tile 1 {name}: its guest's clock and the host's disagree" for name in ("quick", "slow")
    ]
    assert all(reason.endswith("the limit is 5 %") for reason in lab.ended().reasons)


def test_an_attribute_that_a_guest_has_otherwise_than_asked_is_a_fault() -> None:
    right = LeverProof("db", 1, "io", "native", "native", True, "/proc/PID/maps")
    wrong = replace(right, found="threads", agrees=False)
    assert list(lever_faults([right, wrong])) == ["db: io is threads, not native as was asked (/proc/PID/maps)"]
