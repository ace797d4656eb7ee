"""What is placed together, what is known of it, and how far clocks are apart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from tests.fleet.local_hosts import FACTS, SCENARIO
from tests.waiting import until
from vmlab.analysis.record.fleet_hosts import common_facts, decisive, differences
from vmlab.fleet.clock import RoundTrip, offset_of
from vmlab.fleet.engine import Engine
from vmlab.fleet.host_answers import EventRow, RawOfCell, Rows
from vmlab.fleet.placed_units import CellBook, units_of
from vmlab.fleet.taking import Taking
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    NeighboursCounted,
)
from vmlab.model.event import CellWithdrawn
from vmlab.model.event_json import to_json
from vmlab.model.results import NeighbourUse
from vmlab.model.run import Outcome
from vmlab.model.sample import SampleNames
from vmlab.plan.planning import make_plan
from vmlab.plan.scenario_file.loading import read
from vmlab.plan.terms import Overrides, Plan
from vmlab.store.reader import RunReader, SampleRow
from vmlab.store.samples import samples
from vmlab.store.writer import FleetWriter, TakenEvent


def _plan(**said: object) -> Plan:
    return make_plan(read(Path("probe.yaml"), SCENARIO), Overrides(**said), FACTS)  # type: ignore[arg-type]


def test_cells_belong_to_the_host_of_their_axis() -> None:
    """One unit a cell."""
    units = units_of(_plan(hosts=("hv1", "hv2")).cells, spread=False)
    assert [unit.host for unit in units] == [unit.cells[0].axes["host"] for unit in units]
    assert sorted(str(unit.host) for unit in units) == ["hv1", "hv1", "hv2", "hv2"]


def test_blocks_are_repeats_and_belong_to_nobody() -> None:
    """One unit a repeat, with all of its cells."""
    units = units_of(_plan(repeats=3).cells, spread=True)
    assert [(unit.host, {cell.repeat for cell in unit.cells}, len(unit.cells)) for unit in units] == [
        (None, {1}, 2),
        (None, {2}, 2),
        (None, {3}, 2),
    ]


def test_a_cell_is_begun_twice_at_most() -> None:
    """And what another host has ended of a block is known."""
    (unit,) = units_of(_plan().cells, spread=True)
    book = CellBook()
    book.place(1, "hv1")
    assert book.may_begin(1)
    book.end(1, "hv1", Outcome.PASSED)
    assert book.apart(unit, "hv1") == []
    assert book.apart(unit, "hv2") == [1]
    book.withdraw(1)
    book.place(1, "hv2")
    assert not book.may_begin(1)


def test_the_shortest_round_trip_decides() -> None:
    """A host 5 s ahead whose answers came from 1 to 20 ms late; the bound holds the truth."""
    rounds = [
        RoundTrip((100 + at, at), (105 + at + late, 7 + at + late), (100 + at + 2 * late, at + 2 * late))
        for at, late in ((0.0, 0.02), (1.0, 0.001), (2.0, 0.005))
    ]
    found = offset_of(rounds)
    assert found.ahead_ms == pytest.approx(5000)
    assert found.mono == pytest.approx(-7)
    assert found.uncertainty_ms == pytest.approx(1)


def test_hosts_are_alike_by_what_figures_depend_on() -> None:
    """Load and names differ always, a kernel does matter."""
    one = {"cpu": "A", "kernel": "6.1", "hostname": "a", "load_before": [1], "memory_bytes": 2**30}
    two = {"cpu": "A", "kernel": "6.12", "hostname": "b", "load_before": [2], "memory_bytes": 2**30 - 4096}
    found = differences({"hv1": decisive("kvm", one), "hv2": decisive("kvm", two)})
    assert found == ["kernel: hv1 6.1, hv2 6.12"]
    built = {"hello": "2.10-3", "redis": "7.0"}, {"hello": "2.10-4", "redis": "7.0"}
    layers = {f"hv{at}": decisive("kvm", {**one, "packages": packages}) for at, packages in enumerate(built, start=1)}
    assert differences(layers) == ["package hello: hv1 2.10-3, hv2 2.10-4"]
    assert common_facts([one, two]) == {"cpu": "A", "hostname": "a, b"}


def test_rows_of_a_host_are_kept_once_and_read_by_host(tmp_path: Path) -> None:
    """Also where they come again after a cut; times are moved to the controller's clocks."""
    path = tmp_path / "run.sqlite"
    writer = FleetWriter(path)
    layout = SampleNames(("tick_length_seconds", "tick_lateness_seconds"), ("s", "s"))
    known = writer.sample_layout(layout.names, layout.units)
    for host, shift in (("hv1", 10.0), ("hv2", -10.0)):
        source = writer.add_source(host, "its-run", shift, shift)
        event = CellStarted(cell=1, axes={}, repeat=1, guests=0, wall=1000.0, mono=50.0)
        assert len(writer.take_events(source, [TakenEvent(3, event)], 4)) == 1
        assert writer.take_events(source, [TakenEvent(3, event)], 4) == []
        for _ in range(2):
            writer.take_samples(source, [SampleRow(7, 1, 1000.0, 50.0, bytes(8))], {1: known})
    assert [(one.host, one.seen, one.sample) for one in writer.sources()] == [("hv1", 4, 7), ("hv2", 4, 7)]
    writer.append(CellEnded(cell=1, outcome="passed", reasons=[], wall_seconds=1.0, start_skew_ms=0.0))
    writer.withdraw(CellWithdrawn(cell=1, name="hv1", reason="a test"))
    writer.close()
    with RunReader(path) as reader:
        assert reader.hosts() == ("hv1", "hv2")
        assert len(list(reader.events())) == 4
        assert list(samples(reader)) == []
        for host, moved in (("hv1", 60.0), ("hv2", 40.0)):
            with reader.of_host(host) as view:
                assert next(event.mono for _, event in view.events()) == moved
                assert len(list(view.events())) == 3
                assert [one.mono for _, one in samples(view)] == [moved]


