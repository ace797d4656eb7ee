"""What `vmlab ls`, `clean` and `doctor` say to people after a kill, and without permission."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from tests.cli.called import ended
from tests.store.stories import WALL, Story
from vmlab.hypervisor import checks, kvm_probe
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.lab.process import launch
from vmlab.lab.process.run_folder import RunFolder
from vmlab.model.errors import RefusedError
from vmlab.store.run_list import list_runs
from vmlab.store.runs import tagged, write_tag
from vmlab.system.removal import remove_tree
from vmlab.tui.feed.run_facts import rows_of

RUN = "20261121-143015-tile-7f3a"
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run that was killed after its last cell was aborted; two files of its guests are left."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "run"))
    folder = RunFolder.of(RUN)
    os.close(folder.make())
    story = Story(folder.store, run=RUN).begin({"cache": ["none"]})
    story.cell({"cache": "none"}, {"web": 1.0}, wall=2.0)
    story.start_cell({"cache": "none"})
    story.end_cell("aborted", ["stopped"], wall=None)
    story.writer.close()
    journal = Journal(folder.journal)
    for name in ("web-1.qcow2", "web-1.console"):
        (folder.disks / name).touch()
        journal.add(JournalEntry("file", str(folder.disks / name)))
    return folder


def over(run: str) -> RunFolder:
    """A run that passed and left nothing."""
    folder = RunFolder.of(run)
    os.close(folder.make())
    story = Story(folder.store, run=run).begin({"cache": ["none"]})
    story.cell({"cache": "none"}, {"web": 1.0}, wall=2.0)
    story.end("passed", 0)
    remove_tree(folder.runtime)
    return folder


def test_a_killed_run_is_listed_with_the_cells_that_it_measured_and_what_clears_it(
    killed: RunFolder, capsys: Captured
) -> None:
    assert ended("ls") == 0
    out, err = capsys.readouterr()
    assert "aborted  1/2" in out
    assert [row.run.cells for row in rows_of(list_runs())] == ["1/2"], "the console's list"
    assert err == f"killed, with something left on this host: {RUN}; `vmlab clean` removes it\n"
    assert ended("clean") == 0
    assert capsys.readouterr().err == f"run {RUN}: removed 1 folder, 2 files\n"
    assert ended("ls") == 0
    assert capsys.readouterr().err == ""


def test_a_copy_of_a_run_is_not_said_to_leave_what_clean_does_not_remove(
    killed: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    copies = tmp_path / "copies"
    shutil.copytree(killed.path, copies / "vmlab" / "runs" / RUN)
    monkeypatch.setenv("XDG_STATE_HOME", str(copies))
    assert ended("ls") == 0
    out, err = capsys.readouterr()
    assert ("aborted  1/2" in out, err) == (True, "")


def test_a_state_folder_that_a_run_hides_from_itself_is_refused_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "run-of-host"
    hidden.mkdir()
    (tmp_path / "state").symlink_to(hidden)
    monkeypatch.setattr(launch, "_HIDDEN", hidden)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with pytest.raises(RefusedError, match="a run hides from itself") as refused:
        launch.check_ready()
    assert len(list(refused.value.lines())) == 1
    assert not list(hidden.iterdir())


def test_a_device_that_is_there_needs_permission_and_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path / "kvm"
    monkeypatch.setattr(kvm_probe, "DEVICE", device)
    kvm = {check.name: check for check in checks.checks()}["KVM"]
    assert (kvm.ok, kvm.remedy) == (False, "modprobe kvm_intel or kvm_amd")
    device.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    kvm = {check.name: check for check in checks.checks()}["KVM"]
    assert (kvm.ok, kvm.remedy) == (False, "run vmlab as root, as in sudo vmlab run SCENARIO")
    assert kvm.detail == f"guests are emulated (TCG): {device} is there, but this user may not open it"


def test_doctor_without_root_names_what_would_help_at_every_check_that_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(kvm_probe, "DEVICE", tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert ended("doctor") == 3
    lines = capsys.readouterr().out.splitlines()
    remedy = "     fix: run vmlab as root, as in sudo vmlab run SCENARIO"
    assert lines[0].startswith("NOT root: this user is not root") and lines[1] == remedy
    refused = [place for place, line in enumerate(lines) if "by this user" in line or "may not open" in line]
    assert len(refused) >= 2 and all(lines[place + 1] == remedy for place in refused)
    assert not any("sudo vmlab doctor" in line for line in lines)


OTHER = "20261121-150000-tile-0001"


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[RunFolder, RunFolder]:
    """Two runs that are over."""
    monkeypatch.setenv("VMLAB_RUNTIME_DIR", str(tmp_path / "run"))
    return over(RUN), over(OTHER)


def test_runs_are_removed_by_name_and_nothing_else_goes(
    two: tuple[RunFolder, RunFolder], tmp_path: Path, capsys: Captured
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (two[0].path / "link").symlink_to(outside)
    assert ended("rm", RUN, "--yes") == 0
    assert capsys.readouterr().err == f"removed run {RUN}\n"
    assert not two[0].path.exists() and two[1].store.exists() and (outside / "file").exists()
    assert ended("ls", "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert listed["id"] == OTHER
    assert listed["bytes"] >= two[1].store.stat().st_size


def test_nothing_is_removed_without_a_word(two: tuple[RunFolder, RunFolder], capsys: Captured) -> None:
    assert ended("rm", RUN) == 2
    assert "without a terminal to ask on, say --yes" in capsys.readouterr().err
    for words in ((), (RUN, "--older", "1h"), ("--older", "soon"), (f"{RUN}:1", "--yes"), ("nothing", "--yes")):
        assert ended("rm", *words) == 2
    assert two[0].store.exists() and two[1].store.exists()


def test_a_name_protects_its_runs(two: tuple[RunFolder, RunFolder], capsys: Captured) -> None:
    write_tag("base", RUN, OTHER)
    assert ended("rm", RUN, "--yes") == 2
    assert f"run {RUN} has the name base" in capsys.readouterr().err
    assert ended("rm", "--older", "0h", "--yes") == 0
    assert capsys.readouterr().err == "nothing to remove\n"
    assert ended("rm", RUN, "--yes", "--tagged") == 0
    assert tagged("base") == (OTHER,)
    assert ended("rm", "--older", "0h", "--yes", "--tagged") == 0
    assert tagged("base") is None and not two[1].path.exists()


def test_the_age_of_a_run_is_counted_from_its_beginning(two: tuple[RunFolder, RunFolder], capsys: Captured) -> None:
    weeks = int((time.time() - WALL) / (7 * 86400)) + 2
    assert ended("rm", "--older", f"{weeks}w", "--yes") == 0
    assert two[0].store.exists() and two[1].store.exists()


def test_a_run_under_way_a_copy_and_one_that_left_something_stay(
    killed: RunFolder, tmp_path: Path, capsys: Captured
) -> None:
    assert ended("rm", RUN, "--yes") == 3
    assert f"run {RUN} left something on this host; `vmlab clean` removes that first" in capsys.readouterr().err
    assert ended("clean") == 0
    lock = killed.take_lock()
    assert ended("rm", RUN, "--yes") == 3
    assert f"run {RUN} is under way" in capsys.readouterr().err
    os.close(lock)
    copy = killed.path.with_name(OTHER)
    shutil.copytree(killed.path, copy)
    assert ended("rm", OTHER, "--yes") == 3
    assert "is not the folder that the run made: nothing was removed" in capsys.readouterr().err
    assert copy.exists() and killed.store.exists()
