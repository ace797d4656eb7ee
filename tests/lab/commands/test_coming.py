"""The list of coming cells: one of them changed, skipped or put back, while the others and all numbers stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab.runs import CACHES, GRID, HOST, SCENARIO
from vmlab.lab.commands.coming_cells import ComingCells
from vmlab.lab.commands.verbs import ChangeComing
from vmlab.lab.process.prepared import RunRequest, plan_of, write_request
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import RefusedError, UsageError
from vmlab.model.event import (
    CellsReplanned,
    CommandReceived,
    Event,
)
from vmlab.model.event_json import from_json, to_json
from vmlab.plan.terms import Overrides


class Told:
    """The cells of a scenario, the first of which runs, and what was emitted since."""

    def __init__(self, folder: Path, axes: str = GRID) -> None:
        run = RunFolder("run", folder)
        overrides = Overrides(size="full", seed=1, sets=("order=as written",))
        write_request(run, RunRequest(run.id, "two.yaml", overrides, 1), SCENARIO + axes, HOST)
        self.events: list[Event] = []
        self.coming = ComingCells(run, plan_of(run).cells, self.events.append)
        assert self.coming.take() is not None

    def set(self, **arguments: Any) -> list[tuple[int, dict[str, Any], str]]:
        """Number, axes and state of the cells to come after a change."""
        return _short(self.coming.change(ChangeComing(**arguments))["coming"])

    def listed(self) -> list[tuple[int, dict[str, Any], str]]:
        return _short(self.coming.listed()["coming"])

    def of_cell(self, number: int) -> tuple[int, dict[str, Any], str]:
        (found,) = [one for one in self.listed() if one[0] == number]
        return found

    def begun(self) -> list[tuple[int, dict[str, Any]]]:
        """Number and axes of all that then run."""
        return [(cell.index, cell.axes) for cell in iter(self.coming.take, None)]


def _short(cells: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any], str]]:
    return [(one["cell"], one["axes"], one["state"]) for one in cells]


def point(tiles: int, cache: str) -> dict[str, Any]:
    return {"tiles": tiles, "cache": cache}


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_one_cell_is_changed_and_the_others_stay(told: Told) -> None:
    assert told.set(cell=3, cache="directsync") == [
        (2, point(1, "writeback"), "planned"),
        (3, point(2, "directsync"), "changed"),
        (4, point(2, "writeback"), "planned"),
    ]
    assert told.coming.listed()["coming"][1]["planned"] == point(2, "none")
    assert told.begun() == [(2, point(1, "writeback")), (3, point(2, "directsync")), (4, point(2, "writeback"))]


def test_the_cell_that_runs_has_what_it_was_changed_to(told: Told) -> None:
    told.set(cell=2, cache="none", tiles=3)
    changed = told.coming.take()
    assert changed is not None
    assert (changed.tiles, changed.cache, len(changed.guests), changed.index) == (3, "none", 6, 2)


def test_changes_of_one_cell_add_up_and_the_newest_of_each_kind_holds(told: Told) -> None:
    told.set(cell=2, tiles=3)
    told.set(cell=2, cache="none")
    told.set(cell=2, tiles=4)
    assert told.of_cell(2) == (2, point(4, "none"), "changed")


def test_a_change_of_all_keeps_what_was_changed_of_one(told: Told) -> None:
    told.set(cell=4, tiles=3)
    assert told.set(cache="directsync") == [
        (2, point(1, "directsync"), "changed"),
        (3, point(2, "directsync"), "changed"),
        (4, point(3, "directsync"), "changed"),
    ]


def test_a_skipped_cell_is_listed_and_does_not_run_and_the_others_keep_their_numbers(told: Told) -> None:
    assert [state for _, _, state in told.set(cell=3, skip=True)] == ["planned", "skipped", "planned"]
    assert [cell["index"] for cell in told.coming.listed()["cells"]] == [2, 4]
    assert told.begun() == [(2, point(1, "writeback")), (4, point(2, "writeback"))]
    assert told.listed() == []


def test_a_cell_that_becomes_the_same_as_a_skipped_one_runs(told: Told) -> None:
    told.set(cell=3, skip=True)
    told.set(cache="none")
    assert told.begun() == [(2, point(1, "none")), (4, point(2, "none"))]


def test_a_repeat_whose_cells_are_skipped_is_not_to_come(tmp_path: Path) -> None:
    told = Told(tmp_path, "axes: {tiles: [1]}\nrepeats: 3\n")
    told.set(cell=2, skip=True)
    assert [told.coming.has(repeat) for repeat in (1, 2, 3)] == [False, False, True]


def test_when_all_are_skipped_none_runs_and_one_can_be_put_back(told: Told) -> None:
    for number in (2, 3, 4):
        told.set(cell=number, skip=True)
    assert told.coming.take() is None
    told.set(cell=3, as_planned=True)
    assert told.begun() == [(3, point(2, "none"))]


def test_one_cell_is_put_back_and_the_change_of_another_stays(told: Told) -> None:
    told.set(cell=2, tiles=3)
    told.set(cell=3, cache="directsync")
    assert told.set(cell=3, as_planned=True)[:2] == [
        (2, point(3, "writeback"), "changed"),
        (3, point(2, "none"), "planned"),
    ]


def test_a_mode_for_all_skips_those_that_become_the_same_and_each_can_be_put_back(told: Told) -> None:
    """The key of Live, pressed twice: what it took from the comparison is still listed."""
    told.set(cache="none")
    assert told.set(cache="writeback") == [
        (2, point(1, "writeback"), "planned"),
        (3, point(2, "writeback"), "changed"),
        (4, point(2, "none"), "skipped"),
    ]
    told.set(cell=3, as_planned=True)
    told.set(cell=4, as_planned=True)
    assert told.begun() == [(2, point(1, "writeback")), (3, point(2, "none")), (4, point(2, "writeback"))]


def test_all_as_planned_has_those_that_were_passed_by_and_numbers_none_twice(told: Told) -> None:
    told.set(cell=2, skip=True)
    third = told.coming.take()
    assert third is not None and third.index == 3
    assert told.set(as_planned=True) == [(4, point(1, "writeback"), "planned"), (5, point(2, "writeback"), "planned")]


def test_all_as_planned_keeps_the_numbers_where_none_was_passed_by(told: Told) -> None:
    before = told.listed()
    told.set(cell=4, skip=True)
    told.set(cell=2, tiles=5)
    assert told.set(as_planned=True) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cell": 1, "skip": True}, "there is no cell 1 to come; cells 2 to 4 are"),
        ({"cell": 5, "cache": "none"}, "there is no cell 5 to come; cells 2 to 4 are"),
        ({"cell": 2}, "a change of the cells to come needs a cache mode or a number of tiles"),
        ({"cell": 2, "cache": "warm"}, "the cells to come cannot have cache warm"),
        ({"cell": 2, "tiles": 0}, "the cells to come cannot have tiles 0"),
        ({"cell": 2, "as_planned": True}, "cell 2 is as planned already"),
        ({"cell": 2, "skip": True, "cache": "none"}, "one at a time"),
        ({"cell": 2, "skip": True, "as_planned": True}, "one at a time"),
        ({"skip": True}, "one cell is skipped at a time, by its number"),
        ({"cell": 3, "cache": "writeback"}, r"cell 4 is the same \(tiles 2, cache writeback, repeat 1\); one of the"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(told: Told, arguments: dict[str, Any], words: str) -> None:
    before = told.listed()
    with pytest.raises(UsageError, match=f"^.*{words}.*$") as caught:
        told.set(**arguments)
    assert len(caught.value.lines()) == 1
    assert told.listed() == before and told.events == []


def test_what_does_not_fit_on_the_host_is_refused_for_one_cell_too(told: Told) -> None:
    with pytest.raises(RefusedError, match="guests need"):
        told.set(cell=4, tiles=32)
    assert told.of_cell(4)[2] == "planned" and told.events == []


def test_a_skipped_cell_is_not_changed_nor_skipped_again(told: Told) -> None:
    told.set(cell=3, skip=True)
    with pytest.raises(UsageError, match=r"^cell 3 is skipped; put it back as planned first$"):
        told.set(cell=3, cache="directsync")
    with pytest.raises(UsageError, match=r"^cell 3 is skipped already$"):
        told.set(cell=3, skip=True)


def test_a_cell_is_not_put_back_beside_one_that_was_made_the_same(told: Told) -> None:
    told.set(cell=4, skip=True)
    told.set(cell=3, cache="writeback")
    with pytest.raises(UsageError, match=r"^cell 3 is the same"):
        told.set(cell=4, as_planned=True)


def test_after_the_last_cell_there_is_none_to_name(tmp_path: Path) -> None:
    told = Told(tmp_path, "axes: {cache: [none]}\n")
    with pytest.raises(UsageError, match=r"^no cell is to come; the running one stays as it is$"):
        told.set(cell=1, skip=True)


@pytest.mark.parametrize(
    ("arguments", "words", "cells", "following"),
    [
        ({"cell": 2, "cache": "directsync"}, "set cell 2 cache directsync", 4, point(1, "directsync")),
        ({"cell": 2, "skip": True}, "skip cell 2", 4, point(2, "none")),
        ({"cell": 4, "skip": True}, "skip cell 4", 3, point(1, "writeback")),
        ({"tiles": 2}, "set tiles 2", 3, point(2, "writeback")),
    ],
)
def test_the_record_says_who_asked_and_has_the_whole_list(
    told: Told, arguments: dict[str, Any], words: str, cells: int, following: dict[str, Any]
) -> None:
    told.set(**arguments, origin="test")
    asked, change = told.events
    assert isinstance(asked, CommandReceived) and isinstance(change, CellsReplanned)
    assert (asked.command, asked.origin) == (words, "test")
    assert (change.cells, change.next_axes) == (cells, following)
    assert change.coming == told.coming.listed()["coming"]
    kept = from_json(to_json(change))
    assert isinstance(kept, CellsReplanned) and kept == change


def test_the_record_of_all_skipped_has_no_next_cell_and_no_time(tmp_path: Path) -> None:
    told = Told(tmp_path, CACHES)
    told.set(cell=2, skip=True)
    change = told.events[-1]
    assert isinstance(change, CellsReplanned)
    assert (change.cells, change.next_axes, change.expected_seconds) == (1, {}, 0)


def test_a_record_of_an_older_version_is_read() -> None:
    old = from_json('{"kind": "CellsReplanned", "cells": 3, "next_axes": {"tiles": 1}, "expected_seconds": 4.0}')
    assert isinstance(old, CellsReplanned) and old.coming is None


@pytest.mark.parametrize("spoil", [lambda one: one.pop("state"), lambda one: one.update(cell="2")])
def test_a_damaged_list_is_not_read(told: Told, spoil: Callable[[dict[str, Any]], object]) -> None:
    told.set(cell=2, skip=True)
    change = told.events[-1]
    assert isinstance(change, CellsReplanned) and change.coming is not None
    spoil(change.coming[0])
    with pytest.raises(ValueError, match="CellsReplanned: coming cannot be"):
        from_json(to_json(change))
