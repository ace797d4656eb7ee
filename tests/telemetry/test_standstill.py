"""Stops that the host can see: by signal, debugger and freezer, of processes and of the watch itself."""

from __future__ import annotations

import ctypes
import gc
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from tests.lab.faked import until
from vmlab.lab.cell.undisturbed import longest
from vmlab.system.mounts import Mount, hierarchies, mount_of
from vmlab.telemetry.link_states import LinkStates
from vmlab.telemetry.process_states import EVERY, Pids, ProcessStates, Standstill
from vmlab.telemetry.standstill import Seen, StandstillWatch
from vmlab.telemetry.steady_values import LabValues


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    # Until then it uses CPU.
    until(lambda: "nanosleep" in Path(f"/proc/{process.pid}/wchan").read_text(), "that it sleeps")
    yield process
    process.kill()
    process.wait()


def show(proc: Path, *pids: int) -> None:
    """Have the folder `proc` show these processes of the real one."""
    proc.mkdir(exist_ok=True)
    for name in ("loadavg", *map(str, pids)):
        if not (proc / name).exists():
            (proc / name).symlink_to(f"/proc/{name}")


def states_of(folder: Path, *pids: int) -> ProcessStates:
    show(folder / "proc", *pids)
    return ProcessStates(folder / "proc")


def stops(states: ProcessStates, pid: int, now: float) -> list[Standstill]:
    return [one for one in states.end(now) if one.pid == pid]


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_stop_is_seen_with_its_length_and_who_it_was(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    states = states_of(tmp_path, sleeper.pid)
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
    assert found.thread == ""


def test_a_stop_that_lasts_ends_with_the_watch(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    states = states_of(tmp_path, sleeper.pid)
    states.look(0.0)
    os.kill(sleeper.pid, signal.SIGSTOP)
    until(lambda: state(sleeper.pid) == "T", "the state")
    states.look(1.0)
    states.look(1.0 + EVERY)
    (found,) = stops(states, sleeper.pid, 3.0)
    assert found.seconds == pytest.approx(2.5)


def test_a_process_that_works_or_sleeps_is_not_stopped(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        states = states_of(tmp_path, sleeper.pid, busy.pid)
        for at in range(20):
            states.look(at * EVERY)
        assert stops(states, sleeper.pid, 6.0) == stops(states, busy.pid, 6.0) == []
        busy.kill()


_NOBODY = 5_000_000
"""More than the kernel's numbers of processes."""


def write_thread(proc: Path, pid: int, tid: int, stat: str, cgroup: str = "0::/") -> None:
    """Have the folder `proc` show a thread in this state, by files of the kernel's form; a D waits for something."""
    task = proc / str(pid) / "task" / str(tid)
    task.mkdir(parents=True, exist_ok=True)
    (proc / "loadavg").write_text("0.1 0.1 0.1 1/2 7\n")
    state, _, waits = stat.partition(" ")
    (task / "stat").write_text(f"{tid} (a) b) {state} 1 1\n")
    (task / "wchan").write_text(waits)
    (task / "schedstat").write_text("0 0 0\n")
    (task / "cgroup").write_text(f"9:name=systemd:/\n{cgroup}\n")


@pytest.mark.parametrize(
    ("stat", "version", "freezer", "how"),
    [
        ("t", 1, "THAWED", ["stopped by a debugger"]),
        ("D", 1, "FROZEN", ["frozen by its cgroup"]),
        ("D", 1, "FREEZING", ["frozen by its cgroup"]),
        ("S", 2, "populated 1\nfrozen 1", ["frozen by its cgroup"]),
        ("S", 2, "populated 1\nfrozen 0", []),
        ("D", 1, "THAWED", []),
        ("D percpu_rwsem_wait", 1, "THAWED", ["stopped by a frozen file system"]),
        ("D io_schedule", 1, "THAWED", []),
    ],
)
def test_debuggers_and_freezers_are_seen(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], stat: str, version: int, freezer: str, how: list[str]
) -> None:
    """From files of the kernel's form, which the kernel gave for a real one each (Linux 6.18)."""
    proc, group = tmp_path / "proc", tmp_path / "mount/a/b"
    group.mkdir(parents=True)
    write_thread(proc, sleeper.pid, sleeper.pid, stat, "6:freezer:/a/b" if version == 1 else "0::/a/b")
    (group / ("freezer.state" if version == 1 else "cgroup.events")).write_text(freezer)
    states = ProcessStates(proc, [Mount(tmp_path / "mount", frozenset({"freezer"}), version)])
    for at in range(5):
        states.look(at * EVERY)
    assert [one.how for one in states.end(9.0)] == how


@pytest.mark.parametrize("frozen", ["a", "a/b"])
@pytest.mark.parametrize(("stat", "how"), [("S", ["frozen by its cgroup"]), ("R", []), ("D io_schedule", [])])
def test_a_group_of_version_2_that_is_frozen_in_part_holds_its_threads_that_do_not_wait(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], frozen: str, stat: str, how: list[str]
) -> None:
    """It has no event while one of its threads waits for a disk."""
    proc, mount = tmp_path / "proc", tmp_path / "mount"
    write_thread(proc, sleeper.pid, sleeper.pid, stat, "0::/a/b")
    (mount / "a/b").mkdir(parents=True)
    (mount / "a/b/cgroup.events").write_text("populated 1\nfrozen 0\n")
    for group in ("a", "a/b"):
        (mount / group / "cgroup.freeze").write_text(f"{int(group == frozen)}\n")
    states = ProcessStates(proc, [Mount(mount, frozenset(), 2)])
    for at in range(5):
        states.look(at * EVERY)
    assert [one.how for one in states.end(9.0)] == how


@pytest.mark.parametrize(("samples", "seconds"), [(1, 0.0), (2, 2 * EVERY), (5, 5 * EVERY)])
def test_a_thread_that_waits_where_a_frozen_file_system_stops_it_is_stopped_if_it_still_does_in_the_next_sample(
    tmp_path: Path, samples: int, seconds: float
) -> None:
    """One that is forked or ends waits there for a moment, while another is put into a cgroup."""
    write_thread(tmp_path, _NOBODY, _NOBODY, "S")
    states = ProcessStates(tmp_path, [])
    for at in range(4 + samples):
        write_thread(tmp_path, _NOBODY, _NOBODY, "D percpu_rwsem_wait" if 3 <= at < 3 + samples else "S")
        states.look(at * EVERY)
    assert sum(one.seconds for one in states.end(9.0)) == pytest.approx(seconds)


@pytest.mark.parametrize("ends", [False, True])
def test_one_that_is_seen_there_last_is_not_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends: bool
) -> None:
    monkeypatch.setattr("vmlab.telemetry.process_states.reader", lambda path, _others: path.read_bytes)
    write_thread(tmp_path, _NOBODY, _NOBODY, "S")
    states = ProcessStates(tmp_path, [])
    states.look(0.0)
    write_thread(tmp_path, _NOBODY, _NOBODY, "D percpu_rwsem_wait")
    states.look(EVERY)
    if ends:
        shutil.rmtree(tmp_path / str(_NOBODY))
        states.look(2 * EVERY)
    assert states.end(1.0) == []


