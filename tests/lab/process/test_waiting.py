"""Runs that wait are served first come, first served, whatever becomes of those before them.

The waiters here are processes of their own, on a folder of the test's own, which stand in the queue as a run does and
then hold the host for a moment. What holds for them holds for any: one that does not run, however that came, has no
part in the order, and one that runs has its place by the order of arrival alone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.lab.faked import SOON, until
from vmlab.cli.diagnostics import run_and_report
from vmlab.lab.process.measuring_runs import (
    HostBusy,
    HostQueue,
    MeasuringRun,
    WaitingRun,
    claim,
    host_queue,
    leave,
)
from vmlab.lab.process.run_folder import RunFolder
from vmlab.lab.process.waiting_runs import in_queue, in_turn
from vmlab.model.errors import ExitCode, RefusedError
from vmlab.system.processes import is_stopped, start_of

ROOT = Path(__file__).parents[3]
_WAITER = """
import os, sys, time
from pathlib import Path
from vmlab.lab.process import measuring_runs, waiting_runs
from vmlab.lab.process.run_folder import RunFolder

host, name, idle, loiters = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), sys.argv[4]
measuring_runs.RUN_FOLDERS = (host,)
waiting_runs.IDLE_SECONDS = idle
waiting_runs.LOOK_SECONDS = 0.05
folder = RunFolder(name, Path("/nowhere"))

def note(what):
    with open(host / "order", "a") as order:
        order.write(f"{what} {name}\\n")

if loiters:
    with waiting_runs.in_queue(name):
        time.sleep(3600)
