"""The program that runs inside guests, on processes of this machine and on a dummy of /proc."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vmlab.guests.channel import payload_file
from vmlab.guests.payload import guest_stops
from vmlab.guests.payload.guest_stops import Stops

STAT = "{pid} ({name}) {state} {parent} 1 1 0 -1 4194560"


class Proc:
    """A dummy of /proc, and of the cgroups."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.cgroups, self.online = folder / "proc", folder / "cgroup", folder / "online"
        self.cards = folder / "net"
        self.cgroups.mkdir()
        (self.cgroups / "cgroup.controllers").write_text("cpu io memory\n")
        self.online.write_text("0-1\n")

    def process(self, pid: int, name: str, state: str = "S", parent: int = 1) -> None:
        (self.proc / f"{pid}").mkdir(parents=True, exist_ok=True)
        self.state(pid, name, state, parent)

    def state(self, pid: int, name: str, state: str, parent: int = 1) -> None:
        # As in the kernel, it stays the same file.
        with (self.proc / f"{pid}/stat").open("w") as file:
            file.write(STAT.format(pid=pid, name=name, state=state, parent=parent))

    def freeze(self, group: str, frozen: int, *pids: int) -> None:
        (self.cgroups / group).mkdir(parents=True, exist_ok=True)
        (self.cgroups / group / "cgroup.freeze").write_text(f"{frozen}\n")
        (self.cgroups / group / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))

    def card(self, name: str, changes: int, device: bool = True) -> None:
        (self.cards / name).mkdir(parents=True, exist_ok=True)
        (self.cards / name / "carrier_changes").write_text(f"{changes}\n")
        if device:
            (self.cards / name / "device").mkdir(exist_ok=True)

    def stops(self) -> Stops:
        return Stops(str(self.proc), 50, str(self.cgroups), str(self.online), str(self.cards))


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    made = Proc(tmp_path)
    made.process(1, "systemd", parent=0)
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    yield now


def looked(stops: Stops, clock: list[float], seconds: int) -> None:
    for _ in range(seconds):
        clock[0] += 1
        stops.look()


def test_what_stands_still_is_told_with_its_seconds(proc: Proc, clock: list[float]) -> None:
    proc.process(70, "postgres: (main) x")
    proc.process(71, "apache2")
    stops = proc.stops()
    looked(stops, clock, 1)
    proc.state(70, "postgres: (main) x", "T")
    looked(stops, clock, 3)
    proc.state(70, "postgres: (main) x", "S")
    proc.state(71, "apache2", "t")
    looked(stops, clock, 1)
    proc.state(71, "apache2", "R")
    looked(stops, clock, 1)
    assert stops.told() == [("postgres: (main) x", "stopped", 3.0), ("apache2", "stopped", 1.0)]


