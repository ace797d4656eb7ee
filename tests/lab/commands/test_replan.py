"""Cells to come are planned anew: which changes apply to which scenarios, and the one line where one does not."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.plan.test_planning import HOST
from tests.plan.test_points import BOTH, GUESTS
from vmlab.lab.commands.coming_cells import ComingCells
from vmlab.lab.commands.verbs import ChangeComing
from vmlab.lab.process.prepared import RunRequest, plan_of, write_request
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import RefusedError, UsageError
from vmlab.plan.terms import CellPlan, Overrides

TWO = GUESTS.replace("  vm:", "  other: {memory: 512 MiB, cache: none}\n  vm:") + (
    "  more: {kind: cpu, on: other, threads: 1}\n"
)


def changed(folder: Path, text: str, done: int = 0, **change: Any) -> list[CellPlan]:
    """The cells that run after `done` ones, with the change."""
    run = RunFolder("run", folder)
    overrides = Overrides(size="full", seed=1, sets=("order=as written",))
    request = RunRequest(run.id, "x.yaml", overrides, 1)
    write_request(run, request, text, HOST)
    assert asdict(HOST)["unsettable"] == {}
    coming = ComingCells(run, plan_of(run).cells[done:], lambda _event: None)
    coming.change(ChangeComing(**change))
    return list(iter(coming.take, None))


def test_cells_that_become_the_same_run_once_and_those_without_the_axis_stay(tmp_path: Path) -> None:
    cells = changed(tmp_path, BOTH, cache="directsync")
    assert [(cell.index, cell.axes) for cell in cells] == [
        (1, {"setup": "host"}),
        (2, {"setup": "four", "cache": "directsync"}),
        (4, {"setup": "plain", "cache": "directsync"}),
    ]


@pytest.mark.parametrize(("change", "axes"), [({"cache": "none"}, {"cache": "none"}), ({"tiles": 2}, {"tiles": 2})])
def test_a_scenario_without_axes_can_be_changed(tmp_path: Path, change: dict[str, Any], axes: dict[str, Any]) -> None:
    (cell,) = changed(tmp_path, GUESTS, **change)
    assert cell.axes == axes


def test_an_axis_that_the_scenario_lacks_is_added(tmp_path: Path) -> None:
    text = f"{GUESTS}axes: {{threads: {{values: [1, 2], sets: workloads.job.threads}}}}\nrepeats: 2\n"
    cells = changed(tmp_path, text, done=1, cache="none")
    assert [(cell.index, cell.repeat, cell.axes["threads"], cell.cache) for cell in cells] == [
        (2, 1, 2, "none"),
        (3, 2, 1, "none"),
        (4, 2, 2, "none"),
    ]


def test_a_change_that_does_not_fit_on_the_host_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="64 guests need 72 GiB of memory"):
        changed(tmp_path, GUESTS, tiles=64)


def test_points_that_set_the_cache_mode_keep_it(tmp_path: Path) -> None:
    text = f"{GUESTS}axes: {{setup: {{points: {{direct: {{cache: none}}, plain: {{}}}}}}}}\n"
    with pytest.raises(UsageError, match=r"point direct of axis setup sets guests\.vm\.cache") as caught:
        changed(tmp_path, text, cache="writeback")
    assert len(caught.value.lines()) == 1
    assert [cell.tiles for cell in changed(tmp_path, text, tiles=2)] == [2, 2]


def test_guests_that_differ_in_cache_mode_keep_theirs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"differ in cache mode \(other none, vm writeback\) and keep theirs$"):
        changed(tmp_path, TWO, cache="none")
    (cell,) = changed(tmp_path, TWO, tiles=2)
    assert [guest.resources.cache for guest in cell.guests] == ["none", "writeback"] * 2