async def test_the_engine_opens_no_port_and_places_anew() -> None:
    """A unit whose host closes is measured on the next one that opens; one that only a host may run waits for it."""
    begun: list[tuple[int, str]] = []
    hold = asyncio.Event()

    async def measure(unit: int, host: str) -> None:
        begun.append((unit, host))
        if host == "hv1" and not hold.is_set():
            await hold.wait()

    async with Engine(measure) as engine:
        listening = {one.laddr for one in psutil.Process().net_connections() if one.status == psutil.CONN_LISTEN}
        assert not listening
        await engine.open_host("hv1")
        anywhere, there = engine.submit(1, None), engine.submit(2, "hv1")
        await until(lambda: begun, "a unit is begun")
        await engine.close_host("hv1")
        await engine.open_host("hv2")
        await asyncio.wait_for(anywhere, 60)
        assert not there.done()
        hold.set()
        await engine.open_host("hv1")
        await asyncio.wait_for(there, 60)
    assert (1, "hv2") in begun
    assert {host for unit, host in begun if unit == 2} == {"hv1"}


async def test_guests_beside_a_cell_are_taken_from_its_host(tmp_path: Path) -> None:
    writer = FleetWriter(tmp_path / "run.sqlite")

    async def raw(_cell: int) -> RawOfCell:
        raise AssertionError("no cell ends here")

    taking = Taking(writer, writer.add_source("hv1", "its-run", 0.0, 0.0), lambda _cell: True, raw)
    event = NeighboursCounted(cell=1, neighbours=[NeighbourUse("db", 9.0, 0.0)])
    rows = Rows(events=[EventRow(row=3, body=to_json(event))], seen=3, layouts=[], samples=[], alive=True)
    assert await taking.take(rows) == [event]
    writer.close()
