"""Runs of the real program on real guests, with a state folder of the test's own and the user's image cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.processes import processes

VMLAB = [sys.executable, "-m", "vmlab"]


@dataclass
class Home:
    """A user of the program with a state folder of their own."""

    state: Path
    runtime: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the user's commands."""
        return {**os.environ, "XDG_STATE_HOME": str(self.state), "VMLAB_RUNTIME_DIR": str(self.runtime)}

    def vmlab(self, *arguments: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return subprocess.run(
            [*VMLAB, *_beside_others(arguments)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def spawn(self, *arguments: str) -> subprocess.Popen[str]:
        """Start one command and leave it running."""
        return subprocess.Popen(
            [*VMLAB, *_beside_others(arguments)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def show(self, run: str = "last") -> dict[str, Any]:
        """The document of `vmlab show RUN --json`."""
        document: dict[str, Any] = json.loads(self.vmlab("show", run, "--json").stdout)
        return document

    def runs(self) -> list[dict[str, Any]]:
        """The list of `vmlab ls --json`."""
        listed: list[dict[str, Any]] = json.loads(self.vmlab("ls", "--json").stdout)["runs"]
        return listed

    def events(self) -> list[dict[str, Any]]:
        """The events of the only run, as they are in its store."""
        import sqlite3

        stores = list(self.state.glob("vmlab/runs/*/run.sqlite"))
        if not stores:
            return []
        with closing(sqlite3.connect(f"file:{stores[0]}?mode=ro", uri=True)) as store:
            try:
                rows = store.execute("SELECT body FROM events ORDER BY id").fetchall()
            except sqlite3.OperationalError:
                # Its launcher is just making it.
                return []
        return [json.loads(body) for (body,) in rows]

    def processes(self) -> list[int]:
        """Processes of this home's runs: their command lines name its folders."""
        return [*{*processes(self.state), *processes(self.runtime)}]

    def leftovers(self) -> list[str]:
        """Disks, sockets, cgroups and loop devices of this home's runs."""
        places = [*self.state.glob("vmlab/runs/*/disks/*"), *self.runtime.glob("*")]
        runs = [path.name for path in self.state.glob("vmlab/runs/*")]
        for run in runs:
            places += [p for p in Path("/sys/fs/cgroup").glob("*/machine/*") if run in p.name]
        loops = Path("/sys/block").glob("loop*/loop/backing_file")
        return [str(place) for place in places] + [
            text for text in (path.read_text() for path in loops) if str(self.state) in text
        ]


def _beside_others(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments of a command; a run goes on beside one of another user of this machine, unless it waits for it."""
    return (*arguments, "--concurrent") if arguments[0] == "run" and "--wait" not in arguments else arguments


def wait_until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Poll until `condition` holds; fail with `what` after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen within {seconds:.0f} s"
        time.sleep(0.1)


@pytest.fixture
def home(image: str) -> Iterator[Home]:
    """A fresh home; whatever runs in it when the test ends is stopped."""
    folder = Path(tempfile.mkdtemp(prefix="vl-", dir="/var/tmp"))
    home = Home(folder / "state", folder / "run")
    yield home
    if home.processes():
        home.vmlab("stop", timeout=200)
    shutil.rmtree(folder)
