"""The heat map of the latency of guests' disks."""

from __future__ import annotations

from typing import Any

from textual.app import App, ComposeResult

from vmlab.model.cell_event import (
    CacheSwitched,
    CellStarted,
    DiskLatencyRead,
)
from vmlab.telemetry.latency_bins import BINS
from vmlab.tui.state.latency_map import LatencyMap
from vmlab.tui.state.run_state import RunState
from vmlab.tui.widgets.charts.latency_board import LatencyBoard


def reading(guest: str, counts: dict[str, dict[str, list[int]]], cell: int = 1, **more: Any) -> DiskLatencyRead:
    return DiskLatencyRead(cell=cell, tile=1, guest=guest, since=0.0, scale=list(BINS.scale), counts=counts, **more)


def cell(number: int, cache: str) -> CellStarted:
    return CellStarted(cell=number, axes={"cache": cache}, repeat=1, guests=2)


def test_the_guests_of_one_reading_share_a_column() -> None:
    latency = LatencyMap()
    for _ in range(2):
        latency.take(reading("a", {"root": {"read": [10, 3]}}))
        latency.take(reading("b", {"root": {"read": [11, 1]}, "data": {"flush": [30, 2]}}))
    assert len(latency.columns) == 2
    assert [sum(column.counts["read"]) for column in latency.columns] == [4, 4]
    assert sum(latency.total["read"]) == 8 and latency.total["flush"][30] == 4
    assert list(latency.disks) == [(1, "a", "root"), (1, "b", "root"), (1, "b", "data")]


def test_percentiles_are_of_the_newest_part_that_was_read() -> None:
    state = RunState()
    state.apply(cell(1, "none"))
    state.apply(reading("a", {"root": {"read": [10, 3]}}))
    state.apply(cell(2, "writeback"))
    assert (state.latency.about, sum(state.latency.total["read"])) == ("cell 1: cache none", 3)
    state.apply(reading("a", {"root": {"read": [10, 5]}}, cell=2))
    assert (state.latency.about, sum(state.latency.total["read"])) == ("cell 2: cache writeback", 5)
    switch = {"cell": 2, "origin": "test", "before": "writeback", "after": "none"}
    state.apply(CacheSwitched(**switch, pauses_ms={}, drained_seconds=0.0))  # type: ignore[arg-type]
    state.apply(reading("a", {"root": {"read": [10, 1]}}, cell=2))
    assert state.latency.about == "cell 2: now cache none"
    assert [column.word for column in state.latency.columns] == ["none", "writeback", "none"]
    assert len({column.part for column in state.latency.columns}) == 3


def test_a_number_under_the_map_says_of_what_it_is() -> None:
    """``1 none`` stood for one tile."""
    state = RunState()
    state.apply(CellStarted(cell=1, axes={"tiles": 1, "cache": "none"}, repeat=1, guests=1))
    state.apply(reading("a", {"root": {"read": [10, 3]}}))
    assert [column.word for column in state.latency.columns] == ["tiles 1 none"]


class Shown(App[None]):
    def compose(self) -> ComposeResult:
        yield LatencyBoard(id="board")


async def shown(latency: LatencyMap, size: tuple[int, int] = (80, 24)) -> list[str]:
    app = Shown()
    async with app.run_test(size=size) as pilot:
        board = app.query_one(LatencyBoard)
        board.show(latency)
        await pilot.pause()
        return board.text().splitlines()


async def test_slow_requests_are_above_and_each_operation_has_a_map(monkeypatch: Any) -> None:
    monkeypatch.setenv("VMLAB_ASCII", "1")
    latency = LatencyMap()
    latency.begin("cell 1", "cell 1: cache none")
    # Of 100 reads 60 take 1 to 1.3 ms, 38 take 1.3 to 1.6 ms, and two 100 to 130 ms.
    latency.take(reading("db", {"root": {"read": [21, 60, 38, *[0] * 18, 2], "flush": [51, 1]}}))
    lines = await shown(latency, (80, 40))
    assert lines[0].startswith("Guests' disks: latency p50 / p95 / p99 in ms, + 12 %  cell 1: cache none")
    assert lines[1].split() == ["read", "100", "requests", "write", "0", "requests", "flush", "1", "requests"]
    assert lines[2].split() == ["1.1", "/", "1.4", "/", "110", "-", "1100", "/", "1100", "/", "1100"]
    rows = [line for line in lines[3:] if line[:6].strip() and line[5:6] == "s"]
    assert [line[:6].strip() for line in (rows[0], rows[-1])] == ["1.0 s", "1.0 ms"]
    read = [line[7:11] for line in rows]
    assert read[-1] == "####" and read[-2] in ("****", "    ") and "...." in read
    flush = [line[7 + 2 * 24 :][:4] for line in rows]
    assert flush[0] == "####" and not any(one.strip() for one in flush[1:])


async def test_each_disk_has_a_line_where_there_is_room() -> None:
    latency = LatencyMap()
    latency.take(reading("db", {"root": {"read": [21, 60]}, "data": {"flush": [51, 1]}}))
    (line,) = [line for line in await shown(latency, (120, 40)) if line.startswith("t1-db data")]
    assert line.split() == ["t1-db", "data", "-", "-", "1100", "/", "1100", "/", "1100"]
    assert "t1-db" not in "\n".join(await shown(latency, (80, 12)))


async def test_there_is_one_line_where_nothing_was_read() -> None:
    lines = await shown(LatencyMap())
    assert lines[0] == "Guests' disks: no latency has been read yet."


async def test_every_width_and_height_can_be_drawn() -> None:
    latency = LatencyMap()
    for number in range(1, 40):
        latency.begin(f"cell {number}", f"cell {number}: as written")
        for _ in range(20):
            latency.take(reading("db", {"root": {"read": [0, *[1] * 72], "write": [0, 5]}}))
    for size in ((60, 12), (80, 24), (120, 40), (200, 60)):
        lines = await shown(latency, size)
        assert all(len(line) <= size[0] for line in lines) and len(lines) <= size[1]
