"""What the lab starts finds its own folder by descriptor, ends when it is gone, and `ls` and `clean` find it.

The rule is that of `vmlab.system.held_folder`. Real processes; whatever stands in the place of a folder stays as it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from tests import forked
from tests.lab.conftest import NewHome
from tests.lab.faked import BUILD_SECONDS, CELL_SECONDS, NO_LAST_WORD, SOON, VMLAB, Home, until
from vmlab.lab.process.host_recording import RecordingRequest, start_recording
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.places import runs_folder
from vmlab.store.reader import RunReader
from vmlab.store.runs import new_run_id
from vmlab.system.processes import command_line
from vmlab.system.removal import make_marked

ROOT = Path(__file__).parents[3]
FOREIGN = {"letter": b"dear", "run.sqlite": b"theirs", "run.sqlite-wal": b"theirs", "journal.jsonl": b"theirs"}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")


def foreign(place: Path) -> Path:
    """Somebody's folder, with files of the names that a run's folder has."""
    place.mkdir()
    for name, content in FOREIGN.items():
        (place / name).write_bytes(content)
    return place


def contents(place: Path) -> dict[str, tuple[bytes, int]]:
    """Each file below `place`: what is in it, and when it was changed."""
    files = [path for path in sorted(place.rglob("*")) if path.is_file()]
    return {str(path.relative_to(place)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def remove(folder: Path) -> None:
    """Remove it, however often its process still makes a file in it."""

    def gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    until(gone, "the removal")


def strike(folder: Path, how: str) -> Path | None:
    """Do to a run's folder what the case says; the foreign folder that is at its place then."""
    place = folder.parents[2]
    match how:
        case "removed":
            remove(folder)
        case "parent removed":
            remove(folder.parent)
        case "moved":
            folder.rename(place / "moved")
        case "parent moved":
            folder.parent.rename(place / "moved")
        case "a link":
            folder.rename(place / "moved")
            folder.symlink_to(foreign(place / "foreign"))
            return folder
        case "another folder":
            folder.rename(place / "moved")
            return foreign(folder)
        case "its own copy":
            folder.rename(place / "moved")
            subprocess.run(["cp", "-a", place / "moved", folder], check=True)
            return folder
        case _:
            (folder / how).unlink()
    return None


