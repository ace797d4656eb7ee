"""A limit of a real guest's disk that is lifted behind the lab's back, once it was proved: the disk itself shows it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import VMLAB, Home

pytestmark = [pytest.mark.guests, pytest.mark.xdist_group("runs"), pytest.mark.timeout(600)]

SCENARIO = """
name: limits
guests: {vm: {memory: 256 MiB, data: 256 MiB, data_limit_iops: 100}}
workloads: {blocks: {kind: fio, on: vm, rw: randread, block: 4 KiB, size: 16 MiB, time: 5 s, depth: 4, direct: true}}
limits: {clock_drift_percent: 100, start_skew: 5 s}
allow: {noise: true}
"""
LIFTING = """
import sys
if "vmlab.lab.run.runner" in sys.orig_argv:
    from vmlab.hypervisor.disks import running_disks
    read, free = running_disks.read_requests, dict.fromkeys(
        ("bps", "bps_rd", "bps_wr", "iops", "iops_rd", "iops_wr"), 0
    )
    def lifting(monitor):
        found = read(monitor)
        for one in monitor("query-block"):
            if one.get("inserted", {}).get("iops"):
                monitor("block_set_io_throttle", {"id": one["qdev"], **free})
        return found
    running_disks.read_requests = lifting
"""
"""For a runner that has read what a disk did: the limit of every disk that has one is taken away."""


@pytest.mark.parametrize("lifted", [False, True])
def test_a_disk_that_did_more_than_its_limit_makes_the_cell_invalid(home: Home, tmp_path: Path, lifted: bool) -> None:
    scenario = tmp_path / "limits.yaml"
    scenario.write_text(SCENARIO)
    (tmp_path / "sitecustomize.py").write_text(LIFTING)
    environment = {**home.environment, **({"PYTHONPATH": str(tmp_path)} if lifted else {})}
    argv = [*VMLAB, "run", str(scenario), "--concurrent"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=500)
    (cell,) = home.show()["cells"]
    by_setting, *again, by_effect = [one for one in cell["lever_proof"] if one["lever"] == "data_limit_iops"]
    assert (by_setting["found"], by_setting["agrees"]) == ("100/s", True)
    assert [(one["agrees"], one["by"]) for one in again] == (
        [(False, "query-block, after the workloads")] if lifted else []
    )
    assert by_effect["agrees"] is not lifted
    assert (done.returncode, cell["outcome"]) == ((4, "invalid") if lifted else (0, "passed")), done.stderr
    if lifted:
        assert any(reason.startswith("vm: data_limit_iops is ") for reason in cell["reasons"])
    assert home.leftovers() == []
