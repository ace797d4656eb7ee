"""A run in one file that may be carried to another machine: a ZIP with its store and a list of digests.

The archive comes from anywhere, so nothing in it is trusted: only known names are read, never used as paths; sizes are
bounded before and while they are read; each file must have the digest that the list names, and the store must be one.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from vmlab.integrity.long_work import beside, current, pieces
from vmlab.model.cell_event import CellEnded, CellStarted
from vmlab.model.errors import RefusedError, StoreError, UsageError, VmlabError
from vmlab.model.event import CellWithdrawn, RunStarted
from vmlab.model.places import runs_folder
from vmlab.model.quantities import format_bytes
from vmlab.store.life import LOCK, LONGEST_NOTE, checked_note, is_alive, note_of, write_note
from vmlab.store.reader import RunReader
from vmlab.store.runs import STORE, demand_id
from vmlab.store.samples import HostReaders, samples
from vmlab.store.sql_schema import EARLIER_INDEX, FLEET_TABLES, TABLES
from vmlab.system.file_system import demand_usable
from vmlab.system.given_file import open_given
from vmlab.system.removal import make_marked, named, owner_of, remove_file, remove_tree
from vmlab.system.scratch import scratch

SCHEMA = "vmlab.archive/1"
MOST_BYTES = 16 * 2**30
"""The largest store that is imported: a day of a hundred guests, ten ticks a second, needs less."""
_MANIFEST = "manifest.json"
_DRAFT = f"{STORE}.new"
_BESIDE = ("scenario.yaml", "request.json")
"""What lies beside a run's store and is taken along."""
_MOST_BESIDE = 4 * 2**20
_PIECE = 2**20
_MOST_LIST = 2**16
_MOST_STATEMENT = 2**16
"""Bytes of one of SQLite's statements by which a table was made."""
_LAST_BYTES = 2**16 + 200
"""The archive's end with its longest comment, and the records that stand before it in a large archive."""
_IN_ZIP64 = 2**32 - 1
_RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, struct.error)
"""What zipfile raises for archives that are damaged, encrypted or of a method that it does not know."""


def pack(reader: RunReader, run: str, file: BinaryIO) -> None:
    """Write the run `run`, whose store `reader` reads, to `file`. Raises RefusedError while it is under way."""
    folder = reader.path.parent
    if is_alive(folder):
        raise RefusedError(f"run {run} is still under way", remedy="wait for its end, or `vmlab stop` it")
    if not _RUN_ID.fullmatch(run):
        raise UsageError("the run has no id by which another machine could keep it")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with scratch("export") as place:
            reader.copy(place / STORE)
            current().begin(f"packing run {run}", (place / STORE).stat().st_size)
            listed = {STORE: _packed(archive, place / STORE, STORE)}
        for name in _BESIDE:
            beside = folder / name
            if beside.is_file() and not beside.is_symlink() and beside.stat().st_size <= _MOST_BESIDE:
                listed[name] = _packed(archive, beside, name)
        # In the list, which earlier versions read without it; they refuse a file that they do not know.
        noted = {"note": note} if (note := note_of(folder)) else {}
        archive.writestr(_MANIFEST, json.dumps({"schema": SCHEMA, "run": run, **noted, "files": listed}, indent=1))


def _packed(archive: zipfile.ZipFile, source: Path, name: str) -> dict[str, Any]:
    """Add a file to the archive; its size and digest."""
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as reading, archive.open(name, "w", force_zip64=True) as writing:
        for piece in pieces(reading):
            writing.write(piece)
            digest.update(piece)
            size += len(piece)
    return {"bytes": size, "sha256": digest.hexdigest()}


@dataclass(frozen=True, slots=True)
class _Listed:
    """A file of the archive as its list has it."""

    name: str
    bytes: int
    sha256: str


