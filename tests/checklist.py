"""A line for each check of a long test on standard output, and the whole output of each in a file of its own."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vmlab.guests.cached.locks import Lock
from vmlab.model.errors import RefusedError
from vmlab.system.removal import remove_tree


def say(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Checklist:
    """The lines of one test; the files go to `folder`, and `failed` counts the checks that failed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._began = time.monotonic()
        self.failed = 0

    def output(self, name: str) -> Path:
        """A new, empty file for what `name` prints."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = next(
            place
            for number in range(1, 100)
            if not (place := self._folder / f"{name}{f'-{number}' * (number > 1)}.log").exists()
        )
        file.touch()
        return file

    def line(self, began: float, title: str, output: Path, why: str = "") -> None:
        """Tell how a check ended that began at `began` (monotonic); `why` is empty where all is well."""
        seconds = f"{time.monotonic() - began:.0f} s"
        self.failed += bool(why)
        ending = f": {why}; see {output}" if why else ""
        say(f"{'FAILED' if why else 'ok    '} {seconds:>6}  {title}{ending}")

    def total(self) -> None:
        """The last line: whether all passed, and how long it took."""
        minutes = (time.monotonic() - self._began) / 60
        say(f"{'passed' if not self.failed else f'{self.failed} FAILED'} in {minutes:.0f} min")


@contextmanager
def alone(folder: Path, what: str) -> Iterator[Checklist]:
    """A new report in the folder `output` of `folder`, while no other one is made there. Raises RefusedError."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = Lock.try_exclusive(folder / "lock")
    if lock is None:
        raise RefusedError(f"{what} under way already; the lock is {folder / 'lock'}")
    try:
        remove_tree(folder / "output")
        report = Checklist(folder / "output")
        yield report
        report.total()
    finally:
        lock.release()
