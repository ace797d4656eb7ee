"""kill -9 of every process of a lab, at moments drawn from a seed that is part of the row's name."""

from __future__ import annotations

import os
import pty
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from tests.faults.row import Act, Rows
from tests.faults.world import READING_EMULATED, STRUCK, World, beside
from tests.processes import processes

ROWS = Rows()
_PART = 0.9
"""Of the time that the first cell took; a moment is drawn within it, so that the second cell is struck, however quick
the machine is."""


def _at(world: World, seed: int) -> float:
    """Wait for the moment that the seed gives; seconds from the start of the second cell."""
    began = world.wait_for("CellStarted", cell=STRUCK)["mono"]
    first = world.wait_for("CellEnded", cell=1)
    # Without the time in which its guest was frozen, as the second cell has none.
    executed = first["mono"] - world.wait_for("PhaseStarted", cell=1, phase="execute")["mono"]
    moment = random.Random(seed).uniform(0.0, _PART * (first["provision"]["seconds"] + executed))
    time.sleep(max(0.0, began + moment - time.monotonic()))
    return moment


def _phase(world: World) -> str:
    phases = [e["phase"] for e in world.home.events() if e["kind"] == "PhaseStarted" and e["cell"] == STRUCK]
    return str(phases[-1]) if phases else "start"


def _ends_the_run(victim: Callable[[World], int], seed: int) -> Act:
    """For a process without which there is no run."""

    def act(world: World) -> str:
        running = world.run()
        moment = _at(world, seed)
        world.strike()
        phase = _phase(world)
        pid = victim(world)
        os.kill(pid, signal.SIGKILL)
        words = world.end_of(running, 150)
        world.is_over()
        assert running.returncode != 0, f"{moment:.1f} s into cell 2: the run passed"
        (run,) = world.runs()
        assert run["outcome"] == "aborted", f"the run is {run['outcome']}: {words.splitlines()[-1:]}"
        assert not [e for e in world.home.events() if e["kind"] == "CellEnded" and e["cell"] == STRUCK] or (
            world.ended()["outcome"] != "passed" or phase == "clean up"
        ), "cell 2 passed"
        said = [line for line in words.splitlines() if "abort" in line or "kill" in line or "ended" in line]
        told = said[-1] if said else "no word"
        return f"{moment:.1f} s into cell 2 ({phase}): exit code {running.returncode}, aborted; {told}"

    return act


def _init(world: World) -> int:
    return psutil.Process(world.runner["runner_pid"]).ppid()


def _no_such(world: World, name: str) -> int:
    return world.runner[name]


for _seed in (101, 102, 103):
    ROWS.add(
        f"kill-runner-{_seed}",
        f"kill -9 of the runner at a random moment (seed {_seed})",
        "run aborted, cell 1 kept, all cleared",
    )(_ends_the_run(lambda world: world.runner["runner_pid"], _seed))
for _seed in (201, 202):
    ROWS.add(
        f"kill-init-{_seed}",
        f"kill -9 of the lab's init at a random moment (seed {_seed})",
        "run aborted, cell 1 kept, all cleared",
    )(_ends_the_run(_init, _seed))
for _seed in (301, 302):
    ROWS.add(
        f"kill-launcher-{_seed}",
        f"kill -9 of the launcher at a random moment (seed {_seed})",
        "run aborted, cell 1 kept, `vmlab clean` removes what is left",
    )(_ends_the_run(lambda world: world.runner["launcher_pid"], _seed))


def _at_work(world: World, seed: int) -> float:
    """Wait for the moment that the seed gives while the second cell's workload runs; seconds from its start."""
    began = world.wait_for("PhaseStarted", cell=STRUCK, phase="execute")["mono"]
    span = world.wait_for("PhaseEnded", cell=1, phase="execute")["seconds"]
    moment = random.Random(seed).uniform(0.0, _PART * span)
    time.sleep(max(0.0, began + moment - time.monotonic()))
    return moment


def _qemu(seed: int) -> Act:
    def act(world: World) -> str:
        running = world.run()
        moment = _at_work(world, seed)
        pid = world.qemu
        world.strike()
        os.kill(pid, signal.SIGKILL)
        words = world.end_of(running, 150)
        world.is_over()
        said = world.reason()
        assert "QEMU died: killed by SIGKILL" in said, said
        assert running.returncode == 1, words
        return f"{moment:.1f} s into phase execute of cell 2: {said}"

    return act


for _seed in (401, 402):
    ROWS.add(
        f"kill-qemu-{_seed}",
        f"kill -9 of the guest's QEMU at a random moment while its workload runs (seed {_seed})",
        "cell 2 failed at once, with the signal; the run continues",
    )(_qemu(_seed))


