"""What is kept of runs that were listed before: it spares reading their stores, and never tells anything else."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.model.event import RunEnded
from vmlab.model.places import runs_folder
from vmlab.store import run_list, run_summary
from vmlab.store.kept_file import file_stamp
from vmlab.store.life import NOTE, write_note
from vmlab.store.run_list import RunList, kept_file, list_runs
from vmlab.store.runs import RunSummary, remove_tag, write_tag
from vmlab.store.writer import RunWriter, fold_in_dead

OLD, NEW, DEAD = "20261121-143000-tile-aaaa", "20261121-150000-tile-bbbb", "20261121-160000-tile-dead"


@pytest.fixture(autouse=True)
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two runs that ended some time ago; the runs whose stores were read, in order."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(run_list, "SETTLED_NANOSECONDS", -(10**12))
    for name in (OLD, NEW):
        _story(name).end()
    found: list[str] = []
    really = run_summary.summarise

    def noted(store: Path) -> RunSummary:
        found.append(store.parent.name)
        return really(store)

    monkeypatch.setattr(run_summary, "summarise", noted)
    return found


def _story(name: str) -> Story:
    story = Story(_store(name), run=name).begin({"cache": ["none"]})
    story.cell({"cache": "none"}, {"web": 1.0}, wall=2.0)
    return story


def _store(name: str) -> Path:
    return runs_folder() / name / "run.sqlite"


def _outcomes() -> list[str]:
    return [run.outcome for run in list_runs()]


def test_a_run_that_goes_on_is_read_again_while_the_console_is_open(read: list[str]) -> None:
    runs = RunList()
    assert {run.outcome for run in runs.read()} == {"passed"}
    read.clear()
    runs.read()
    assert read == []
    with closing(RunWriter(_store(OLD))) as writer:
        writer.reopen(1.0)
    assert {run.id: run.outcome for run in runs.read()} == {OLD: "aborted", NEW: "passed"}
    assert read == [OLD]


def test_a_run_is_read_once(read: list[str]) -> None:
    first = list_runs()
    assert read == [NEW, OLD]
    assert list_runs() == first
    assert read == [NEW, OLD]
    _story("20261121-160000-tile-cccc").end("failed", 1)
    assert _outcomes() == ["failed", "passed", "passed"]
    assert read == [NEW, OLD, "20261121-160000-tile-cccc"]


def test_names_are_those_of_now_and_not_kept(read: list[str]) -> None:
    for tags in ((), ("baseline",), ("baseline", "old"), ("old",)):
        for name in {"baseline", "old"} - set(tags):
            remove_tag(name)
        for name in tags:
            write_tag(name, OLD)
        assert [run.tags for run in list_runs()] == [(), tags]
    assert read == [NEW, OLD]
    assert b"baseline" not in kept_file().read_bytes()


def test_a_note_is_that_of_now() -> None:
    runs = RunList()
    for note in ("", "before the update", "after it", ""):
        write_note(_store(OLD).parent, note)
        assert [run.note for run in list_runs()] == [run.note for run in runs.read()] == ["", note]


def test_a_store_that_was_changed_is_read_again(read: list[str]) -> None:
    assert _outcomes() == ["passed", "passed"]
    writer = RunWriter(_store(OLD))
    writer.append(RunEnded(outcome="failed", exit_code=1))
    # The writer is still there: the change is in the log alone.
    assert _outcomes() == ["passed", "failed"]
    writer.append(RunEnded(outcome="aborted", exit_code=1))
    writer.close()
    assert _outcomes() == ["passed", "aborted"]
    assert read == [NEW, OLD, OLD, OLD]


def test_a_change_shows_where_size_and_time_were_put_back(read: list[str]) -> None:
    assert _outcomes() == ["passed", "passed"]
    before = _store(OLD).stat()
    with closing(sqlite3.connect(_store(OLD))) as connection:
        connection.execute("UPDATE events SET body = replace(body, '\"passed\"', '\"failed\"') WHERE kind = 'RunEnded'")
        connection.commit()
    os.utime(_store(OLD), ns=(before.st_atime_ns, before.st_mtime_ns))
    after = _store(OLD).stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    assert _outcomes() == ["passed", "failed"]


def test_a_file_that_was_not_there_is_asked_for_once_the_folder_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def stamp(path: str) -> list[int] | None:
        asked.append(Path(path).name)
        return file_stamp(path)

    monkeypatch.setattr(run_list, "file_stamp", stamp)
    runs = RunList()
    for read in (list_runs, runs.read):
        read()
        asked.clear()
        read()
        assert sorted(asked) == sorted([OLD, NEW, "run.sqlite", "run.sqlite"])
    write_note(_store(OLD).parent, "before the update")
    assert [run.note for run in list_runs()] == [run.note for run in runs.read()] == ["", "before the update"]


def test_a_folder_that_changed_just_now_tells_nothing_of_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two changes within a tick of the kernel's clock for files leave the same times."""
    times = time.time_ns()

    def stamp(path: str) -> list[int] | None:
        return [1, 1, times, times] if path.endswith((OLD, NEW)) else file_stamp(path)

    monkeypatch.setattr(run_list, "file_stamp", stamp)
    for settled, notes in ((3600 * 10**9, ["", "before the update"]), (-(10**12), ["", ""])):
        monkeypatch.setattr(run_list, "SETTLED_NANOSECONDS", settled)
        _store(OLD).with_name(NOTE).unlink(missing_ok=True)
        runs = RunList()
        runs.read()
        write_note(_store(OLD).parent, "before the update")
        assert [run.note for run in runs.read()] == notes


