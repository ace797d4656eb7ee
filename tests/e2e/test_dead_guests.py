"""Guests of a real run, killed and stopped from outside: each cell ends at once, or is marked, with the cause."""

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Home, wait_until
from tests.processes import processes

pytestmark = [pytest.mark.guests, pytest.mark.xdist_group("runs"), pytest.mark.timeout(900)]

SCENARIO = """
name: mortal
guests:
  vm: {vcpus: 1, memory: 256 MiB}
workloads:
  cpu: {kind: cpu, on: vm, threads: 1, max_prime: 10000, events: 10000}
repeats: 3
again: 0
"""
PROMPT = 60.0
"""Seconds from a death to the cell's end; two are promised, on a machine that does nothing else. It is far below every
deadline by which the cell would end without hearing of it."""
STOPPED = 5.0


def qemu(home: Home) -> int:
    """The pid of the only QEMU of this home's run."""
    (found,) = processes("qemu-system", home.state)
    return found


def wait_for(home: Home, kind: str, **fields: Any) -> dict[str, Any]:
    """The first event of a kind with these fields, as soon as it is there."""

    def found() -> list[dict[str, Any]]:
        return [
            event
            for event in home.events()
            if event["kind"] == kind and all(event[name] == value for name, value in fields.items())
        ]

    wait_until(found, 240, f"{kind} {fields}")
    return found()[0]


def test_killed_in_prepare_killed_in_execute_and_stopped_for_a_while(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "mortal.yaml"
    file.write_text(SCENARIO)
    running = home.spawn("run", str(file), "--size", "full", "--cold", "--no-wait")
    for cell, (kind, fields) in enumerate(
        (("PhaseStarted", {"phase": "prepare"}), ("WorkloadStarted", {"workload": "cpu"})), start=1
    ):
        wait_for(home, kind, cell=cell, **fields)
        killed = time.monotonic()
        os.kill(qemu(home), signal.SIGKILL)
        ended = wait_for(home, "CellEnded", cell=cell)
        assert ended["mono"] - killed < PROMPT
        assert ended["outcome"] == "failed"
        assert ended["reasons"] == ["t1-vm: its QEMU died: killed by SIGKILL"]
    wait_for(home, "WorkloadStarted", cell=3)
    victim = qemu(home)
    time.sleep(1)
    os.kill(victim, signal.SIGSTOP)
    time.sleep(STOPPED)
    os.kill(victim, signal.SIGCONT)
    _, words = running.communicate(timeout=300)
    assert running.returncode == 1, words
    ended = wait_for(home, "CellEnded", cell=3)
    assert ended["outcome"] == "invalid"
    stopped = [re.fullmatch(r"t1-vm: its QEMU was stopped for ([0-9.]+) s while .*", one) for one in ended["reasons"]]
    (seconds,) = [float(match[1]) for match in stopped if match]
    assert seconds >= STOPPED - 1
    cells = home.show()["cells"]
    assert [cell["outcome"] for cell in cells] == ["failed", "failed", "invalid"]
    assert [m["metric"] for m in cells[2]["measurements"] if m["metric"] == "run_time"]
    assert home.processes() == []
    assert home.leftovers() == []
