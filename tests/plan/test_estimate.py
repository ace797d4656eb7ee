"""How long a cell is expected to take: what shares the cores, what waits, and what was staged before."""

from dataclasses import replace

import pytest

from tests.plan.test_planning import HOST
from vmlab.plan.estimate import cell_seconds, freezing_seconds
from vmlab.plan.planning import Overrides, make_plan
from vmlab.plan.scenario_file.loading import load
from vmlab.workloads.workload_steps import Footprint

PACED = Footprint(disk_bytes=0, seconds=60, idle_seconds=50, staging_seconds=100)


def test_waiting_takes_no_cores_from_others() -> None:
    one, nine = (cell_seconds(0, [PACED] * count, HOST, cold=False) for count in (1, 9))
    assert nine - one < 30
    working = replace(PACED, idle_seconds=0)
    assert cell_seconds(0, [working] * 9, HOST, cold=False) - one > 300


def test_only_guests_that_boot_wait_for_their_staging() -> None:
    restored, cold = (cell_seconds(0, [PACED], HOST, cold=cold) for cold in (False, True))
    assert cold - restored == 100


def test_what_is_staged_makes_freezing_longer() -> None:
    plans = (make_plan(load("consolidation"), Overrides(size=size), HOST) for size in ("smoke", "demo"))
    few, many = (freezing_seconds(plan.cells[0].workloads, "tcg") for plan in plans)
    assert many - few == pytest.approx(4 * (200_000 - 5_000) * 1.5e-4)