def unpack(path: Path) -> str:
    """Add the run in the archive at `path` to this machine's; its id.

    Raises UsageError for what is no archive, is damaged, or holds what it should not; RefusedError where the run is
    here already or the disk has no room. Then nothing is left.
    """
    with _archive_errors(path), open_given(path) as file, _opened(file) as archive:
        run, note, files = _manifest(archive)
        _demand_room(files)
        folder = runs_folder() / run
        if owner_of(folder) == run and not (folder / STORE).exists() and not is_alive(folder):
            # An import that was killed left it.
            remove_tree(folder)
        try:
            make_marked(folder, run)
        except FileExistsError:
            raise RefusedError(f"run {run} is here already", remedy=f"`vmlab show {run}` shows it") from None
        try:
            with _held(folder):
                # By its draft `clean` knows what a killed import left.
                (folder / _DRAFT).touch()
                current().begin(f"reading {path}", sum(one.bytes for one in files))
                for listed in sorted(files, key=lambda one: one.name == STORE):
                    _unpacked(archive, listed, folder)
                _demand_store(folder / _DRAFT, run)
                write_note(folder, note)
                # The store gets its name last, so that a folder without one is an import that did not come to its end.
                (folder / _DRAFT).rename(folder / STORE)
        except BaseException:
            remove_tree(folder)
            raise
    return run


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold the run's lock, by which whoever clears up knows that the import is under way."""
    with (folder / LOCK).open("xb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
        remove_file(folder / LOCK)


def is_unfinished(folder: Path) -> bool:
    """Whether `folder` is what an import left that was killed."""
    own = owner_of(folder) == folder.name
    return own and (folder / _DRAFT).is_file() and not (folder / STORE).exists() and not is_alive(folder)


def _opened(file: BinaryIO) -> zipfile.ZipFile:
    """The archive in `file`, whose list of files is small: zipfile reads all of it into memory."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LAST_BYTES))
    last = file.read(_LAST_BYTES)
    end = last.rfind(b"PK\x05\x06")
    if end < 0 or len(last) - end < 22:
        raise zipfile.BadZipFile("File is not a zip file")
    (listed,) = struct.unpack_from("<L", last, end + 12)
    if listed == _IN_ZIP64:
        # The end's own 64-bit record stands before its locator, and has the size 40 bytes from its beginning.
        large = last.rfind(b"PK\x06\x06", 0, end)
        if large < 0 or large + 48 > len(last):
            raise zipfile.BadZipFile("it has no list of files")
        (listed,) = struct.unpack_from("<Q", last, large + 40)
    if listed > _MOST_LIST:
        raise ValueError(f"its list of files is larger than {format_bytes(_MOST_LIST)}")
    file.seek(0)
    return zipfile.ZipFile(file)


@contextmanager
def _archive_errors(path: Path) -> Iterator[None]:
    try:
        with named(path):
            yield
    except VmlabError:
        raise
    except _BROKEN as error:
        raise UsageError(f"{path}: is no exported run, or damaged: {error}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        # zipfile seeks to where the list says, which may be before the file's first byte.
        raise UsageError(f"{path}: is no exported run, or damaged: its list names paths outside of it") from error


def _manifest(archive: zipfile.ZipFile) -> tuple[str, str, list[_Listed]]:
    """The run's id, its note and the files that are listed; the archive has these, once each, and nothing else."""
    names = [entry.filename for entry in archive.infolist()]
    allowed = {_MANIFEST, STORE, *_BESIDE}
    if len(set(names)) != len(names) or not {_MANIFEST, STORE} <= set(names) <= allowed:
        raise ValueError("it holds other files than those of a run")
    if any(entry.flag_bits & 1 or entry.compress_type not in _METHODS for entry in archive.infolist()):
        raise ValueError("it is encrypted or packed in another way")
    with archive.open(_MANIFEST) as file:
        text = file.read(_PIECE + 1)
    body = json.loads(text) if len(text) <= _PIECE else None
    if not isinstance(body, dict) or body.get("schema") != SCHEMA:
        raise ValueError(f"its list is not {SCHEMA}")
    run, files = body.get("run"), body.get("files")
    if not isinstance(run, str) or not _RUN_ID.fullmatch(run):
        raise ValueError("its run has no proper id")
    demand_id(run)
    if not isinstance(files, dict) or {_MANIFEST, *files} != set(names):
        raise ValueError("its list does not name its files")
    return run, _note(body.get("note", "")), [_listed(name, entry) for name, entry in files.items()]


def _note(note: Any) -> str:
    try:
        if isinstance(note, str):
            return checked_note(note)
    except UsageError:
        pass
    raise ValueError(f"its note is no text of at most {LONGEST_NOTE} characters")


def _listed(name: str, entry: Any) -> _Listed:
    fields: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
    size, digest = fields.get("bytes"), fields.get("sha256")
    if type(size) is not int or not isinstance(digest, str):
        raise ValueError(f"its list has no size and digest of {name}")
    most = MOST_BYTES if name == STORE else _MOST_BESIDE
    if not 0 <= size <= most:
        raise ValueError(f"{name} is too large")
    return _Listed(name, size, digest)


def _demand_room(files: list[_Listed]) -> None:
    place = runs_folder()
    demand_usable(place)
    needed, free = sum(one.bytes for one in files), shutil.disk_usage(place).free
    if needed > free:
        raise RefusedError(f"the run needs {needed} B, and {place} has {free} B free")


def _unpacked(archive: zipfile.ZipFile, listed: _Listed, folder: Path) -> None:
    """Write one file, up to its listed size; ValueError where size or digest are not as listed."""
    target = folder / (_DRAFT if listed.name == STORE else listed.name)
    digest, size = hashlib.sha256(), 0
    with archive.open(listed.name) as reading, target.open("wb") as writing:
        while piece := reading.read(_PIECE):
            size += len(piece)
            if size > listed.bytes:
                raise ValueError(f"{listed.name} is larger than listed")
            digest.update(piece)
            with named(target):
                writing.write(piece)
            current().step(len(piece))
    if size != listed.bytes or digest.hexdigest() != listed.sha256:
        raise ValueError(f"{listed.name} is not what was exported: its digest differs")


def _whole_events(reader: RunReader) -> list[str]:
    """The runs that begin in a store. ValueError where a cell ends that has not begun, or ends twice."""
    started: list[str] = []
    running: set[int] = set()
    for _, event in reader.events():
        if isinstance(event, RunStarted):
            started.append(event.run)
        elif isinstance(event, CellStarted):
            running.add(event.cell)
        elif isinstance(event, CellEnded) and event.cell not in running:
            raise ValueError(f"its cell {event.cell} ends without a beginning")
        elif isinstance(event, CellEnded | CellWithdrawn):
            running.discard(event.cell)
    return started


def _quick_check(connection: sqlite3.Connection) -> str:
    """What SQLite's own check of the whole file finds first."""
    current().begin("checking the store")
    check = partial(connection.execute, "PRAGMA quick_check(1)")
    return str(beside(lambda: check().fetchone()[0], connection.interrupt))


def _demand_store(store: Path, run: str) -> None:
    """ValueError unless the file is a whole store of the run `run`.

    Its tables must be those of `sql_schema` to the letter, before anything is read from them: a view or a calculated
    column in their place would be a program.
    """
    usual = {statement.strip() for statement in TABLES.split(";")} - {""}
    tables = {statement for statement in usual if statement.startswith("CREATE TABLE")}
    known = usual | {statement.strip() for statement in FLEET_TABLES.split(";")} - {""} | {EARLIER_INDEX}
    try:
        uri = f"{store.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True, check_same_thread=False)) as connection:
            usual_length = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_STATEMENT)
            of_each = connection.execute(f"SELECT sql FROM sqlite_schema LIMIT {2 * len(known)}")
            found = {made for (made,) in of_each if made is not None}
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, usual_length)
            sound = tables <= found <= known and _quick_check(connection) == "ok"
    except sqlite3.Error as error:
        raise ValueError(f"its store cannot be read: {error}") from error
    if not sound:
        raise ValueError("its store is damaged, or holds other tables than a run's")
    try:
        with RunReader(store) as reader:
            # Whoever reads it later must not find what cannot be read.
            started = _whole_events(reader)
            reader.raw_outputs(), reader.documents()
            with HostReaders(reader) as of_hosts:
                for one in (reader, *of_hosts.all()):
                    current().begin("checking the samples", one.sample_count(), "samples")
                    # Of days of samples only one is held at a time.
                    if sum(1 for _ in samples(one)) != one.sample_count():
                        raise ValueError("a sample has no time")
    except (StoreError, UsageError) as error:
        raise ValueError(f"its store cannot be read: {str(error).replace(str(store), STORE)}") from error
    if started != [run]:
        raise ValueError("its store is that of another run")
