"""A loop on Live: throughput and latency of each workload by tile and over all, and the key that ends it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.record.test_loops import ended
from tests.tui.conftest import RUN
from tests.tui.pictures import screen_text
from tests.tui.screens.test_screens import StillConsole
from tests.tui.screens.test_switch import FIRST, opened_live, said, samples
from tests.waiting import until
from vmlab.model.cell_event import (
    CellStarted,
    GuestStateChanged,
    PhaseStarted,
    TilesChanged,
)
from vmlab.model.event import Event, RunStarted
from vmlab.tui.feed.live_feed import RunArrived, RunFound
from vmlab.tui.state.run_state import RunState


def begun(*more: Event) -> tuple[Event, ...]:
    start = {"run": RUN, "scenario": "tile", "size": "smoke", "seed": 1, "cells": 1, "expected_seconds": 60.0}
    return (
        RunStarted(wall=0.0, mono=FIRST, **start),  # type: ignore[arg-type]
        CellStarted(wall=0.0, mono=FIRST, cell=1, axes={"cache": "none"}, repeat=1, guests=4, looped=True),
        PhaseStarted(wall=0.0, mono=FIRST, cell=1, phase="execute"),
        *more,
    )


def shown(app: StillConsole) -> list[list[str]]:
    """The rows of the board, by words; the log has its sentences besides."""
    rows = [row for row in screen_text(app).splitlines() if "latency_p95" in row and "round" not in row]
    return [row.split() for row in rows]


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_the_newest_round_of_each_tile_and_of_all_together_is_shown(size: tuple[int, int]) -> None:
    app = StillConsole()
    async with app.run_test(size=size):
        screen = await opened_live(app)
        screen.post_message(RunFound(RUN, {}))
        screen.post_message(RunArrived(begun(), samples(4)))
        await until(lambda: screen.view().cell is not None, "the run is watched")
        assert "latency_p95" not in screen_text(app)
        rounds = (ended(1, 1, 10.0), ended(1, 2, 40.0, 0.25), ended(2, 1, 5.0, 2.0))
        screen.post_message(RunArrived(tuple(replace(one, mono=FIRST + 1) for one in rounds), ()))
        await until(lambda: len(shown(app)) == 3, "the rounds are shown")
        assert [row[:6] for row in shown(app)] == [
            ["web", "1", "2", "40.0", "1/s", "250.0"],
            ["web", "2", "1", "5.00", "1/s", "2.00"],
            ["web", "all", "3", "45.0", "1/s", "2.00"],
        ]


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_guests_of_a_loop_stay_in_sight(size: tuple[int, int]) -> None:
    def guests() -> list[str]:
        return [row[2:6].strip() for row in screen_text(app).splitlines() if row.startswith("1 ")]

    app = StillConsole()
    async with app.run_test(size=size):
        screen = await opened_live(app)
        screen.post_message(RunFound(RUN, {}))
        place = {"cell": 1, "tile": 1, "role": "web", "state": "connected"}
        there = [GuestStateChanged(mono=FIRST, guest=guest, **place) for guest in ("far", "near")]  # type: ignore[arg-type]
        screen.post_message(RunArrived(begun(*there), samples(4)))
        await until(lambda: guests() == ["far", "near"], "the guests are shown")
        screen.post_message(RunArrived((replace(ended(1, 1, 10.0), mono=FIRST + 1),), ()))
        await until(lambda: len(shown(app)) == 1, "a round is shown")
        await until(lambda: guests() == ["far", "near"], "the guests are in sight")


@dataclass
class Commands:
    """What `RunCommands` would do."""

    asked: list[dict[str, Any]] = field(default_factory=list)

    def of(self, folder: Path) -> Commands:
        assert folder.name == RUN
        return self

    def change_now(self, change: dict[str, Any]) -> str:
        self.asked.append(change)
        return "no workload starts again" if "end" in change else f"{change['tiles']} tiles"


@pytest.mark.usefixtures("state")
async def test_keys_end_the_loop_and_change_its_tiles_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands()
    monkeypatch.setattr("vmlab.tui.commands.RunCommands", commands.of)
    app = StillConsole()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened_live(app)
        await pilot.press("E")
        assert commands.asked == [], "without a run there is no loop"
        screen.post_message(RunFound(RUN, {}))
        screen.post_message(RunArrived(begun(), samples(4)))
        await until(lambda: screen.watched == RUN and screen.view().cell is not None, "the run is watched")
        await pilot.press("E")
        await until(lambda: said(app) == "The loop: no workload starts again", "the answer is told")
        await pilot.press(">")
        await until(lambda: said(app) == "The loop: 2 tiles", "the answer is told")
        changed = TilesChanged(wall=0.0, mono=FIRST + 2, cell=1, origin="test", before=1, after=2)
        screen.post_message(RunArrived((changed,), ()))
        await until(lambda: screen.view().cell is not None and screen.view().switched == (FIRST + 2,), "it is marked")
        await pilot.press("<")
        await until(lambda: said(app) == "The loop: 1 tiles", "the answer is told")
    assert commands.asked == [{"end": True}, {"tiles": 2}, {"tiles": 1}]


def test_a_retired_tile_is_no_longer_shown() -> None:
    state = RunState()
    place = {"cell": 1, "guest": "front", "role": "web"}
    gone = GuestStateChanged(mono=9.0, tile=2, state="gone", **place)  # type: ignore[arg-type]
    here = [GuestStateChanged(mono=1.0, tile=tile, state="connected", **place) for tile in (1, 2)]  # type: ignore[arg-type]
    for event in begun(*here, ended(1, 1, 10.0), ended(2, 1, 5.0)):
        state.apply(event)
    assert {row.tile for row in state.snapshot().loop} == {1, 2, None}
    for event in (TilesChanged(mono=8.0, cell=1, origin="test", before=2, after=1), gone):
        state.apply(event)
    view = state.snapshot()
    assert {row.tile for row in view.loop} == {1, None}
    assert [guest.tile for guest in view.guests] == [1]
