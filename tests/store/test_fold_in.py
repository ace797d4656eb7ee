"""The file of a run that has ended tells all of it alone, without the log beside it, whoever is reading."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.model.event import (
    Event,
    Notice,
    RunEnded,
)
from vmlab.store.reader import RunReader
from vmlab.store.writer import RunWriter, fold_in_dead


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunWriter]:
    """A run that is about to say its last word."""
    story = Story(tmp_path / "run" / "run.sqlite").begin({"cache": ["none"]})
    yield story.writer
    story.writer.close()


def reading(store: Path) -> sqlite3.Connection:
    """A viewer that is in the middle of a read of what is there now."""
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM events").fetchone()
    return connection


def end(writer: RunWriter, deadline: float) -> bool:
    writer.append(RunEnded(outcome="passed", exit_code=0))
    return writer.fold_in(deadline)


def last_of_a_copy(store: Path, folder: Path) -> Event | None:
    """The last event in a copy of the file alone."""
    folder.mkdir()
    shutil.copy(store, folder / "run.sqlite")
    with RunReader(folder / "run.sqlite") as reader:
        return next(reversed([event for _, event in reader.events()]), None)


def log_of(store: Path) -> int:
    """Bytes in the log."""
    return store.with_name(f"{store.name}-wal").stat().st_size


def test_a_copy_of_the_file_alone_has_the_end_while_a_viewer_is_open(store: RunWriter, tmp_path: Path) -> None:
    with RunReader(store.path) as viewer:
        assert list(viewer.events())
        assert end(store, 60)
        assert log_of(store.path) == 0
        assert isinstance(last_of_a_copy(store.path, tmp_path / "copy"), RunEnded)


def test_it_has_the_end_while_a_viewer_reads_that_end(store: RunWriter, tmp_path: Path) -> None:
    store.append(RunEnded(outcome="passed", exit_code=0))
    with closing(reading(store.path)):
        assert store.fold_in(60)
        assert isinstance(last_of_a_copy(store.path, tmp_path / "copy"), RunEnded)


def test_a_viewer_in_the_middle_of_an_older_read_is_waited_for(store: RunWriter, tmp_path: Path) -> None:
    with closing(reading(store.path)) as viewer:
        done = threading.Timer(0.3, lambda: viewer.execute("COMMIT"))
        done.start()
        assert end(store, 60)
        assert isinstance(last_of_a_copy(store.path, tmp_path / "copy"), RunEnded)
        done.join()


def test_a_viewer_that_never_lets_go_holds_up_no_run_and_the_end_is_folded_in_later(
    store: RunWriter, tmp_path: Path
) -> None:
    viewer = reading(store.path)
    assert not end(store, 0.2)
    with RunReader(store.path) as reader:
        assert [event for _, event in reader.events()][-1:] == [event for _, event in reader.events(kinds=(RunEnded,))]
    store.close()
    viewer.close()
    assert fold_in_dead(store.path)
    assert isinstance(last_of_a_copy(store.path, tmp_path / "copy"), RunEnded)
    assert not fold_in_dead(store.path), "there is nothing left to fold in"


def test_a_run_that_was_killed_is_whole_once_its_log_is_folded_in(store: RunWriter, tmp_path: Path) -> None:
    store.append(Notice(level="info", text="the last that it said"))
    killed = tmp_path / "killed"
    killed.mkdir()
    for name in ("run.sqlite", "run.sqlite-wal"):
        shutil.copy(store.path.with_name(name), killed / name)
    assert not isinstance(last_of_a_copy(killed / "run.sqlite", tmp_path / "before"), Notice)
    assert fold_in_dead(killed / "run.sqlite")
    assert isinstance(last_of_a_copy(killed / "run.sqlite", tmp_path / "after"), Notice)


def test_where_there_is_no_log_or_no_store_nothing_is_made(tmp_path: Path) -> None:
    assert not fold_in_dead(tmp_path / "run.sqlite")
    (tmp_path / "run.sqlite-wal").write_bytes(b"orphan")
    assert not fold_in_dead(tmp_path / "run.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["run.sqlite-wal"]
