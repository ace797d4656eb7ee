"""What the program makes for moments: without a name, or where `vmlab clean` finds it after a kill."""

from __future__ import annotations

import ast
import errno
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from vmlab.lab.process import dead_runs
from vmlab.system import given_file as module
from vmlab.system.given_file import new_file
from vmlab.system.scratch import clear_scratch, scratch

VMLAB = Path(__file__).parents[2] / "vmlab"
INSIDE_GUESTS = ("workloads/payload/", "guests/payload/")
MAKERS = {
    # Without a name until it is complete.
    "system/given_file.py",
    # The one place for temporary folders.
    "system/scratch.py",
    # Entries of the cache, which `Collection.clear_unfinished` finds.
    "guests/cached/collection.py",
    # A file that has lost its name before anything is done with it, or never had one, and memory.
    "system/file_system.py",
    "telemetry/speed_trace.py",
    # In the journal before it is made.
    "hypervisor/disks/user_folder.py",
    # Secrets, and names of sessions: no files.
    "cli/serving/server.py",
    "guests/helper_shell.py",
    "guests/agent.py",
    "guests/image/windows_answers.py",
}
"""Every module that makes random names or temporary files, and why nothing of it stays after a kill."""
_RANDOM = {"token_hex", "token_urlsafe", "token_bytes", "uuid4", "urandom", "mkdtemp", "mkstemp", "memfd_create"}


def _makes_names(source: str) -> bool:
    tree = ast.parse(source)
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or "", *(one.name for one in node.names)]
    }
    called = {
        getattr(node.func, "attr", getattr(node.func, "id", ""))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
    return "tempfile" in imported or bool(_RANDOM & called)


def test_each_maker_of_temporary_files_is_known() -> None:
    """One that is new uses `scratch` or `new_file`; else what a kill leaves of it would stay for ever."""
    found = {
        name
        for file in VMLAB.rglob("*.py")
        if not (name := file.relative_to(VMLAB).as_posix()).startswith(INSIDE_GUESTS) and _makes_names(file.read_text())
    }
    assert found == MAKERS


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path / "cache/vmlab"


def _killed(body: str) -> None:
    """Run these lines in a process that kills itself with SIGKILL at their end."""
    begin, end = "import os, signal\nfrom pathlib import Path\n", "\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    code = begin + textwrap.dedent(body) + end
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL


def test_clean_removes_the_folder_of_a_process_that_was_killed_and_no_other(cache: Path) -> None:
    _killed("""
        from vmlab.system.scratch import scratch
        with scratch("export") as place:
            (place / "run.sqlite").write_bytes(b"x" * 1000)
    """)
    (left,) = (one for one in (cache / "scratch").iterdir() if one.name.startswith("export-"))
    (foreign := cache / "scratch/export-0123abcd").mkdir()
    (foreign / "kept").touch()
    with scratch("export") as ours:
        (swept,) = dead_runs.clean()
        assert (swept.run, swept.removed, swept.left) == (dead_runs.THE_CACHE, (str(left),), ())
        assert ours.is_dir() and not left.exists() and (foreign / "kept").exists()
    assert not ours.exists() and clear_scratch().removed == ()


def test_a_folder_goes_with_its_block_also_by_an_error(cache: Path) -> None:
    with pytest.raises(KeyboardInterrupt), scratch("export") as place:
        (place / "a").touch()
        raise KeyboardInterrupt
    assert not place.exists()


def test_nothing_stands_beside_a_file_that_a_killed_process_was_writing(tmp_path: Path) -> None:
    _killed(f"""
        from vmlab.system.given_file import new_file
        with new_file(Path({str(tmp_path / "run.html")!r})) as file:
            file.write(b"half")
            file.flush()
    """)
    left = [one.name for one in tmp_path.iterdir()]
    if _knows_nameless(tmp_path):
        assert left == []
    else:
        assert len(left) == 1 and left[0].startswith(".run.html.") and left[0].endswith(".new")


def _knows_nameless(folder: Path) -> bool:
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("nameless", [True, False])
def test_a_new_file_takes_the_place_of_the_old_one_when_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool
) -> None:
    if not nameless:
        monkeypatch.setattr(module, "_nameless", lambda folder: None)
    target = tmp_path / "run.md"
    target.write_text("old")
    os.umask(umask := os.umask(0o022))
    with pytest.raises(ZeroDivisionError), new_file(target) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert [one.name for one in tmp_path.iterdir()] == ["run.md"] and target.read_text() == "old"
    with new_file(target) as file:
        file.write(b"new")
        assert target.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["run.md"] and target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_file_system_without_files_that_have_no_name_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: object) -> int:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "open", refused)
    with new_file(tmp_path / "a") as file:
        file.write(b"x")
    assert (tmp_path / "a").read_bytes() == b"x"


@pytest.mark.parametrize("nameless", [True, False])
def test_an_error_has_the_name_that_the_user_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool
) -> None:
    """And not that of the draft, which nobody has seen."""
    if not nameless:
        monkeypatch.setattr(module, "_nameless", lambda folder: None)
    with pytest.raises(FileNotFoundError) as error, new_file(tmp_path / "none/report.html"):
        pass
    assert (error.value.filename, error.value.filename2) == (str(tmp_path / "none/report.html"), None)


def test_a_current_folder_that_is_gone_is_an_error_with_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError) as error, new_file(Path("report.html")):
        pass
    assert error.value.filename == "report.html"