def test_of_each_kind_the_longest_are_told(proc: Proc, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotas of a user's own services may hold back many, and excuse no process that stood still."""
    proc.process(70, "postgres")
    stops = proc.stops()
    looked(stops, clock, 1)
    proc.state(70, "postgres", "T")
    looked(stops, clock, 2)
    proc.state(70, "postgres", "S")
    looked(stops, clock, 1)
    monkeypatch.setattr(stops.groups, "held_back", lambda: [(f"{one}.service", 9.0 + one) for one in range(8)])
    told = stops.told()
    assert told[-1] == ("postgres", "stopped", 2.0)
    assert [name for name, how, _ in told if how == "throttled"] == [f"{one}.service" for one in range(7, 2, -1)]


def test_what_the_lab_started_the_kernels_own_and_what_was_stopped_before_is_left_out(
    proc: Proc, clock: list[float]
) -> None:
    proc.process(2, "kthreadd", parent=0)
    proc.process(60, "kworker", parent=2)
    proc.process(50, "python3")
    proc.process(70, "start_line", parent=50)
    proc.process(71, "sysbench", parent=70)
    proc.process(72, "debugged", "t")
    stops = proc.stops()
    for pid, name, parent in ((60, "kworker", 2), (70, "start_line", 50), (71, "sysbench", 70)):
        proc.state(pid, name, "T", parent)
    looked(stops, clock, 3)
    assert stops.told() == []


@pytest.mark.parametrize("how", ["stopped", "frozen"])
def test_what_was_stopped_before_and_goes_on_is_told(how: str, proc: Proc, clock: list[float]) -> None:
    """A server that was stopped while the guest was prepared works for a part of the time only."""

    def stop(is_stopped: bool) -> None:
        proc.state(70, "mariadbd", "T" if is_stopped and how == "stopped" else "S")
        proc.freeze("mariadb.service", int(is_stopped and how == "frozen"), 70)

    proc.process(70, "mariadbd")
    stop(True)
    stops = proc.stops()
    stops.begin()
    looked(stops, clock, 5)
    assert stops.told() == [], "it may never go on"
    stop(False)
    looked(stops, clock, 2)
    assert stops.told() == [("mariadbd", how, 5.5)]


def test_what_went_on_before_the_start_and_is_stopped_again_is_told(proc: Proc, clock: list[float]) -> None:
    proc.process(70, "mariadbd", "T")
    stops = proc.stops()
    proc.state(70, "mariadbd", "S")
    stops.begin()
    proc.state(70, "mariadbd", "T")
    looked(stops, clock, 2)
    assert stops.told() == [("mariadbd", "stopped", 1.5)]


def test_what_a_client_leaves_behind_is_told_as_its_start_line_sees_it_no_more(proc: Proc, clock: list[float]) -> None:
    proc.process(60, "python3")
    (proc.proc / "60/cmdline").write_bytes(b"python3\0-I\0-S\0/run/vmlab/start_line.py\0")
    proc.process(71, "sh", parent=60)
    proc.process(72, "server", parent=71)
    proc.process(73, "worker", parent=72)
    stops = proc.stops()
    for pid, name, parent in ((60, "python3", 1), (71, "sh", 60), (72, "server", 71), (73, "worker", 72)):
        proc.state(pid, name, "T", parent)
    looked(stops, clock, 2)
    assert stops.told() == []
    proc.state(72, "server", "T", 1)
    looked(stops, clock, 2)
    assert stops.told() == [("server", "stopped", 1.5), ("worker", "stopped", 1.5)]


def test_a_process_that_came_later_and_one_that_has_ended_are_told(proc: Proc, clock: list[float]) -> None:
    stops = proc.stops()
    proc.process(90, "postgres", "T")
    looked(stops, clock, 2)
    for file in (proc.proc / "90").iterdir():
        file.unlink()
    (proc.proc / "90").rmdir()
    looked(stops, clock, 2)
    assert stops.told() == [("postgres", "stopped", 1.5)]


def test_counting_begins_anew_and_a_process_that_ends_in_between_is_passed_over(
    proc: Proc, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.process(70, "postgres")
    stops = proc.stops()
    proc.state(70, "postgres", "T")
    looked(stops, clock, 5)
    proc.state(70, "postgres", "S")
    stops.begin()
    real = os.pread

    def gone(descriptor: int, length: int, offset: int) -> bytes:
        if str(Path(f"/proc/self/fd/{descriptor}").readlink()).endswith("/99/stat"):
            raise ProcessLookupError
        return real(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", gone)
    proc.process(99, "true")
    looked(stops, clock, 2)
    assert stops.told() == []


def test_where_it_stood_still_itself_all_did(proc: Proc, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    times = [(0.0, 0)]
    monkeypatch.setattr(guest_stops, "own_times", lambda: times[0])
    stops = proc.stops()
    clock[0] += 8
    stops.look()
    clock[0] += 8
    times[0] = (6.0, 0)
    stops.look()
    clock[0] += 8
    times[0] = (6.0, 1)
    stops.look()
    assert stops.told() == [("all that runs there", "frozen", 7.0)], "and not where it waited for a CPU, or for a page"


def test_a_frozen_cgroup_is_told(proc: Proc, clock: list[float]) -> None:
    proc.freeze("system.slice/smbd.service", 0, 70)
    proc.process(70, "smbd")
    stops = proc.stops()
    looked(stops, clock, 1)
    proc.freeze("system.slice/smbd.service", 1, 70)
    looked(stops, clock, 2)
    assert stops.told() == [("smbd", "frozen", 1.5)]


def test_so_is_one_that_is_made_for_it_also_for_a_client_of_the_labs(proc: Proc, clock: list[float]) -> None:
    """A start line hears of no freeze: a frozen task sleeps (version 2)."""
    proc.process(50, "python3")
    proc.process(70, "start_line", parent=50)
    proc.process(71, "sysbench", parent=70)
    proc.freeze("vmlab-old", 0)
    stops = proc.stops()
    looked(stops, clock, 1)
    shutil.rmtree(proc.cgroups / "vmlab-old")
    proc.freeze("made", 1, 71)
    looked(stops, clock, 3)
    proc.freeze("made", 0, 71)
    looked(stops, clock, 1)
    ((name, how, seconds),) = stops.told()
    assert (name, how) == ("sysbench", "frozen") and seconds >= 2.0


def test_so_is_one_whose_tasks_do_not_all_stand_still_and_one_below(proc: Proc, clock: list[float]) -> None:
    """Its events say that it is not frozen while one task waits for a disk."""
    proc.process(70, "mariadbd")
    proc.process(71, "worker")
    proc.freeze("mariadb.service", 0, 70)
    proc.freeze("mariadb.service/workers", 0, 71)
    proc.freeze("mariadb.service-else", 0, 1)
    (proc.cgroups / "mariadb.service/cgroup.events").write_text("populated 1\nfrozen 0\n")
    stops = proc.stops()
    proc.freeze("mariadb.service", 1, 70)
    looked(stops, clock, 2)
    assert stops.told() == [("mariadbd", "frozen", 1.5), ("worker", "frozen", 1.5)]


def test_so_is_one_that_came_in_the_place_of_another_of_its_name(proc: Proc, clock: list[float]) -> None:
    proc.process(70, "smbd")
    proc.freeze("smbd.service", 0, 70)
    stops = proc.stops()
    looked(stops, clock, 1)
    (proc.cgroups / "smbd.service").rename(proc.proc.parent / "gone")
    proc.freeze("smbd.service", 1, 70)
    looked(stops, clock, 2)
    assert stops.told() == [("smbd", "frozen", 1.5)]


def test_a_card_without_a_carrier_is_told_first_and_a_bridge_is_none(proc: Proc, clock: list[float]) -> None:
    for changes in (1, 2):
        proc.card("eth0", changes)
        proc.card("eth1", 1)
        proc.card("docker0", changes, device=False)
        if changes == 1:
            stops = proc.stops()
    stops.begin()
    assert stops.told() == [], "it was so before the start"
    proc.card("eth0", 4)
    proc.card("docker0", 4, device=False)
    for pid in range(70, 80):
        proc.process(pid, "postgres", "T")
    looked(stops, clock, 2)
    told = stops.told()
    assert told[0] == ("eth0", "without a carrier", 0.0)
    assert {one[:2] for one in told[1:]} == {("postgres", "stopped")} and len(told) == 1 + guest_stops.MOST_TOLD


def test_a_quota_and_a_processor_that_is_taken_away_are_told(proc: Proc, clock: list[float]) -> None:
    group = proc.cgroups / "system.slice/postgresql.service"
    proc.freeze("system.slice/postgresql.service", 0)

    def held_back(microseconds: int) -> None:
        (group / "cpu.stat").write_text(f"usage_usec 5\nnr_throttled 1\nthrottled_usec {microseconds}\n")

    held_back(7_000_000)
    stops = proc.stops()
    held_back(8_000_000)
    stops.begin()
    held_back(10_500_000)
    proc.online.write_text("0\n")
    looked(stops, clock, 2)
    proc.online.write_text("0-1\n")
    looked(stops, clock, 1)
    told = [("system.slice/postgresql.service", "throttled", 2.5), ("a processor", "offline", 2.0)]
    assert stops.told() == told


@pytest.mark.parametrize("program", ["guest_stops.py", "start_line.py"])
def test_the_programs_run_with_python_3_9(program: str) -> None:
    tree = ast.parse(payload_file(program), feature_version=(3, 9))
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call)]
    assert not [one.lineno for one in calls if "strict" in {keyword.arg for keyword in one.keywords}], "as of zip()"


def test_a_real_process_that_is_stopped(tmp_path: Path) -> None:
    """The program itself, as the lab starts it."""
    program = tmp_path / "guest_stops.py"
    program.write_bytes(payload_file("guest_stops.py"))
    own = Path(shutil.copy("/bin/sleep", tmp_path / "stood-still"))
    sleeper = subprocess.Popen([own, "600"])
    # What the lab's own connection has started is left out, and here that is a shell.
    argv = ["sh", "-c", f"{sys.executable} -I -S {program}; :"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        try:
            assert json.loads(started.stdout.readline()) == {"ready": True}
            assert started.stdin is not None
            started.stdin.write("{}\n")
            started.stdin.flush()
            time.sleep(1)
            sleeper.send_signal(signal.SIGSTOP)
            time.sleep(3.5)
            told, _ = started.communicate("{}\n", timeout=60)
        finally:
            sleeper.kill()
            sleeper.wait()
    body = json.loads(told)
    ((_, how, seconds),) = [one for one in body["stopped"] if one[0] == own.name]
    # It is still stopped at the last look, however late looks come on a busy machine.
    assert how == "stopped" and 0 < seconds <= body["seconds"]