def test_a_folder_in_which_a_store_was_opened_has_the_same_run(read: list[str]) -> None:
    list_runs()
    (_store(OLD).parent / "run.sqlite-shm").touch()
    before = kept_file().read_bytes()
    assert _outcomes() == ["passed", "passed"] and read == [NEW, OLD]
    assert kept_file().read_bytes() != before, "the next list knows the folder"


def test_a_store_that_was_written_just_now_is_not_kept(read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_list, "SETTLED_NANOSECONDS", 3600 * 10**9)
    assert _outcomes() == _outcomes() == ["passed", "passed"]
    assert read == [NEW, OLD] * 2
    assert not kept_file().exists()


def test_a_run_without_an_end_is_what_its_lock_says(tmp_path: Path, read: list[str]) -> None:
    _killed(tmp_path)
    assert _outcomes() == _outcomes() == ["aborted", "passed", "passed"]
    assert read == [DEAD, NEW, OLD]
    lock = os.open(_store(DEAD).with_name("lock"), os.O_RDWR | os.O_CREAT)
    try:
        assert _outcomes()[0] == "aborted"
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert _outcomes()[0] == "running"
    finally:
        os.close(lock)
    assert _outcomes()[0] == "aborted"


def test_a_run_that_is_killed_ends_without_a_change_of_its_store(tmp_path: Path) -> None:
    _killed(tmp_path)
    lock = os.open(_store(DEAD).with_name("lock"), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert _outcomes()[0] == _outcomes()[0] == "running"
    finally:
        os.close(lock)
    assert _outcomes()[0] == "aborted"


def test_a_dead_run_is_the_same_when_its_log_was_folded_in(tmp_path: Path, read: list[str]) -> None:
    _killed(tmp_path)
    before = list_runs()
    assert (before[0].outcome, before[0].cells_done) == ("aborted", 1)
    assert fold_in_dead(_store(DEAD))
    assert list_runs() == before
    assert read == [DEAD, NEW, OLD, DEAD]


def _killed(place: Path) -> None:
    """A run whose process was killed: its log is left, which is a copy of what a process has open."""
    story = _story(DEAD)
    left = shutil.copytree(_store(DEAD).parent, place / "left")
    story.close()
    shutil.rmtree(_store(DEAD).parent)
    left.rename(_store(DEAD).parent)
    assert _store(DEAD).with_name("run.sqlite-wal").stat().st_size > 0


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a wrong outcome": lambda kept: kept.replace(b'"passed"', b'"failed"'),
    "cut off": lambda kept: kept[:-20],
    "empty": lambda kept: b"",
    "no JSON": lambda kept: b"not at all",
    "another version's": lambda kept: re.sub(rb"/\d+ ", b"/0 ", kept, count=1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_passed_over_and_written_again(damage: str, read: list[str]) -> None:
    first = list_runs()
    whole = kept_file().read_bytes()
    kept_file().write_bytes(DAMAGES[damage](whole))
    assert list_runs() == first
    assert read == [NEW, OLD] * 2
    assert kept_file().read_bytes() == whole


def test_a_place_that_cannot_be_written_costs_time_only(tmp_path: Path, read: list[str]) -> None:
    kept_file().mkdir()
    assert _outcomes() == _outcomes() == ["passed", "passed"]
    assert read == [NEW, OLD] * 2
    assert sorted(path.name for path in kept_file().parent.iterdir()) == ["run-list.json", "runs"]


def test_a_damaged_store_is_read_every_time_and_a_removed_run_is_forgotten(read: list[str]) -> None:
    assert _outcomes() == ["passed", "passed"]
    _store(OLD).write_text("not a database at all, but long enough to look like one" * 50)
    for _ in range(2):
        good, bad = list_runs()
        assert (good.outcome, good.problem, bad.problem) == (
            "passed",
            None,
            f"{_store(OLD)}: is not the store of a run",
        )
    assert read == [NEW, OLD, OLD, OLD]
    shutil.rmtree(_store(NEW).parent)
    list_runs()
    assert NEW.encode() not in kept_file().read_bytes()
    assert kept_file().stat().st_mode & 0o777 == 0o600
