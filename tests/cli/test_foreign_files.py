"""Files that others made: each command with a limit of its memory, and files that are none or have no end."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sqlite3
import stat
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests import forked
from tests.store.stories import Story
from vmlab.model.results import RawOutput
from vmlab.store.runs import tags_folder

RUN = "20261121-143000-tile-7f3a"
MEMORY = 2 * 2**30
"""Bytes of address space; the program has about 700 MiB before it reads anything."""
HUGE = 4 * 2**30
NOBODY = 65534


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    folder = tmp_path / "state/vmlab/runs" / RUN
    story = Story(folder / "run.sqlite").begin({"cache": ["none"]})
    story.cell({"cache": "none"}, {"web": 10.0}, wall=11.0)
    story.writer.raw(1, RawOutput("web", 1, "front", "ab", "printed"))
    story.end()
    return folder / "run.sqlite"


def said(folder: Path, *arguments: str, files: int = 1024) -> tuple[int, str]:
    """The exit code of a command and what it told, within four minutes and the limit of memory."""
    limits = {resource.RLIMIT_AS: MEMORY, resource.RLIMIT_NOFILE: files}
    done = forked.ended(*arguments, env=os.environ, cwd=folder, limits=limits)
    words = done.stderr.decode()
    assert "Traceback" not in words, words
    assert len(words.splitlines()) <= 2, words
    return done.returncode, words


def special(folder: Path, kind: str) -> str:
    """The name of something that is no ordinary file."""
    name = folder / kind
    if kind == "zero":
        return "/dev/zero"
    if kind == "pipe":
        os.mkfifo(name)
    else:
        name.mkdir()
    return str(name)


SPECIAL = {"zero": "is a device", "pipe": "is a named pipe", "folder": "is a folder"}
ADD = ("image", "add", "mine", "--user", "root")


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize(
    "command",
    [
        lambda file: ("import", file),
        lambda file: (*ADD, "--disk", file, "--key", "key"),
        lambda file: (*ADD, "--disk", "disk", "--key", file),
        lambda file: (*ADD, "--disk", "disk", "--key", "key", "--kernel", file),
        lambda file: (*ADD, "--disk", "disk", "--key", "key", "--kernel", "disk", "--initrd", file),
        lambda file: ("validate", file),
    ],
    ids=["import", "disk", "key", "kernel", "initrd", "validate"],
)
def test_what_is_no_ordinary_file_is_refused_before_it_is_read(
    tmp_path: Path, kind: str, command: Callable[[str], tuple[str, ...]]
) -> None:
    (tmp_path / "disk").write_bytes(b"\0" * 4096)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    code, words = said(tmp_path, *command(special(tmp_path, kind)))
    assert (code, SPECIAL[kind] in words) == (2, True), words


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("import", "huge"), "is no exported run"),
        ((*ADD, "--disk", "disk", "--key", "huge"), "is larger than 64 KiB"),
        ((*ADD, "--disk", "disk", "--key", "key", "--kernel", "huge"), "no kernel or initial RAM disk is"),
        (("validate", "huge"), "no scenario is"),
        (("show", "./huge"), "is not the store of a run"),
    ],
)
def test_a_file_that_is_too_large_is_refused(tmp_path: Path, command: tuple[str, ...], words: str) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(HUGE)
    (tmp_path / "disk").write_bytes(b"\0" * 4096)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    code, told = said(tmp_path, *command)
    assert (code, words in told) == (2, True), told


def test_an_archive_whose_list_is_large_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "x.vmlab").open("wb") as file:
        file.truncate(HUGE - 64)
        file.seek(0, os.SEEK_END)
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, HUGE - 128, 0, 0))
    code, words = said(tmp_path, "import", "x.vmlab")
    assert (code, "its list of files is larger than 64 KiB" in words) == (2, True), words


def fill(store: Path, size: int, statement: str = "UPDATE raw_outputs SET body = ?") -> None:
    """Have a tool have printed `size` zeros, a multiple of 16 MiB: the same compressed block again and again."""
    packing = zlib.compressobj(9)
    head = packing.compress(b"") + packing.flush(zlib.Z_FULL_FLUSH)
    block = packing.compress(bytes(2**24)) + packing.flush(zlib.Z_FULL_FLUSH)
    end = b"\3\0" + struct.pack(">HH", size % 65521, 1)  # an empty last block, and Adler-32
    body = head + block * (size // 2**24) + end
    assert zlib.decompress(head + block + b"\3\0" + struct.pack(">HH", 2**24 % 65521, 1)) == bytes(2**24)
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(statement, (body,))


@pytest.mark.parametrize(
    "command",
    [("show", RUN, "--raw"), ("report", RUN, "-o", "x.html"), ("reparse", RUN, "--dry-run")],
    ids=["show", "report", "reparse"],
)
def test_what_unpacks_to_gigabytes_is_refused(tmp_path: Path, state: Path, command: tuple[str, ...]) -> None:
    fill(state, 3 * 2**30)
    code, words = said(tmp_path, *command)
    assert (code, "what a tool printed is larger than 64 MiB" in words) == (1, True), words
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize(
    ("characters", "count", "why"),
    [(3 * 2**20, 90, "holds more than 256 MiB"), (2**22, 1, "is larger than 4 MiB")],
    ids=["together", "one"],
)
def test_a_store_of_large_events_is_refused(tmp_path: Path, state: Path, characters: int, count: int, why: str) -> None:
    with closing(sqlite3.connect(state)) as connection, connection:
        body = '{"kind":"Notice","level":"info","text":"' + "x" * characters + '"}'
        for _ in range(count):
            connection.execute("INSERT INTO events (wall, mono, kind, body) VALUES (1, 1, 'Notice', ?)", (body,))
    code, words = said(tmp_path, "show", RUN)
    assert (code, why in words) == (1, True), words


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_among_the_tags_is_refused_and_stays(tmp_path: Path, kind: str) -> None:
    tags_folder().mkdir(parents=True)
    if kind == "link":
        (tmp_path / "target").write_text("mine\n")
        (tags_folder() / "nightly").symlink_to(tmp_path / "target")
    else:
        Path(special(tmp_path, kind)).rename(tags_folder() / "nightly")
    before = (tags_folder() / "nightly").lstat()
    code, words = said(tmp_path, "tag", RUN, "nightly")
    assert (code, "and not an ordinary file" in words) == (2, True), words
    assert [said(tmp_path, *command)[0] for command in (("ls",), ("tag",), ("tag", RUN, "other"))] == [0, 0, 0]
    code, words = said(tmp_path, "show", "nightly")
    assert (code, "its file is damaged" in words) == (2, True), words
    now = (tags_folder() / "nightly").lstat()
    assert (now.st_ino, stat.S_IFMT(now.st_mode)) == (before.st_ino, stat.S_IFMT(before.st_mode))
    assert kind != "link" or (tmp_path / "target").read_text() == "mine\n"


@pytest.mark.parametrize("name", ["lock", "runner.json", "journal.jsonl", "vmlab.mark", "run.sqlite"])
def test_a_pipe_in_a_runs_folder_holds_no_command_up(tmp_path: Path, state: Path, name: str) -> None:
    (state.parent / name).unlink(missing_ok=True)
    os.mkfifo(state.parent / name)
    for command in (("ls",), ("clean",)):
        code, _ = said(tmp_path, *command)
        assert code in (0, 1, 5)


def test_what_cannot_be_written_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    cases = {
        "loop.csv": "Too many levels of symbolic links",
        "pipe.csv": "No such device",
        "/dev/full": "No space left",
    }
    for name, words in cases.items():
        code, told = said(tmp_path, "export", RUN, "--format", "csv", "-o", name)
        assert (code in (1, 3), Path(name).name in told, words in told) == (True, True, True), told
    assert said(tmp_path, "export", RUN, "--format", "vmlab", "-o", "/dev/null") == (0, "")
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def test_a_run_is_refused_where_too_few_files_may_be_open(tmp_path: Path, state: Path) -> None:
    (tmp_path / "own.yaml").write_text("name: own\nworkloads: {primes: {kind: cpu, on: host, threads: 1}}\n")
    before = list(state.parents[1].iterdir())
    code, words = said(tmp_path, "run", "own.yaml", "--concurrent", files=40)
    assert (code, "may have 40 open files, and a run needs 512" in words) == (3, True), words
    assert list(state.parents[1].iterdir()) == before


def test_an_import_is_read_whole_before_it_counts(tmp_path: Path, state: Path) -> None:
    """A store that lacks a table, or has an event that cannot be read, is named by its archive."""
    with closing(sqlite3.connect(state)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    whole = state.read_bytes()
    spoils = {
        "DROP TABLE documents": "holds other tables than a run's",
        "DROP TABLE samples": "holds other tables than a run's",
        "UPDATE events SET body = '{' WHERE id = 1": "event 1",
        "UPDATE events SET body = '{' WHERE id = 5": "event 5",
        "UPDATE raw_outputs SET body = x'00'": "its store cannot be read",
    }
    for statement, words in spoils.items():
        copy = tmp_path / "copy.sqlite"
        copy.write_bytes(whole)
        with closing(sqlite3.connect(copy)) as connection, connection:
            connection.execute(statement)
        _pack(copy, tmp_path / "x.vmlab")
        code, told = said(tmp_path, "import", "x.vmlab")
        assert code == 2 and told.startswith("vmlab: x.vmlab: is no exported run, or damaged") and words in told, told
        assert [path.name for path in state.parents[1].iterdir()] == [RUN]


def _pack(store: Path, target: Path) -> None:
    content = store.read_bytes()
    listed = {"run.sqlite": {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}}
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("run.sqlite", content)
        archive.writestr("manifest.json", json.dumps({"schema": "vmlab.archive/1", "run": f"{RUN}b", "files": listed}))


def test_a_link_of_another_user_leads_to_that_users_files_alone(tmp_path: Path) -> None:
    """Else whoever may write a folder chooses which file root reads, whose words the messages have."""
    (tmp_path / "secret").write_text("name: s3cret here\n")
    (tmp_path / "own").write_text("name: S3cret here\n")
    os.chown(tmp_path / "own", NOBODY, NOBODY)
    for name, target, owner, refused in (
        ("theirs.yaml", "secret", NOBODY, True),
        ("chain.yaml", "theirs.yaml", NOBODY, True),
        ("between.yaml", "own", NOBODY, False),
        ("mine.yaml", "secret", 0, False),
    ):
        (tmp_path / name).symlink_to(target)
        os.chown(tmp_path / name, owner, owner, follow_symlinks=False)
        code, words = said(tmp_path, "validate", name)
        assert (code, "is a link by another user" in words, "3cret" in words) == (2, refused, not refused), words


def test_a_file_that_is_no_scenario_is_said_to_be_none_without_its_words(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("s3cret: {password: s3cret}\ns3cret2: [s3cret]\n")
    code, words = said(tmp_path, "validate", "x.yaml")
    assert (code, "is no scenario" in words, "s3cret" in words) == (2, True, False), words
