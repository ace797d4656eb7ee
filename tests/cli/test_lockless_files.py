"""State, cache and sockets on file systems that lack what a run needs of them.

The rule: a file system without locks says nothing of what is to be locked. Whatever has to lock is refused before it
begins, in one line with the path, the file system and the variable that moves the folder, with exit code 3 and nothing
left; whatever only reads does without, and calls a sound run sound. The same line, exit code and cleanliness for a
folder that is read-only, full, a file, or a dangling link.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.stories import Story
from vmlab.system.removal import mark

CHECKOUT = Path(__file__).resolve().parents[2]
RUN = "20261121-143000-tile-7f3a"
KILLED = "20261121-143001-tile-7f3b"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="needs root and /dev/fuse"
)

_CALLS = """
import contextlib, io, json, sys
from tests.cli.called import ended
told = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = ended(*words)
    told.append([code, out.getvalue(), err.getvalue()])
sys.__stdout__.write(json.dumps(told))
"""


VARIABLES = {"state": "XDG_STATE_HOME", "cache": "XDG_CACHE_HOME", "run": "VMLAB_RUNTIME_DIR"}


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folders for state, cache and sockets, whose paths end at 108 bytes."""
    with tempfile.TemporaryDirectory(prefix="vmlab-") as folder:
        for name, variable in VARIABLES.items():
            Path(folder, name).mkdir()
            monkeypatch.setenv(variable, f"{folder}/{name}")
        yield Path(folder)


@pytest.fixture
def places(empty: Path) -> Path:
    """The same with a run that has ended, and one that was killed and has a log."""
    runs = empty / "state/vmlab/runs"
    for run in (RUN, KILLED):
        story = Story(runs / run / "run.sqlite").begin({"cache": ["none"]})
        story.cell({"cache": "none"}, {"web": 10.0}, wall=11.0)
        mark(runs / run, run)
        if run == RUN:
            story.end()
        else:
            # As its process leaves them by dying: closing would fold the log in.
            left = {
                path: path.read_bytes() for path in (runs / run).glob("run.sqlite*") if path.suffix != ".sqlite-shm"
            }
            story.writer.close()
            for path, content in left.items():
                path.write_bytes(content)
    return empty


def called(mounted: list[str], *commands: list[str]) -> list[tuple[int, str, str]]:
    """Exit code, output and messages of each command, in the namespace that `mounted` makes."""
    done = subprocess.run(
        [*mounted, sys.executable, "-c", _CALLS, json.dumps(commands)],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    told: list[Any] = json.loads(done.stdout)
    return [(code, out, err) for code, out, err in told]


def lockless(folder: Path, error: str) -> list[str]:
    return [sys.executable, "-m", "tests.fakes.lockless_files", str(folder), error]


def mounted(script: str) -> list[str]:
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{script} && exec "$@"', "sh"]


def standing(places: Path) -> set[str]:
    """All that lies in the folders, but what lists and SQLite keep for whoever reads next."""
    found = {str(path.relative_to(places)) for path in places.rglob("*")}
    return {name for name in found if not name.endswith(("run-list.json", "run-sizes.json", "-shm"))}


BEGINNING = [
    ["run", "tile", "--size", "smoke"],
    ["record", "--for", "100ms"],
    ["import", str(CHECKOUT / "tests/compatibility/releases/0.1.0/run.vmlab")],
]
"""What makes a run, and so cannot be on such a file system."""


@pytest.mark.parametrize("error", ["ENOLCK", "ENOSYS", "EOPNOTSUPP", "flock:ENOLCK", "fcntl:ENOLCK"])
def test_runs_on_a_file_system_without_locks_are_read_and_none_begins(error: str, places: Path) -> None:
    before = standing(places)
    reading = [["ls", "--json"], ["show", RUN, "--json"], ["show", KILLED, "--json"]]
    listed, ended, killed, *begun = called(lockless(places / "state", error), *reading, *BEGINNING)
    outcomes = {run["id"]: run["outcome"] for run in json.loads(listed[1])["runs"]}
    assert (listed[0], outcomes) == (0, {RUN: "passed", KILLED: "aborted"})
    assert (ended[0], ended[2], json.loads(ended[1])["run"]["outcome"]) == (0, "", "passed")
    assert (killed[0], json.loads(killed[1])["run"]["outcome"]) == (0, "aborted"), killed
    assert len(json.loads(killed[1])["cells"]) == 1, "the log of a run that was killed is read"
    runs = places / "state/vmlab/runs"
    words = f"cannot lock {runs}: its file system (fuse) has no locks (set XDG_STATE_HOME to a folder on a local disk)"
    assert begun == [(3, "", f"vmlab: {words}\n")] * 3
    assert standing(places) == before


def test_what_must_lock_a_run_is_refused_and_leaves_no_lock(places: Path) -> None:
    before = standing(places)
    commands = [["rm", RUN, "--yes"], ["clean"]]
    for code, out, err in called(lockless(places / "state", "ENOLCK"), *commands):
        assert (code, out, err.count("\n"), "Traceback" in err) == (3, "", 1, False), err
        assert "its file system (fuse) has no locks (set XDG_STATE_HOME to" in err
    assert standing(places) == before


@pytest.mark.parametrize("place", ["cache", "run"])
def test_images_and_sockets_without_locks_are_refused_before_a_run(place: str, places: Path) -> None:
    before = standing(places)
    ((code, out, err),) = called(lockless(places / place, "ENOLCK"), BEGINNING[0])
    assert (code, out, err.count("\n")) == (3, "", 1), err
    assert err.endswith(f"its file system (fuse) has no locks (set {VARIABLES[place]} to a folder on a local disk)\n")
    assert standing(places) == before


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ('mount -t tmpfs -o ro none "$PLACE"', "Read-only file system"),
        ('mount -t tmpfs -o size=16k none "$PLACE"', "No space left on device"),
        ('rmdir "$PLACE" && touch "$PLACE"', "Not a directory"),
        ('rmdir "$PLACE" && ln -s nowhere "$PLACE"', "File exists"),
    ],
    ids=["read-only", "full", "file", "dangling link"],
)
@pytest.mark.parametrize("place", ["state", "cache"])
def test_a_folder_that_cannot_be_written_is_named_with_what_moves_it(
    script: str, reason: str, place: str, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", str(empty / place))
    ((code, out, err),) = called(mounted(script), BEGINNING[0])
    assert (code, out, err.count("\n")) == (3, "", 1), err
    assert err.startswith(f"vmlab: cannot write {empty / place}"), err
    assert err.endswith(f": {reason} (set {VARIABLES[place]} to a folder on a local disk)\n"), err
    assert list((empty / "run").iterdir()) == []
