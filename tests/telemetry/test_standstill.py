"""Stops that the host can see: by signal, debugger and freezer, of processes and of the watch itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.faked import until
from vmlab.system.cgroup_mounts import Mount
from vmlab.telemetry.standstill import EVERY, ProcessStates, Standstill, StandstillWatch, longest


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    # Until then it uses CPU.
    until(lambda: "nanosleep" in Path(f"/proc/{process.pid}/wchan").read_text(), "that it sleeps")
    yield process
    process.kill()
    process.wait()


def stops(states: ProcessStates, pid: int, now: float) -> list[Standstill]:
    return [one for one in states.end(now) if one.pid == pid]


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_stop_is_seen_with_its_length_and_who_it_was(sleeper: subprocess.Popen[bytes]) -> None:
    states = ProcessStates()
    for at in (0.0, EVERY):
        states.look(at)
    os.kill(sleeper.pid, signal.SIGSTOP)
    until(lambda: state(sleeper.pid) == "T", "the state")
    for at in (2 * EVERY, 1.0, 2.0, 4.0):
        states.look(at)
    os.kill(sleeper.pid, signal.SIGCONT)
    until(lambda: state(sleeper.pid) == "S", "the state")
    states.look(4.0 + EVERY)
    (found,) = stops(states, sleeper.pid, 5.0)
    assert (found.name, found.how) == ("sleep", "stopped")
    assert found.seconds == pytest.approx(4.0 + EVERY / 2 - EVERY * 1.5)


def test_a_stop_that_lasts_ends_with_the_watch(sleeper: subprocess.Popen[bytes]) -> None:
    states = ProcessStates()
    states.look(0.0)
    os.kill(sleeper.pid, signal.SIGSTOP)
    until(lambda: state(sleeper.pid) == "T", "the state")
    states.look(1.0)
    states.look(1.0 + EVERY)
    (found,) = stops(states, sleeper.pid, 3.0)
    assert found.seconds == pytest.approx(2.5)


def test_a_process_that_works_or_sleeps_is_not_stopped(sleeper: subprocess.Popen[bytes]) -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        states = ProcessStates()
        for at in range(20):
            states.look(at * EVERY)
        assert stops(states, sleeper.pid, 6.0) == stops(states, busy.pid, 6.0) == []
        busy.kill()


@pytest.mark.parametrize(
    ("stat", "version", "freezer", "how"),
    [
        ("t", 1, "THAWED", ["stopped by a debugger"]),
        ("D", 1, "FROZEN", ["frozen by its cgroup"]),
        ("S", 2, "populated 1\nfrozen 1", ["frozen by its cgroup"]),
        ("S", 2, "populated 1\nfrozen 0", []),
        ("D", 1, "THAWED", []),
    ],
)
def test_debuggers_and_freezers_are_seen(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], stat: str, version: int, freezer: str, how: list[str]
) -> None:
    """From files of the kernel's form, which the kernel gave for a real one each (Linux 6.18)."""
    proc, group = tmp_path / "proc", tmp_path / "mount/a/b"
    (proc / str(sleeper.pid)).mkdir(parents=True)
    group.mkdir(parents=True)
    (proc / "loadavg").write_text("0.1 0.1 0.1 1/2 7\n")
    (proc / str(sleeper.pid) / "stat").write_text(f"{sleeper.pid} (a) b) {stat} 1 1\n")
    line = "6:freezer:/a/b" if version == 1 else "0::/a/b"
    (proc / str(sleeper.pid) / "cgroup").write_text(f"9:name=systemd:/\n{line}\n")
    (group / ("freezer.state" if version == 1 else "cgroup.events")).write_text(freezer)
    states = ProcessStates(proc, [Mount(tmp_path / "mount", frozenset({"freezer"}), version)])
    for at in range(5):
        states.look(at * EVERY)
    assert [one.how for one in states.end(9.0)] == how


def test_a_process_that_comes_later_is_watched_and_one_that_goes_is_forgotten(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    states = ProcessStates()
    states.look(0.0)
    with subprocess.Popen(["sleep", "600"]) as later:
        os.kill(later.pid, signal.SIGSTOP)
        until(lambda: state(later.pid) == "T", "the state")
        for at in (1.0, 2.0, 3.0):
            states.look(at)
        later.kill()
    states.look(4.0)
    (found,) = stops(states, later.pid, 5.0)
    assert found.seconds > 1


def test_a_gap_in_which_the_watch_itself_used_no_cpu_is_a_stop_of_this_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "loadavg").write_text("0.1 0.1 0.1 1/2 7\n")
    moments = iter([0.0, EVERY, 2 * EVERY + 4.0, 3 * EVERY + 4.0])
    monkeypatch.setattr(time, "process_time", lambda: 1.0)
    watch = StandstillWatch(inside=True, proc=tmp_path, clock=lambda: next(moments))
    waited = iter([False, False, True])
    monkeypatch.setattr(watch._stopping, "wait", lambda _seconds: next(waited))
    watch.start()
    (found,) = watch.stop()
    assert (found.pid, found.seconds) == (os.getpid(), 4.0)


def test_outside_of_a_lab_nothing_is_watched(sleeper: subprocess.Popen[bytes]) -> None:
    os.kill(sleeper.pid, signal.SIGSTOP)
    watch = StandstillWatch(inside=False)
    watch.start()
    assert watch.stop() == []


def test_stops_of_one_process_add_up_and_of_several_of_one_name_the_longest_counts() -> None:
    seen = [Standstill(pid, "fio", "stopped", seconds) for pid, seconds in ((5, 1.0), (6, 4.0), (5, 2.0))]
    disk = Standstill(9, "python3", "frozen by its cgroup", 8.0)
    assert list(longest([*seen, disk], {9: "the disk"})) == [
        ("fio on the host", "stopped", 4.0),
        ("the disk", "frozen by its cgroup", 8.0),
    ]