def test_a_thread_that_was_not_shown_when_its_number_was_taken_is_listed_next(tmp_path: Path) -> None:
    """Linux counts a thread in /proc/loadavg before it is in /proc."""
    write_thread(tmp_path, _NOBODY, _NOBODY, "S")
    states = ProcessStates(tmp_path, [])
    for at in range(1, 4):
        states.list_all(float(at))
        write_thread(tmp_path, _NOBODY, _NOBODY + at, "S")
    listed = {tid for _, tid, _ in states.threads(every=True)}
    assert listed == {_NOBODY, _NOBODY + 1}, "nothing has changed at the third"


def test_a_process_that_comes_later_is_watched_and_one_that_goes_is_forgotten(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    states = states_of(tmp_path, sleeper.pid)
    states.look(0.0)
    with subprocess.Popen(["sleep", "600"]) as later:
        show(tmp_path / "proc", later.pid)
        os.kill(later.pid, signal.SIGSTOP)
        until(lambda: state(later.pid) == "T", "the state")
        for at in (1.0, 2.0, 3.0):
            states.look(at)
        later.kill()
    states.look(4.0)
    (found,) = stops(states, later.pid, 5.0)
    assert found.seconds > 1


_THREADS = """
import ctypes, sys, threading, time
def named(name):
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
    print(threading.get_native_id(), flush=True)
    while True:
        time.sleep(float(sys.argv[1]))
threading.Thread(target=named, args=(b"CPU 0/TCG",), daemon=True).start()
time.sleep(600)
"""


@pytest.fixture(params=["0.01"])
def thread(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """A process and its thread CPU 0/TCG, which works now and then: after so many seconds each time."""
    command = [sys.executable, "-c", _THREADS, request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.pid, int(process.stdout.readline())
        finally:
            process.kill()


def ptrace(request: int, tid: int) -> None:
    if ctypes.CDLL(None, use_errno=True).ptrace(request, tid, None, None):
        raise OSError(ctypes.get_errno(), "ptrace")


@contextmanager
def traced(tid: int) -> Iterator[None]:
    """A debugger has stopped one thread and no other: PTRACE_SEIZE and PTRACE_INTERRUPT, then PTRACE_DETACH."""
    ptrace(0x4206, tid)
    ptrace(0x4207, tid)
    until(lambda: _state_of_thread(tid) == "t", "that it is stopped")
    yield
    ptrace(17, tid)


@contextmanager
def frozen(tid: int) -> Iterator[None]:
    """A cgroup of version 1 has frozen one thread and no other."""
    mount = mount_of("freezer", [one for one in hierarchies() if one.version == 1])
    if mount is None or not os.access(mount.root, os.W_OK):
        pytest.skip("no freezer cgroup of version 1 that can be written")
    group = mount.root / f"vmlab-test-{tid}"
    group.mkdir()
    try:
        (group / "tasks").write_text(str(tid))
        (group / "freezer.state").write_text("FROZEN")
        until(lambda: (group / "freezer.state").read_text() == "FROZEN\n", "that it is frozen")
        yield
    finally:
        (group / "freezer.state").write_text("THAWED")
        (mount.root / "tasks").write_text(str(tid))
        group.rmdir()


def _state_of_thread(tid: int) -> str:
    return Path(f"/proc/{tid}/task/{tid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize(("stop", "how"), [(traced, "stopped by a debugger"), (frozen, "frozen by its cgroup")])
def test_one_thread_of_a_process_that_stands_still_is_named(
    tmp_path: Path, thread: tuple[int, int], stop: Callable[[int], AbstractContextManager[None]], how: str
) -> None:
    """The rule: everything that carries a figure is watched, each thread by itself."""
    pid, tid = thread
    states = states_of(tmp_path, pid)
    states.look(0.0)
    with stop(tid):
        for at in (1.0, 2.0, 3.0):
            states.look(at)
    until(lambda: _state_of_thread(tid) in "SR", "that it goes on")
    states.look(4.0)
    (found,) = stops(states, pid, 5.0)
    assert (found.how, found.thread, found.seconds) == (how, "CPU 0/TCG", 3.0)


@pytest.mark.parametrize("thread", ["600"], indirect=True)
@pytest.mark.parametrize("stop", [traced, frozen])
def test_one_that_is_idle_is_seen_as_well(
    tmp_path: Path, thread: tuple[int, int], stop: Callable[[int], AbstractContextManager[None]]
) -> None:
    """A freezer of version 1 stops and thaws it where it sleeps; the cgroups of such threads are read in turn."""
    pid, tid = thread
    until(lambda: _state_of_thread(tid) == "S", "that it sleeps")
    states = states_of(tmp_path, pid)
    for at in (0.0, 0.5):
        states.look(at)
    with stop(tid):
        for at in range(1, 11):
            states.look(float(at))
    until(lambda: _state_of_thread(tid) == "S", "that it sleeps again")
    for at in (11.0, 12.0):
        states.look(at)
    (found,) = stops(states, pid, 100.0)
    assert found.thread == "CPU 0/TCG"
    assert 1.5 <= found.seconds <= 10.5


@pytest.mark.parametrize(
    ("only", "files"),
    [
        (lambda _pid: None, ["schedstat", "stat"]),
        # The clock of a process in no PID namespace of this one cannot be asked for.
        (lambda pid: lambda: [pid], ["schedstat", "stat", "schedstat", "schedstat", "schedstat"]),
    ],
)
def test_the_state_of_one_that_does_not_run_is_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    sleeper: subprocess.Popen[bytes],
    only: Callable[[int], Pids | None],
    files: list[str],
) -> None:
    """It costs three times as much as what it has run, and what each thread has run more than what all have."""
    until(lambda: state(sleeper.pid) == "S", "the state")
    read: list[str] = []

    def counted(path: Path, _others: int) -> Callable[[], bytes]:
        return lambda: read.append(path.name) or path.read_bytes()  # type: ignore[func-returns-value]

    monkeypatch.setattr("vmlab.telemetry.process_states.reader", counted)
    show(tmp_path / "proc", sleeper.pid)
    states = ProcessStates(tmp_path / "proc", only=only(sleeper.pid))
    for at in range(4):
        states.look(at * EVERY)
    assert [name for name in read if name != "cgroup"] == files


def test_threads_are_given_of_processes_that_have_run_and_once_where_they_ended(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """All threads of such a process, since its own may have been changed while the turn of others came."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        states = states_of(tmp_path, sleeper.pid, busy.pid)
        states.list_all(0.0)
        assert {pid for pid, _, _ in states.threads(every=True)} == {sleeper.pid, busy.pid}

        def given(at: float) -> set[int]:
            states.look(at)
            return {pid for pid, _, _ in states.threads()}

        given(0.1)
        until(lambda: given(0.2) == {busy.pid}, "that it has run")
        assert {pid for pid, _, _ in states.threads(every=True)} == {sleeper.pid, busy.pid}
        busy.kill()
    assert (given(0.3), given(0.4)) == ({busy.pid}, set())


def test_a_thread_that_ends_does_not_keep_its_process_awake(tmp_path: Path) -> None:
    code = "import threading as t, time; one = t.Thread(target=input); one.start(); print(flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None and process.stdout.readline()
        states, tasks = states_of(tmp_path, process.pid), Path(f"/proc/{process.pid}/task")

        def is_asleep() -> bool:
            states.look(0.0)
            return all(one.sleeps for one in states._processes.values())

        try:
            until(is_asleep, "that it sleeps with two threads")
            process.stdin.write(b"\n")
            process.stdin.flush()
            until(lambda: len([*tasks.iterdir()]) == 1 and state(process.pid) == "S", "that one has ended")
            until(is_asleep, "that it sleeps with one")
        finally:
            process.kill()


def test_of_the_hosts_processes_only_the_labs_are_looked_at(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], thread: tuple[int, int]
) -> None:
    """Guests of the host's own libvirt are in no PID namespace of the lab."""
    show(tmp_path / "proc", sleeper.pid, thread[0])
    states = ProcessStates(tmp_path / "proc", only=lambda: [sleeper.pid])
    pids = (sleeper.pid, thread[0])
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    until(lambda: {state(pid) for pid in pids} == {"T"}, "the state")
    for at in (0.0, 1.0):
        states.look(at)
    assert [one.pid for one in states.end(2.0)] == [sleeper.pid]


def test_new_threads_of_the_hosts_processes_are_listed_whatever_number_is_the_last_here(tmp_path: Path) -> None:
    """/proc/loadavg has the last number of the PID namespace of who reads it."""
    write_thread(tmp_path, _NOBODY, _NOBODY, "S")
    states = ProcessStates(tmp_path, only=lambda: [_NOBODY])
    for at in range(4):
        states.list_all(float(at))
        write_thread(tmp_path, _NOBODY, _NOBODY + at, "S")
    found = [(pid, tid) for pid, tid, _ in states.threads()]
    assert found == [(-_NOBODY, -_NOBODY - at) for at in range(3)]


def test_short_stops_add_up(tmp_path: Path, thread: tuple[int, int]) -> None:
    pid, tid = thread
    states = states_of(tmp_path, pid)
    for at in range(20):
        with traced(tid):
            states.look(float(at))
        until(lambda: _state_of_thread(tid) in "SR", "that it goes on")
        states.look(at + 0.5)
    (found,) = stops(states, pid, 20.0)
    assert found.seconds == pytest.approx(10.0, abs=1.0)


def test_more_threads_than_are_looked_at_at_once_are_looked_at_in_turn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sleeper: subprocess.Popen[bytes], thread: tuple[int, int]
) -> None:
    monkeypatch.setattr("vmlab.telemetry.process_states._MOST_AT_ONCE", 1)
    monkeypatch.setattr("vmlab.telemetry.source._MOST_KEPT", 1)
    states = states_of(tmp_path, sleeper.pid, thread[0])
    states.look(0.0)
    os.kill(sleeper.pid, signal.SIGSTOP)
    until(lambda: state(sleeper.pid) == "T", "the state")
    for at in range(1, 31):
        states.look(at * EVERY)
    (found,) = stops(states, sleeper.pid, 3.0)
    assert 2.5 < found.seconds <= 3.0


@pytest.mark.parametrize("begins", range(2, 7))
def test_a_stop_of_many_threads_has_its_length_whenever_it_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, begins: int
) -> None:
    """The freezers are read and the first thread of a process is looked at in each sample, so none waits for a turn."""
    monkeypatch.setattr("vmlab.telemetry.process_states._MOST_AT_ONCE", 2)
    freezer, by_signal, in_group, other = tmp_path / "mount/a/cgroup.events", _NOBODY, _NOBODY + 10, _NOBODY + 20
    freezer.parent.mkdir(parents=True)

    def be(*, stopped: bool) -> None:
        freezer.write_text(f"populated 1\nfrozen {int(stopped)}\n")
        for pid in (by_signal, in_group, other):
            for tid in range(pid, pid + 5):
                state = "T" if stopped and pid == by_signal else "S"
                write_thread(tmp_path, pid, tid, state, "0::/a" if pid == in_group else "0::/")

    be(stopped=False)
    states = ProcessStates(tmp_path, [Mount(tmp_path / "mount", frozenset(), 2)])
    for at in range(20):
        be(stopped=begins <= at < begins + 3)
        states.look(at * EVERY)
    found = {one.pid: (one.how, one.thread, round(one.seconds, 6)) for one in states.end(20 * EVERY)}
    assert found == {by_signal: ("stopped", "", 0.6), in_group: ("frozen by its cgroup", "", 0.6)}


@pytest.mark.parametrize(
    ("gaps", "used", "waited", "faults", "seconds"),
    [
        ([4.0], 0.0, (0.0, 0.0), 0, 4.0),
        ([0.3] * 4, 0.0, (0.0, 0.0), 0, 1.2),
        ([0.3] * 3, 0.0, (0.0, 0.0), 0, 0.0),
        ([0.2] * 20, 0.0, (0.0, 0.0), 0, 0.0),
        ([4.0], 3.9, (0.0, 0.0), 0, 0.0),
        ([4.0], 0.0, (3.9, 0.0), 0, 0.0),
        ([4.0], 0.0, (0.0, 3.9), 0, 0.0),
        ([4.0], 0.0, (0.0, 0.0), 1, 0.0),
    ],
)
def test_gaps_in_which_this_process_neither_ran_nor_waited_for_a_cpu_or_a_page_are_stops_of_it(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    gaps: list[float],
    used: float,
    waited: tuple[float, float],
    faults: int,
    seconds: float,
) -> None:
    """Its main thread may wait for a CPU and have Python's lock meanwhile."""
    (tmp_path / "loadavg").write_text("0.1 0.1 0.1 1/2 7\n")
    now, own = 0.0, list[Path]()
    left = enumerate(gaps, start=1)

    def wait(_waits: select.poll, until: float, _links: LinkStates) -> bool:
        nonlocal now
        at, gap = next(left)
        now = until + gap
        for folder, each in zip(own, waited, strict=True):
            (folder / "schedstat").write_text(f"0 {int(at * each * 1e9)} {at}\n")
        monkeypatch.setattr(time, "process_time", lambda: at * used)
        monkeypatch.setattr("vmlab.telemetry.standstill._major_faults", lambda: at * faults)
        return at < len(gaps)

    def started() -> None:
        for thread in (threading.get_native_id(), os.getpid()):
            own.append(tmp_path / "self/task" / str(thread))
            own[-1].mkdir(parents=True)
            (own[-1] / "schedstat").write_text("0 0 0\n")

    monkeypatch.setattr(time, "process_time", lambda: 0.0)
    monkeypatch.setattr("vmlab.telemetry.standstill._major_faults", lambda: 0)
    monkeypatch.setattr("random.uniform", lambda _least, _most: 1.0)
    monkeypatch.setattr("vmlab.telemetry.standstill.take_precedence", started)
    watch = StandstillWatch(inside=True, proc=tmp_path, clock=lambda: now)
    monkeypatch.setattr(watch, "_wait", wait)
    watch.start()
    found = watch.stop().stood
    assert [one.pid for one in found] == [os.getpid()] * bool(seconds)
    assert sum(one.seconds for one in found) == pytest.approx(seconds)


def test_a_long_cell_is_looked_at_less_often_and_never_seldom(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A change of two seconds is in one comparison at least, and a stop of three quarters of one in one sample."""
    (tmp_path / "loadavg").write_text("0.1 0.1 0.1 1/2 7\n")
    now, looked, compared = 0.0, list[float](), list[float]()

    def wait(_waits: select.poll, until: float, _links: LinkStates) -> bool:
        nonlocal now
        now = until
        return now < 60.0

    monkeypatch.setattr(ProcessStates, "look", lambda _self, at, _seldom: looked.append(at))
    monkeypatch.setattr(LabValues, "look", lambda _self, at, _threads: compared.append(at))
    watch = StandstillWatch(inside=True, proc=tmp_path, clock=lambda: now)
    monkeypatch.setattr(watch, "_wait", wait)
    watch.start()
    watch.stop()
    for times, most in ((looked, 0.75), (compared, 2.0)):
        waited = [later - before for before, later in pairwise(times)]
        assert max(waited) <= most + 1e-9 and len({round(one, 2) for one in waited}) > 20, "they follow no period"
    early = [at for at in compared if at < 5.0]
    assert max(later - before for before, later in pairwise(early)) <= 0.5 + 1e-9
    assert len([at for at in looked if at < 5.0]) >= 16 and len(looked) < 220 and len(compared) < 75


def test_a_wait_hears_of_links_and_goes_on_until_it_is_over_or_the_watch_is_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, heard = socket.socketpair()
    times = iter([0.0, 0.5, 1.0])
    news: list[tuple[bytes, float]] = []
    monkeypatch.setattr(LinkStates, "look", lambda _self, now: news.append((heard.recv(10), now)))
    links, waits = object.__new__(LinkStates), select.poll()
    watch = StandstillWatch(inside=True, clock=lambda: next(times, 1.0))
    watch._stopping = os.eventfd(0)
    for descriptor in (watch._stopping, heard):
        waits.register(descriptor, select.POLLIN)
    told.send(b"a link")
    assert watch._wait(waits, 1.0, links)
    assert news == [(b"a link", 0.5)]
    os.eventfd_write(watch._stopping, 1)
    assert not watch._wait(waits, 600.0, links)
    for each in (told, heard):
        each.close()
    os.close(watch._stopping)


@pytest.mark.parametrize("outside", [False, True])
def test_what_is_changed_before_the_start_and_stays_so_is_a_change(tmp_path: Path, qemu: int, outside: bool) -> None:
    show(tmp_path / "proc", *([] if outside else [qemu]))
    (tmp_path / "proc/self").symlink_to("/proc/self")
    watch = StandstillWatch(inside=True, proc=tmp_path / "proc", outside=lambda: [qemu] * outside)
    watch.begin()
    os.sched_setscheduler(qemu, os.SCHED_BATCH, os.sched_param(0))
    watch.start()
    (found,) = watch.stop().changed
    assert found.pid == (-qemu if outside else qemu) and "policy 3" in found.became


def test_a_watch_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_states: ProcessStates, now: float, _seldom: float) -> None:
        raise ValueError(now)

    monkeypatch.setattr(ProcessStates, "look", fail)
    watch = StandstillWatch(inside=True, clock=lambda: 7.0)
    watch.start()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"7\.0"):
            watch.stop()


def test_outside_of_a_lab_nothing_is_watched(sleeper: subprocess.Popen[bytes]) -> None:
    os.kill(sleeper.pid, signal.SIGSTOP)
    watch = StandstillWatch(inside=False)
    watch.start()
    assert watch.stop() == Seen()


@pytest.mark.parametrize("started", [True, False])
def test_a_watch_that_has_ended_has_no_file_open_whoever_keeps_it(tmp_path: Path, qemu: int, started: bool) -> None:
    show(tmp_path / "proc", qemu)
    (tmp_path / "proc/self").symlink_to("/proc/self")
    gc.collect()
    before = open_files()
    watch = StandstillWatch(inside=True, proc=tmp_path / "proc")
    assert len(open_files()) > len(before) + 10
    watch.begin()
    if started:
        watch.start()
    gc.disable()
    try:
        watch.stop()
        assert open_files() == before
    finally:
        gc.enable()


def open_files() -> list[str]:
    """What the descriptors of this process lead to, but of the one that lists them."""
    links = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208
    return sorted(str(link.readlink()) for link in links if os.path.lexists(link))


def test_stops_of_one_process_add_up_and_of_several_of_one_name_the_longest_counts() -> None:
    seen = [Standstill(pid, "fio", "stopped", seconds) for pid, seconds in ((5, 1.0), (6, 4.0), (5, 2.0))]
    disk = Standstill(9, "python3", "frozen by its cgroup", 8.0)
    assert list(longest([*seen, disk], {9: "the disk"})) == [
        ("fio on the host", "stopped", 4.0),
        ("the disk", "frozen by its cgroup", 8.0),
    ]
