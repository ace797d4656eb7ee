"""A user of the program whose labs have real processes and namespaces, and no guests."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import forked
from tests.lab.programs import CLOCK
from tests.lab.programs.faked_launcher import BUILD_SECONDS
from tests.lab.programs.faked_runner import CELL_FILE, CELL_SECONDS, DEAF, HUNG, LOAD
from tests.lab.programs.faked_vmlab import HOST, LAST_WORD, MEMORY, PATIENCE, SIGNAL_IN
from vmlab.store.runs import by_time

ROOT = Path(__file__).parents[2]
SOON = 240.0
"""Far above what a command takes on a busy machine, in seconds, and below the deadline of a test."""
FAKED = "tests.lab.programs.faked_vmlab"
VMLAB = [sys.executable, "-m", FAKED]
NO_LAST_WORD = {LAST_WORD: "0.1"}
"""For a command that follows a run of which nothing is left that could still write an event."""
__all__ = [
    "BUILD_SECONDS",
    "CELL_FILE",
    "CELL_SECONDS",
    "DEAF",
    "HUNG",
    "LOAD",
    "MEMORY",
    "NO_LAST_WORD",
    "PATIENCE",
    "SIGNAL_IN",
    "Home",
    "until",
]


PROBE = """
name: probe
guests: {one: {memory: 128 MiB}}
workloads: {primes: {kind: cpu, on: one, threads: 1, max_prime: 1000, events: 10}}
axes: {cache: [none, writeback]}
"""
"""A scenario of two cells a repeat, without the number of them."""


@dataclass
class Home:
    """A state folder of its own on a host of its own, or on `host`, which may be another's."""

    folder: Path
    host: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def environment(self, **said: str) -> dict[str, str]:
        """What the commands find."""
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "VMLAB_RUNTIME_DIR": str(self.folder / "run"),
            "SUDO_USER": self.folder.name,
            HOST: str(self.host),
            **said,
        }

    def spawn(self, *arguments: str, **said: str) -> subprocess.Popen[str]:
        """Start a command and leave it running."""
        process = subprocess.Popen(
            [*VMLAB, *arguments],
            env=self.environment(**said),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, *arguments: str, **said: str) -> tuple[int, str, str]:
        """A command's exit code, output and words."""
        if {SIGNAL_IN, CLOCK}.isdisjoint(said):
            done = forked.ended(*arguments, env=self.environment(**said), cwd=ROOT, program=FAKED)
            return done.returncode, done.stdout.decode(), done.stderr.decode()
        # It is to be hit while it loads, or has another clock from its start.
        process = self.spawn(*arguments, **said)
        output, words = process.communicate(timeout=SOON)
        return process.returncode, output, words

    def records(self) -> list[Path]:
        """The folders of the runs, in the order of their start."""
        return sorted((self.folder / "state/vmlab/runs").glob("*"), key=lambda folder: by_time(folder.name))

    def pid(self, name: str) -> int:
        """A process of the newest run, 0 before it is there."""
        try:
            noted = json.loads((self.records()[-1] / "runner.json").read_text())
        except (OSError, ValueError, IndexError):
            return 0
        return int(noted.get(name, 0))

    def events(self, kind: str, record: int = -1) -> list[dict[str, Any]]:
        """Events of one kind that the store of a run has."""
        try:
            store = self.records()[record] / "run.sqlite"
            with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
                rows = connection.execute("SELECT body FROM events WHERE kind = ?", (kind,)).fetchall()
        except (IndexError, sqlite3.Error):
            return []
        return [json.loads(body) for (body,) in rows]

    def in_a_cell(self) -> bool:
        """Whether the newest run is in a cell."""
        return bool(self.events("CellStarted"))

    def end(self) -> None:
        """Kill what a test has left."""
        for name in ("launcher_pid", "runner_pid"):
            for record in self.records():
                noted = json.loads((record / "runner.json").read_text()) if (record / "runner.json").exists() else {}
                process = int(noted.get(name, 0))
                if process and record.name.encode() in _words(process):
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
        for started in self.started:
            started.kill()
            started.communicate()


def _words(process: int) -> list[bytes]:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def until(condition: Callable[[], object], what: str, seconds: float = SOON) -> None:
    """Poll until `condition` holds; fail with `what` after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen within {seconds:.0f} s"
        time.sleep(0.02)
