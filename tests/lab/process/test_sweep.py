"""`vmlab clean` on folders of all kinds: a dead run's own leftovers go, and whatever only looks like them stays."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.lab.process import dead_runs
from vmlab.lab.process.run_folder import RunFolder, RuntimeFolder
from vmlab.model.errors import CleanupIncomplete, RefusedError, StoreError
from vmlab.model.event import Notice
from vmlab.store.reader import RunReader
from vmlab.store.writer import RunWriter
from vmlab.system.removal import make_marked

RUN = "20261121-143015-tile-7f3a"
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """State, cache and runtime folders of the test's own; the folder that holds them."""
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "run"))
    yield tmp_path


def died(run: str = RUN) -> RunFolder:
    """A run that was killed while a guest was running."""
    folder = RunFolder.of(run)
    os.close(folder.make())
    journal = Journal(folder.journal)
    for name in ("web-1.qcow2", "web-1.console"):
        (folder.disks / name).write_text(name)
        journal.add(JournalEntry("file", str(folder.disks / name)))
    folder.control.touch()
    folder.store.write_text("the record")
    return folder


def test_what_a_dead_run_left_goes_and_its_record_stays() -> None:
    folder = died()
    (swept,) = dead_runs.clean()
    assert swept.run == RUN and swept.left == ()
    assert str(folder.runtime) in swept.removed
    assert not folder.runtime.exists() and not folder.disks.exists()
    assert folder.store.read_text() == "the record"
    assert dead_runs.clean() == []


def test_files_beside_those_of_the_journal_stay() -> None:
    folder = died()
    (folder.disks / "mine.qcow2").touch()
    dead_runs.clean()
    assert [path.name for path in folder.disks.iterdir()] == ["mine.qcow2"]
    assert dead_runs.clean() == []


@pytest.mark.parametrize("what", ["notes", "link", "renamed", "copy"])
def test_a_folder_that_is_no_runs_own_is_somebodys_data(what: str, places: Path) -> None:
    folder = died()
    theirs = folder.path.parent / "my-notes"
    match what:
        case "notes":
            (theirs / "disks").mkdir(parents=True)
            (theirs / "disks" / "web-1.qcow2").touch()
            Journal(theirs / "journal.jsonl").add(JournalEntry("file", str(theirs / "disks" / "web-1.qcow2")))
        case "link":
            outside = places / "outside"
            (outside / "disks").mkdir(parents=True)
            (outside / "disks" / "web-1.qcow2").touch()
            theirs.symlink_to(outside)
        case "renamed":
            folder.path.rename(theirs)
        case _:
            subprocess.run(["cp", "-a", str(folder.path), str(theirs)], check=True)
    dead_runs.clean()
    assert (theirs / "disks" / "web-1.qcow2").exists()
    assert dead_runs.clean() == []


def test_a_journal_is_believed_in_nothing(places: Path) -> None:
    """Whatever it names, clean says what it removed and nothing else, and the run's own things go."""
    folder, mine = died(), places / "mine"
    mine.mkdir()
    (mine / "letter").write_text("dear")
    (folder.disks / "hidden").touch()
    strange: tuple[object, ...] = (7, None, [], {}, "a\0b", "x" * 5000)
    named: list[object] = [
        {"kind": "file", "what": str(mine / "letter")},
        {"kind": "folder", "what": str(mine)},
        {"kind": "folder", "what": str(folder.path)},
        {"kind": "file", "what": str(folder.disks / "never-made")},
        {"kind": "setting", "what": "../etc/passwd", "was": "1"},
        *({"kind": "file", "what": what} for what in strange),
        *({"kind": kind, "what": "x"} for kind in ("no such kind", 7, None, ["file"])),
        *([], "made", 7),
    ]
    with folder.journal.open("a") as journal:
        journal.writelines(json.dumps({"made": entry}) + "\n" for entry in named)
        journal.write('{"made":' * 100_000 + "\n")
        journal.write("\xff\0\n[]\n7\n" + json.dumps({"made": named[0], "gone": named[1]}) + "\n")
    (swept,) = dead_runs.clean()
    own = [f"file {folder.disks / name}" for name in ("web-1.console", "web-1.qcow2")]
    assert (swept.removed, swept.left) == ((str(folder.runtime), *own), ())
    named_in_vain = (
        f"file {mine / 'letter'}",
        f"folder {mine}",
        f"folder {folder.path}",
        f"file {folder.disks / 'never-made'}",
        f"file {'x' * 5000}",
        "setting ../etc/passwd",
    )
    *gone, stays = [line.removeprefix(f"run {RUN}: ") for line in swept.notes]
    assert sorted(line.partition(": gone before")[0] for line in gone) == sorted(named_in_vain)
    assert stays == f"{folder.disks} has 1 files that its journal does not name; they stay"
    assert (mine / "letter").read_text() == "dear" and (folder.disks / "hidden").exists()
    assert dead_runs.clean() == []


