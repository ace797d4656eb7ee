"""Rules that make a measured cell invalid, at their limits; and a guest that was paused, by a cell's own outcome."""

import asyncio
import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cell.test_lost_guest import EVENTS
from tests.lab.one_cell import REPORT, lab_of
from vmlab.guests.held_client import HostSpan, start_line_program
from vmlab.lab.cell.common_start import StartSkew
from vmlab.lab.cell.validity import Stood, broken_rules
from vmlab.lab.cell.workload_instance import disagreement
from vmlab.model.event import MeasurementTaken, WorkloadStarted
from vmlab.model.results import CacheProof
from vmlab.model.run import Outcome
from vmlab.model.scenarios.scenario import Limits
from vmlab.telemetry.standstill import Standstill

LIMITS = Limits()


def broken(skew: float = 0.0, *stood: Stood) -> list[str]:
    return list(broken_rules(LIMITS, [], [], StartSkew(skew, 0.001), stood))


def test_at_its_limit_a_rule_holds_and_above_it_is_broken() -> None:
    assert broken(LIMITS.start_skew) == []
    assert len(broken(math.nextafter(LIMITS.start_skew, 9))) == 1


def test_no_standstill_is_forgiven_and_the_guest_is_named() -> None:
    (reason,) = broken(0.0, Stood("database: its QEMU", "stopped", 5.0123))
    assert reason == "database: its QEMU was stopped for 5.01 s while the workloads ran"
    assert len(broken(0.0, Stood("web: its QEMU", "stopped", 1e-3))) == 1


def test_a_late_start_says_in_milliseconds_how_late_and_what_the_limit_is() -> None:
    limits = LIMITS.model_copy(update={"start_skew": 0.25})
    reasons = list(broken_rules(limits, [], [], StartSkew(1.5, 0.001), []))
    assert reasons == ["clients started 1500 ms apart; the limit is 250 ms"]
    assert list(broken_rules(limits, [], [], None, [])) == []


def test_each_file_whose_cache_mode_is_not_in_force_is_named_with_what_qemu_has() -> None:
    right = CacheProof("web", "/a.raw", True, True, True, False, "none: o_direct=yes", agrees=True)
    proofs = [right, replace(right, file="/b.raw", o_direct=False, agrees=False), right]
    reasons = list(broken_rules(LIMITS, [], proofs, None, []))
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
    (reason,) = broken_rules(LIMITS, clients, [], None, [])
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
    assert [m for m in lab.of(MeasurementTaken) if m.metric == "run_time"], "the figure is kept, and marked"


class Seen:
    """A watch that saw what the test says."""

    def __init__(self, *found: Standstill) -> None:
        self.found = found
        self.started = False

    def start(self) -> None:
        self.started = True

    def stop(self) -> list[Standstill]:
        return [*self.found] if self.started else []


async def test_all_that_takes_part_is_named_with_how_long_and_how_it_stood_still(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS)
    lab.hypervisor.processes = {"t1-quick": 11}
    lab.standstills = lambda: Seen(  # type: ignore[assignment,return-value]
        Standstill(11, "qemu-system-x86", "stopped by a debugger", 2.0),
        Standstill(12, "sysbench", "stopped", 3.0),
        Standstill(12, "sysbench", "stopped", 3.0),
        Standstill(13, "sysbench", "stopped", 4.0),
        Standstill(os.getpid(), "", "stopped", 1.5),
    )
    assert await lab.cell().run() is Outcome.INVALID
    assert lab.ended().reasons == [
        "t1-quick: its QEMU was stopped by a debugger for 2 s while the workloads ran",
        "sysbench on the host was stopped for 6 s while the workloads ran",
        "the lab's runner was stopped for 1.5 s while the workloads ran",
    ]


async def test_a_stop_before_the_workloads_spoils_nothing(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS)
    lab.hypervisor.stopped = {"t1-quick": 30.0}
    assert await lab.cell().run() is Outcome.PASSED


async def test_a_guest_whose_clock_stood_still_makes_the_cell_invalid(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, EVENTS, f"sleep 1.5; cat <<'END'\n{REPORT}\nEND")
    limits = lab.plan.scenario.limits.model_copy(update={"clock_drift_percent": LIMITS.clock_drift_percent})
    lab.plan = replace(lab.plan, scenario=lab.plan.scenario.model_copy(update={"limits": limits}))
    program = start_line_program().decode()
    (tmp_path / "start_line.py").write_text(program.replace("ended - began if", "(ended - began) / 2 if"))
    async with asyncio.timeout(60):
        assert await lab.cell().run() is Outcome.INVALID
    assert [reason.split(" by ")[0] for reason in lab.ended().reasons] == [
        f"tile 1 {name}: its guest's clock and the host's disagree" for name in ("quick", "slow")
    ]
    assert all(reason.endswith("the limit is 5 %") for reason in lab.ended().reasons)
