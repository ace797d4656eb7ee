"""A run's folder: what lies where, its lock, and who runs it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from vmlab.model.errors import UsageError
from vmlab.model.places import runs_folder, runtime_folder
from vmlab.plan.terms import Overrides
from vmlab.store.life import LOCK, PROCESSES, is_alive, process_ids
from vmlab.store.runs import STORE

OWNER = "run"
"""A file in each runtime folder that names the run's folder."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run was asked to do. `source` is where the scenario came from; its text is kept beside it."""

    run: str
    source: str
    overrides: Overrides
    seed: int

    def to_json(self) -> str:
        """For `request.json` in the run's folder."""
        return json.dumps({**asdict(self), "overrides": self.overrides.to_json()}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> RunRequest:
        """The inverse of `to_json`."""
        body = json.loads(text)
        return cls(**{**body, "overrides": Overrides.from_json(body["overrides"])})


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The places of one run."""

    id: str
    path: Path

    @classmethod
    def of(cls, run: str) -> RunFolder:
        """The folder of run `run`, which need not exist."""
        return cls(run, runs_folder() / run)

    @property
    def store(self) -> Path:
        """The SQLite store."""
        return self.path / STORE

    @property
    def scenario(self) -> Path:
        """The scenario's text as it was when the run was asked for."""
        return self.path / "scenario.yaml"

    @property
    def request(self) -> Path:
        """The RunRequest."""
        return self.path / "request.json"

    @property
    def lock(self) -> Path:
        """Held by launcher, init and runner together; free means that the run is over."""
        return self.path / LOCK

    @property
    def processes(self) -> Path:
        """Process ids of launcher and runner, as the host sees them."""
        return self.path / PROCESSES

    @property
    def journal(self) -> Path:
        """What the run made outside its namespaces."""
        return self.path / "journal.jsonl"

    @property
    def disks(self) -> Path:
        """Guests' overlays; empty when the run is over."""
        return self.path / "disks"

    @property
    def log(self) -> Path:
        """What launcher and runner wrote to standard error, for a developer."""
        return self.path / "launcher.log"

    @property
    def runtime(self) -> Path:
        """Sockets and libvirt's root: its name is short, as socket paths end at 108 bytes."""
        return runtime_folder() / hashlib.sha256(self.id.encode()).hexdigest()[:8]

    @property
    def control(self) -> Path:
        """The runner's Unix socket."""
        return self.runtime / "control.sock"

    def make(self) -> None:
        """Make the folders. Raises UsageError when one of them cannot be written."""
        try:
            self.disks.mkdir(parents=True)
            self.path.chmod(0o700)
            self.runtime.mkdir(parents=True)
            (self.runtime / OWNER).write_text(str(self.path))
        except OSError as error:
            raise UsageError(f"cannot write {error.filename}: {error.strerror}") from error

    def take_lock(self) -> int:
        """Take the run's lock; the descriptor that holds it, for passing on to the launcher."""
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor

    def alive(self) -> bool:
        """Whether any process of the run still holds its lock."""
        return is_alive(self.path)

    def note_processes(self, **pids: int) -> None:
        """Add process ids to `runner.json`, whole or not at all."""
        draft = self.processes.with_suffix(".new")
        draft.write_text(json.dumps({**process_ids(self.path), **pids}))
        draft.rename(self.processes)

    def process(self, name: str) -> int | None:
        """One process id of `runner.json`, or None."""
        return process_ids(self.path).get(name)
