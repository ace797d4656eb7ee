"""What `vmlab ls`, `clean` and `doctor` say to people after a kill, and without permission."""

import os
from pathlib import Path

import pytest

from tests.store.stories import Story
from vmlab.cli.main import command_line
from vmlab.hypervisor import checks, kvm_probe
from vmlab.hypervisor.journal import Journal, JournalEntry
from vmlab.lab.folder import RunFolder

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


def ended(command: str) -> int:
    """The exit code of a command in this process."""
    try:
        return command_line([command])
    except SystemExit as end:
        return int(end.code or 0)


def test_a_killed_run_is_listed_with_the_cells_that_it_measured_and_what_clears_it(
    killed: RunFolder, capsys: Captured
) -> None:
    assert ended("ls") == 0
    out, err = capsys.readouterr()
    assert "aborted  1/2" in out
    assert err == f"killed, with something left on this host: {RUN}; `vmlab clean` removes it\n"
    assert ended("clean") == 0
    assert capsys.readouterr().err == f"run {RUN}: removed 1 folder, 2 files\n"
    assert ended("ls") == 0
    assert capsys.readouterr().err == ""


def test_a_device_that_is_there_needs_permission_and_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path / "kvm"
    monkeypatch.setattr(kvm_probe, "DEVICE", device)
    kvm = {check.name: check for check in checks.checks()}["KVM"]
    assert (kvm.ok, kvm.remedy) == (False, "modprobe kvm_intel or kvm_amd")
    device.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    kvm = {check.name: check for check in checks.checks()}["KVM"]
    assert (kvm.ok, kvm.remedy) == (False, "sudo vmlab doctor")
    assert kvm.detail == f"guests are emulated (TCG): {device} is there, but this user may not open it"
