"""The list of runs, and how one of them is named."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.stories import WALL, Story
from vmlab.model.errors import UsageError
from vmlab.model.places import runs_folder
from vmlab.store import run_list
from vmlab.store.life import is_alive, process_ids
from vmlab.store.run_list import list_runs
from vmlab.store.runs import by_time, new_run_id, resolve_run, run_folders


@pytest.fixture(autouse=True, params=["read each time", "kept at once"])
def state(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    settled = 3600 * 10**9 if request.param == "read each time" else -(10**12)
    monkeypatch.setattr(run_list, "SETTLED_NANOSECONDS", settled)
    return tmp_path / "state"


@pytest.fixture
def lock() -> Iterator[int]:
    folder = runs_folder() / "20261121-150000-tile-live"
    folder.mkdir(parents=True)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield descriptor
    os.close(descriptor)


def _run(name: str) -> Story:
    return Story(runs_folder() / name / "run.sqlite", run=name).begin({"cache": ["none"]})


def test_no_runs_is_an_empty_list() -> None:
    assert list_runs() == []
    with pytest.raises(UsageError, match="there are no runs"):
        resolve_run("last")


def test_a_run_that_ended_is_told_by_its_last_event() -> None:
    story = _run("20261121-143000-tile-aaaa")
    story.cell({"cache": "none"}, {"web": 1.0}, wall=2.0)
    story.end("invalid", 4)
    (run,) = list_runs()
    assert (run.id, run.scenario, run.size, run.outcome) == ("20261121-143000-tile-aaaa", "tile", "smoke", "invalid")
    assert (run.started, run.cells_done, run.cells_planned, run.runner_pid) == (WALL, 1, 2, None)
    assert run.ended is not None and run.ended > WALL


def test_a_run_lives_while_its_lock_is_held(lock: int) -> None:
    folder = runs_folder() / "20261121-150000-tile-live"
    assert list_runs()[0].outcome == "running"
    (folder / "runner.json").write_text(json.dumps({"launcher_pid": 12}))
    assert list_runs()[0].runner_pid == 12
    (folder / "runner.json").write_text(json.dumps({"launcher_pid": 12, "runner_pid": 34}))
    story = _run(folder.name)
    assert (list_runs()[0].outcome, list_runs()[0].runner_pid) == ("running", 34)
    fcntl.flock(lock, fcntl.LOCK_UN)
    assert (list_runs()[0].outcome, list_runs()[0].runner_pid) == ("aborted", None)
    story.close()


def test_life_is_the_lock_and_nothing_else(lock: int, tmp_path: Path) -> None:
    folder = runs_folder() / "20261121-150000-tile-live"
    assert is_alive(folder)
    assert not is_alive(tmp_path)
    (folder / "runner.json").write_text("{half a")
    assert process_ids(folder) == {}


def test_a_damaged_store_costs_its_own_line_only() -> None:
    _run("20261121-143000-tile-aaaa").end()
    broken = runs_folder() / "20261121-144000-tile-bbbb" / "run.sqlite"
    broken.parent.mkdir()
    broken.write_text("not a database at all, but long enough to look like one" * 50)
    first, second = list_runs()
    assert (first.outcome, second.outcome) == ("damaged", "passed")
    assert first.problem == f"{broken}: is not the store of a run"


def test_ids_sort_by_time_and_are_safe_names_that_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([1795271400.5, 1795271400.5, 1795271400.5001])
    made = []
    with monkeypatch.context() as patched:
        patched.setattr("vmlab.store.runs.time.time", lambda: next(clock))
        for _ in range(2):
            made.append(new_run_id("Tile; rm -rf / ünsafe"))
            (runs_folder() / made[-1]).mkdir(parents=True)
    assert made == [f"20261121-143000-tile-rm-rf-nsafe-{end}" for end in ("8000", "8006")]
    made = [new_run_id("Tile; rm -rf / ünsafe") for _ in range(20)]
    assert made == sorted(made, key=by_time) and len(set(made)) > 1
    assert all(re.fullmatch(r"\d{8}-\d{6}-tile-rm-rf-nsafe-[0-9a-f]{4}", run) for run in made)
    assert len(new_run_id("x" * 500)) < 60
    assert re.fullmatch(r"\d{8}-\d{6}-run-[0-9a-f]{4}", new_run_id("///"))


def test_the_last_of_two_runs_that_begin_in_one_second_is_the_later_one() -> None:
    for run in ("20261121-143000-web-00ff", "20261121-143000-disk-0100", "20261121-143000-tile-000a"):
        (runs_folder() / run).mkdir(parents=True)
    assert [folder.name[16:] for folder in run_folders()] == ["disk-0100", "web-00ff", "tile-000a"]
    assert resolve_run("last").parent.name == "20261121-143000-disk-0100"


def test_references(tmp_path: Path) -> None:
    old, new = _run("20261121-143000-tile-aaaa").end(), _run("20261121-143500-tile-bbbb").end()
    assert resolve_run("last") == resolve_run("latest") == new
    assert resolve_run("20261121-143000-tile-aaaa") == resolve_run("20261121-1430") == old
    assert resolve_run(str(old)) == resolve_run(str(old.parent)) == old
    with pytest.raises(UsageError, match=r"'20261121' may be any of 2 runs: 20261121-143500-tile-bbbb, 2026"):
        resolve_run("20261121")
    for reference in ("nothing", "", "*"):
        with pytest.raises(UsageError, match="no run is called"):
            resolve_run(reference)
    with pytest.raises(UsageError, match="no run is there"):
        resolve_run(str(tmp_path / "gone"))


def test_an_id_that_begins_another_is_still_exact() -> None:
    short, _ = _run("20261121-143000-tile-aaaa").end(), _run("20261121-143000-tile-aaaab").end()
    assert resolve_run("20261121-143000-tile-aaaa") == short
