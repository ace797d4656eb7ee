"""How a run is stopped: by signals at any moment, twice, when it cannot hear, and by a command without a name."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.lab.conftest import NewHome
from tests.lab.faked import (
    BUILD_SECONDS,
    CELL_FILE,
    CELL_SECONDS,
    DEAF,
    HUNG,
    PATIENCE,
    SIGNAL_IN,
    SOON,
    Home,
    until,
)
from vmlab.model.event import RunEnded
from vmlab.store.life import is_alive
from vmlab.store.reader import RunReader

RUN = ("run", "cpu-overhead", "--size", "smoke")
CODES = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
ONE_CODE = [CODES[0], pytest.param(*CODES[1], marks=pytest.mark.exhaustive)]


def ended(home: Home) -> tuple[str, int, str]:
    """Outcome, exit code and reason of the newest run."""
    (said,) = home.events("RunEnded")
    return said["outcome"], said["exit_code"], said["reason"]


def nothing_is_left(home: Home) -> bool:
    """Whether no run lives, nor has sockets or a place among those that measure."""
    alive = [record for record in home.records() if is_alive(record)]
    return not alive and not [*(home.folder / "run").glob("*"), *(home.host / "vmlab-measuring").glob("*")]


@pytest.mark.parametrize(("number", "code"), CODES)
@pytest.mark.parametrize(
    "after", [0.8, *(pytest.param(after, marks=pytest.mark.exhaustive) for after in (0.0, 0.4, 1.4))]
)
def test_a_signal_in_the_first_moments_has_its_own_code(home: Home, number: int, code: int, after: float) -> None:
    process = home.spawn(*RUN)
    time.sleep(after)
    process.send_signal(number)
    try:
        _, words = process.communicate(timeout=SOON)
    except subprocess.TimeoutExpired as late:
        # What is interrupted while the interpreter cleans something up goes on: then nobody has heard the signal.
        assert b"Exception ignored" in (late.stderr or b"") and b"KeyboardInterrupt" in (late.stderr or b"")
        process.send_signal(number)
        _, words = process.communicate(timeout=SOON)
    # Before the first line of the program the interpreter dies of the signal itself, which a shell tells likewise, or
    # of the interrupt in what it loads for itself.
    of_interpreter = (-number, 1) if "KeyboardInterrupt" in words else (-number,)
    assert process.returncode in (code, *of_interpreter), words
    assert process.returncode == code or not home.records()
    assert nothing_is_left(home)
    if home.records():
        assert ended(home)[:2] == ("aborted", code)


@pytest.mark.parametrize(("number", "code"), CODES)
@pytest.mark.parametrize(
    "function",
    [
        "_get_module_lock.<locals>.cb",  # The callback of a weak reference, after each import.
        "Field.__set_name__",  # What is raised in it comes out as RuntimeError.
        "Parser.dispose",  # The YAML parser's; it forgives whatever is raised.
    ],
)
def test_a_signal_is_heard_where_no_exception_would_get_through(
    home: Home, number: int, code: int, function: str
) -> None:
    process = home.spawn(*RUN, **{SIGNAL_IN: f"{int(number)} {function}"})
    _, words = process.communicate(timeout=SOON)
    assert (process.returncode, words) == (code, f"vmlab: {'interrupted' if code == 130 else 'terminated'}\n")
    assert not home.records()


@pytest.mark.parametrize(("number", "code"), ONE_CODE)
def test_a_signal_right_after_the_start_of_launcher_or_runner_is_not_lost(home: Home, number: int, code: int) -> None:
    process = home.spawn(*RUN)
    until(lambda: home.pid("launcher_pid"), "the launcher")
    os.kill(home.pid("launcher_pid"), number)
    process.communicate(timeout=SOON)
    assert process.returncode == code
    assert ended(home)[:2] == ("aborted", code)
    process = home.spawn(*RUN)
    until(lambda: home.pid("runner_pid"), "the runner")
    os.kill(home.pid("runner_pid"), number)
    process.communicate(timeout=SOON)
    assert process.returncode == code
    assert ended(home) == ("aborted", code, "stopped")
    assert nothing_is_left(home)


@pytest.mark.parametrize(("number", "code"), ONE_CODE)
def test_a_signal_while_the_image_is_built_ends_the_run_before_any_guest(home: Home, number: int, code: int) -> None:
    process = home.spawn(*RUN, **{BUILD_SECONDS: "3600"})
    until(lambda: home.events("Notice"), "the build")
    process.send_signal(number)
    process.communicate(timeout=SOON)
    assert process.returncode == code
    assert ended(home) == ("aborted", code, "stopped before any guest")
    assert nothing_is_left(home)


def test_a_second_interrupt_kills_the_run_clears_up_and_says_so(home: Home) -> None:
    process = home.spawn(*RUN, **{DEAF: "1"})
    until(home.in_a_cell, "the first cell")
    process.send_signal(signal.SIGINT)
    # Two signals that come before the first is heard are one.
    assert process.stderr is not None
    words = ""
    while "once more to kill the run" not in words:
        line = process.stderr.readline()
        assert line, words
        words += line
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    words += process.stderr.read()
    process.wait(SOON)
    assert process.returncode == 130, words
    assert "was killed (asked twice to stop); what it left is cleared away, what it measured is kept" in words
    assert ended(home) == ("aborted", 130, "killed: asked twice to stop")
    assert nothing_is_left(home)
    assert "nothing to clean" in home.run("clean")[2]


@pytest.mark.parametrize("number", [signal.SIGSTOP, pytest.param(signal.SIGTSTP, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("victim", ["runner_pid", "launcher_pid", pytest.param("init", marks=pytest.mark.exhaustive)])
def test_stop_wakes_a_run_that_was_stopped(home: Home, victim: str, number: int) -> None:
    watcher = home.spawn(*RUN)
    until(home.in_a_cell, "the first cell")
    runner = home.pid("runner_pid")
    stopped = home.pid(victim) or int(Path(f"/proc/{runner}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(stopped, number)
    code, _, words = home.run("stop")
    assert code == 0, words
    assert "has stopped" in words
    watcher.communicate(timeout=SOON)
    assert watcher.returncode == 130
    assert ended(home) == ("aborted", 130, "stopped")
    assert nothing_is_left(home)


def test_stop_kills_a_run_that_hears_nothing(home: Home) -> None:
    watcher = home.spawn(*RUN, **{DEAF: HUNG})
    until(home.in_a_cell, "the first cell")
    code, _, words = home.run("stop", **{PATIENCE: "1"})
    assert code == 0, words
    assert "was killed (it did not stop within 1 s of `vmlab stop`)" in words
    watcher.communicate(timeout=SOON)
    assert watcher.returncode == 130
    assert ended(home)[:2] == ("aborted", 130)
    assert nothing_is_left(home)


def test_stop_without_a_name_takes_the_run_that_lives(home: Home) -> None:
    assert home.run("stop")[0] == 2
    assert home.run(*RUN, "--detach")[0] == 0
    until(home.in_a_cell, "the first cell")
    (living,) = home.records()
    # A newer one that is over, and a copy of the one that lives.
    newer = living.with_name("29991231-235959-tile-0000")
    newer.mkdir()
    shutil.copytree(living, living.with_name("29991231-235959-copy-0000"))
    code, _, words = home.run("stop")
    assert (code, words) == (0, f"run {living.name} has stopped\n")
    code, _, words = home.run("stop")
    assert (code, words) == (2, "vmlab: no run is under way; `vmlab ls` lists those that are over\n")


def test_stop_without_a_name_refuses_to_choose(homes: NewHome) -> None:
    home = homes("anna")
    for _ in range(2):
        assert home.run(*RUN, "--detach", "--concurrent")[0] == 0
    code, _, words = home.run("stop")
    assert code == 2
    assert all(record.name in words for record in home.records())
    for record in home.records():
        assert home.run("stop", record.name)[0] == 0


def test_a_hangup_ends_no_process_of_a_run(home: Home) -> None:
    heard = home.folder / "heard"
    watcher = home.spawn(*RUN, **{CELL_SECONDS: "1", CELL_FILE: str(heard), BUILD_SECONDS: "0.5"})
    until(lambda: home.pid("launcher_pid"), "the launcher")
    hung_up: set[int] = set()
    while watcher.poll() is None:
        runner = home.pid("runner_pid")
        try:
            init = int(Path(f"/proc/{runner}/stat").read_text().rpartition(")")[2].split()[1]) if runner else 0
            for process in {home.pid("launcher_pid"), runner, init} - {0, 1, os.getpid()}:
                os.kill(process, signal.SIGHUP)
                hung_up.add(process)
        except (ProcessLookupError, FileNotFoundError):
            continue
        if len(hung_up) == 3 and home.in_a_cell():
            heard.touch()
        time.sleep(0.02)
    _, words = watcher.communicate()
    assert watcher.returncode == 0, words
    assert len(hung_up) == 3
    masks = {notice["text"] for notice in home.events("Notice") if notice["text"].startswith("Sig")}
    # Bit 0 is SIGHUP, 1 SIGINT, 14 SIGTERM: no child of the runner begins with one of them blocked or ignored.
    assert masks
    for mask in masks:
        values = [int(word, 16) for word in mask.split() if not word.startswith("Sig")]
        assert not any(value & (1 << 0 | 1 << 1 | 1 << 14) for value in values), mask


def test_a_copy_of_the_store_alone_has_the_end_while_a_viewer_watches(home: Home) -> None:
    process = home.spawn(*RUN, **{CELL_SECONDS: "0.2"})
    until(home.in_a_cell, "the first cell")
    (record,) = home.records()
    with RunReader(record / "run.sqlite") as viewer:
        assert list(viewer.events())
        process.communicate(timeout=SOON)
        assert process.returncode == 0
        alone = home.folder / "alone.sqlite"
        shutil.copy(record / "run.sqlite", alone)
    with RunReader(alone) as reader:
        assert isinstance([event for _, event in reader.events()][-1], RunEnded)