@ROWS.add(
    "kill-command", "kill -9 of `vmlab run` at a random moment (seed 501)", "the run goes on without it, and passes"
)
def kill_command(world: World) -> str:
    running = world.run()
    moment = _at(world, 501)
    world.strike()
    running.kill()
    running.communicate()
    end = world.wait_for("RunnerFinished", 120)
    world.is_over()
    assert end["outcome"] == "passed", f"the run is {end['outcome']}"
    return f"{moment:.1f} s into cell 2: the run went on, 2 cells passed"


@ROWS.add(
    "kill-console",
    "kill -9 of the console that shows the run, at a random moment (seed 601)",
    "the run goes on, and passes",
)
def kill_console(world: World) -> str:
    running = world.run()
    master, slave = pty.openpty()
    console = subprocess.Popen(
        [sys.executable, "-m", "vmlab"],
        env=world.home.environment | {"TERM": "xterm"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    os.set_blocking(master, False)
    moment = _at(world, 601)
    with suppress(BlockingIOError):
        drawn = os.read(master, 2**20)
    assert drawn, "the console drew nothing"
    world.strike()
    console.kill()
    console.wait()
    os.close(master)
    world.end_of(running, 120)
    world.is_over()
    assert running.returncode == 0, f"exit code {running.returncode}"
    return f"{moment:.1f} s into cell 2: the run went on, 2 cells passed"


@ROWS.add(
    "kill-helper",
    "kill -9 of the resident helper in a guest while its client works",
    "cell 2 failed within 90 s: a helper that does not answer is noticed",
    120,
)
def kill_helper(world: World) -> str:
    running = world.run(beside("sleep 1; pkill -9 -f org.vmlab.helper.[0]"))
    world.wait_for("WorkloadStarted", cell=STRUCK, workload="bad")
    world.strike()
    world.end_of(running, 200)
    world.is_over()
    return world.reason()


@ROWS.add(
    "kill-disk",
    "kill -9 of the emulated disk's process at a random moment while the guest works on it (seed 701)",
    "the run fails at once and names the disk",
    90,
)
def kill_disk(world: World) -> str:
    running = world.run(READING_EMULATED)
    moment = _at_work(world, 701)
    world.strike()
    os.kill(disk_server(), signal.SIGKILL)
    words = world.end_of(running, 150)
    world.is_over()
    assert running.returncode == 1, f"exit code {running.returncode}"
    end = world.wait_for("RunnerFinished", 5)
    assert end["outcome"] == "failed", f"the run is {end['outcome']}"
    said = end.get("reason") or words.strip().splitlines()[-1]
    assert "disk" in said, said
    return f"{moment:.1f} s into phase execute of cell 2: exit code 1, run failed: {said}"


def disk_server() -> int:
    """The process that serves the emulated disk."""
    (found,) = processes("disk_server")
    return found


@ROWS.add(
    "kill-after-intent",
    "kill -9 of the runner as soon as the journal has the next intent, before the runner can act on it",
    "what was begun is removed, run aborted",
)
def kill_after_intent(world: World) -> str:
    running = world.run()
    world.wait_for("PhaseStarted", cell=1, phase="execute")
    runner = world.runner["runner_pid"]
    (journal,) = world.home.state.glob("vmlab/runs/2*/journal.jsonl")
    # Nothing more is made of this cell, and the next one may begin while what was measured is read.
    size = journal.stat().st_size
    world.wait_for("CellEnded", cell=1)
    world.strike()
    end = time.monotonic() + 60
    while True:
        lines = journal.read_bytes()[size:].splitlines()
        if any(b'"made"' in line for line in lines):
            break
        assert time.monotonic() < end, "the journal did not grow"
    os.kill(runner, signal.SIGKILL)
    words = world.end_of(running, 120)
    world.is_over()
    (run,) = world.runs()
    assert run["outcome"] == "aborted", f"the run is {run['outcome']}: {words}"
    last = lines[-1].decode(errors="replace")
    return f"killed behind {last[:90]}: aborted, nothing left"


@ROWS.add(
    "oom-runner",
    "the kernel kills the runner for lack of memory, in a cgroup of 1 MiB, while the second cell runs",
    "run aborted, the lack of memory is named, cell 1 kept, all cleared",
    120,
)
def oom_runner(world: World) -> str:
    groups = Path("/sys/fs/cgroup/memory")
    old = groups.is_dir()
    group = (groups if old else Path("/sys/fs/cgroup")) / "vmlab-fault-oom"
    running = world.run()
    world.wait_for("WorkloadStarted", cell=STRUCK)
    runner = world.runner["runner_pid"]
    group.mkdir()
    try:
        (group / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(2**20))
        world.strike()
        (group / "cgroup.procs").write_text(str(runner))
        words = world.end_of(running, 110)
        world.is_over()
    finally:
        world.until(lambda: not (group / "cgroup.procs").read_text(), "an empty cgroup")
        group.rmdir()
    assert running.returncode != 0, words
    end = world.wait_for("RunEnded", 10)
    assert "lack of memory" in end["reason"], end["reason"]
    return f"exit code {running.returncode}: {end['reason'].split(';')[0]}"
