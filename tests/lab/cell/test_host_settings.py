"""Settings of the host are back after any end of a run: real launcher, init and runner, on a dummy of /sys."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.lab.faked import CELL_FILE, CELL_SECONDS, SOON, Home, until
from tests.lab.programs.faked_vmlab import SYS

SCENARIO = """\
name: huge
workloads: {primes: {kind: cpu, on: host, threads: 1}}
host: {thp: never}
axes: {host.ksm: [on, off]}
"""
WITH_GUEST = """\
name: huge
guests: {vm: {memory: 128 MiB}}
workloads: {primes: {kind: cpu, on: vm, threads: 1}}
"""


class Dummies:
    """A /sys with what the scenario sets, and the scenario."""

    def __init__(self, folder: Path) -> None:
        self.sys = folder / "sys"
        self.scenario = folder / "huge.yaml"
        self.scenario.write_text(SCENARIO)
        for name, value in {"ksm/run": "0", "ksm/pages_to_scan": "100", "ksm/sleep_millisecs": "20"}.items():
            self.write(f"kernel/mm/{name}", value)
        self.write("kernel/mm/transparent_hugepage/enabled", "madvise")

    def write(self, name: str, value: str) -> None:
        path = self.sys / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value)

    def now(self) -> tuple[str, ...]:
        names = ("ksm/run", "ksm/pages_to_scan", "transparent_hugepage/enabled")
        return tuple((self.sys / "kernel/mm" / name).read_text() for name in names)


BEFORE = ("0", "100", "madvise")


@pytest.fixture
def dummies(tmp_path: Path) -> Dummies:
    return Dummies(tmp_path)


def begun(home: Home, dummies: Dummies) -> None:
    """Start a run that is in its first cell when this returns, and stays in it until there is the file `go`."""
    said = {SYS: str(dummies.sys), CELL_FILE: str(home.folder / "go"), CELL_SECONDS: "0"}
    home.spawn("run", str(dummies.scenario), **said)
    until(home.in_a_cell, "a cell")
    assert dummies.now() == ("1", "1000", "never")


def over(home: Home) -> tuple[int, str]:
    """Exit code and words of the run's command."""
    _, words = home.started[0].communicate(timeout=SOON)
    return home.started[0].returncode, words


def test_a_run_that_ends_by_itself(home: Home, dummies: Dummies) -> None:
    begun(home, dummies)
    (home.folder / "go").touch()
    assert over(home)[0] == 0
    assert dummies.now() == BEFORE


def test_a_run_that_is_stopped(home: Home, dummies: Dummies) -> None:
    begun(home, dummies)
    home.started[0].send_signal(signal.SIGINT)
    assert over(home)[0] == 130
    assert dummies.now() == BEFORE


@pytest.mark.parametrize(
    "victim",
    ["runner", "launcher", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in ("init", "command line"))],
)
def test_a_run_of_which_a_process_is_killed(home: Home, dummies: Dummies, victim: str) -> None:
    begun(home, dummies)
    runner = home.pid("runner_pid")
    victims = {
        "runner": runner,
        "init": psutil.Process(runner).ppid(),
        "launcher": home.pid("launcher_pid"),
        "command line": home.started[0].pid,
    }
    os.kill(victims[victim], signal.SIGKILL)
    over(home)
    if victim == "command line":
        # The run goes on without it.
        assert dummies.now() == ("1", "1000", "never")
        assert home.run("stop", **{SYS: str(dummies.sys)})[0] == 0
    elif victim == "launcher":
        assert dummies.now() == ("1", "1000", "never")
        until(lambda: not psutil.pid_exists(runner), "the end of the runner")
        code, _, words = home.run("run", str(dummies.scenario), **{SYS: str(dummies.sys)})
        assert code == 3
        assert "died and left settings of the host changed (vmlab clean)" in words
        assert home.run("clean", **{SYS: str(dummies.sys)})[0] == 0
    assert dummies.now() == BEFORE
    assert "nothing to clean" in home.run("clean", **{SYS: str(dummies.sys)})[2]


@pytest.mark.parametrize(
    "end", ["killed", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in ("by itself", "stopped"))]
)
def test_ksm_that_was_switched_under_running_guests(home: Home, dummies: Dummies, end: str) -> None:
    dummies.scenario.write_text(WITH_GUEST)
    said = {SYS: str(dummies.sys), CELL_FILE: str(home.folder / "go"), CELL_SECONDS: "0"}
    home.spawn("run", str(dummies.scenario), **said)
    until(home.in_a_cell, "a cell")
    assert dummies.now() == BEFORE
    code, told, words = home.run("set", "last", "ksm=on", "--now", **{SYS: str(dummies.sys)})
    assert (code, told) == (0, "cell 1: ksm off to on; invalidates the cell\n"), words
    assert dummies.now() == ("1", "1000", "madvise")
    if end == "by itself":
        (home.folder / "go").touch()
    elif end == "stopped":
        home.started[0].send_signal(signal.SIGINT)
    else:
        os.kill(home.pid("runner_pid"), signal.SIGKILL)
    over(home)
    assert dummies.now() == BEFORE


def test_what_somebody_else_has_changed_stays_when_the_run_was_killed(home: Home, dummies: Dummies) -> None:
    begun(home, dummies)
    dummies.write("kernel/mm/transparent_hugepage/enabled", "always")
    os.kill(home.pid("runner_pid"), signal.SIGKILL)
    assert over(home)[0] == 1
    assert dummies.now() == ("0", "100", "always")
    told = [event["text"] for event in home.events("Notice") if "somebody else" in event["text"]]
    assert len(told) == 1
    assert "transparent_hugepage/enabled is always by somebody else's hand and stays so; it was madvise" in told[0]


def test_a_run_beside_another_changes_no_settings(home: Home, dummies: Dummies) -> None:
    code, _, words = home.run("run", str(dummies.scenario), "--concurrent", **{SYS: str(dummies.sys)})
    assert code == 3
    assert "sets host.ksm, host.thp, which would change what another run measures" in words
    assert home.records() == []


def test_a_run_that_reserves_huge_pages_goes_on_beside_no_other(home: Home, dummies: Dummies) -> None:
    dummies.scenario.write_text(WITH_GUEST.replace("memory: 128 MiB", "memory: 128 MiB, huge_pages: 2 MiB"))
    code, _, words = home.run("run", str(dummies.scenario), "--concurrent", **{SYS: str(dummies.sys)})
    assert code == 3
    assert "reserves huge pages, of which the host has one number for all runs" in words and "--wait" in words
