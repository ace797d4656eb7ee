"""Guests on the host in a cell: opened in order, staged and cold as guests are, closed after any end."""

import re
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.local_guest import LocalGuest
from tests.lab.one_cell import REPORT, Lab, scenario_plan
from vmlab.lab.cell import caches
from vmlab.lab.provision.host_side import BareGuest
from vmlab.lab.run.parts import cpu_words
from vmlab.model.errors import HypervisorError
from vmlab.model.event import Notice
from vmlab.model.run import Outcome
from vmlab.plan.terms import GuestPlan, Plan

DOUBLE = ((0, 2), (1, 3))


class BareLab(Lab):
    """A lab whose guests on the host are folders."""

    def __init__(self, folder: Path, script: str, plan: Plan) -> None:
        super().__init__(folder, script, plan)
        self.opened: list[tuple[str, tuple[int, int], list[int]]] = []
        self.closed: list[str] = []
        self.broken = ""

    @asynccontextmanager
    async def bare_guest(
        self, guest: GuestPlan, position: tuple[int, int], taken: Collection[int], deadline: float
    ) -> AsyncIterator[BareGuest]:
        self.opened.append((guest.key, position, [*taken]))
        if guest.key == self.broken:
            raise HypervisorError("no place")
        files = self.folder / guest.key
        files.mkdir()
        (files / "table").write_text("rows")
        try:
            yield BareGuest(LocalGuest("host", "10.0.0.1", self.folder), files, (len(self.opened),), "CPU 1, 1 core")
        finally:
            self.closed.append(guest.key)


def on_host(captured: int) -> Plan:
    """The scenario of these tests with all guests on the host."""
    changed = scenario_plan(
        lambda text: re.sub("cpu_shares: .*}", "on: host}", text.replace("events: 10}", f"events: {captured}}}"))
    )
    assert changed.cells[0].guests == () and len(changed.cells[0].bare) == 2
    return changed


def lab(folder: Path, captured: int) -> BareLab:
    return BareLab(folder, f"cat <<'END'\n{REPORT}\nEND", on_host(captured))


async def test_they_are_measured_cold_and_closed_without_any_virtual_machine(
    tmp_path: Path, captured_events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold: list[Path] = []
    monkeypatch.setattr(caches, "_empty", cold.append)
    made = lab(tmp_path, captured_events)
    assert await made.cell().run() is Outcome.PASSED
    keys = [guest.key for guest in made.plan.cells[0].bare]
    assert made.opened == [(keys[0], (1, 0), []), (keys[1], (1, 1), [1])]
    assert made.closed == keys[::-1]
    assert {tmp_path / key / "table" for key in keys} <= {*cold}
    assert {one.guest for one in made.measured()} == {"host"}
    assert f"cell 1: {keys[0]} on the host has CPU 1, 1 core" in [one.text for one in made.of(Notice)]
    assert made.ended().provision.guests == 0


async def test_one_that_cannot_be_made_fails_the_cell_and_the_others_are_closed(
    tmp_path: Path, captured_events: int
) -> None:
    made = lab(tmp_path, captured_events)
    first, made.broken = (guest.key for guest in made.plan.cells[0].bare)
    assert await made.cell().run() is Outcome.FAILED
    assert made.ended().reasons == ["no place"]
    assert made.closed == [first]


def test_the_words_name_cores_and_whose_the_other_threads_are() -> None:
    assert cpu_words([0, 1], DOUBLE) == "CPUs 0,1, 2 cores, whose other threads, 2,3, have no guest"
    assert cpu_words([1, 3], DOUBLE) == "CPUs 1,3, 1 core, both hardware threads of each"
    assert (
        cpu_words([1], ((0,), (1,)), [1])
        == "CPU 1, 1 core, one hardware thread each, 1 shared with another guest on the host"
    )
