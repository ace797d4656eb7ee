"""Where the time of a run went, from events whose clocks are set by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from vmlab.analysis.record.phases import of_cell, time_of
from vmlab.model.cell_event import (
    CellEnded,
    CellStarted,
    GuestStateChanged,
    PhaseEnded,
    PhaseStarted,
    StepEnded,
)
from vmlab.model.event import (
    Event,
    HostProbed,
    RunEnded,
    RunStarted,
)
from vmlab.report.run.phase_text import phases_text

_RUN: dict[str, Any] = {"scenario": "tile", "size": "smoke", "seed": 1, "cells": 2, "expected_seconds": 9.0}


def _state(mono: float, state: str) -> Event:
    return GuestStateChanged(mono=mono, cell=1, tile=1, guest="web", role="web", state=state)


def _phase(cell: int, phase: str, since: float, until: float) -> Iterator[Event]:
    yield PhaseStarted(mono=since, cell=cell, phase=phase)
    yield PhaseEnded(mono=until, cell=cell, phase=phase, seconds=until - since)


def _ended(cell: int, mono: float, outcome: str = "passed") -> Event:
    return CellEnded(mono=mono, cell=cell, outcome=outcome, reasons=[], wall_seconds=None, start_skew_ms=None)


def _story() -> Iterator[Event]:
    yield RunStarted(mono=100.0, run="a-run", **_RUN)
    yield CellStarted(mono=101.0, cell=1, axes={"cache": "none"}, repeat=1, guests=1)
    yield PhaseStarted(mono=102.0, cell=1, phase="provision")
    yield _state(103.0, "restored")
    yield _state(105.0, "identified")
    yield PhaseEnded(mono=106.0, cell=1, phase="provision", seconds=4.0)
    yield from _phase(1, "prepare", 106.0, 109.0)
    yield from _phase(1, "execute", 110.0, 120.0)
    yield PhaseStarted(mono=120.5, cell=1, phase="collect")
    yield StepEnded(mono=124.0, cell=1, part="collect", step="verify", tile=1, place="mail", seconds=3.0)
    yield PhaseEnded(mono=124.5, cell=1, phase="collect", seconds=4.0)
    yield PhaseStarted(mono=124.5, cell=1, phase="clean up")
    yield _state(124.9, "gone")
    yield PhaseEnded(mono=125.0, cell=1, phase="clean up", seconds=0.5)
    yield _ended(1, 125.25)
    yield CellStarted(mono=125.5, cell=2, axes={"cache": "none"}, repeat=2, guests=1)
    yield from _phase(2, "provision", 126.0, 127.0)
    yield from _phase(2, "clean up", 127.5, 128.0)
    yield _ended(2, 128.0, "failed")
    yield RunEnded(mono=130.0, outcome="failed", exit_code=1)


def test_every_second_of_a_cell_is_in_one_part() -> None:
    time = time_of(_story())
    assert time.run == "a-run"
    assert time.seconds == 30.0
    assert time.outside_seconds == pytest.approx(30.0 - 24.25 - 2.5)
    assert time.cells[0].parts == {
        "before": 1.0,
        "provision": 4.0,
        "prepare": 3.0,
        "start": 1.0,
        "execute": 10.0,
        "clocks": 0.5,
        "collect": 4.0,
        "clean up": 0.5,
        "after": 0.25,
        "other": 0.0,
    }
    assert time.cells[0].seconds == 24.25
    assert time.cells[1].parts == {"before": 0.5, "provision": 1.0, "clean up": 0.5, "after": 0.0, "other": 0.5}
    assert time.parts["provision"] == 5.0
    assert list(time.parts) == list(time.cells[0].parts)


def test_a_step_has_its_place_and_its_beginning_after_that_of_the_cell() -> None:
    steps = time_of(_story()).cells[0].steps
    found = [(one.part, one.step, one.place, one.began, one.seconds) for one in steps]
    assert found == [
        ("provision", "until restored", "web", 1.0, 1.0),
        ("provision", "until identified", "web", 2.0, 2.0),
        ("collect", "verify", "mail", 20.0, 3.0),
    ]


def test_a_cell_without_an_end_counts_to_the_last_event() -> None:
    events = [event for event in _story() if event.mono <= 115.0]
    events.append(StepEnded(mono=118.0, cell=1, part="execute", step="settle", seconds=1.0))
    (cell,) = time_of(events).cells
    assert cell.outcome is None
    assert cell.parts["execute"] == 8.0
    assert cell.seconds == 17.0


def test_text_has_sums_and_for_one_cell_the_steps() -> None:
    time = time_of(_story())
    lines = phases_text(time, 140).splitlines()
    assert lines[0].startswith("run a-run: 30.00 s, 3.25 s of them outside its cells")
    assert lines[2].split()[:3] == ["cell", "before", "provision"]
    assert lines[5].split()[:3] == ["sum", "1.50", "5.00"]
    assert lines[6].split()[-2:] == ["100", "%"]
    assert "until identified" not in "\n".join(lines)
    alone = phases_text(of_cell(time, 1), 140)
    assert "until identified" in alone
    assert "sum" not in alone
    assert "cell 2" not in alone


def test_a_run_without_a_cell_says_so() -> None:
    assert phases_text(time_of([RunStarted(mono=1.0, run="a-run", **_RUN)])) == "the run has no cell yet\n"


def test_the_time_of_emulated_guests_says_so_and_that_of_a_host_alone_does_not() -> None:
    begin, *rest = _story()
    probed = HostProbed(mono=100.5, accelerator="tcg", host={"disk": {"emulated": True, "profile": "hdd-7200"}})
    time = time_of([begin, probed, *rest])
    assert (time.accelerator, time.ordered) == ("tcg", ["emulated disk"])
    assert phases_text(time).startswith("TCG: these values describe emulation")
    first, *more = rest
    assert isinstance(first, CellStarted)
    mixed = time_of([begin, probed, replace(first, guests=0), *more])
    assert (mixed.accelerator, of_cell(mixed, 1).accelerator, of_cell(mixed, 2).accelerator) == (
        "tcg",
        None,
        "tcg",
    )
    assert phases_text(mixed).startswith("TCG on some of the cells: these values")
    without = (replace(event, guests=0) if isinstance(event, CellStarted) else event for event in rest)
    alone = time_of([begin, probed, *without])
    assert (alone.accelerator, alone.ordered) == (None, ["emulated disk"])
    assert phases_text(alone).startswith("all values are from a host with an emulated disk")
