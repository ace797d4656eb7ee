"""One kind of cache entries, images or snapshots, in a folder of its own::

    ID/                    an entry: its files, manifest.json, vmlab.mark, use.lock
    .making-ID-RANDOM/     one under way (images: .building-…), whose use.lock its maker holds
    .removing-ID-RANDOM/   one on its way out
    .locks/ID              held by who makes the snapshot; images/.build.lock by who builds an image
    .locks/gate            held, for moments, by who begins an entry or clears what killed processes left

An entry appears at once, by a rename, and disappears at once, by another.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from vmlab.guests.cached.locks import USE_LOCK, Lock, wait_for, wait_for_async
from vmlab.guests.cached.manifest import Fault, bring_to_disk, is_own, is_own_leftover, read_manifest, write_manifest
from vmlab.integrity.digests import FileDigests
from vmlab.integrity.disk_reading import verify
from vmlab.model.errors import RefusedError, VmlabError
from vmlab.model.places import cache_folder
from vmlab.system.removal import Removals, make_marked, remove_tree, remove_trees

Notice = Callable[[str], None]
"""Takes a line for people."""

GATE_SECONDS = 60.0
"""How long a process may clear up or begin an entry; removing a large unfinished entry takes seconds."""

_LEAVING = ".removing-"
_LOCKS = ".locks"
_GATE = "gate"
_GATE_EVERY = 0.01
_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as a list shows it. `bytes` is what it takes on disk; `created` and `used` are times of the epoch.

    `manifest` is None where it is damaged. One that is not `whole` will not be used again.
    """

    id: str
    folder: Path
    bytes: int
    created: float
    used: float
    in_use: bool
    manifest: Mapping[str, Any] | None
    whole: bool


