"""What disks with a limit did while workloads ran: one that did more makes its cell invalid."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.one_cell import Lab, working
from vmlab.hypervisor.protocols import DiskRequests
from vmlab.model.cell_event import LeverProved
from vmlab.model.errors import DeadlineExceeded
from vmlab.model.run import Outcome

LIMITED = ("cpu_shares: 200}", "cpu_shares: 200, limit_iops: 100}")


@pytest.mark.parametrize("more", [5, 10**9])
async def test_a_cell_with_a_disk_that_was_faster_than_its_limit_is_invalid(tmp_path: Path, more: int) -> None:
    def prepared(lab: Lab) -> None:
        lab.hypervisor.requests["t1-quick"] = {"root": DiskRequests(1, 0, 70)}

    async with working(tmp_path, lambda text: text.replace(*LIMITED), prepare=prepared) as (lab, _):
        lab.hypervisor.requests["t1-quick"] = {"root": DiskRequests(2, 0, 70 + more)}
    kept = [one.proof for one in lab.of(LeverProved) if one.proof.found.startswith(f"{more} requests in ")]
    assert [(one.guest, one.lever, one.agrees) for one in kept] == [("quick", "limit_iops", more == 5)]
    assert _of_limits(lab) == (more != 5)


async def test_counters_that_cannot_be_read_cost_the_proof_alone(tmp_path: Path) -> None:
    async with working(tmp_path, lambda text: text.replace(*LIMITED)) as (lab, _):
        lab.hypervisor.requests_fault = DeadlineExceeded("QEMU has not answered for 5 s")
    assert lab.ended().outcome == Outcome.PASSED
    assert not [one for one in lab.of(LeverProved) if "requests in" in one.proof.found]


def _of_limits(lab: Lab) -> bool:
    """Whether the cell is invalid for a limit."""
    ended = lab.ended()
    return ended.outcome == Outcome.INVALID and any("limit_iops is" in reason for reason in ended.reasons)
