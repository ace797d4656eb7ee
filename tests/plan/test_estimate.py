"""How long a cell is expected to take: what shares the cores, what waits, and what was staged before."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.plan.test_planning import HOST
from vmlab.plan.estimate import cell_seconds, freezing_seconds
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import load, read
from vmlab.plan.terms import Overrides
from vmlab.workloads.workload_steps import Footprint

PACED = Footprint(disk_bytes=0, seconds=60, idle_seconds=50, staging_seconds=100)


def test_waiting_takes_no_cores_from_others() -> None:
    one, nine = (cell_seconds([], [PACED] * count, HOST, cold=False) for count in (1, 9))
    assert nine - one < 30
    working = replace(PACED, idle_seconds=0)
    assert cell_seconds([], [working] * 9, HOST, cold=False) - one > 300


def test_only_guests_that_boot_wait_for_their_staging() -> None:
    restored, cold = (cell_seconds([], [PACED], HOST, cold=cold) for cold in (False, True))
    assert cold - restored == 100


def test_what_is_staged_makes_freezing_longer() -> None:
    plans = (make_plan(load("consolidation"), Overrides(size=size), HOST) for size in ("smoke", "demo"))
    few, many = (freezing_seconds(plan.cells[0].workloads, "tcg") for plan in plans)
    assert many - few == pytest.approx(4 * (200_000 - 5_000) * 1.5e-4)


def test_a_data_disk_that_is_written_beforehand_takes_its_time() -> None:
    text = """\
name: written
guests: {vm: {memory: 512 MiB, data: 40 GiB, data_format: qcow2, data_preallocation: %s}}
workloads: {blocks: {kind: fio, on: vm, rw: randwrite, size: 64 MiB}}
"""
    reserved, written = (
        make_plan(read(Path("written.yaml"), text % how), Overrides(), HOST).cells[0].seconds
        for how in ("falloc", "full")
    )
    assert written - reserved == pytest.approx(40 * 2**30 / (200 * 2**20))
