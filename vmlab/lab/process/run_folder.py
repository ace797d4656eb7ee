"""A run's folder: its files, its lock and its processes; and its runtime folder with its sockets and libvirt's root."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vmlab.hypervisor.journal import Journal
from vmlab.model.errors import RefusedError, UsageError, in_one_line, unusable
from vmlab.model.places import runs_folder, runtime_folder
from vmlab.store.life import LOCK, LOG, PROCESSES, is_alive, process_ids
from vmlab.store.runs import STORE
from vmlab.system.descriptors import closed_after
from vmlab.system.file_system import NoLocksError, demand_usable, flock
from vmlab.system.held_folder import FolderLostError, hold, need, opened, release, write_text_in
from vmlab.system.removal import make_marked, named, owner_of, remove_file, remove_tree
from vmlab.system.rights import user_name

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
        with closed_after(os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as descriptor:
            flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, self.path / LOCK)
            yield descriptor

    def alive(self) -> bool:
        """Whether a process of its run holds it."""
        return is_alive(self.path)


def _short(run: str) -> str:
    return hashlib.sha256(run.encode()).hexdigest()[:8]


class _Inside:
    """A file or folder in that of a run, by its name there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: RunFolder, _kind: object = None) -> Path:
        return folder.path / self._name


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The places of one run."""

    id: str
    path: Path
    store = _Inside(STORE)
    """The SQLite store."""
    scenario = _Inside("scenario.yaml")
    """The scenario's text as it was when the run was asked for."""
    request = _Inside("request.json")
    """What was asked for; see `run_request`."""
    lock = _Inside(LOCK)
    """Held by launcher, init and runner together; free means that the run is over."""
    processes = _Inside(PROCESSES)
    """Process ids of launcher and runner, as the host sees them."""
    journal = _Inside("journal.jsonl")
    """What the run made outside its namespaces."""
    disks = _Inside("disks")
    """Guests' disks and the files of workloads on the host; empty when the run is over."""
    log = _Inside(LOG)
    """What launcher and runner wrote to standard error, for a developer."""

    @classmethod
    def of(cls, run: str) -> RunFolder:
        """The folder of run `run`, which need not exist."""
        return cls(run, runs_folder() / run)

    @property
    def runtime(self) -> Path:
        """Sockets and libvirt's root; see `RuntimeFolder`."""
        return RuntimeFolder.of(self.id).path

    @property
    def control(self) -> Path:
        """The runner's Unix socket."""
        return self.runtime / "control.sock"

    def make(self, *, guests: bool = True) -> int:
        """Make the folders, marked as the run's; the descriptor that holds its lock, see `take_lock`.

        Without `guests` the run has no disks and no runtime folder. At no moment can another process that clears up
        mistake the run for a dead one. Raises RefusedError, with no folder left, when one cannot be written, or files
        in it cannot be locked.
        """
        demand_usable(runs_folder(), *([runtime_folder()] if guests else []))
        try:
            make_marked(self.path, self.id)
            lock = None
            try:
                lock = self.take_lock()
                if guests:
                    self.disks.mkdir()
                    RuntimeFolder(self.runtime).make(self.id, self.path)
                return lock
            except BaseException:
                remove_tree(self.path)
                if lock is not None:
                    os.close(lock)
                raise
        except OSError as error:
            raise unusable(error, "write") from error

    def take_lock(self) -> int:
        """Take the run's lock; the descriptor that holds it, to be inherited by the launcher.

        Raises BlockingIOError while a process of the run holds it, and what `flock` of `file_system` raises.
        """
        made = not self.lock.exists()
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, self.lock)
        except BaseException as error:
            os.close(descriptor)
            if made and isinstance(error, NoLocksError):
                remove_file(self.lock)
            raise
        return descriptor

    def take_lock_of_dead(self) -> int:
        """As `take_lock`; raises UsageError where the run is under way."""
        try:
            return self.take_lock()
        except BlockingIOError:
            raise UsageError(f"run {self.id} is under way; `vmlab attach {self.id}` follows it") from None

    def remains(self) -> list[str]:
        """Everything of the run that lies outside its record: sockets, and what its journal has open."""
        runtime = [str(self.runtime)] if RuntimeFolder(self.runtime).is_own() else []
        return [*runtime, *(f"{entry.kind} {entry.what}" for entry in Journal(self.journal).open_entries())]

    def is_own(self) -> bool:
        """Whether this is the folder that the run made: not a copy, not renamed, not moved, not a link.

        Only then may anything be removed from it. Reading does not need it.
        """
        return self.path.name == self.id and owner_of(self.path) == self.id

    def hold(self, *, runtime: bool = False, root: Path = Path("/")) -> None:
        """Have this process work in the run's folder until it ends, with `runtime` in its runtime folder too; see
        `held_folder`. Raises FolderLostError where it is not the folder that the run made.
        """
        try:
            hold(self.path, root)
            with named(self.lock):
                need(self.lock)
            if runtime:
                hold(self.runtime, root)
        except OSError as error:
            raise FolderLostError(in_one_line(error)) from error
        if not self.is_own():
            raise FolderLostError(f"{self.path} is not the folder that the run made")

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """As `hold`, while the block runs; nothing where this is not the folder that the run made."""
        own = self.is_own()
        try:
            if own:
                self.hold()
            yield
        finally:
            release(self.path)

    def alive(self) -> bool:
        """Whether any process of the run still holds its lock."""
        return is_alive(self.path)

    def demand_commandable(self) -> None:
        """Raises UsageError for a run that is over, and RefusedError unless it is this user's, or this is root."""
        if not self.alive():
            raise UsageError(f"run {self.id} is not running")
        owner = self.path.stat().st_uid
        if os.geteuid() not in (0, owner):
            raise RefusedError(f"run {self.id} is one of {user_name(owner)}; it obeys that user and root alone")

    def note_processes(self, **pids: int) -> None:
        """Add process ids to `runner.json`, atomically. Raises OSError."""
        draft = self.processes.with_suffix(".new")
        text = json.dumps({**process_ids(self.path), **pids})
        with named(draft), opened(self.path) as folder:
            write_text_in(folder, draft.name, text)
            os.rename(draft.name, self.processes.name, src_dir_fd=folder, dst_dir_fd=folder)

    def process(self, name: str) -> int | None:
        """One process id of `runner.json`, or None."""
        return process_ids(self.path).get(name)