held = waiting_runs.in_turn(
    name,
    lambda turn: measuring_runs.claim(folder, planned=1.0, turn=turn),
    planned=lambda: 1.0,
    tell=lambda standing: None,
)
note("begins")
time.sleep(0.05)
note("ends")
os.close(held)
measuring_runs.leave(name)
"""
Queued = Callable[..., subprocess.Popen[bytes]]


def folder(name: str) -> RunFolder:
    return RunFolder(name, Path("/nowhere") / name)


def names() -> list[str]:
    return [one.name for one in host_queue().waiting]


@pytest.fixture
def queued(tmp_path: Path) -> Iterator[Queued]:
    """Starts a waiter, and returns when it is in the queue. One that `loiters` waits for ever, and never looks."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *, idle: float = 3600.0, loiters: bool = False) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", _WAITER, str(tmp_path), name, str(idle), "yes" if loiters else ""]
        started.append(subprocess.Popen(words, cwd=ROOT))
        until(lambda: name in names(), f"{name} in the queue")
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def served(host: Path) -> list[str]:
    """Those that were served, in order. Fails where two were at once."""
    lines = (host / "order").read_text().split("\n")[:-1] if (host / "order").exists() else []
    begun = [line.removeprefix("begins ") for line in lines[::2]]
    assert [line.removeprefix("ends ") for line in lines[1::2]] == begun[: len(lines) // 2], lines
    return begun


@contextmanager
def busy(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def stopped(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGSTOP)
    until(lambda: is_stopped(process.pid), "that it is stopped")


@pytest.mark.parametrize("loops", [0, 8])
def test_five_are_served_in_the_order_in_which_they_came(tmp_path: Path, queued: Queued, loops: int) -> None:
    with busy(loops):
        held = claim(folder("first"))
        five = {name: queued(name) for name in "abcde"}
        assert names() == list("abcde")
        leave("first")
        os.close(held)
        for process in five.values():
            assert process.wait(SOON) == 0
    assert served(tmp_path) == list("abcde")
    assert not (tmp_path / "vmlab-measuring").exists(), "the last one leaves nothing at all"


@pytest.mark.parametrize("loops", [0, 8])
def test_one_that_is_killed_leaves_no_hole_and_one_that_is_stopped_is_passed_over(
    tmp_path: Path, queued: Queued, loops: int
) -> None:
    with busy(loops):
        held = claim(folder("first"))
        five = {name: queued(name) for name in "abcde"}
        stopped(five["b"])
        five["c"].kill()
        five["c"].wait()
        until(lambda: names() == list("ade"), "that they are passed over")
        assert [one.name for one in host_queue().passed_over] == ["b"]
        leave("first")
        os.close(held)
        for name in "ade":
            assert five[name].wait(SOON) == 0
        assert served(tmp_path) == list("ade")
        five["b"].send_signal(signal.SIGCONT)
        assert five["b"].wait(SOON) == 0
    assert served(tmp_path) == list("adeb")


def test_one_that_goes_on_again_has_its_place(tmp_path: Path, queued: Queued) -> None:
    held = claim(folder("first"))
    three = {name: queued(name) for name in "abc"}
    stopped(three["a"])
    until(lambda: names() == list("bc"), "that it is passed over")
    three["a"].send_signal(signal.SIGCONT)
    until(lambda: names() == list("abc"), "that it has its place")
    leave("first")
    os.close(held)
    for process in three.values():
        assert process.wait(SOON) == 0
    assert served(tmp_path) == list("abc")


def test_those_that_hang_are_passed_over_by_one_after_the_other(tmp_path: Path, queued: Queued) -> None:
    held = claim(folder("first"))
    queued("a", loiters=True)
    queued("b", loiters=True)
    running = [queued(name, idle=0.3) for name in "cd"]
    assert names() == list("abcd")
    leave("first")
    os.close(held)
    for process in running:
        assert process.wait(SOON) == 0
    assert served(tmp_path) == list("cd")
    assert names() == list("ab")


def test_many_that_find_the_host_free_at_the_same_moment_go_one_by_one(tmp_path: Path, queued: Queued) -> None:
    """All are stopped while the host gets free, and go on at the same moment."""
    held = claim(folder("first"))
    every = {name: queued(name) for name in "abcdefgh"}
    for process in every.values():
        stopped(process)
    leave("first")
    os.close(held)
    assert names() == []
    for process in every.values():
        process.send_signal(signal.SIGCONT)
    for process in every.values():
        assert process.wait(SOON) == 0
    assert served(tmp_path) == list("abcdefgh")


def test_whoever_starts_without_waiting_comes_behind_all_that_wait() -> None:
    with in_queue("tile") as waiter:
        turn = waiter.turn(lambda standing: None)
        with pytest.raises(HostBusy, match=rf"^tile of \S+ \(process {os.getpid()}\) waits for its turn on") as refused:
            claim(folder("next"))
        assert "--wait" in str(refused.value) and "--concurrent" in str(refused.value)
        beside = claim(folder("beside"), concurrent=True)
        with pytest.raises(HostBusy, match=r"^run beside of"):
            claim(folder("own"), turn=turn)
        os.close(beside)
        os.close(claim(folder("own"), turn=turn))
    os.close(claim(folder("next")))


def test_the_clock_has_no_part_in_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    with in_queue("a"):
        monkeypatch.setattr(time, "time", lambda: 0.0)
        with in_queue("b"):
            monkeypatch.setattr(time, "time", lambda: 1e12)
            with in_queue("c"):
                assert names() == list("abc")


def test_one_that_comes_is_behind_all_however_many_have_left() -> None:
    with ExitStack() as first:
        first.enter_context(in_queue("a"))
        with in_queue("b"), in_queue("c"):
            first.close()
            with in_queue("d"):
                assert names() == list("bcd")


def test_a_process_that_has_the_pid_of_a_stopped_one_is_another(queued: Queued) -> None:
    process = queued("a", loiters=True)
    stopped(process)
    born = start_of(process.pid)
    assert is_stopped(process.pid, born)
    assert not is_stopped(process.pid, born + 1)
    assert not WaitingRun(1, "a", "anna", process.pid, born + 1).stopped
    process.kill()
    process.wait()
    assert not is_stopped(process.pid, born)


def test_the_estimate_is_what_is_left_and_what_is_planned_before() -> None:
    now = time.monotonic()
    one, other = (MeasuringRun("r", "anna", 1, "", 0.0, now - 100, planned=planned) for planned in (160.0, 700.0))
    late = MeasuringRun("r", "anna", 1, "", 0.0, now - 100, planned=60.0)
    unknown = MeasuringRun("r", "anna", 1, "")
    waiting = tuple(WaitingRun(number, "w", "bert", 1, planned=30.0 * number) for number in (1, 2, 3))
    queue = HostQueue((one, other), waiting)
    assert [queue.begins(place) for place in (1, 2, 4)] == pytest.approx([600, 630, 780], abs=60)
    assert HostQueue((late,), waiting).begins(2) == 30
    assert HostQueue((unknown,), waiting).begins(1) is None
    assert HostQueue((), (*waiting, WaitingRun(4, "w", "bert", 1))).begins(5) is None


def test_where_no_place_can_be_written_one_line_says_so_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def lockless(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    def wait() -> None:
        with in_queue("tile"):
            pass

    for module, name, what in ((os, "pwrite", full), (fcntl, "flock", lockless)):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, what)
            assert run_and_report(wait) == ExitCode.REFUSED
        (line,) = capsys.readouterr().err.splitlines()
        assert str(tmp_path / "vmlab-measuring") in line
        assert not [path for path in (tmp_path / "vmlab-measuring").rglob("*") if path.is_file()]
    wait()
    assert not (tmp_path / "vmlab-measuring").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
@pytest.mark.parametrize(("options", "why"), [("ro", "Read-only file system"), ("nr_inodes=2", "No space left on")])
def test_a_folder_that_takes_nothing_refuses_the_waiting(tmp_path: Path, options: str, why: str) -> None:
    waiter = f"from vmlab.cli.diagnostics import run_and_report\ncode = run_and_report(lambda: exec({_WAITER!r}, {{}}))"
    script = f'mount -t tmpfs -o {options} none "$1" && exec "$0" -c "$2" "$1" tile 60 ""'
    apart = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    done = subprocess.run(
        [*apart, sys.executable, str(tmp_path), f"{waiter}\nraise SystemExit(code)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SOON,
    )
    assert done.returncode == ExitCode.REFUSED, done.stderr
    (line,) = done.stderr.splitlines()
    assert why in line and "vmlab-measuring" in line


def test_what_is_refused_at_its_turn_waits_on_and_any_other_error_ends_the_waiting() -> None:
    tries: list[int] = []

    def attempt(turn: object) -> int:
        tries.append(len(tries))
        if len(tries) < 3:
            raise HostBusy((MeasuringRun("r", "anna", 1, ""),))
        raise RefusedError("no room")

    with pytest.raises(RefusedError, match="no room"):
        in_turn("tile", attempt, planned=lambda: 1.0, tell=lambda standing: None)
    assert len(tries) == 3
    assert names() == []
