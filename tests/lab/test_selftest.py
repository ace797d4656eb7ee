"""`vmlab selftest`: what is held against the kernel, what is said where nothing can run, and what a bundle has."""

import itertools
import json
import math
import threading
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.called import ended
from vmlab.cli.commands import selftest_command
from vmlab.hypervisor.checks import Check
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.selftest import bundle, trials
from vmlab.lab.selftest.trials import FAILS, NOT_TRIED, TRIALS, WORKS, CounterTrace, Result, Trials, recorder_verdict
from vmlab.model.errors import RefusedError
from vmlab.model.event import Notice
from vmlab.plan.terms import Overrides
from vmlab.store.writer import RunWriter

Captured = pytest.CaptureFixture[str]
KERNEL = {"cpu_user_percent": 60.0, "cpu_system_percent": 20.0, "memory_cached_bytes": 2e9}
ROOT = Check("root", True, "running as root")
NO_DISK = Check("pyfuse3", False, "not installed", "pip install vmlab[disk]", required=False)


class Times(NamedTuple):
    user: float
    system: float
    idle: float
    guest: float


def refuse() -> None:
    raise RefusedError("a run needs the Python package libvirt-python", remedy="vmlab doctor --fix")


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "check_ready", refuse)
    monkeypatch.setattr(selftest_command, "checks", lambda: [ROOT, NO_DISK])


def test_a_recorder_that_agrees_works_and_one_that_is_off_by_more_than_a_tick_fails() -> None:
    state, words = recorder_verdict({**KERNEL, "cpu_user_percent": 61.0}, KERNEL, 8e9)
    assert state == WORKS
    assert "61.0 and 60.0 %" in words
    for name, value in (("cpu_user_percent", 50.0), ("cpu_system_percent", 30.0), ("memory_cached_bytes", 3e9)):
        state, words = recorder_verdict({**KERNEL, name: value}, KERNEL, 8e9)
        assert state == FAILS
        assert name in words
    assert recorder_verdict({"cpu_user_percent": 60.0}, KERNEL, 8e9)[0] == FAILS


def test_shares_are_of_the_time_between_the_first_and_the_last_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()

    def cpu_times() -> object:
        # Of 8 ticks each time, 3 are a user's, one of them a guest's, 1 is the kernel's, and 4 are idle.
        now = next(ticks)
        return Times(user=3 * now, system=now, idle=4 * now, guest=now)

    monkeypatch.setattr("psutil.cpu_times", cpu_times)
    with CounterTrace() as trace:
        while trace.during(0, math.inf) is None:
            time.sleep(0.01)
        seen = trace.during(0, math.inf)
    assert seen is not None
    assert seen["cpu_user_percent"] == pytest.approx(37.5)
    assert seen["cpu_system_percent"] == pytest.approx(12.5)
    assert seen["memory_cached_bytes"] > 0
    assert trace.during(0, 1) is None
    assert not [one for one in threading.enumerate() if one.name == "selftest-counters"]


def test_where_nothing_can_run_each_trial_says_why() -> None:
    shown: list[Result] = []
    tried = Trials(shown.append)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "check_ready", refuse)
        tried.run()
    assert [one.name for one in shown] == list(TRIALS)
    assert {one.state for one in shown} == {NOT_TRIED}
    assert all("libvirt-python" in one.detail for one in shown)
    assert tried.folder is None


def test_no_snapshot_that_is_kept_can_be_of_its_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time the guest is prepared with another seed, also within the same second."""
    asked: list[Overrides] = []

    def keep(file: object, overrides: Overrides) -> None:
        asked.append(overrides)
        refuse()

    monkeypatch.setattr(trials, "check_ready", lambda: None)
    monkeypatch.setattr(trials, "prepare_run", keep)
    for _ in range(64):
        Trials(lambda _: None).run()
    assert len({one.seed for one in asked}) == 64


@pytest.mark.usefixtures("nothing_runs")
def test_the_command_refuses_and_names_what_is_not_here(capsys: Captured) -> None:
    assert ended("selftest") == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("works     what runs need")
    assert "1 of 2 checks" in lines[0]
    assert lines[1].split(maxsplit=3)[:3] == ["not", "here", "pyfuse3"]
    assert len(lines) == 2 + len(TRIALS)


def test_without_what_runs_need_nothing_is_started(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    qemu = Check("qemu-system-x86_64", False, "not installed", "apt-get install qemu-system-x86")
    monkeypatch.setattr(selftest_command, "checks", lambda: [ROOT, qemu])
    monkeypatch.setattr(trials, "start_run", None)
    assert ended("selftest") == 3
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("not here  qemu-system-x86_64")
    assert len(others) == len(TRIALS)
    assert all(line.startswith("not tried") and line.endswith("runs need qemu-system-x86_64") for line in others)


def test_of_a_run_that_ends_early_one_trial_fails_and_the_others_are_not_tried() -> None:
    tried = Trials(lambda result: None)
    tried.add(Result(TRIALS[0], WORKS, ""))
    tried.leave_out("the run ended: no QEMU", failed=True)
    assert [one.state for one in tried.results] == [WORKS, FAILS, *[NOT_TRIED] * (len(TRIALS) - 2)]
    assert tried.results[1].detail == "the run ended: no QEMU"


@pytest.mark.usefixtures("nothing_runs")
def test_as_json_there_is_nothing_else_on_standard_output(capsys: Captured) -> None:
    assert ended("selftest", "--json") == 3
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "vmlab.selftest/1"
    assert {one["state"] for one in document["trials"][2:]} == {NOT_TRIED}


@pytest.mark.usefixtures("nothing_runs")
def test_a_bundle_is_listed_before_it_is_written(tmp_path: Path, capsys: Captured) -> None:
    there = tmp_path / "bundle.zip"
    assert ended("selftest", "--bundle", str(there)) == 2
    assert not there.exists()
    assert ended("selftest", "--yes") == 2
    assert ended("selftest", "--bundle", str(there), "--yes") == 3
    with zipfile.ZipFile(there) as archive:
        assert archive.namelist() == ["selftest.json", "doctor.json", "versions.json"]
        assert json.loads(archive.read("versions.json"))["packages"]["click"]
        assert "libvirt-python" in archive.read("selftest.json").decode()
    said = capsys.readouterr().err
    assert all(name in said for name in ("selftest.json", "doctor.json", "versions.json"))


def test_a_bundle_has_log_and_events_of_the_run_and_no_name_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "_own_names", lambda: {"hv17": "HOST", "hv17.lab.example": "HOST", "anna": "USER"})
    folder = RunFolder("20261125-000000-selftest-0000", tmp_path)
    folder.log.write_text("hv17: from /home/anna/x on hv17.lab.example, hv171 apart\n")
    writer = RunWriter(folder.store)
    writer.append(Notice(level="warning", text="hv17 is slow"))
    writer.close()
    texts = bundle.contents([Result("a", WORKS, "on hv17")], [ROOT], folder, host_names=False)
    assert texts["launcher.log"] == "HOST: from /home/USER/x on HOST, hv171 apart\n"
    assert json.loads(texts["events.jsonl"])["text"] == "HOST is slow"
    assert "hv17" not in texts["selftest.json"]
    assert "hv17" in bundle.contents([Result("a", WORKS, "on hv17")], [ROOT], folder, host_names=True)["selftest.json"]
