"""The reader: every store it can read it reads without a trace, everything else is one clear line."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import WALL, Story
from vmlab.analysis.record.host_means import signs_of_stages
from vmlab.model.cell_event import CellEnded, PhaseEnded, WorkloadProgressed
from vmlab.model.errors import ExitCode, StoreError, UsageError
from vmlab.model.event import (
    Notice,
    RunEnded,
    RunStarted,
)
from vmlab.model.results import RawOutput
from vmlab.store.reader import NotBegunError, RunReader
from vmlab.store.sql_schema import FLEET_TABLES
from vmlab.store.writer import RunWriter
from vmlab.system.file_system import has_record_locks


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "run" / "run.sqlite").begin({"cache": ["none", "writeback"]})


def test_a_store_without_a_beginning_has_no_events(tmp_path: Path) -> None:
    path = Story(tmp_path / "run.sqlite").close()
    with RunReader(path) as reader:
        assert list(reader.events()) == []


def test_events_of_some_kinds_only(story: Story) -> None:
    story.cell({"cache": "none"}, {"web": 1.0}, wall=2.0)
    with RunReader(story.end()) as reader:
        kinds = [type(event) for _, event in reader.events(kinds=(CellEnded, RunEnded))]
    assert kinds == [CellEnded, RunEnded]


def test_many_pages_of_events_come_in_order(story: Story) -> None:
    for number in range(2500):
        story.note(str(number))
    with RunReader(story.end()) as reader:
        said = [event.text for _, event in reader.events(kinds=(Notice,)) if isinstance(event, Notice)]
    assert said == [str(number) for number in range(2500)]


def test_the_events_of_all_kinds_have_one_bound(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10):
        story.note(str(number))
        story.writer.append(PhaseEnded(cell=1, phase="execute", seconds=1.0))
    path = story.end()
    monkeypatch.setattr("vmlab.store.reader.MOST_AT_ONCE", 1500)
    with RunReader(path) as reader:
        assert len(list(reader.events(kinds=(Notice,)))) == 10
        with pytest.raises(StoreError, match="holds more than"):
            list(reader.events(kinds=(Notice, PhaseEnded)))


def test_a_long_run_is_read_however_often_its_workloads_told_their_progress(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        stage = "there" if number >= 50 else ""
        story.writer.append(
            WorkloadProgressed(cell=1, workload="web", tile=1, done=number, total=100, unit="requests", stage=stage)
        )
    path = story.end()
    monkeypatch.setattr("vmlab.store.reader.MOST_AT_ONCE", 2000)
    with RunReader(path) as reader:
        assert sum(isinstance(event, WorkloadProgressed) for _, event in reader.events()) == 100
        assert [sign.stage for sign in signs_of_stages(reader)[1]] == ["there"]
        with pytest.raises(StoreError, match="holds more than"):
            list(reader.events(all_kept=True))


def test_rows_without_a_text_are_bounded_too(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(30):
        story.writer.raw(1, RawOutput("", 1, "", "", ""))
    path = story.end()
    monkeypatch.setattr("vmlab.store.reader.MOST_AT_ONCE", 2000)
    with RunReader(path) as reader, pytest.raises(StoreError, match="holds more than"):
        reader.raw_outputs()


@pytest.mark.parametrize("names", [["a", "b", "c"], []], ids=["names", "without names"])
def test_all_layouts_of_samples_have_one_bound(names: list[str], story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    path = story.end()
    with closing(sqlite3.connect(path)) as changed, changed:
        rows = [(json.dumps(names), json.dumps(names)) for _ in range(30)]
        changed.executemany("INSERT INTO layouts (names, units) VALUES (?, ?)", rows)
    monkeypatch.setattr("vmlab.store.reader._MOST_NAMES", 25)
    with RunReader(path) as reader, pytest.raises(StoreError, match="have more than 25 names"):
        reader.sample_layouts()


def test_a_layout_is_read_once(story: Story) -> None:
    first, last = (story.writer.sample_layout([name], ["s"]) for name in ("a", "b"))
    with RunReader(story.writer.path) as reader:
        asked: list[str] = []
        reader._connection.set_trace_callback(asked.append)
        for _ in range(3):
            assert reader.sample_layouts().keys() == {first, last}
        assert sum("names" in statement for statement in asked) == 2
        later = story.writer.sample_layout(["c"], ["s"])
        assert reader.sample_layouts()[later].position == {"c": 0}
    story.end()


def test_a_closed_store_is_read_without_a_trace(story: Story) -> None:
    path = story.end()
    with RunReader(path) as reader:
        assert reader.count(RunStarted) == 1
    assert [entry.name for entry in path.parent.iterdir()] == ["run.sqlite"]


def test_a_copy_without_its_log_has_what_was_folded_in(story: Story, tmp_path: Path) -> None:
    story.writer.checkpoint()
    story.note("still in the log")
    copied = tmp_path / "with space? and #" / "copy.sqlite"
    copied.parent.mkdir()
    shutil.copyfile(story.writer.path, copied)
    with RunReader(copied) as reader:
        assert reader.count(RunStarted) == 1
        assert list(reader.events(kinds=(Notice,))) == []
    story.close()


@pytest.mark.parametrize("hosts", [[f"hv{number}" for number in range(300)], ["hv1", "a b"], ["a" * 2**20]])
def test_a_fleet_has_so_many_hosts_as_a_scenario_may_name(story: Story, hosts: list[str]) -> None:
    path = story.end()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FLEET_TABLES)
        rows = [(host, f"run-{number}", 0.0, 0.0, 0) for number, host in enumerate(hosts)]
        connection.executemany("INSERT INTO fleet_sources (host, run, wall, mono, seen) VALUES (?, ?, ?, ?, ?)", rows)
        connection.commit()
    with RunReader(path) as reader, pytest.raises(StoreError, match="hosts are more than 256, or have other names"):
        reader.hosts()


def test_kinds_of_a_newer_version_are_passed_over(story: Story) -> None:
    path = story.close()
    connection = sqlite3.connect(path)
    body = json.dumps({"kind": "MoonRisen", "wall": 1.0, "mono": 1.0})
    connection.execute("INSERT INTO events (wall, mono, kind, body) VALUES (1, 1, 'MoonRisen', ?)", (body,))
    connection.commit()
    connection.close()
    with RunReader(path) as reader:
        assert [row for row, _ in reader.events()] == [1, 2]


def test_what_is_no_store_is_wrong_usage(tmp_path: Path) -> None:
    text, empty, other = tmp_path / "text.sqlite", tmp_path / "empty.sqlite", tmp_path / "other.sqlite"
    text.write_text("I am not a database, and longer than its header would be.\n" * 100)
    empty.touch()
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE events (id INTEGER)")
    connection.close()
    for path in (text, empty, other):
        with pytest.raises(UsageError, match=f"^{path}: is not the store of a run$") as caught:
            RunReader(path)
        assert caught.value.exit_code == ExitCode.USAGE
    with pytest.raises(UsageError, match="no such store"):
        RunReader(tmp_path / "gone.sqlite")


@pytest.mark.parametrize("early", [True, False])
def test_a_store_whose_writer_ends_while_it_is_opened_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    """Its log is there for one question and gone for the next."""
    path = tmp_path / "run.sqlite"
    writer = RunWriter(path)
    has_locks = has_record_locks

    def asked(log: Path) -> bool:
        answer = not early and has_locks(log)
        writer.close()
        assert not log.exists()
        return has_locks(log) if early else answer

    monkeypatch.setattr("vmlab.store.reader.has_record_locks", asked)
    RunReader(path).close()


def test_a_store_that_is_made_while_it_is_opened_is_not_called_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.sqlite"
    path.touch()
    # Without a log the file would be taken for one that nobody writes.
    (tmp_path / "run.sqlite-wal").touch()
    connect = sqlite3.connect

    class Slow(sqlite3.Connection):
        """Between its first question and the next the writer makes the store."""

        asked = 0

        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            if self.asked == 1:
                RunWriter(path, connect).close()
            self.asked += 1
            return super().execute(*arguments)

    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, factory=Slow, **named))
    with pytest.raises(NotBegunError):
        RunReader(path)
    monkeypatch.undo()
    RunReader(path).close()


def test_a_newer_schema_is_refused_by_its_number(story: Story) -> None:
    path = story.end()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(UsageError, match=r"was written by a newer vmlab \(schema 7, known: 1\)"):
        RunReader(path)


def test_a_truncated_store_is_one_line(story: Story) -> None:
    for number in range(200):
        story.note(f"{number} " + "x" * 500)
    path = story.end()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(StoreError, match=f"^cannot read {path}: ") as caught, RunReader(path) as reader:
        list(reader.events())
    assert "\n" not in str(caught.value)


def test_samples_between_two_moments(story: Story) -> None:
    layout = story.writer.sample_layout(["a"], ["s"])
    for number in range(1500):
        story.writer.sample(layout, WALL + number, float(number), number.to_bytes(4, "little"))
    path = story.end()
    with RunReader(path) as reader:
        rows = list(reader.sample_rows(since=100.0, until=1299.0))
        assert reader.sample_layouts()[layout].names == ("a",)
    assert [row.mono for row in rows] == [float(number) for number in range(100, 1300)]
    assert rows[0].body == (100).to_bytes(4, "little")


def test_samples_from_a_moment_on_are_found_where_rows_are_missing(story: Story) -> None:
    layout = story.writer.sample_layout(["a"], ["s"])
    for number in range(40):
        story.writer.sample(layout, WALL, number / 2, b"body")
    path = story.end()
    with closing(sqlite3.connect(path)) as changed, changed:
        changed.execute("DELETE FROM samples WHERE id % 7 = 3 OR id BETWEEN 20 AND 29")
    with RunReader(path) as reader:
        kept = list(reader.sample_rows())
        assert 20 < len(kept) < 30
        for since in (-1.0, *(number / 4 for number in range(82))):
            for after in (0, 1, 3, 18, 24, 40, 99):
                wanted = [row.id for row in kept if row.mono >= since and row.id > after]
                assert [row.id for row in reader.sample_rows(since, after=after)] == wanted, (since, after)
                pages = reader.sample_slices(layout, 0, 4, since, 99.0, after)
                assert [row for page in pages for row, _, _ in page] == wanted


def test_a_store_with_the_index_of_earlier_ones_is_read(story: Story) -> None:
    layout = story.writer.sample_layout(["a"], ["s"])
    story.writer.sample(layout, WALL, 1.0, b"body")
    path = story.end()
    with closing(sqlite3.connect(path)) as changed:
        changed.execute("CREATE INDEX samples_mono ON samples (mono)")
    with RunReader(path) as reader:
        assert [row.mono for row in reader.sample_rows(since=0.5)] == [1.0]
