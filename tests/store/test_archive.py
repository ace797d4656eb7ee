"""A run that is carried to another machine, and archives that are not what they say."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.lab.process import dead_runs
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import RefusedError, UsageError
from vmlab.model.places import runs_folder
from vmlab.store import archive
from vmlab.store.reader import RunReader
from vmlab.store.runs import write_tag
from vmlab.system.removal import remove_tree

RUN = "20261121-143000-tile-7f3a"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """An exported run, whose original is gone."""
    folder = runs_folder() / RUN
    story = Story(folder / "run.sqlite").begin({"cache": ["none"]})
    story.cell({"cache": "none"}, {"web": 10.0}, wall=11.0)
    story.end()
    (folder / "scenario.yaml").write_text("name: tile\n")
    (folder / "launcher.log").write_text("a trace\n")
    with RunReader(folder / "run.sqlite") as reader, (tmp_path / "x.vmlab").open("wb") as file:
        archive.pack(reader, RUN, file)
    remove_tree(folder)
    return tmp_path / "x.vmlab"


def events(store: Path) -> list[Any]:
    with RunReader(store) as reader:
        return [event for _, event in reader.events()]


def test_an_imported_run_is_the_one_that_was_exported(packed: Path) -> None:
    assert archive.unpack(packed) == RUN
    folder = runs_folder() / RUN
    assert len(events(folder / "run.sqlite")) == 9
    assert sorted(path.name for path in folder.iterdir()) == ["run.sqlite", "scenario.yaml", "vmlab.mark"]
    assert RunFolder.of(RUN).is_own()
    assert not RunFolder.of(RUN).alive()


def test_a_run_that_is_here_is_not_replaced(packed: Path) -> None:
    archive.unpack(packed)
    (runs_folder() / RUN / "kept").touch()
    with pytest.raises(RefusedError, match=f"run {RUN} is here already"):
        archive.unpack(packed)
    assert (runs_folder() / RUN / "kept").exists()


def test_an_import_that_was_killed_is_done_again(packed: Path) -> None:
    archive.unpack(packed)
    store = runs_folder() / RUN / "run.sqlite"
    store.rename(store.with_name("run.sqlite.new"))
    assert archive.unpack(packed) == RUN
    assert not store.with_name("run.sqlite.new").exists()


def test_a_run_may_not_be_called_as_something_else_is(packed: Path) -> None:
    """Neither `last` nor a name that a user gave, nor what begins with one: it would hide what they mean."""
    for word in ("last", "latest"):
        rewrite(packed, contents(packed), lambda body, word=word: body.update(run=word))  # type: ignore[misc]
        refused(packed, f"a run cannot be called '{word}'")
    write_tag("base", RUN)
    for run in ("base", "baseline", "base-1"):
        rewrite(packed, contents(packed), lambda body, run=run: body.update(run=run))  # type: ignore[misc]
        with pytest.raises(RefusedError, match=f"run '{run}' cannot be told from the name base"):
            archive.unpack(packed)
    assert not any(runs_folder().iterdir())


SAMPLE_SPOILS = {
    "UPDATE samples SET body = x'00'": "not as long as its layout",
    "UPDATE samples SET layout = 99": "no known layout",
    "UPDATE samples SET mono = 'noon'": "a sample has no time",
    "UPDATE samples SET wall = 9e999": "instead of a number",
    "UPDATE samples SET body = 'text'": "instead of bytes",
    "UPDATE samples SET wall = 253400000000.0": "instead of a time",
    "UPDATE samples SET wall = -1": "instead of a time",
    "UPDATE samples SET mono = 1e20": "instead of a number",
    "UPDATE layouts SET names = '[\"a\"]', units = '[\"s\"]'": "no known layout",
    "UPDATE layouts SET names = '[\"a\"]'": "has 1 names with",
    "UPDATE layouts SET names = json_array(hex(zeroblob(300)))": "is too large",
    "UPDATE layouts SET names = '[\"a\"' || replace(hex(zeroblob(20000)), '00', ',\"a\"') || ']'": "is too large",
    "UPDATE layouts SET names = json_array(hex(zeroblob(3000000)))": "is too large",
    "UPDATE layouts SET names = '7'": "no list of names",
    "DELETE FROM events WHERE kind = 'CellStarted'": "its cell 1 ends without a beginning",
    "INSERT INTO events SELECT 99, wall, mono, kind, cell, body FROM events WHERE kind = 'CellEnded'": "without a",
    "UPDATE events SET body = json_set(body, '$.scenario', hex(zeroblob(3000000))) WHERE kind = 'RunStarted'": "4 MiB",
    "UPDATE events SET body = json_set(body, '$.axes', json('{\"tiles\":100000}')) WHERE kind = 'CellStarted'": "axes",
}


@pytest.mark.parametrize("statement", SAMPLE_SPOILS)
def test_what_no_reader_can_read_is_not_taken(packed: Path, tmp_path: Path, statement: str) -> None:
    store = tmp_path / "spoilt.sqlite"
    story = Story(store).begin({"cache": ["none"]})
    story.start_cell({"cache": "none"})
    story.execute(2.0, [{"cpu_user_percent": 4.0}, {"cpu_user_percent": 5.0}])
    story.end_cell(wall=2.0)
    story.end()
    rewrite(packed, {**contents(packed), "run.sqlite": store.read_bytes()})
    assert archive.unpack(packed) == RUN
    remove_tree(runs_folder() / RUN)
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(statement)
    rewrite(packed, {**contents(packed), "run.sqlite": store.read_bytes()})
    refused(packed, SAMPLE_SPOILS[statement])


def test_an_import_that_was_killed_is_found_by_clean_and_one_under_way_is_not(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "run"))
    meanwhile = []
    demand = archive._demand_store

    def killed(store: Path, run: str) -> None:
        demand(store, run)
        meanwhile.append((archive.is_unfinished(store.parent), dead_runs.clean()))

    monkeypatch.setattr(archive, "_demand_store", killed)
    archive.unpack(packed)
    assert meanwhile == [(False, [])]
    folder = runs_folder() / RUN
    (folder / "run.sqlite").rename(folder / "run.sqlite.new")
    (swept,) = dead_runs.clean()
    assert (swept.run, swept.removed, swept.left) == (RUN, (str(folder),), ())
    assert not folder.exists() and dead_runs.clean() == []


def test_a_store_with_a_log_is_exported_whole(tmp_path: Path) -> None:
    story = Story(runs_folder() / RUN / "run.sqlite").begin({"cache": ["none"]})
    with RunReader(story.writer.path) as reader, (tmp_path / "x.vmlab").open("wb") as file:
        archive.pack(reader, RUN, file)
    story.close()
    remove_tree(runs_folder() / RUN)
    archive.unpack(tmp_path / "x.vmlab")
    assert len(events(runs_folder() / RUN / "run.sqlite")) == 2


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def rewrite(path: Path, files: Mapping[str, bytes], manifest: Callable[[dict[str, Any]], None] | None = None) -> None:
    """The archive with other files, the list adapted to them unless a test spoils it."""
    body = json.loads(contents(path)["manifest.json"])
    listed = {name: data for name, data in files.items() if name != "manifest.json"}
    body["files"] = {n: {"bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()} for n, d in listed.items()}
    if manifest is not None:
        manifest(body)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in listed.items():
            made.writestr(name, data)
        made.writestr("manifest.json", json.dumps(body))


def refused(path: Path, match: str) -> None:
    with pytest.raises(UsageError, match=match) as found:
        archive.unpack(path)
    assert "\n" not in str(found.value)
    assert not runs_folder().exists() or not any(runs_folder().iterdir())
    assert not (path.parent / "escaped").exists()


@pytest.mark.parametrize(
    "name",
    ["../escaped", "/tmp/escaped", "a/../../escaped", "lock", "run.sqlite-wal", "..", "C:\\escaped", "vmlab.mark"],
)
def test_other_files_are_refused_by_their_names(packed: Path, name: str) -> None:
    rewrite(packed, {**contents(packed), name: b"x"})
    refused(packed, "holds other files")


def test_a_name_may_stand_once(packed: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(packed, "a") as opened:
        opened.writestr("run.sqlite", b"x")
    refused(packed, "holds other files")


@pytest.mark.parametrize("run", ["../../escaped", "", "a/b", "A", "-x", "a" * 101, "a\n", None, 7])
def test_the_id_must_be_one(packed: Path, run: object) -> None:
    rewrite(packed, contents(packed), lambda body: body.update(run=run))
    refused(packed, "no proper id")


@pytest.mark.parametrize("note", ["x" * 501, "\udcff", None, 7, ["x"], {}])
def test_a_note_is_bounded(packed: Path, note: object) -> None:
    rewrite(packed, contents(packed), lambda body: body.update(note=note))
    refused(packed, "its note is no text of at most 500 characters")


def test_the_store_must_be_that_of_the_run(packed: Path) -> None:
    rewrite(packed, contents(packed), lambda body: body.update(run="20261121-143000-other-7f3a"))
    refused(packed, "that of another run")


def test_bytes_that_were_changed_are_found(packed: Path) -> None:
    whole = contents(packed)
    digest = hashlib.sha256(whole["run.sqlite"]).hexdigest()
    spoilt = bytearray(whole["run.sqlite"])
    spoilt[-5] ^= 1
    rewrite(packed, {**whole, "run.sqlite": bytes(spoilt)}, lambda b: b["files"]["run.sqlite"].update(sha256=digest))
    refused(packed, "its digest differs")


@pytest.mark.parametrize("size", [10, -1, 2**60, "1", True, None])
def test_sizes_are_bounded(packed: Path, size: object) -> None:
    rewrite(packed, contents(packed), lambda body: body["files"]["run.sqlite"].update(bytes=size))
    refused(packed, "larger than listed|too large|no size")


def test_a_bomb_is_read_no_further_than_its_listed_size(packed: Path) -> None:
    bomb = b"\0" * 2**24
    rewrite(packed, {**contents(packed), "run.sqlite": bomb}, lambda b: b["files"]["run.sqlite"].update(bytes=4096))
    assert packed.stat().st_size < 2**16
    refused(packed, "larger than listed")


def test_a_run_without_room_is_refused(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("usage", (), {"free": 10})
    monkeypatch.setattr(shutil, "disk_usage", lambda _place: usage)
    with pytest.raises(RefusedError, match="has 10 B free"):
        archive.unpack(packed)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW more AS SELECT 1",
        "CREATE TRIGGER more AFTER INSERT ON events BEGIN SELECT 1; END",
        "CREATE TABLE more (a, b AS (a + 1))",
        "DROP TABLE events; CREATE VIEW events AS WITH n AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT 1 FROM n",
        "; ".join(f"CREATE TABLE more{number} (a)" for number in range(1000)),
    ],
    ids=range(5),
)
def test_a_store_holds_the_tables_of_a_run_alone(packed: Path, tmp_path: Path, statement: str) -> None:
    whole = contents(packed)
    store = tmp_path / "spoilt.sqlite"
    store.write_bytes(whole["run.sqlite"])
    connection = sqlite3.connect(store)
    connection.executescript(statement)
    connection.close()
    rewrite(packed, {**whole, "run.sqlite": store.read_bytes()})
    refused(packed, "damaged, or holds other tables")


def test_the_statements_of_a_store_are_bounded(packed: Path, tmp_path: Path) -> None:
    whole = contents(packed)
    store = tmp_path / "spoilt.sqlite"
    store.write_bytes(whole["run.sqlite"])
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(f'CREATE TABLE more ("{"a" * 70_000}")')
    rewrite(packed, {**whole, "run.sqlite": store.read_bytes()})
    refused(packed, "its store cannot be read: string or blob too big")


def test_a_store_of_before_the_first_release_is_imported_with_its_index(tmp_path: Path) -> None:
    recorded = Path(__file__).parents[1] / "tui/recorded/tile-smoke.sqlite"
    with RunReader(recorded) as reader, (tmp_path / "x.vmlab").open("wb") as file:
        archive.pack(reader, "20261121-063647-tile-778a", file)
    run = archive.unpack(tmp_path / "x.vmlab")
    assert events(runs_folder() / run / "run.sqlite") == events(recorded)


@pytest.mark.parametrize("store", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_store_must_be_one(packed: Path, store: bytes) -> None:
    rewrite(packed, {**contents(packed), "run.sqlite": store})
    refused(packed, "cannot be read|not the store of a run|damaged")


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"schema": "vmlab.archive/2"}', "[" * 100_000])
def test_the_list_must_be_one(packed: Path, text: str) -> None:
    whole = contents(packed)
    with zipfile.ZipFile(packed, "w") as made:
        made.writestr("run.sqlite", whole["run.sqlite"])
        made.writestr("manifest.json", text)
    refused(packed, "its list|no exported run")


@pytest.mark.parametrize("data", [b"", b"PK", b"x" * 1000])
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.vmlab"
    path.write_bytes(data)
    refused(path, "no exported run")


def test_an_archive_that_breaks_off_is_refused(packed: Path) -> None:
    whole = packed.read_bytes()
    # The end of a ZIP has its table, so the beginning is what is missing here.
    packed.write_bytes(whole[:100] + b"\0" * 200 + whole[300:])
    refused(packed, "no exported run|digest differs")


def test_a_run_that_is_under_way_is_not_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Story(runs_folder() / RUN / "run.sqlite").begin({"cache": ["none"]}).close()
    monkeypatch.setattr(archive, "is_alive", lambda _folder: True)
    with RunReader(store) as reader, pytest.raises(RefusedError, match="still under way"):
        archive.pack(reader, RUN, io.BytesIO())
