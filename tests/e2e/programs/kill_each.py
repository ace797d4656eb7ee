"""On a dummy host: kills one process of a lab after the other with -9 while a workload on the host is at work.

Prints one JSON document of what became of each run, and of all that is on the dummy host afterwards.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.programs.dummy_host import DummyHost
from tests.processes import named

CHECKOUT = Path(__file__).parents[3]
VMLAB = [sys.executable, "-m", "vmlab"]
SCENARIO = """
name: both
summary: The host and a guest at work side by side.
guests:
  vm: {vcpus: 1, memory: 512 MiB, disk: 8 GiB, data: 64 MiB, allocation: full, cache: none}
workloads:
  there: {kind: cpu, on: vm, threads: 1, max_prime: 20000, events: 200000}
  here: {kind: cpu, on: host, threads: 1, max_prime: 50000, events: 200000}
"""
PATIENCE = 400.0
BACKINGS = {"runner": "xfs", "init": "block", "launcher": "folder", "QEMU": "btrfs", "command line": "ext4"}
"""Where the data disk lies when each process is killed; the folder is the user's."""
THEIRS = "vmlab.20260101-000000-both-0000.t1-vm.0123456789abcdef.raw"
"""A file of theirs, with a name much like the lab's own."""


def events(folder: Path) -> list[str]:
    """Kinds of a run's events so far."""
    store = folder / "run.sqlite"
    if not store.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as opened:
        try:
            return [kind for (kind,) in opened.execute("SELECT kind FROM events ORDER BY id")]
        except sqlite3.OperationalError:
            # The launcher is still making its tables.
            return []


def wait_for(what: str, question: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """The first answer that is true; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not (answer := question()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not happen within {seconds:.0f} s")
        time.sleep(0.1)
    return answer


def process_of(victim: str, command: subprocess.Popen[str], folder: Path) -> int:
    """The pid of one process of the lab, in this PID namespace."""
    noted = json.loads((folder / "runner.json").read_text())
    match victim:
        case "command line":
            return command.pid
        case "launcher" | "runner":
            return int(noted[f"{victim}_pid"])
        case "init":
            return psutil.Process(noted["runner_pid"]).ppid()
        case _:
            return named("qemu-system")[0].pid


def left_running() -> list[str]:
    """What still runs here beside this program and its parent."""
    own = {os.getpid(), os.getppid()}
    return [one.info["name"] for one in named("") if one.pid not in own]


def loops_on(folder: Path) -> list[str]:
    """The files in `folder` that a loop device is on."""
    backing = [path.read_text().strip() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    return [file for file in backing if str(folder) in file]


def going_on(command: subprocess.Popen[str], answer: Any) -> Any:
    """The `answer`. Raises RuntimeError where the run is over already."""
    if command.poll() is not None:
        raise RuntimeError(f"the run ended by itself: {command.communicate()[1]}")
    return answer


def killed(victim: str, state: Path) -> dict[str, Any]:
    """Run both workloads, kill `victim` while they work, and clear up."""
    runs = state / "vmlab/runs"
    runs.mkdir(parents=True, exist_ok=True)
    before = set(runs.iterdir())
    nvme, backing = state / "nvme", BACKINGS[victim]
    placed = f"guests.vm.backing={f'folder:{nvme}' if backing == 'folder' else backing}"
    argv = [*VMLAB, "run", str(state / "both.yaml"), "--cold", "--no-wait", "--set", placed]
    command = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    (folder,) = wait_for("the run", lambda: going_on(command, set(runs.iterdir()) - before), 60)
    wait_for("both workloads", lambda: going_on(command, events(folder).count("WorkloadStarted") == 2))
    loops, outside = len(loops_on(folder)), len(list(nvme.iterdir()))
    root = next((Path("/run/vmlab").glob("*/root")), None)
    began = time.monotonic()
    os.kill(process_of(victim, command, folder), signal.SIGKILL)
    if victim == "command line":
        command.wait()
        subprocess.run([*VMLAB, "stop", folder.name], capture_output=True, timeout=200, check=False)
    _, words = command.communicate(timeout=240)
    seconds = time.monotonic() - began
    wait_for("the end of all processes", lambda: not left_running(), 120)
    cleaned = subprocess.run([*VMLAB, "clean"], capture_output=True, text=True, timeout=120, check=False)
    again = subprocess.run([*VMLAB, "clean"], capture_output=True, text=True, timeout=120, check=False)
    return {
        "status": command.returncode,
        "seconds": round(seconds, 1),
        "words": words.splitlines()[-4:],
        "root_was_there": root is not None,
        "cleaned": cleaned.returncode,
        "clean_words": cleaned.stderr.splitlines(),
        "again": again.stderr.strip(),
        "disks": [path.name for path in folder.glob("disks/*")],
        "loops": [loops, len(loops_on(folder))],
        "outside": [outside, [path.name for path in nvme.iterdir()]],
    }


def main(base: Path, state: Path, cache: Path, victims: list[str]) -> None:
    """Print what was seen; the machine's own tree is only read."""
    host = DummyHost(base, (state, cache, CHECKOUT))
    inside = os.fork()
    if inside == 0:
        host.enter(CHECKOUT)
        os.environ["XDG_STATE_HOME"] = str(state)
        (state / "both.yaml").write_text(SCENARIO)
        (state / "nvme").mkdir()
        (state / "nvme" / THEIRS).write_text("theirs")
        seen = {victim: killed(victim, state) for victim in victims}
        (state / "seen.json").write_text(json.dumps(seen))
        os._exit(0)
    _, status = os.waitpid(inside, 0)
    after = host.listing()
    document = {
        "status": status,
        "seen": json.loads((state / "seen.json").read_text()) if status == 0 else {},
        "gone": sorted(host.before.keys() - after.keys()),
        "changed": sorted(name for name in host.before.keys() & after.keys() if host.before[name] != after[name]),
        "new": sorted(f"{name} {after[name]}" for name in after.keys() - host.before.keys()),
    }
    sys.stdout.write(json.dumps(document))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
