"""Rows tried one after the other, each in a folder and in namespaces of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.faults.row import Row
from tests.faults.world import CHECKOUT, PATIENCE
from vmlab.system.removal import remove_tree

APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "--mount-proc")
_AROUND = PATIENCE + 300.0
"""Seconds that a row may take around its fault: until the run is there, and for what is looked at afterwards."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of one row; `seconds` from the fault to the end, `problems` empty where all is as it should be."""

    name: str
    happened: str
    seconds: float | None
    problems: tuple[str, ...]


@contextlib.contextmanager
def snapshots_of_rows() -> Iterator[Path]:
    """The folder of the frozen guests that rows have in common, on a disk, removed with the last row."""
    folder = Path(tempfile.mkdtemp(prefix="vf-", dir="/var/tmp"))
    try:
        yield folder
    finally:
        remove_tree(folder)


def tried(row: Row, snapshots: Path, log: Path) -> Tried:
    """Try one row; what it prints on standard error goes to `log`."""
    folder = Path(tempfile.mkdtemp(prefix="vl-", dir="/var/tmp"))
    argv = [*APART, sys.executable, "-m", "tests.faults.inside", row.name, str(folder), str(snapshots)]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1", "TZ": "UTC"}
    try:
        with log.open("ab") as errors:
            inside = subprocess.Popen(
                argv, cwd=CHECKOUT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        try:
            output, _ = inside.communicate(timeout=row.deadline + _AROUND)
        except subprocess.TimeoutExpired:
            return Tried(row.name, "it had no end", None, ("it had no end",))
        finally:
            inside.send_signal(signal.SIGKILL)
            inside.wait()
        return _read(row, output.replace(str(folder).encode(), "…".encode()), log)
    finally:
        remove_tree(folder)


def _read(row: Row, output: bytes, log: Path) -> Tried:
    try:
        said = json.loads(output.splitlines()[-1])
    except (ValueError, IndexError):
        words = log.read_text(errors="replace").strip().splitlines()
        why = f"the row itself broke: {words[-1] if words else 'without a word'}"
        return Tried(row.name, why, None, (why,))
    return Tried(row.name, said["happened"], said["seconds"], tuple(said["problems"]))
