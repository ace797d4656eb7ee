"""The frozen guests on this machine: where they are, which are whole, who uses them, and how one goes away.

Each is a folder with RAM state, disk, description of the machine, and a manifest. It appears at once, by a rename, and
disappears at once, by another.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmlab.guests.image.locks import Lock
from vmlab.guests.snapshots.recipe import Recipe
from vmlab.model.errors import RefusedError, SnapshotError
from vmlab.model.places import cache_folder

MANIFEST = "manifest.json"
USE_LOCK = "use.lock"
"""Held shared by users, alone by whoever makes or removes; its time of change tells when it was last used."""

MAKING = ".making-"
LEAVING = ".removing-"

Notice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One whole frozen guest. `sha256` covers RAM state and disk, `seconds` is what making it took."""

    id: str
    folder: Path
    sha256: str
    seconds: float


@dataclass(frozen=True, slots=True)
class SnapshotSummary:
    """A line of `vmlab snapshot ls`. `bytes` is what it takes on disk; `created` and `used` are times of the epoch.

    `whole` is False for one that is damaged, or whose image has gone; it will not be used again.
    """

    id: str
    folder: Path
    bytes: int
    created: float
    used: float
    in_use: bool
    whole: bool


def snapshots_folder() -> Path:
    """Where snapshots are, one folder each."""
    return cache_folder() / "snapshots"


def find(recipe: Recipe, notice: Notice) -> Snapshot | None:
    """The snapshot of `recipe`, whole; None where there is none. A damaged one is discarded, and `notice` is told."""
    folder = snapshots_folder() / recipe.id
    if not folder.is_dir():
        return None
    try:
        return load(folder, recipe.key)
    except SnapshotError as error:
        discard(folder, f"{error}; it is made again", notice)
        return None


def load(folder: Path, key: str | None = None) -> Snapshot:
    """The snapshot in `folder`; raises SnapshotError where files are missing, short, or of another `key`."""
    manifest = _read_manifest(folder)
    for name, described in manifest["files"].items():
        expected, file = described["size"], folder / name
        actual = file.stat().st_size if file.is_file() else None
        if actual != expected:
            found = "missing" if actual is None else f"{actual} bytes long and not {expected}"
            raise SnapshotError(f"snapshot {folder.name} is damaged: {name} is {found}")
    if key is not None and manifest["key"] != key:
        raise SnapshotError(f"snapshot {folder.name} is of something else")
    return Snapshot(folder.name, folder, str(manifest["sha256"]), float(manifest["seconds"]))


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if isinstance(manifest, dict) and manifest.keys() >= {"files", "key", "sha256", "seconds", "created", "base"}:
            return manifest
    except (OSError, ValueError) as error:
        raise SnapshotError(f"snapshot {folder.name} is damaged: {error}") from error
    raise SnapshotError(f"snapshot {folder.name} is damaged: its manifest is not one")


@contextmanager
def hold(snapshot: Snapshot) -> Iterator[Snapshot]:
    """Keep a snapshot from being removed while the context lasts, and note that it was used.

    Raises SnapshotError where it has gone already.
    """
    lock = Lock.shared(snapshot.folder / USE_LOCK)
    if lock is None:
        raise SnapshotError(f"snapshot {snapshot.id} was removed just now")
    try:
        os.utime(snapshot.folder / USE_LOCK)
        yield snapshot
    finally:
        lock.release()


def discard(folder: Path, why: str, notice: Notice) -> bool:
    """Delete a snapshot that is of no use any more and tell `why`; False where a run still uses it.

    Whoever held it gives it up first.
    """
    notice(why)
    return _retire(folder)


def list_snapshots() -> list[SnapshotSummary]:
    """All snapshots on this machine, the one used last first."""
    folder = snapshots_folder()
    found = [path for path in folder.iterdir() if _is_snapshot(path)] if folder.is_dir() else []
    return sorted((_summary(path) for path in found), key=lambda one: one.used, reverse=True)


def _is_snapshot(path: Path) -> bool:
    return path.is_dir() and not path.name.startswith(".")


def _summary(folder: Path) -> SnapshotSummary:
    try:
        load(folder)
        manifest = _read_manifest(folder)
        created, whole = float(manifest["created"]), Path(manifest["base"]).is_file()
    except SnapshotError:
        created, whole = folder.stat().st_mtime, False
    lock = folder / USE_LOCK
    used = lock.stat().st_mtime if lock.exists() else created
    return SnapshotSummary(folder.name, folder, _taken(folder), created, used, in_use(folder), whole)


def _taken(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.iterdir() if path.is_file())


def in_use(folder: Path) -> bool:
    """Whether somebody holds, makes or removes what is in `folder`."""
    lock = Lock.try_exclusive(folder / USE_LOCK)
    if lock is None:
        return folder.is_dir()
    lock.release()
    return False


def remove(id: str) -> None:
    """Delete a snapshot. Raises RefusedError where there is none of that id, or when a run uses it."""
    if id not in {one.id for one in list_snapshots()}:
        raise RefusedError(f"there is no snapshot {id!r}", remedy="vmlab snapshot ls tells which there are")
    if not _retire(snapshots_folder() / id):
        raise RefusedError(f"snapshot {id} is in use by a run", remedy="wait for the run, or vmlab stop")


def _retire(folder: Path) -> bool:
    """Take a snapshot out of the catalog, then delete it; False when a run uses it."""
    lock = Lock.try_exclusive(folder / USE_LOCK)
    if lock is None:
        return not folder.is_dir()
    try:
        leaving = folder.with_name(f"{LEAVING}{folder.name}-{secrets.token_hex(4)}")
        folder.rename(leaving)
        shutil.rmtree(leaving)
    finally:
        lock.release()
    return True


def sweep_leftovers() -> list[Path]:
    """Remove what makers and removers that were killed left half-done; what went."""
    folder = snapshots_folder()
    unfinished = [*folder.glob(f"{MAKING}*"), *folder.glob(f"{LEAVING}*")]
    left = [path for path in unfinished if path.is_dir() and not in_use(path)]
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return left