def test_a_journal_that_cannot_be_read_hides_no_other_run() -> None:
    folder, other = died(), died(RUN.replace("1430", "1431"))
    folder.journal.unlink()
    folder.journal.mkdir()
    bad, good = dead_runs.clean()
    assert (bad.run, bool(bad.left), bad.removed) == (folder.id, True, ())
    assert (good.run, good.left, len(good.removed)) == (other.id, (), 3)


def test_a_copy_that_is_to_be_cleared_itself_is_refused() -> None:
    folder = died()
    copy = RunFolder(folder.id, folder.path.with_name("copy"))
    subprocess.run(["cp", "-a", str(folder.path), str(copy.path)], check=True)
    (left,) = dead_runs.sweep_run(copy, 0.0)
    assert left == f"{copy.path} is not the folder that the run made: nothing in it was removed"
    assert (folder.disks / "web-1.qcow2").exists() and (copy.disks / "web-1.qcow2").exists()


def test_a_run_that_lives_is_no_dead_one() -> None:
    folder = died()
    lock = folder.take_lock()
    assert list(dead_runs.dead_runs()) == []
    os.close(lock)
    assert [one.path for one in dead_runs.dead_runs()] == [folder.path]


def test_the_record_of_a_run_that_was_killed_is_one_file_afterwards() -> None:
    folder = RunFolder.of(RUN)
    os.close(folder.make())
    program = (
        "import os, sys; from pathlib import Path\n"
        "from vmlab.model.event import Notice; from vmlab.store.writer import RunWriter\n"
        "RunWriter(Path(sys.argv[1])).append(Notice(level='info', text='alive')); os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(folder.store)], check=True, cwd=ROOT)
    log = folder.store.with_name(f"{folder.store.name}-wal")
    assert log.stat().st_size > 0
    dead_runs.clean()
    assert not log.exists() or log.stat().st_size == 0
    with RunReader(folder.store) as reader:
        assert [event.text for _, event in reader.events() if isinstance(event, Notice)] == ["alive"]


def test_a_copy_does_not_lead_to_the_disks_of_a_run_that_lives() -> None:
    folder = died()
    lock = folder.take_lock()
    try:
        subprocess.run(["cp", "-a", str(folder.path), str(folder.path.with_name("copy"))], check=True)
        assert dead_runs.clean() == []
        assert (folder.disks / "web-1.qcow2").exists() and folder.control.exists()
    finally:
        os.close(lock)
    assert len(dead_runs.clean()) == 1


def test_a_runtime_folder_that_names_another_place_leads_nowhere(places: Path) -> None:
    foreign = places / "thesis"
    (foreign / "disks").mkdir(parents=True)
    (foreign / "disks" / "x.qcow2").touch()
    unmarked = places / "run" / "x"
    unmarked.mkdir(parents=True)
    (unmarked / "run").write_text(str(foreign))
    ours = RuntimeFolder.of(RUN)
    ours.make(RUN, foreign)
    (swept,) = dead_runs.clean()
    assert swept.removed == (str(ours.path),)
    assert (foreign / "disks" / "x.qcow2").exists()
    assert (unmarked / "run").exists()


def test_a_record_deleted_by_hand_does_not_make_a_live_run_dead() -> None:
    folder = died()
    with RuntimeFolder(folder.runtime).held():
        shutil.rmtree(folder.path)
        assert dead_runs.clean() == []
        assert folder.control.exists()
    assert [one.run for one in dead_runs.clean()] == [RUN]
    assert not folder.runtime.exists()


def test_a_run_of_another_state_folder_is_found_by_its_sockets(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = died()
    monkeypatch.setenv("XDG_STATE_HOME", str(places / "elsewhere"))
    assert [one.run for one in dead_runs.clean()] == [RUN]
    assert not folder.disks.exists() and folder.store.exists()


def test_a_damaged_runtime_folder_is_passed_over(places: Path) -> None:
    died()
    for name, text in (("a", b"\xff\xfe"), ("b", b"{}"), ("c", b'{"owner": 1, "inode": 2}'), ("d", b"\0" * 9000)):
        (places / "run" / name).mkdir()
        (places / "run" / name / "vmlab.mark").write_bytes(text)
        (places / "run" / name / "run").write_bytes(text)
    assert len(dead_runs.clean()) == 1
    assert sorted(path.name for path in (places / "run").iterdir()) == ["a", "b", "c", "d"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_where_a_mount_stays_the_sweep_stops_and_says_so(places: Path) -> None:
    """The launcher of an earlier version saw its runner's mounts; a sweep walked through them into the host's /dev."""
    folder = died()
    dummies = places / "dev"
    dummies.mkdir()
    (dummies / "null").touch()
    point = folder.runtime / "root" / "dev"
    point.mkdir(parents=True)
    script = f'mount --bind "{dummies}" "{point}" && exec .venv/bin/python -m vmlab clean'
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
        cwd=Path(__file__).parents[3],
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 5, done.stderr
    assert "something is mounted there" in done.stderr
    assert (dummies / "null").exists()
    assert folder.control.exists(), "nothing below the runtime folder went"
    assert len(dead_runs.clean()) == 1
    assert (dummies / "null").exists() and not folder.runtime.exists()


CACHED = {"images": ".building-debian-1", "snapshots": ".making-web-1"}


def half_made(place: str, cache: Path, end: str = "1") -> Path:
    """What a maker that was killed left in the cache."""
    folder = cache / "vmlab" / place / f"{CACHED[place][:-1]}{end}"
    make_marked(folder, CACHED[place].split("-")[1])
    (folder / "file").touch()
    return folder


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
@pytest.mark.parametrize("place", CACHED)
def test_what_cannot_be_cleared_in_the_cache_is_named_beside_what_went(place: str, places: Path) -> None:
    died()
    cache = places / "XDG_CACHE_HOME"
    stays, goes = half_made(place, cache), half_made(place, cache, "2")
    other = half_made(next(one for one in CACHED if one != place), cache)
    dummies = places / "dummies"
    dummies.mkdir()
    (dummies / "precious").touch()
    (stays / "mounted").mkdir()
    script = f'mount --bind "{dummies}" "{stays / "mounted"}" && exec .venv/bin/python -m vmlab clean --json'
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
        cwd=Path(__file__).parents[3],
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 5, done.stderr
    run, cached = json.loads(done.stdout)["runs"]
    assert run["run"] == RUN and run["removed"]
    assert set(cached["removed"]) == {str(goes), str(other)}
    (why,) = cached["left"]
    assert why.startswith(f"{stays}: something is mounted there")
    assert (dummies / "precious").exists()
    (swept,) = dead_runs.clean()
    assert swept.removed == (str(stays),) and not stays.exists()


def test_a_cache_that_cannot_be_looked_through_hides_no_run_that_was_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses() -> None:
        raise PermissionError(errno.EROFS, os.strerror(errno.EROFS), "/cache/gate")

    died()
    monkeypatch.setattr("vmlab.guests.snapshots.SNAPSHOTS.clear_unfinished", refuses)
    run, cached = dead_runs.clean()
    assert run.run == RUN and run.left == ()
    assert cached.left == ("/cache/gate: Read-only file system",)


def in_use(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """The journal cannot be swept for so many `times`; a list that grows by one with each attempt."""
    attempts: list[int] = []

    def attempt(*_: object, **__: object) -> None:
        attempts.append(len(attempts))
        if len(attempts) <= times:
            raise CleanupIncomplete("left behind: cgroups x: Device or resource busy")

    monkeypatch.setattr(dead_runs, "sweep", attempt)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    return attempts


def test_what_is_in_use_for_a_moment_goes_when_it_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = died()
    attempts = in_use(monkeypatch, 2)
    assert dead_runs.sweep_run(folder, 600.0) == []
    assert len(attempts) == 3


def test_what_stays_in_use_is_named_when_patience_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = died()
    attempts = in_use(monkeypatch, 10**9)
    assert dead_runs.sweep_run(folder, -1.0) == ["left behind: cgroups x: Device or resource busy"]
    assert len(attempts) == 1
    assert not folder.runtime.exists(), "all else goes"


def test_a_setting_that_stays_changed_is_noted_in_the_record_or_said_where_it_takes_no_note(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def tells(*_: object, tell: Callable[[str], None], **__: object) -> None:
        tell("ksm stays on")

    monkeypatch.setattr(dead_runs, "sweep", tells)
    folder = died()
    assert dead_runs.sweep_run(folder, 0.0) == []
    assert capsys.readouterr().err == "vmlab: ksm stays on\n", "its record is none that can be written"
    folder.store.unlink()
    RunWriter(folder.store).close()
    assert dead_runs.sweep_run(folder, 0.0) == []
    assert capsys.readouterr().err == ""
    assert not folder.store.with_name(f"{folder.store.name}-wal").exists(), "the record is closed"
    with RunReader(folder.store) as reader:
        ((_, notice),) = reader.events()
    assert isinstance(notice, Notice) and (notice.level, notice.text) == ("warning", "ksm stays on")


def test_a_runtime_folder_without_its_mark_goes_only_where_it_is_empty() -> None:
    folder = died()
    (folder.runtime / "vmlab.mark").unlink()
    (left,) = dead_runs.sweep_run(folder, 0.0)
    assert left == f"{folder.runtime} does not carry the run's mark: nothing in it was removed"
    assert folder.control.exists()
    for path in folder.runtime.iterdir():
        path.unlink()
    assert dead_runs.sweep_run(folder, 0.0) == []
    assert not folder.runtime.exists()
    assert dead_runs.sweep_run(folder, 0.0) == []


def test_a_run_that_another_process_clears_is_left_to_it_and_the_next_one_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs, ours = died(), died("20261122-143015-tile-7f3a")
    monkeypatch.setattr(RunFolder, "alive", lambda _folder: False)
    lock = theirs.take_lock()
    try:
        assert [one.run for one in dead_runs.clean()] == [ours.id]
    finally:
        os.close(lock)
    assert (theirs.disks / "web-1.qcow2").exists() and theirs.control.exists()
    assert not ours.disks.exists()
    assert [one.run for one in dead_runs.clean()] == [theirs.id]


def test_an_orphan_whose_cgroups_stay_is_named_and_its_folder_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(prefix: str) -> list[str]:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    folder = died()
    shutil.rmtree(folder.path)
    monkeypatch.setattr(dead_runs, "remove_everywhere", busy)
    (swept,) = dead_runs.clean()
    assert swept.left == ("[Errno 16] Device or resource busy",)
    assert swept.removed == (str(folder.runtime),) and not folder.runtime.exists()


def test_a_setting_is_said_where_the_record_stops_taking_notes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def tells(*_: object, tell: Callable[[str], None], **__: object) -> None:
        tell("ksm stays on")

    def refuses(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(dead_runs, "sweep", tells)
    monkeypatch.setattr(RunWriter, "append", refuses)
    folder = died()
    folder.store.unlink()
    RunWriter(folder.store).close()
    assert dead_runs.sweep_run(folder, 0.0) == []
    assert capsys.readouterr().err == "vmlab: ksm stays on\n"


def test_a_run_is_removed_with_its_record_when_nothing_of_it_is_left() -> None:
    folder, beside = died(), died("20261122-143015-tile-7f3a")
    with pytest.raises(RefusedError, match=f"^run {RUN} left something on this host; `vmlab clean` removes that first"):
        dead_runs.remove_run(folder)
    assert folder.store.exists() and folder.control.exists()
    dead_runs.clean()
    lock = folder.take_lock()
    try:
        with pytest.raises(RefusedError, match=f"^run {RUN} is under way; `vmlab stop {RUN}` ends it$"):
            dead_runs.remove_run(folder)
    finally:
        os.close(lock)
    assert folder.store.exists()
    dead_runs.remove_run(folder)
    assert not folder.path.exists() and beside.store.exists()


def test_a_copy_of_a_run_is_not_removed() -> None:
    folder = died()
    dead_runs.clean()
    copy = RunFolder(folder.id, folder.path.with_name("copy"))
    subprocess.run(["cp", "-a", str(folder.path), str(copy.path)], check=True)
    with pytest.raises(RefusedError, match=r"is not the folder that the run made: nothing was removed$"):
        dead_runs.remove_run(copy)
    assert copy.store.exists() and folder.store.exists()


@pytest.mark.parametrize(("error", "why"), [(OSError(errno.EBUSY, "busy"), "busy"), (OSError("unknown"), "unknown")])
def test_a_runtime_folder_that_cannot_go_is_named_with_why(
    error: OSError, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(path: Path) -> None:
        raise error

    folder = died()
    monkeypatch.setattr(dead_runs, "remove_tree", refuses)
    assert dead_runs.sweep_run(folder, 0.0) == [f"{folder.runtime}: {why}"]
    assert folder.control.exists()


def test_places_of_dead_runs_among_those_that_measure_go(monkeypatch: pytest.MonkeyPatch) -> None:
    cleared: list[bool] = []
    monkeypatch.setattr(dead_runs, "clear_dead", lambda: cleared.append(True))
    dead_runs.clean()
    assert cleared == [True]