class Collection(ABC):
    """All entries of one kind. A subclass defines their names and how their faults are reported."""

    name: ClassVar[str]
    """The name of the folder in the cache."""
    noun: ClassVar[str]
    """The name of one entry in messages."""
    command: ClassVar[str]
    """The command that lists them."""
    schema: ClassVar[str]
    """The schema of their manifests, with its version, such as ``vmlab.image/2``."""
    needed: ClassVar[frozenset[str]]
    """The keys that a manifest must have."""
    unfinished: ClassVar[str]
    """The prefix of the folder of an entry that is being made."""
    refused: ClassVar[type[RefusedError]] = RefusedError

    def __init__(self) -> None:
        self._told: set[str] = set()

    @abstractmethod
    def damaged(self, folder: Path, fault: str) -> VmlabError:
        """What to raise for an entry with a fault."""

    @abstractmethod
    def gone(self, id: str) -> VmlabError:
        """What to raise when an entry that was found is removed before it is held."""

    def usable(self, folder: Path, manifest: Mapping[str, Any]) -> bool:
        """Whether the entry with this manifest can ever be used again."""
        return True

    def folder(self) -> Path:
        """The folder with the entries, one folder each."""
        return cache_folder() / self.name

    @contextlib.contextmanager
    def naming(self, folder: Path) -> Iterator[None]:
        """A Fault in the block is raised as the error that `damaged` returns for it."""
        try:
            yield
        except Fault as fault:
            raise self.damaged(folder, str(fault)) from fault

    def read(self, folder: Path) -> dict[str, Any]:
        """The manifest of an entry. Raises the error of `damaged` where it cannot be read or was changed."""
        with self.naming(folder):
            return read_manifest(folder, self.schema, self.needed)

    def seal(self, folder: Path, id: str, files: Mapping[str, FileDigests], values: Mapping[str, Any]) -> None:
        """Write the manifest of a new entry, and bring all of it to the disk. Raises OSError."""
        described = {name: digests.as_json() for name, digests in files.items()}
        made = {"schema": self.schema, "id": id, "created": time.time()}
        write_manifest(folder, {**made, **values, "files": described})
        bring_to_disk(folder)

    def build_lock(self, name: str) -> Path:
        """The file that is locked while the entry `name` is made."""
        return self.folder() / _LOCKS / name

    def gate(self) -> Lock:
        """The lock for `begun`; blocks. Raises RefusedError where another process does not give it up."""
        return wait_for(self.build_lock(_GATE), every=_GATE_EVERY, seconds=GATE_SECONDS)

    async def gate_async(self) -> Lock:
        """As `gate`, without blocking the event loop."""
        return await wait_for_async(self.build_lock(_GATE), every=_GATE_EVERY, seconds=GATE_SECONDS)

    @contextlib.contextmanager
    def begun(self, id: str, gate: Lock, notice: Notice) -> Iterator[Path]:
        """A new folder to fill and to `keep`; it is removed when the block ends with an error. Releases `gate`.

        Its name is new, so that folders left by a killed process, or that cannot be removed, are not in the way;
        `notice` gets a line on these, once for each process. Raises OSError.
        """
        with gate:
            self._notice_left(self._clear(), notice)
            folder = self.folder() / f"{self.unfinished}{id}-{secrets.token_hex(4)}"
            make_marked(folder, id)
            with _removed_on_error(folder):
                lock = wait_for(folder / USE_LOCK, every=_GATE_EVERY, seconds=GATE_SECONDS)
        with lock, _removed_on_error(folder):
            yield folder

    def keep(self, folder: Path, id: str) -> Path:
        """Make a folder from `begun`, filled and sealed, the entry `id`; its folder from now on. Raises OSError."""
        final = self.folder() / id
        folder.rename(final)
        return final

    def _notice_left(self, removals: Removals, notice: Notice) -> None:
        for left in removals.left:
            if left not in self._told:
                self._told.add(left)
                notice(f"what an earlier process left cannot be removed, and is passed over: {left}")

    @contextlib.contextmanager
    def held(self, folder: Path) -> Iterator[None]:
        """Keep an entry from removal while the block runs, and note that it was used. Raises the error of `gone`."""
        lock = Lock.shared(folder / USE_LOCK)
        if lock is None:
            raise self.gone(folder.name)
        with lock:
            os.utime(folder / USE_LOCK)
            yield

    def in_use(self, folder: Path) -> bool:
        """Whether a process holds, makes or removes the entry in `folder`."""
        lock = Lock.try_exclusive(folder / USE_LOCK)
        if lock is None:
            return folder.is_dir()
        lock.release()
        return False

    def used_by_a_run(self, id: str) -> RefusedError:
        """What to raise for an entry that must not be in use."""
        return self.refused(f"{self.noun} {id} is in use by a run", remedy="wait for the run, or vmlab stop")

    def entries(self) -> list[Entry]:
        """All entries, also damaged ones; other folders in the same place are not the lab's and are left out."""
        folder = self.folder()
        return [self._entry(path) for path in folder.iterdir() if self._is_own(path)] if folder.is_dir() else []

    def _is_own(self, path: Path) -> bool:
        return is_own(path, self._schemas)

    @property
    def _schemas(self) -> str:
        """How the schemas of all versions begin."""
        return self.schema.partition("/")[0] + "/"

    def _entry(self, folder: Path) -> Entry:
        try:
            manifest = self.read(folder)
        except VmlabError:
            manifest = None
        created = folder.stat().st_mtime if manifest is None else float(manifest["created"])
        lock = folder / USE_LOCK
        used = lock.stat().st_mtime if lock.exists() else created
        taken = sum(path.stat().st_blocks * _BLOCK for path in folder.iterdir() if path.is_file())
        whole = manifest is not None and self.usable(folder, manifest)
        return Entry(folder.name, folder, taken, created, used, self.in_use(folder), manifest, whole)

    def evict(self, limit: int, keep: str | None = None) -> list[str]:
        """Remove entries until they take `limit` bytes at most; the ids of those that went.

        The entry that was used longest ago goes first. Those that are not whole are removed in any case; entries in
        use, and the one with the id `keep`, never.
        """
        standing = self.entries()
        taken = sum(entry.bytes for entry in standing)
        gone = []
        for entry in sorted(standing, key=lambda one: (one.whole, one.used)):
            if entry.whole and taken <= limit:
                break
            if entry.in_use or entry.id == keep:
                continue
            try:
                self.remove(entry.id)
            except RefusedError:
                # Another process began to use or removed it in between.
                continue
            taken -= entry.bytes
            gone.append(entry.id)
        return gone

    def remove(self, id: str) -> None:
        """Delete an entry. Raises `refused` where there is none of that id, or when a run uses it, and OSError."""
        if id not in {one.id for one in self.entries()}:
            raise self.refused(f"there is no {self.noun} {id[:60]!r}", remedy=f"{self.command} tells which there are")
        if not self.retire(self.folder() / id):
            raise self.used_by_a_run(id)

    def retire(self, folder: Path) -> bool:
        """Take an entry out of the list, then delete it; False when a run uses it.

        Raises `refused` for a folder of that name that the lab did not make, and OSError for what cannot be removed.
        """
        if folder.is_dir() and not self._is_own(folder):
            raise self.refused(f"{folder} was not made by the lab, and stays", remedy="move it elsewhere")
        lock = Lock.try_exclusive(folder / USE_LOCK)
        if lock is None:
            return not folder.is_dir()
        with lock:
            leaving = folder.with_name(f"{_LEAVING}{folder.name}-{secrets.token_hex(4)}")
            folder.rename(leaving)
            remove_tree(leaving)
        return True

    def clear_unfinished(self) -> Removals:
        """Remove what processes left behind that were killed while making or removing; returns what was removed.

        Raises RefusedError where another process does not give up a lock that is held for moments only, and OSError.
        """
        if not self.folder().is_dir():
            return Removals()
        with self.gate():
            return self._clear()

    def _clear(self) -> Removals:
        """As `clear_unfinished`, for a holder of the gate."""
        found = [(path, prefix) for prefix in (self.unfinished, _LEAVING) for path in self.folder().glob(f"{prefix}*")]
        ours = [path for path, prefix in found if is_own_leftover(path, prefix, self._schemas)]
        return remove_trees([path for path in ours if not self.in_use(path)])


class Kept:
    """An entry that was found: `folder`, and the digests of its `files` by name."""

    __slots__ = ()
    collection: ClassVar[Collection]
    folder: Path
    files: Mapping[str, FileDigests]

    def damaged(self, fault: str) -> VmlabError:
        """The error for a fault of its files; it names the command that mends it."""
        return self.collection.damaged(self.folder, fault)

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Keep it from being removed while the block runs. Raises the error of `Collection.gone`."""
        return self.collection.held(self.folder)

    def require_whole(self) -> None:
        """Read all of it from the disk itself. Raises the error of `damaged` where any byte has changed."""
        for fault in verify({self.folder / name: digests for name, digests in self.files.items()}).faults.values():
            raise self.damaged(fault)


@contextlib.contextmanager
def _removed_on_error(folder: Path) -> Iterator[None]:
    """What cannot be removed now is cleared later; the error that made the block fail is raised."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            remove_tree(folder)
        raise
