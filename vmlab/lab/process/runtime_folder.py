"""A run's runtime folder: its sockets and libvirt's root, beside those of other runs."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vmlab.model.places import runtime_folder
from vmlab.store.life import LOCK, is_alive
from vmlab.system.file_system import flock
from vmlab.system.marks import make_marked, owner_of
from vmlab.system.naming import named
from vmlab.system.removal import remove_tree

_RECORD = "run"
"""The file that names the folder of the run's record."""


@dataclass(frozen=True, slots=True)
class RuntimeFolder:
    """One folder of the runtime folder. Its name is short, as a socket's path ends at 108 bytes."""

    path: Path

    @classmethod
    def of(cls, run: str) -> RuntimeFolder:
        """That of `run`, which need not exist."""
        return cls(runtime_folder() / _short(run))

    @property
    def run(self) -> str:
        """The id of the run whose mark it carries; empty without one."""
        return owner_of(self.path) or ""

    def is_own(self) -> bool:
        """Whether a run has made it: it has the mark of the run that it is named after, and is not a copy."""
        return bool(self.run) and self.path.name == _short(self.run)

    def make(self, run: str, record: Path) -> None:
        """Make it for `run`, whose record is in the folder `record`. Raises OSError, with nothing made."""
        make_marked(self.path, run)
        try:
            with named(self.path / _RECORD):
                (self.path / _RECORD).write_text(str(record))
        except BaseException:
            remove_tree(self.path)
            raise

    def record(self) -> Path | None:
        """The folder of the run's record; None where that is not known."""
        try:
            return Path((self.path / _RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    @contextlib.contextmanager
    def held(self) -> Iterator[int]:
        """Lock it: the run counts as alive while any process has the descriptor open. Raises OSError.

        It replaces the lock of the run's record if that folder is removed during the run.
        """
        descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, self.path / LOCK)
            yield descriptor
        finally:
            os.close(descriptor)

    def alive(self) -> bool:
        """Whether a process of its run holds it."""
        return is_alive(self.path)


def _short(run: str) -> str:
    return hashlib.sha256(run.encode()).hexdigest()[:8]