LOSSES = {
    "removed": "was removed",
    "parent removed": "was removed",
    "moved": "was moved to",
    "parent moved": "was moved to",
    "a link": "was replaced by a link",
    "another folder": "was replaced by another folder",
    "its own copy": "was replaced by another folder",
}
FILES = ["run.sqlite", "run.sqlite-wal", "run.sqlite-shm", "lock"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """State and runtime folders of the test's own lie in here."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "rt"))
    return tmp_path


@contextlib.contextmanager
def recorder() -> Iterator[tuple[RunFolder, int]]:
    """A recording that has begun, and its process, which is a child of this one."""
    folder = start_recording(RecordingRequest(seconds=None, interval=0.1))
    pid = folder.process("recorder_pid")
    assert pid is not None
    try:
        until(lambda: _has_samples(folder.store), "the first samples")
        yield folder, pid
    finally:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _has_samples(store: Path) -> bool:
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db,
    ):
        return int(db.execute("SELECT count(*) FROM samples").fetchone()[0]) > 2
    return False


def exit_code(child: int) -> int:
    """That of a child, once it has ended."""
    found: list[int] = []

    def ended() -> bool:
        pid, status = os.waitpid(child, os.WNOHANG)
        found.append(status)
        return pid == child

    until(ended, "the end of the process")
    return os.waitstatus_to_exitcode(found[-1])


def vmlab(*words: str) -> tuple[int, str, str]:
    """A command's exit code, output and messages."""
    done = forked.ended(*words, env=os.environ, cwd=ROOT)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("how", [*LOSSES, *FILES])
def test_a_recorder_ends_with_a_line_when_its_folder_is_gone(how: str, place: Path) -> None:
    with recorder() as (folder, pid):
        log = folder.log.open()
        theirs = strike(folder.path, how)
        before = contents(theirs) if theirs else {}
        assert exit_code(pid) == 1
    (line,) = log.read().splitlines()
    log.close()
    why = LOSSES.get(how) or f"{how} was removed"
    assert line.startswith(f"vmlab: {folder.path}") and why in line and line.endswith("while it was in use")
    assert (contents(theirs) if theirs else {}) == before
    kept = {"moved": place / "moved", "parent moved": place / "moved" / folder.id}.get(how, place / "moved")
    if kept.exists():
        with RunReader(kept / "run.sqlite") as reader:
            ended = [event for _, event in reader.events()][-1]
        assert why in str(getattr(ended, "reason", "")) or how in FILES


@pytest.mark.parametrize("how", ["a link", "another folder"])
def test_a_recorder_that_finds_another_folder_at_its_start_writes_nothing(how: str, place: Path) -> None:
    folder = RunFolder.of(new_run_id("recording"))
    make_marked(folder.path, folder.id)
    lock = folder.take_lock()
    theirs = strike(folder.path, how)
    assert theirs is not None
    before = contents(theirs)
    words = [folder.id, str(folder.path), str(lock), json.dumps(asdict(RecordingRequest(None)))]
    done = subprocess.run(
        [sys.executable, "-m", "vmlab.lab.run.host_recorder", *words],
        pass_fds=(lock,),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SOON,
        check=False,
    )
    os.close(lock)
    assert done.returncode == 1 and done.stderr.startswith("vmlab: ") and len(done.stderr.splitlines()) == 1
    assert contents(theirs) == before


def test_the_command_that_waits_for_a_recording_says_what_became_of_its_folder(place: Path) -> None:
    command = [sys.executable, "-m", "vmlab", "record", "--interval", "100 ms"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        until(lambda: any(_has_samples(path / "run.sqlite") for path in runs_folder().glob("*")), "the first samples")
        (folder,) = runs_folder().glob("*")
        pid = json.loads((folder / "runner.json").read_text())["recorder_pid"]
        shutil.rmtree(folder)
        _, words = running.communicate(timeout=SOON)
    assert running.returncode == 1
    assert words.splitlines()[-1] == f"vmlab: the recording has ended: {folder} was removed while it was in use"
    until(lambda: not command_line(pid), "the end of the recorder")


@pytest.mark.parametrize("how", ["removed", "a link", "parent removed", "lock"])
def test_a_process_that_cannot_notice_is_listed_and_ended(how: str, place: Path) -> None:
    with recorder() as (folder, pid):
        os.kill(pid, signal.SIGSTOP)
        theirs = strike(folder.path, how)
        before = contents(theirs) if theirs else {}
        words = f"run {folder.id} goes on as process {pid}, and its folder {folder.path} has gone or is another"
        code, _, said = vmlab("ls")
        assert code == 0 and f"{words}; `vmlab clean` ends it" in said.splitlines()
        document = json.loads(vmlab("ls", "--json")[1])
        assert document["without_folder"] == [{"run": folder.id, "process": pid, "folder": str(folder.path)}]
        code, output, said = vmlab("clean", "--json")
        (swept,) = json.loads(output)["runs"]
        assert (code, swept["run"], swept["removed"], swept["left"]) == (0, folder.id, [f"process {pid}"], [])
        assert swept["notes"] == [words]
        assert exit_code(pid) in (1, 0)
        assert "without_folder" not in json.loads(vmlab("ls", "--json")[1])
        assert vmlab("clean")[2] == "nothing to clean\n"
        assert (contents(theirs) if theirs else {}) == before


def test_what_only_looks_like_a_process_of_a_lost_run_is_left_alone(place: Path) -> None:
    """Words alone prove nothing, nor does a lock of another name; and a run whose folder is there is none."""
    run = new_run_id("tile")
    gone, there = runs_folder() / run, runs_folder() / f"{run[:-4]}0000"
    there.mkdir(parents=True)
    (place / "beside").mkdir()
    decoys = [
        [run, gone],
        [run, gone, place / "other"],
        ["20261121-000000-else-0000", gone, place / "lock"],
        [run, place / run, place / "beside" / "lock"],
        [there.name, there, there / "lock"],
    ]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.lab.programs.decoy", *map(str, words)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for words in decoys
    ]
    try:
        for one in started:
            assert one.stdout is not None and one.stdout.readline() == "ready\n"
        assert "goes on as process" not in vmlab("ls")[2]
        assert vmlab("clean")[2] == "nothing to clean\n"
        assert [one.poll() for one in started] == [None] * len(started)
    finally:
        for one in started:
            one.communicate()


RUN = ("run", "cpu-overhead", "--size", "smoke")


def begun(home: Home, **said: str) -> subprocess.Popen[str]:
    """A run that is in a cell."""
    process = home.spawn(*RUN, **{CELL_SECONDS: "3600"}, **said)
    until(home.in_a_cell, "a cell")
    until(lambda: follows(process, home.records()[-1]), "the command that follows the run")
    return process


def follows(command: subprocess.Popen[str], folder: Path) -> bool:
    """Whether a command has the run's folder open, and has read in its store: SQLite opens this file then, by name."""
    held = {str(one.readlink()) for one in Path(f"/proc/{command.pid}/fd").iterdir() if one.is_symlink()}
    return {str(folder), str(folder / "run.sqlite-shm")} <= held


def has_ended(home: Home, run: str) -> bool:
    """Whether no process has the run's name among its words."""
    name = run.encode()
    return not any(name in command_line(int(one.name)).split(b"\0") for one in Path("/proc").glob("[0-9]*"))


@pytest.mark.parametrize("how", ["removed", "moved", "a link", "run.sqlite"])
def test_a_run_ends_when_its_folder_is_gone(home: Home, how: str) -> None:
    process = begun(home, **NO_LAST_WORD)
    (folder,) = home.records()
    theirs = strike(folder, how)
    before = contents(theirs) if theirs else {}
    _, words = process.communicate(timeout=SOON)
    assert process.returncode == 1
    why = LOSSES.get(how) or f"{how} was removed"
    assert folder.name in words.splitlines()[-1] and why in words.splitlines()[-1]
    until(lambda: has_ended(home, folder.name), "the end of the run's processes")
    assert (contents(theirs) if theirs else {}) == before
    assert not [*(home.folder / "run").glob("*"), *(home.host / "vmlab-measuring").glob("*")]
    assert home.run("clean")[0] == 0
    assert (contents(theirs) if theirs else {}) == before


@pytest.mark.parametrize("how", ["a link"])
def test_a_run_whose_folder_goes_while_the_image_is_built_begins_no_cell(home: Home, how: str) -> None:
    process = home.spawn(*RUN, **{BUILD_SECONDS: "5", CELL_SECONDS: "3600"}, **NO_LAST_WORD)
    until(lambda: home.events("Notice"), "the building of the image")
    (folder,) = home.records()
    until(lambda: follows(process, folder), "the command that follows the run")
    theirs = strike(folder, how)
    before = contents(theirs) if theirs else {}
    _, words = process.communicate(timeout=SOON)
    assert process.returncode == 1 and LOSSES[how] in words.splitlines()[-1]
    until(lambda: has_ended(home, folder.name), "the end of the run's processes")
    assert (contents(theirs) if theirs else {}) == before
    assert not [*(home.folder / "run").glob("*")]


@pytest.mark.parametrize("how", ["removed", "moved"])
def test_a_run_ends_as_failed_when_its_runtime_folder_is_gone(home: Home, how: str) -> None:
    process = begun(home)
    (record,), (runtime,) = home.records(), (home.folder / "run").iterdir()
    if how == "removed":
        shutil.rmtree(runtime)
    else:
        runtime.rename(home.folder / "moved")
    process.communicate(timeout=SOON)
    assert process.returncode == 1
    (ended,) = home.events("RunEnded")
    assert ended["outcome"] == "failed" and f"{runtime} was {how}" in ended["reason"]
    until(lambda: has_ended(home, record.name), "the end of the run's processes")


def test_a_run_that_cannot_notice_is_listed_and_ended(home: Home) -> None:
    process = begun(home)
    (folder,) = home.records()
    launcher, runner = home.pid("launcher_pid"), home.pid("runner_pid")
    for pid in (runner, launcher):
        os.kill(pid, signal.SIGSTOP)
    shutil.rmtree(folder)
    words = f"run {folder.name} goes on as process {launcher}, and its folder {folder} has gone or is another"
    assert words in home.run("ls")[2]
    # The runner is stopped, so that only a kill of its launcher ends it.
    code, _, said = home.run("clean")
    assert code == 0 and words in said, said
    assert f"run {folder.name}: removed 1 process" in said
    assert has_ended(home, folder.name)
    process.communicate(timeout=SOON)
    assert home.run("clean")[2] == "nothing to clean\n"
    assert not [*(home.folder / "run").glob("*")]


@contextlib.contextmanager
def mounted(place: Path) -> Iterator[tuple[list[str], Path]]:
    """A file system at `place`, in a mount namespace of its own: what runs a command in that, and its root folder."""
    place.mkdir(parents=True, exist_ok=True)
    image = place.with_name("image")
    script = """set -e; truncate -s 64M "$1"; mkfs.ext4 -q -F "$1"; mount -o loop,errors=remount-ro "$1" "$0"
        rmdir "$0/lost+found"; echo ready; exec cat"""
    alone = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(place), str(image)]
    with subprocess.Popen(alone, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "ready\n"
        yield ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", "--"], Path(f"/proc/{holder.pid}/root")
        holder.communicate()


_AN_ERROR = 'echo 1 >"/sys/fs/ext4/$(basename "$(findmnt -no SOURCE "$0")")/trigger_fs_error"'
UNMOUNTS: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    "unmounted": (lambda state: ["umount", "--lazy", str(state)], "is not there any more"),
    "covered": (lambda state: ["mount", "-t", "tmpfs", "none", str(state)], "is not there any more"),
    "read-only": (lambda state: ["sh", "-c", _AN_ERROR, str(state)], "its file system has become read-only"),
}


