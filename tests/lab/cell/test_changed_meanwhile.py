"""What was changed of guests while the workloads ran makes a cell invalid, whether the scenario asks for it or not."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.lab.one_cell import Lab, working
from vmlab.lab.cell.undisturbed import given_else
from vmlab.model.cell_event import LeverProved
from vmlab.model.event import Notice
from vmlab.model.run import Outcome
from vmlab.telemetry.standstill import Seen, StandstillWatch

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


@pytest.mark.parametrize("late", [False, True])
async def test_a_guest_that_libvirt_does_not_describe_is_told(tmp_path: Path, late: bool) -> None:
    def prepared(lab: Lab) -> None:
        lab.hypervisor.changes = [{}, {"t1-slow": ["65536 KiB of memory"]}]
        if not late:
            lab.hypervisor.undescribed = {"t1-slow"}

    async with working(tmp_path, prepare=prepared) as (lab, _):
        lab.hypervisor.undescribed = {"t1-slow"}
    assert [one.text for one in lab.of(Notice)] == ["cell 1: t1-slow: what libvirt gives it could not be compared"]
    assert list(lab.ended().reasons) == [
        "t1-slow: libvirt reported a change (65536 KiB of memory) while the workloads ran"
    ]


def test_of_a_guest_that_has_left_nothing_is_told() -> None:
    assert list(given_else({"t2-web": {LIMIT: "9"}}, {}, {"t2-web": []}, {})) == []


def test_of_several_changes_the_first_of_libvirt_s_description_is_told() -> None:
    (found,) = given_else({"web": {"source": "a"}}, {"web": {"source": "b", "backing": "a"}}, {}, {"web": []})
    assert found.text == "web: source was changed from a to b, and 1 more while the workloads ran"


async def test_what_was_put_back_meanwhile_is_found_as_well(tmp_path: Path) -> None:
    def prepared(lab: Lab) -> None:
        early = ["cputune.cpu_shares 100"]
        lab.hypervisor.changes = [{"t1-slow": early}, {"t1-slow": [*early, "blkdeviotune.disk vda", "another"]}]

    async with working(tmp_path, prepare=prepared) as (lab, _):
        pass
    (told,) = lab.ended().reasons
    assert told == "t1-slow: libvirt reported a change (blkdeviotune.disk vda), and 1 more while the workloads ran"


async def test_a_guest_that_is_added_again_is_not_compared_with_the_one_that_has_left(tmp_path: Path) -> None:
    def prepared(lab: Lab) -> None:
        lab.hypervisor.given = [{"t1-slow": {LIMIT: "9"}}, {"t1-slow": {}}]

    async with working(tmp_path, prepare=prepared) as (lab, cell):
        cell._execution.undisturbed.leave(["t1-slow"])
    assert lab.ended().outcome is Outcome.PASSED


async def test_the_cache_mode_is_proved_again_as_well(tmp_path: Path) -> None:
    async with working(tmp_path) as (lab, _):
        lab.hypervisor.lying = frozenset({"quick"})
    (told,) = lab.ended().reasons
    assert told.startswith("quick: cache=") and told.endswith(", after the workloads")


class Failing(StandstillWatch):
    """A watch with a fault of its own."""

    def stop(self) -> Seen:
        super().stop()
        raise ValueError("no number")


async def test_a_watch_that_fails_ends_the_cell_with_its_error(tmp_path: Path) -> None:
    def prepared(lab: Lab) -> None:
        lab.standstills = partial(Failing, inside=False)

    async with working(tmp_path, prepare=prepared) as (lab, _):
        pass
    assert lab.ended().outcome is Outcome.FAILED
    assert list(lab.ended().reasons) == ["the watch of what stands still failed: no number"]
