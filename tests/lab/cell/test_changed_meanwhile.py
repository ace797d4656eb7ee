"""What was changed of guests while the workloads ran makes a cell invalid, whether the scenario asks for it or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.one_cell import Lab, working
from vmlab.model.cell_event import LeverProved
from vmlab.model.run import Outcome

LIMITED = ("cpu_shares: 200}", "cpu_shares: 200, limit_iops: 100}")
LIMIT = "devices/disk[1]/iotune/total_iops_sec"


@pytest.mark.parametrize("became", ["100", "500"])
async def test_a_setting_is_proved_again_after_the_workloads(tmp_path: Path, became: str) -> None:
    def prepared(lab: Lab) -> None:
        lab.hypervisor.shown = {"limit_iops": "100"}

    def asked(text: str) -> str:
        return text.replace(*LIMITED).replace("cpu_shares: 100}", "cpu_shares: 100, limit_iops: 100}")

    async with working(tmp_path, asked, prepare=prepared) as (lab, _):
        lab.hypervisor.shown = {"limit_iops": became}
    others = [one.proof for one in lab.of(LeverProved) if one.proof.by.endswith(", after the workloads")]
    assert {one.guest for one in others} == ({"quick", "slow"} if became == "500" else set())
    assert (lab.ended().outcome is Outcome.INVALID) == (became != "100")


async def test_a_setting_that_was_wrong_from_the_start_is_told_once(tmp_path: Path) -> None:
    def prepared(lab: Lab) -> None:
        lab.hypervisor.shown = {"limit_iops": "500"}

    async with working(tmp_path, lambda text: text.replace(*LIMITED), prepare=prepared) as (lab, _):
        pass
    assert len([one for one in lab.ended().reasons if one.startswith("quick: limit_iops is 500")]) == 1


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({}, {LIMIT: "500"}, f"t1-quick: {LIMIT} was changed from none to 500 while the workloads ran"),
        (
            {"currentMemory": "131072", LIMIT: "9"},
            {"currentMemory": "65536"},
            "t1-quick: currentMemory was changed from 131072 to 65536, and 1 more while the workloads ran",
        ),
        ({LIMIT: "9"}, {LIMIT: "9"}, None),
    ],
)
async def test_what_libvirt_gives_a_guest_is_compared(
    tmp_path: Path, before: dict[str, str], after: dict[str, str], told: str | None
) -> None:
    def prepared(lab: Lab) -> None:
        lab.hypervisor.given = [{"t1-quick": before}, {"t1-quick": after}]

    async with working(tmp_path, prepare=prepared) as (lab, _):
        pass
    assert list(lab.ended().reasons) == ([] if told is None else [told])


async def test_what_was_put_back_meanwhile_is_found_as_well(tmp_path: Path) -> None:
    def prepared(lab: Lab) -> None:
        early = ["cputune.cpu_shares 100"]
        lab.hypervisor.changes = [{"t1-slow": early}, {"t1-slow": [*early, "blkdeviotune.disk vda", "another"]}]

    async with working(tmp_path, prepare=prepared) as (lab, _):
        pass
    (told,) = lab.ended().reasons
    assert told == "t1-slow: somebody had libvirt change blkdeviotune.disk vda, and 1 more while the workloads ran"