@needs_root
@pytest.mark.parametrize("how", UNMOUNTS)
def test_a_recorder_ends_when_its_file_system_goes(how: str, place: Path) -> None:
    state = place / "state"
    with mounted(state) as (inside, root):
        environment = {**os.environ, "XDG_STATE_HOME": str(state), "PYTHONPATH": str(ROOT)}
        command = [*inside, sys.executable, "-m", "vmlab"]
        arguments = [*command, "record", "--interval", "100 ms"]
        with subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True) as running:
            runs = Path(f"{root}{state}/vmlab/runs")
            until(lambda: list(runs.glob("*/run.sqlite-wal")), "the store")
            (folder,) = runs.glob("*")
            until(lambda: "recorder_pid" in (folder / "runner.json").read_text(), "the recorder's number")
            pid = json.loads((folder / "runner.json").read_text())["recorder_pid"]
            subprocess.run([*inside, *UNMOUNTS[how][0](state)], check=True)
            _, words = running.communicate(timeout=SOON)
        until(lambda: not command_line(pid), "the end of the recorder")
        assert running.returncode == 1 and UNMOUNTS[how][1] in words.splitlines()[-1]
        left = subprocess.run([*inside, "ls", "-A", str(state)], capture_output=True, text=True, check=True)
        assert left.stdout == ("vmlab\n" if how == "read-only" else "")
        assert list(state.iterdir()) == []


@needs_root
@pytest.mark.parametrize("how", UNMOUNTS)
def test_a_run_ends_when_the_hosts_file_system_goes(how: str, homes: NewHome) -> None:
    """The runner has mounts of its own, in which that of the host stays; what the host sees decides."""
    home = homes("anna")
    state = home.folder / "mounted"
    with mounted(state) as (inside, root):
        environment = home.environment(XDG_STATE_HOME=str(state), **{CELL_SECONDS: "3600"}, **NO_LAST_WORD)
        process = subprocess.Popen(
            [*inside, *VMLAB, *RUN], env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        home.started.append(process)
        until(lambda: list((home.folder / "run").glob("*/control.sock")), "the runner")
        (folder,) = Path(f"{root}{state}/vmlab/runs").glob("*")
        subprocess.run([*inside, *UNMOUNTS[how][0](state)], check=True)
        _, words = process.communicate(timeout=SOON)
        assert process.returncode == 1, words
        assert UNMOUNTS[how][1] in words, words
        until(lambda: has_ended(home, folder.name), "the end of the run's processes")
        left = subprocess.run([*inside, "ls", "-A", str(state)], capture_output=True, text=True, check=True)
        assert left.stdout == ("vmlab\n" if how == "read-only" else "")
