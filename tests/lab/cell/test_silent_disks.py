"""A guest's disk that answers nothing while requests are under way is reported, and ends its cell as failed.

The rule: only requests under way count, whoever knows of them, QEMU or the guest; one answer to anything ends a
silence; and a flush, which may take long, ends no cell. The hypervisor is in memory; `tests/faults` does it for real.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.hypervisor import obliging_agent
from tests.lab.one_cell import Lab, working
from tests.waiting import until
from vmlab.hypervisor.protocols import DiskRequests
from vmlab.lab.cell.cell_losses import Silence
from vmlab.lab.provision.timing import USUAL
from vmlab.model.cell_event import DiskSilent
from vmlab.model.errors import HypervisorError
from vmlab.model.event import Notice
from vmlab.model.run import Outcome

GUEST = "t1-slow"
NEVER = 3600.0
Looks = list[tuple[int, int | None, int | None]]
"""What QEMU has answered and taken, and what the guest has under way, at one look after the other, each 10 s later."""


@pytest.mark.parametrize(
    ("looks", "seconds", "transfers"),
    [
        pytest.param([(7, 0, 0)] * 5, 0, False, id="idle, for however long"),
        pytest.param([(7, 4, 4)] * 5, 40, True, id="QEMU answers nothing"),
        pytest.param([(7, 0, 4)] * 5, 40, True, id="the guest did not hear of the answers"),
        pytest.param([(7, None, 4)] * 5, 40, True, id="an older QEMU, and a guest that waits"),
        pytest.param([(7, 4, None)] * 5, 40, True, id="a guest that does not say what it waits for"),
        pytest.param([(7, 1, 0)] * 5, 40, False, id="a flush alone"),
        pytest.param([(7, None, None)] * 5, 0, False, id="nobody knows"),
        pytest.param([(7 + n, 4, 4) for n in range(5)], 0, True, id="slow, one answer at each look"),
        pytest.param([(7, 4, 4)] * 4 + [(8, 4, 4)], 0, True, id="one answer ends it"),
        pytest.param([(7, 0, 0)] * 3 + [(7, 1, 1)] * 2, 10, True, id="idle before: counted from the request on"),
        pytest.param([(7, 4, 4), (7, 0, 0), (7, 4, 4), (7, 4, 4)], 10, True, id="nothing under way in between"),
        pytest.param([(7, 4, 4), (7, None, None), (7, 4, 4)], 20, True, id="not known in between"),
        pytest.param([(7, 4, 4), (3, 4, 4), (3, 4, 4)], 0, True, id="another QEMU"),
    ],
)
def test_how_long_a_disk_has_been_silent(looks: Looks, seconds: float, transfers: bool) -> None:
    disk = Silence(7)
    for place, (answered, taken, in_guest) in enumerate(looks):
        disk.look(10.0 * place, DiskRequests(answered, taken), in_guest)
    assert disk.seconds(10.0 * (len(looks) - 1)) == seconds
    if seconds:
        assert disk.transfers is transfers


@asynccontextmanager
async def watched(
    folder: Path, answered: int, taken: int | None, in_guest: int | None, *, lost: float = NEVER, silent: float = 0.05
) -> AsyncIterator[Lab]:
    """A cell whose workloads have begun, with a guest whose disk is so at every look from then on."""

    def agent(name: str, command: str, arguments: dict[str, Any]) -> Any:
        if command != "guest-get-diskstats":
            return obliging_agent(name, command, arguments)
        if in_guest is None:
            raise HypervisorError("The command guest-get-diskstats has not been found")
        stats = {"read-ios": 1, "ios-pgr": in_guest if name == GUEST else 0}
        return [{"name": "vda", "major": 254, "minor": 0, "stats": stats}, {"name": "loop0", "stats": {}}]

    def prepared(lab: Lab) -> None:
        lab.hypervisor.agent_answer = agent
        lab.timing = replace(USUAL, disk_look=0.01, silent_disk=silent, lost_disk=lost)

    async with working(folder, prepare=prepared) as (lab, _):
        lab.hypervisor.requests[GUEST] = {"root": DiskRequests(answered, taken)}
        yield lab


def timeless(text: str) -> str:
    return re.sub(r"\d+ s\b", "N s", text)


def told(lab: Lab) -> list[str]:
    return [timeless(notice.text) for notice in lab.of(Notice) if "disk" in notice.text]


async def test_it_is_reported_once_with_guest_disk_and_time(tmp_path: Path) -> None:
    async with watched(tmp_path, 7, 4, 4) as lab:
        await until(lambda: lab.of(DiskSilent), "the report")
        asked = lab.hypervisor.calls.count("disk_requests")
        await until(lambda: lab.hypervisor.calls.count("disk_requests") > asked + 10, "ten looks more")
        (silent,) = lab.of(DiskSilent)
        assert (silent.cell, silent.tile, silent.guest, silent.disk, silent.requests) == (1, 1, "slow", "root", 4)
        assert silent.seconds >= 0.05
        (text,) = told(lab)
        assert text == "cell 1: t1-slow: its root disk has answered nothing for N s, and 4 requests are under way"
    assert lab.ended().outcome == Outcome.PASSED


async def test_that_it_answers_again_is_reported(tmp_path: Path) -> None:
    async with watched(tmp_path, 7, 4, 4) as lab:
        await until(lambda: lab.of(DiskSilent), "the report")
        lab.hypervisor.requests[GUEST] = {"root": DiskRequests(8, 4)}
        await until(lambda: len(lab.of(DiskSilent)) >= 2, "the second report")
        silent, again = lab.of(DiskSilent)[:2]
        assert again.requests == 0 and again.seconds >= silent.seconds
        assert told(lab)[1] == "cell 1: t1-slow: its root disk answers again, after N s"
    assert lab.ended().outcome == Outcome.PASSED


@pytest.mark.parametrize(
    ("taken", "in_guest", "words"),
    [
        (4, 4, "4 requests are under way"),
        (0, 1, "a request is under way, which QEMU has answered and the guest has not heard of"),
        (2, None, "2 requests are under way"),
    ],
)
async def test_reads_and_writes_that_wait_too_long_end_the_cell_as_failed(
    taken: int, in_guest: int | None, words: str, tmp_path: Path
) -> None:
    async with watched(tmp_path, 7, taken, in_guest, lost=0.2) as lab:
        await until(lambda: "destroy" in lab.hypervisor.calls, "the end of the guests")
    assert lab.ended().outcome == Outcome.FAILED
    (reason,) = lab.ended().reasons
    assert timeless(reason) == f"t1-slow: its root disk has answered nothing for N s, and {words}"


async def test_a_flush_alone_is_reported_and_ends_nothing(tmp_path: Path) -> None:
    async with watched(tmp_path, 7, 1, 0, lost=0.06) as lab:
        await until(lambda: lab.of(DiskSilent), "the report")
        asked = lab.hypervisor.calls.count("disk_requests")
        await until(lambda: lab.hypervisor.calls.count("disk_requests") > asked + 20, "twenty looks more")
    assert lab.ended().outcome == Outcome.PASSED


@pytest.mark.parametrize("disk", [(7, 0, 0), (7, None, None)])
async def test_nothing_is_said_of_a_disk_without_requests(
    disk: tuple[int, int | None, int | None], tmp_path: Path
) -> None:
    async with watched(tmp_path, *disk, lost=0.01, silent=0.0) as lab:
        await until(lambda: lab.hypervisor.calls.count("disk_requests") > 20, "twenty looks")
    assert not lab.of(DiskSilent) and not told(lab)
    assert lab.ended().outcome == Outcome.PASSED


async def test_a_cell_that_fails_for_another_cause_names_the_disk_too(tmp_path: Path) -> None:
    async with watched(tmp_path, 7, 1, 0) as lab:
        await until(lambda: lab.of(DiskSilent), "the report")
        lab.hypervisor.lose("t1-quick")
        await until(lambda: "destroy" in lab.hypervisor.calls, "the end of the guests")
    assert lab.ended().outcome == Outcome.FAILED
    cause, disk = lab.ended().reasons
    assert "t1-quick: its QEMU died" in cause and disk.startswith("t1-slow: its root disk has answered nothing for ")


@pytest.mark.parametrize("word", [-1, 10**30, "many", None, [], 4.5])
async def test_what_a_hostile_guest_says_is_bounded(word: Any, tmp_path: Path) -> None:
    async with watched(tmp_path, 7, 0, word) as lab:
        await until(lambda: lab.hypervisor.calls.count("disk_requests") > 20, "twenty looks")
    assert all(0 <= one.requests <= 2**16 for one in lab.of(DiskSilent))
    assert lab.ended().outcome == Outcome.PASSED
