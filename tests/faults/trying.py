"""Rows tried in lanes side by side, each row in a folder and in namespaces of its own.

Nothing that a row does reaches another: it has process ids, mounts and /run of its own, and thereby the lock of
measuring runs. What rows share are frozen guests, which are locked, and the processors: of two rows one mostly waits.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from tests.faults.row import Row
from tests.faults.world import CHECKOUT, PATIENCE
from vmlab.system.removal import remove_tree

APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "--mount-proc")
_AROUND = PATIENCE + 300.0
"""Seconds that a row may take around its fault: until the run is there, and for what is looked at afterwards."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of one row; `seconds` from the fault to the end, `problems` empty where all is as it should be.

    `took` are the seconds of the whole row, with all that was made ready and looked at.
    """

    name: str
    happened: str
    seconds: float | None
    problems: tuple[str, ...]
    took: float = 0.0


Try = Callable[[Row, Path], Tried]
"""Tries a row; what it prints on standard error goes to the file."""
Done = Callable[[Row, Tried, Path], object]
_UNDER_WAY: set[subprocess.Popen[bytes]] = set()


def in_lanes(rows: Sequence[Row], count: int, attempt: Try, log: Callable[[str], Path], done: Done) -> None:
    """Try all rows, `count` at a time, and call `done` in this thread as soon as one is over.

    Those that are `alone` come last, one at a time. `log` makes the file for the row of a name. A row that breaks did
    not go as it should, and the others are tried all the same. Where `done` raises, or a signal comes, rows that are
    under way are killed.
    """
    for some, width in (([r for r in rows if not r.alone], count), ([r for r in rows if r.alone], 1)):
        with ThreadPoolExecutor(width) as pool:
            files = {row.name: log(row.name) for row in some}
            waiting = {pool.submit(_whole, attempt, row, files[row.name]): row for row in some}
            try:
                for future in as_completed(waiting):
                    row = waiting[future]
                    done(row, future.result(), files[row.name])
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in list(_UNDER_WAY):
                    process.kill()
                raise


def _whole(attempt: Try, row: Row, log: Path) -> Tried:
    began = time.monotonic()
    try:
        result = attempt(row, log)
    except Exception as error:  # noqa: BLE001
        why = f"the row itself broke: {error!r}"
        result = Tried(row.name, why, None, (why,))
    return replace(result, took=round(time.monotonic() - began, 1))


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
        _UNDER_WAY.add(inside)
        try:
            output, _ = inside.communicate(timeout=row.deadline + _AROUND)
        except subprocess.TimeoutExpired:
            return Tried(row.name, "it had no end", None, ("it had no end",))
        finally:
            inside.send_signal(signal.SIGKILL)
            inside.wait()
            _UNDER_WAY.discard(inside)
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
